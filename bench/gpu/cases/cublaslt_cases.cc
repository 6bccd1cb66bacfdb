// cuBLASLt as a kernel of the linears: where it is there the same bits each time, and where it is not, ours.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/random.h"
#include "base/text.h"
#include "cases/device_case.h"
#include "ops/linear/linear.h"
#include "ops/linear_add/linear_add.h"
#include "ops/linear_geglu/linear_geglu.h"
#include "ops/linear_qkv/linear_qkv.h"
#include "ops/linear_swiglu/linear_swiglu.h"
#include "runtime/cuda/cublaslt.h"

namespace ridge::cases {

namespace {

std::vector<float> normals(int64_t n, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(static_cast<size_t>(n));
  for (float& v : values) v = random.normal();
  return values;
}

/// Says so and is false where the machine has no cuBLASLt: then there is nothing to show.
bool is_here() {
  if (CublasLt::used().missing().empty()) return true;
  std::printf("     not shown: %s\n", CublasLt::used().describe().c_str());
  return false;
}

/// The kernels ask `library` until this ends.
class Using {
 public:
  explicit Using(CublasLt& library) { CublasLt::use(&library); }
  ~Using() { CublasLt::use(nullptr); }
  Using(const Using&) = delete;
  Using& operator=(const Using&) = delete;
};

/// The kernel that the call gets, "?" when none; and the declines before it.
template <class A>
std::string kernel_of(const A& args, std::string* declines = nullptr) {
  const AnyOperator& op = registered<A>();
  const auto selected = op.select({"cuda", Isa::none}, &args);
  if (!selected.ok()) return "?";
  if (declines != nullptr)
    for (const std::string& d : selected->declines) *declines += d + "\n";
  return op.kernel_name(*selected);
}

/// One of each operator, on a prompt; rows have gaps, and those of one y begin at odd addresses.
struct Calls {
  static constexpr int64_t kTokens = 131, kIn = 264, kOut = 520, kNarrow = 72, kGap = 24;
  LinearArgs linear;
  LinearAddArgs add;
  LinearQkvArgs qkv;
  LinearSwigluArgs swiglu;
  LinearGegluArgs geglu;
  std::vector<Tensor> outputs;  // whole memory, gaps included

