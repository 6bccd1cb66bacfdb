// What linear must not cost: a second thread never makes it slower, no weight format is far behind its kind.
// Other work on the machine only adds time, so each figure is the least of many, taken in turn.

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "base/random.h"
#include "busy.h"
#include "ops/linear/linear.h"
#include "ops/quantize_rows/quantize_rows.h"
#include "ops/registry.h"
#include "runtime/cpu/cpu_device.h"
#include "tensor/blocks.h"
#include "tensor/packed.h"

namespace ridge {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kClock = 50e-9;  // seconds that reading the clock twice takes, and moves by

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// linear over a packed [out, in] matrix and `tokens` rows of x, on a device of its own.
class Product {
 public:
  Product(DType w_dtype, DType x_dtype, int64_t tokens, int64_t out, int64_t in, const CpuOptions& cpu)
      : device_(CpuDevice::create(cpu).take()), stream_(device_->create_stream().take()) {
    fill_w(w_dtype, out, in);
    y_.resize(static_cast<size_t>(tokens * out));
    args_.y = Tensor(y_.data(), {tokens, out});
    fill_x(x_dtype, tokens, in);
    workspace_ = Buffer::allocate(8 << 20).take();
    stream_->set_workspace(workspace_.data(), workspace_.bytes());
  }
  double seconds() {
    const auto begin = Clock::now();
    run();
    return seconds_since(begin);
  }
  /// Processor time of the calling thread.
  double cpu_seconds() {
    timespec first{}, last{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &first);
    run();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &last);
    return static_cast<double>(last.tv_sec - first.tv_sec) +
           static_cast<double>(last.tv_nsec - first.tv_nsec) * 1e-9;
  }

 private:
  void run() {
    const Status s = linear(*stream_, args_);
    EXPECT_TRUE(s.ok()) << s.message();
  }
  void fill_w(DType dtype, int64_t out, int64_t in) {
    // One row of values again and again: speed does not depend on them, and encoding takes long.
    Random random(1);
    std::vector<float> row(static_cast<size_t>(in));
    for (float& v : row) v = random.normal();
    const int64_t row_bytes = in / dtype_block(dtype) * dtype_block_bytes(dtype);
    std::vector<std::byte> raw(static_cast<size_t>(out * row_bytes));
    if (is_block_quantized(dtype)) {
      encode_row(dtype, row.data(), in, raw.data());
    } else {
      const Tensor first(raw.data(), dtype, {in});
      for (int64_t c = 0; c < in; ++c) first.set(row[static_cast<size_t>(c)], c);
    }
    for (int64_t r = 1; r < out; ++r) std::copy_n(raw.data(), row_bytes, raw.data() + r * row_bytes);
    const Tensor file(raw.data(), dtype, {out, in});
    const AnyOperator& op = *find_operator("linear");
    const PackedLayout* layout = op.packed_layout(device_->target(), dtype, file.shape);
    ASSERT_NE(layout, nullptr) << dtype_name(dtype);
    w_ = Buffer::allocate(layout->bytes(out, in), Pages::kHuge).take();
    op.pack_rows(file, *layout, w_.data(), 0, out);
    args_.w = Tensor(w_.data(), dtype, {out, in});
    args_.w.layout = layout;
  }
  void fill_x(DType dtype, int64_t tokens, int64_t in) {
    Random random(2);
    x_.resize(static_cast<size_t>(tokens * in));
    for (float& v : x_) v = random.normal();
    args_.x = Tensor(x_.data(), {tokens, in});
    if (dtype != kI8) return;
    codes_.resize(x_.size()), scale_.resize(x_.size() / 32);
    const QuantizeRowsArgs q{Tensor(codes_.data(), {tokens, in}), Tensor(scale_.data(), {tokens, in / 32}),
                             args_.x};
    ASSERT_TRUE(quantize_rows(*stream_, q).ok());
    args_.x = q.q, args_.x_scale = q.scale;
  }