  explicit Calls(Bench& bench) {
    const Tensor x = weights(bench, kTokens, 1), w = weights(bench, kOut, 2), u = weights(bench, kOut, 3),
                 k = weights(bench, kNarrow, 4), v = weights(bench, kNarrow, 5);
    const Tensor bias = bench.upload(normals(kOut, 6), {kOut}),
                 residual = bench.upload(normals(kTokens * kOut, 7), {kTokens, kOut}),
                 narrow = bench.upload(normals(kNarrow, 8), {kNarrow});
    linear.y = output(bench, kF32, kOut), linear.x = x, linear.w = w, linear.bias = bias;
    add.y = output(bench, kF32, kOut, 1), add.x = x, add.w = w, add.residual = residual;
    qkv.q = output(bench, kF32, kOut), qkv.k = output(bench, kF32, kNarrow);
    qkv.v = output(bench, kF32, kNarrow);
    qkv.x = x, qkv.w_q = w, qkv.w_k = k, qkv.w_v = v;
    qkv.bias_q = bias, qkv.bias_k = qkv.bias_v = narrow;
    swiglu.y = output(bench, kBF16, kOut), geglu.y = output(bench, kF32, kOut);
    swiglu.x = geglu.x = x, swiglu.w_gate = geglu.w_gate = w, swiglu.w_up = geglu.w_up = u;
  }
  /// Between rows lies NaN.
  static Tensor weights(Bench& bench, int64_t rows, uint64_t seed) {
    std::vector<float> values = normals(rows * (kIn + kGap), seed);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<int64_t>(i) % (kIn + kGap) < kIn ? 0.2f * values[i] : NAN;
    Tensor t = bench.upload_as(kBF16, values, {rows, kIn + kGap});
    t.shape = {rows, kIn};
    return t;
  }
  Tensor output(Bench& bench, DType dtype, int64_t columns, int64_t first = 0) {
    outputs.push_back(bench.output(dtype, {kTokens, columns + kGap}));
    Tensor y = outputs.back();
    y.shape = {kTokens, columns}, y.data = y.as<std::byte>() + first * dtype_block_bytes(dtype);
    return y;
  }
  void clear(Bench& bench) const {
    for (const Tensor& y : outputs) {
      const std::vector<uint8_t> poison(static_cast<size_t>(y.elements() * dtype_block_bytes(y.dtype)), 0xff);
      bench.must(bench.device().upload(y.data, poison.data(), static_cast<int64_t>(poison.size())));
    }
  }
  Status run(CudaStream& s) const {
    RIDGE_TRY(ridge::linear(s, linear));
    RIDGE_TRY(linear_add(s, add));
    RIDGE_TRY(linear_qkv(s, qkv));
    RIDGE_TRY(linear_swiglu(s, swiglu));
    return linear_geglu(s, geglu);
  }
  std::vector<std::string> kernels() const {
    return {kernel_of(linear), kernel_of(add), kernel_of(qkv), kernel_of(swiglu), kernel_of(geglu)};
  }
  std::vector<float> values(Bench& bench) const {
    std::vector<float> all;
    for (const Tensor& y : outputs) {
      const std::vector<float> more = bench.floats(y);
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// As near as sums in another order are, and NaN where nothing may be written.
void expect_close(Bench& bench, const std::vector<float>& got, const std::vector<float>& want) {
  int64_t numbers = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i])) {
      bench.expect(std::isnan(got[i]), text("element ", i, " is ", got[i], ", where nothing may be written"));
    } else {
      bench.expect_near(got[i], want[i], 1e-3 + 0x1p-7 * std::fabs(want[i]), text("element ", i));
      ++numbers;
    }
  }
  bench.expect(numbers > 5 * Calls::kTokens * Calls::kOut, "too few numbers to compare");
}

void the_same_bits_each_time(Bench& bench) {
  if (!is_here()) return;
  const Calls calls(bench);
  for (const std::string& kernel : calls.kernels())
    bench.expect(kernel == "cublaslt", text("the kernel is ", kernel, ", not cublaslt"));
  const auto run = [&](CudaStream& s) { return calls.run(s); };
  bench.run(run);
  const std::vector<float> first = calls.values(bench);
  for (int again = 0; again < 3; ++again) {
    calls.clear(bench);
    bench.run(run);
    bench.expect(same_bits(calls.values(bench), first), text("run ", again + 2, " has other bits"));
  }
  calls.clear(bench);
  bench.must(bench.stream().begin_recording());
  bench.must(run(bench.stream()));
  auto graph = bench.stream().end_recording();
  bench.must(graph.status());
  if (!graph.ok()) return;
  for (int again = 0; again < 2; ++again) {
    calls.clear(bench);
    bench.run([&](CudaStream& s) { return s.launch(**graph); });
    bench.expect(same_bits(calls.values(bench), first), text("replay ", again + 1, " has other bits"));
  }
  CublasLt none("");
  const Using using_none(none);
  calls.clear(bench);
  bench.run(run);
  expect_close(bench, first, calls.values(bench));
}

void without_it_ours(Bench& bench) {
  const Calls calls(bench);
  bench.run([&](CudaStream& s) { return calls.run(s); });
  const std::vector<float> first = calls.values(bench);
  struct Name {
    const char *path, *why;
  };
  for (const Name& name : {Name{"", "RIDGE_CUBLASLT is empty"}, Name{"/dev/null", "cuBLASLt is not here: "},
                           Name{"no-such-library.so", "cuBLASLt is not here: "},
                           Name{"libm.so.6", "libm.so.6 has no cublasLt"}}) {
    CublasLt library(name.path);
    const Using using_it(library);
    std::string declines;
    const std::string kernel = kernel_of(calls.linear, &declines);
    bench.expect(declines.find(text("cublaslt: ")) != std::string::npos &&
                     declines.find(name.why) != std::string::npos,
                 text("named ", name.path, " it declines with ", declines));
    bench.expect(kernel == "gemm_wgmma", text("named ", name.path, " the kernel is ", kernel));
    for (const std::string& other : calls.kernels())
      bench.expect(other != "?" && other != "cublaslt", text("named ", name.path, ": ", other));
    calls.clear(bench);
    bench.run([&](CudaStream& s) { return calls.run(s); });
    expect_close(bench, calls.values(bench), first);
    bench.expect(!library.find({}).ok() && !library.candidates({}, 1, {}).ok(), "it finds what is not there");
  }
}

void few_tokens_are_ours(Bench& bench) {
  const Calls calls(bench);
  for (const auto& [tokens, is_many] : {std::pair{int64_t{64}, false}, std::pair{int64_t{65}, true}}) {
    LinearArgs a = calls.linear;
    a.x = a.x.slice(0, tokens), a.y = a.y.slice(0, tokens);
    const bool wanted = is_many && CublasLt::used().missing().empty();
    bench.expect((kernel_of(a) == "cublaslt") == wanted, text(tokens, " tokens run ", kernel_of(a)));
  }
}

/// A bias lies in a description that threads share.
void from_two_threads(Bench& bench) {
  if (!is_here()) return;
  const Calls calls[] = {Calls(bench), Calls(bench)};
  LinearArgs a[] = {calls[0].linear, calls[1].linear};
  a[1].bias = bench.upload(std::vector<float>(Calls::kOut, 100), {Calls::kOut});
  std::vector<float> want[2];
  for (int i = 0; i < 2; ++i) {
    bench.run([&](CudaStream& s) { return linear(s, a[i]); });
    want[i] = bench.floats(calls[i].outputs[0]);
  }
  CudaStream* const streams[] = {&bench.another_stream(), &bench.another_stream()};
  Status done[2];
  std::thread threads[2];
  for (int i = 0; i < 2; ++i)
    threads[i] = std::thread([&, i] {
      for (int time = 0; time < 200 && done[i].ok(); ++time) done[i] = linear(*streams[i], a[i]);
      if (done[i].ok()) done[i] = streams[i]->synchronize();
    });
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 2; ++i) {
    bench.must(done[i]);
    bench.expect(same_bits(bench.floats(calls[i].outputs[0]), want[i]),
                 text("thread ", i, " has other bits"));
  }
}

/// Few tiles and a long `in`: such a sum goes in parts, through the workspace.
void workspace_at_any_address(Bench& bench) {
  if (!is_here()) return;
  const int64_t tokens = 65, out = 72, in = 16384;
  LinearArgs a;
  a.x = bench.upload_as(kBF16, normals(tokens * in, 1), {tokens, in});
  a.w = bench.upload_as(kBF16, normals(out * in, 2), {out, in});
  a.y = bench.output(kF32, {tokens, out});
  bench.expect(kernel_of(a) == "cublaslt", text("the kernel is ", kernel_of(a)));
  const auto selected = registered<LinearArgs>().select({"cuda", Isa::none}, &a);
  bench.must(selected.status());
  bench.expect(selected.ok() && selected->workspace_bytes > 0,
               "the library takes no workspace for this: nothing is shown, take another shape");
  bench.run([&](CudaStream& s) { return linear(s, a); });
  const std::vector<float> aligned = bench.floats(a.y);
  a.y = bench.output(kF32, {tokens, out});
  CudaStream& other = bench.another_stream();
  other.set_workspace(static_cast<std::byte*>(other.workspace()) + 16, other.workspace_bytes() - 16);
  bench.must(linear(other, a));
  bench.must(other.synchronize());
  bench.expect(same_bits(bench.floats(a.y), aligned), "16 bytes further the workspace makes other bits");
}