  std::unique_ptr<CpuDevice> device_;
  std::unique_ptr<Stream> stream_;
  Buffer w_, workspace_;
  std::vector<float> x_, y_, scale_;
  std::vector<int8_t> codes_;
  LinearArgs args_;
};

TEST(LinearSpeed, K10_a_second_thread_never_makes_a_matrix_slower) {
  if (allowed_cores() < 2) GTEST_SKIP() << "one core: a second thread has none";
  std::string busy;  // sizes that could not be judged: the others are
  for (const DType x : {kI8, kF32})
    for (const int64_t kib : {16, 32, 64, 96, 128, 192, 256, 512, 1024}) {
      const int64_t in = 256, out = kib * 1024 / (in / 32 * 34) / 16 * 16;  // q8_0: 34 bytes of 32 weights
      Product one(kQ8_0, x, 1, out, in, {.threads = 1}), two(kQ8_0, x, 1, out, in, {.threads = 2});
      double best_one = HUGE_VAL, best_two = HUGE_VAL;
      // Until it holds: with the cores taken by others, a moment when both are free may be long in coming.
      const auto begin = Clock::now();
      for (int run = 0; run < 200 || (best_two > 1.05 * best_one + kClock && seconds_since(begin) < 10);
           ++run)
        best_one = std::min(best_one, one.seconds()), best_two = std::min(best_two, two.seconds());
      std::printf("  x %s, %4lld KiB: 1 thread %6.2f us, 2 threads %6.2f us, ratio %.2f\n", dtype_name(x),
                  static_cast<long long>(kib), best_one * 1e6, best_two * 1e6, best_two / best_one);
      const double cores = best_two > 1.05 * best_one + kClock ? cores_for_two_threads() : 2;
      if (cores < 1.8)
        busy += text("; ", kib, " KiB, x ", dtype_name(x), ": two threads have ",
                     std::round(cores * 100) / 100, " cores");
      else
        EXPECT_LE(best_two, 1.05 * best_one + kClock) << kib << " KiB, x " << dtype_name(x);
    }
  if (!busy.empty()) GTEST_SKIP() << "the machine is busy" << busy;
}

/// The best time of each weight format, measured in turn; tokens are few where the set is slow.
void compare_formats(Isa isa, DType x, const std::vector<DType>& formats) {
  const int64_t n = 2048, tokens = isa == Isa::scalar ? 16 : 512;
  std::vector<double> best(formats.size(), HUGE_VAL);
  std::vector<std::unique_ptr<Product>> products;
  for (const DType format : formats)
    products.push_back(
        std::make_unique<Product>(format, x, tokens, n, n, CpuOptions{.threads = 1, .isa = isa}));
  for (int run = 0; run < 4; ++run)
    for (size_t i = 0; i < formats.size(); ++i) best[i] = std::min(best[i], products[i]->cpu_seconds());
  const double fastest = *std::min_element(best.begin(), best.end());
  for (size_t i = 0; i < formats.size(); ++i) {
    std::printf("  %s, x %s, w %s: %.1f GFLOP/s, %.2f of the best\n", isa_name(isa), dtype_name(x),
                dtype_name(formats[i]), 2e-9 * double(tokens * n * n) / best[i], fastest / best[i]);
    EXPECT_GE(fastest / best[i], 0.5)
        << isa_name(isa) << ", x " << dtype_name(x) << ", w " << dtype_name(formats[i]);
  }
}

TEST(LinearSpeed, K11_every_weight_format_reaches_half_the_rate_of_the_best_of_its_kind) {
  const std::vector<DType> quantized = {kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ4_K, kQ6_K},
                           plain = {kF32, kF16, kBF16};
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
    if (isa > native_isa()) continue;
    compare_formats(isa, kI8, quantized);
    compare_formats(isa, kF32, quantized);
    // The compiler makes vectors of its own of some plain loops of the scalar set, and of others not.
    if (isa != Isa::scalar) compare_formats(isa, kF32, plain);
  }
}

}  // namespace
}  // namespace ridge