/// Both products of all rows would be 275 MiB.
void gated_by_slices(Bench& bench) {
  if (!is_here()) return;
  const int64_t tokens = 3000, inner = 12008, in = 64;
  LinearSwigluArgs a;
  a.x = bench.upload_as(kBF16, normals(tokens * in, 1), {tokens, in});
  a.w_gate = bench.upload_as(kBF16, normals(inner * in, 2), {inner, in});
  a.w_up = bench.upload_as(kBF16, normals(inner * in, 3), {inner, in});
  a.y = bench.output(kBF16, {tokens, inner});
  bench.expect(kernel_of(a) == "cublaslt", text("the kernel is ", kernel_of(a)));
  bench.run([&](CudaStream& s) { return linear_swiglu(s, a); });
  const std::vector<float> got = bench.floats(a.y);
  a.y = bench.output(kBF16, {tokens, inner});
  CublasLt none("");
  const Using using_none(none);
  bench.run([&](CudaStream& s) { return linear_swiglu(s, a); });
  const std::vector<float> want = bench.floats(a.y);
  for (size_t i = 0; i < want.size() && bench.failures() == 0; ++i)
    bench.expect_near(got[i], want[i], 1e-3 + 0x1p-7 * std::fabs(want[i]), text("element ", i));
}

/// 0.48 TFLOP in 300 us would be more than the chip can do: a stamp that waited for the products is nearer.
void its_time_is_all_of_it(Bench& bench) {
  if (!is_here()) return;
  const int64_t tokens = 2048, inner = 14336, in = 4096;
  LinearSwigluArgs a;
  a.x = bench.output(kBF16, {tokens, in}), a.w_gate = bench.output(kBF16, {inner, in});
  a.w_up = bench.output(kBF16, {inner, in}), a.y = bench.output(kBF16, {tokens, inner});
  bench.expect(kernel_of(a) == "cublaslt", text("the kernel is ", kernel_of(a)));
  bench.run([&](CudaStream& s) { return linear_swiglu(s, a); });
  std::vector<KernelLaunch> launches;
  bench.must(bench.stream().prepare_stamps(3));
  bench.run([&](CudaStream& s) -> Status {
    s.note_launches(&launches);
    s.stamp_next(0);
    Status done = linear_swiglu(s, a);
    s.note_launches(nullptr);
    RIDGE_TRY(done);
    s.stamp_next(1);
    RIDGE_TRY(linear_swiglu(s, a));
    return s.stamp_now(2);
  });
  std::vector<int64_t> stamps;
  bench.must(bench.stream().read_stamps(&stamps));
  bench.expect(stamps.size() == 3, text(stamps.size(), " stamps of 3"));
  for (size_t i = 0; i + 1 < stamps.size(); ++i) {
    const auto us = static_cast<double>(stamps[i + 1] - stamps[i]) / 1e3;
    bench.expect(us > 300, text("the call took ", us, " us by its stamps"));
    std::printf("     linear_swiglu of 2048 x 2 x 14336 x 4096: %.0f us, %.0f TFLOP/s\n", us,
                4.0 * static_cast<double>(tokens * inner * in) / us / 1e6);
  }
  for (const KernelLaunch& one : launches)
    bench.expect(one.kernel == "glu_groups", text("a launch of ", one.kernel, " is noted"));
  bench.expect(launches.size() == 1,
               text(launches.size(), " launches are noted, not that of the join alone"));
}

}  // namespace

std::vector<DeviceCase> cublaslt_cases() {
  return {{"cublaslt_same_bits_each_time", the_same_bits_each_time},
          {"cublaslt_missing_ours_run", without_it_ours},
          {"cublaslt_few_tokens_are_ours", few_tokens_are_ours},
          {"cublaslt_from_two_threads", from_two_threads},
          {"cublaslt_workspace_at_any_address", workspace_at_any_address},
          {"cublaslt_gated_by_slices", gated_by_slices, kLarge},
          {"cublaslt_time_is_all_of_it", its_time_is_all_of_it, kLarge}};
}

}  // namespace ridge::cases
