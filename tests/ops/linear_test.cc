// What conformance does not reach: the packed layout itself, results that must not depend on the batch or the
// threads, far offsets, refusals.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <cstring>
#include <map>
#include <vector>

#include "base/random.h"
#include "kernels/rows16/rows16.h"
#include "kernels/rows16/unpack.h"
#include "ops/embedding/embedding.h"
#include "ops/linear/linear.h"
#include "ops/operator_call.h"
#include "ops/quantize_rows/quantize_rows.h"
#include "runtime/cpu/cpu_device.h"
#include "sanitized.h"
#include "tensor/blocks.h"

namespace ridge {
namespace {

constexpr DType kTypes[] = {kF32, kF16, kBF16, kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ4_K, kQ6_K};

/// A random [rows, columns] matrix as in the file, and packed.
struct Weights {
  std::vector<uint8_t> raw;
  Buffer memory;
  Tensor file, packed;

  Weights(DType dtype, int64_t rows, int64_t columns, uint64_t seed) {
    Random random(seed);
    raw.resize(static_cast<size_t>(tensor_bytes(dtype, {rows, columns}).take()));
    file = Tensor(raw.data(), dtype, {rows, columns});
    std::vector<float> row(static_cast<size_t>(columns));
    for (int64_t r = 0; r < rows; ++r) {
      for (float& v : row) v = random.normal();
      const int64_t row_bytes = columns / dtype_block(dtype) * dtype_block_bytes(dtype);
      if (is_block_quantized(dtype))
        encode_row(dtype, row.data(), columns, raw.data() + r * row_bytes);
      else
        for (int64_t c = 0; c < columns; ++c) file.set(row[static_cast<size_t>(c)], r, c);
    }
    const PackedLayout* layout = rows16::layout(dtype);
    memory = Buffer::allocate(layout->bytes(rows, columns)).take();
    rows16::pack(file, *layout, memory.data(), 0, rows);
    packed = Tensor(memory.data(), dtype, {rows, columns});
    packed.layout = layout;
  }
};

struct Team {
  std::unique_ptr<CpuDevice> device;
  std::unique_ptr<Stream> stream;
  Buffer workspace;
  explicit Team(int threads, Isa isa = Isa::none) {
    CpuOptions options;
    options.threads = threads, options.isa = isa, options.crossover_bytes = 0;
    device = CpuDevice::create(options).take();
    stream = device->create_stream().take();
    workspace = Buffer::allocate(8 << 20).take();
    stream->set_workspace(workspace.data(), workspace.bytes());
  }
};

std::vector<float> randoms(int64_t n, uint64_t seed) {
  Random random(seed);
  std::vector<float> out(static_cast<size_t>(n));
  for (float& v : out) v = random.normal();
  return out;
}

TEST(Rows16, every_packed_row_decodes_to_the_values_of_the_file) {
  for (const DType dtype : kTypes)
    for (const int64_t columns : {256, 512, 768}) {
      const Weights w(dtype, 19, columns, 3);
      std::vector<float> row(static_cast<size_t>(columns));
      for (int64_t r = 0; r < 19; ++r) {
        rows16::decode_row(dtype, w.packed.data, columns, r, row.data());
        for (int64_t c = 0; c < columns; ++c)
          ASSERT_EQ(row[static_cast<size_t>(c)], static_cast<float>(w.file.f64(r, c)))
              << dtype_name(dtype) << " " << r << " " << c;
      }
    }
}

TEST(Rows16, unpacking_gives_back_the_bytes_of_the_file) {
  for (const DType dtype : kTypes)
    for (const int64_t columns : {256, 512, 768}) {
      const Weights w(dtype, 19, columns, 3);
      std::vector<uint8_t> back(w.raw.size(), 0xA5);
      rows16::unpack(w.packed, back.data());
      EXPECT_EQ(back, w.raw) << dtype_name(dtype) << " " << columns;
    }
}

TEST(Rows16, disjoint_ranges_pack_to_the_same_bytes_as_one) {
  for (const DType dtype : kTypes) {
    const Weights w(dtype, 50, 256, 4);
    const PackedLayout* layout = rows16::layout(dtype);
    Buffer parts = Buffer::allocate(layout->bytes(50, 256)).take();
    for (const auto& [first, last] : {std::pair{32, 50}, {0, 16}, {16, 32}})
      rows16::pack(w.file, *layout, parts.data(), first, last);
    EXPECT_EQ(std::memcmp(parts.data(), w.memory.data(), static_cast<size_t>(parts.bytes())), 0)
        << dtype_name(dtype);
  }
}

TEST(Rows16, K40_bytes_a_row_are_those_of_the_file_up_to_three_percent) {
  EXPECT_EQ(rows16::layout(kQ8_0)->bytes(16, 576), 16 * 612);
  EXPECT_EQ(rows16::layout(kQ5_0)->bytes(16, 576), 16 * 396);
  EXPECT_EQ(rows16::layout(kQ4_1)->bytes(16, 576), 16 * 360);
  EXPECT_EQ(rows16::layout(kQ4_0)->bytes(16, 576), 16 * 324);
  EXPECT_EQ(rows16::layout(kQ4_K)->bytes(16, 512), 16 * 2 * 148);
  EXPECT_EQ(rows16::layout(kQ6_K)->bytes(16, 512), 16 * 2 * 212);
  for (const DType dtype : {kQ4_K, kQ6_K}) {
    const auto bytes = tensor_bytes(dtype, {4, 576});
    ASSERT_FALSE(bytes.ok()) << "576 columns were padded, or another format was taken in silence";
    for (const char* part : {"576", dtype_name(dtype), "256"})
      EXPECT_NE(bytes.status().message().find(part), std::string::npos) << bytes.status().message();
  }
}

/// 300 rows of x, made once for each width.
const std::vector<float>& activations(int64_t in) {
  static std::map<int64_t, std::vector<float>> all;
  std::vector<float>& x = all[in];
  if (x.empty()) x = randoms(300 * in, 7);
  return x;
}

/// Rows of y for x [tokens, in] of f32, bf16 or codes.
std::vector<float> multiply(Team& cpu, const Weights& w, DType x_dtype, int64_t first, int64_t tokens) {
  const int64_t in = w.packed.dim(1), out = w.packed.dim(0);
  const std::vector<float>& x = activations(in);
  std::vector<float> y(static_cast<size_t>(tokens * out), NAN), scale(static_cast<size_t>(tokens * in / 32));
  std::vector<int8_t> codes(static_cast<size_t>(tokens * in));
  std::vector<bf16> half(static_cast<size_t>(tokens * in));
  LinearArgs a;
  a.y = Tensor(y.data(), {tokens, out}), a.w = w.packed;
  a.x = Tensor(x.data() + first * in, {tokens, in});
  if (x_dtype == kI8) {
    QuantizeRowsArgs q{Tensor(codes.data(), {tokens, in}), Tensor(scale.data(), {tokens, in / 32}), a.x};
    EXPECT_TRUE(quantize_rows(*cpu.stream, q).ok());
    a.x = q.q, a.x_scale = q.scale;
  } else if (x_dtype == kBF16) {
    for (size_t i = 0; i < half.size(); ++i) half[i] = to_bf16(a.x.as<float>()[i]);
    a.x = Tensor(half.data(), {tokens, in});
  }
  const Status s = linear(*cpu.stream, a);
  EXPECT_TRUE(s.ok()) << s.message();
  return y;
}

TEST(Linear, K9_a_row_is_bitwise_the_same_in_every_batch) {
  for (const Isa isa : tests::isas()) {
    Team cpu(2, isa);
    for (const DType dtype : kTypes) {
      const Weights w(dtype, 40, 256, 5);
      for (const DType x : {kF32, kBF16, kI8}) {
        if (x == kI8 && !is_block_quantized(dtype)) continue;
        const auto alone = multiply(cpu, w, x, 256, 1);
        for (const int64_t tokens : {2, 3, 5, 9, 17, 64, 257}) {
          const auto batch = multiply(cpu, w, x, 257 - tokens, tokens);
          ASSERT_EQ(std::memcmp(batch.data() + (tokens - 1) * 40, alone.data(), 40 * 4), 0)
              << dtype_name(dtype) << " x " << dtype_name(x) << " tokens " << tokens << " " << isa_name(isa);
        }
      }
    }
  }
}

TEST(Linear, K46_results_do_not_depend_on_the_number_of_threads) {
  for (const Isa isa : tests::isas())
    for (const DType dtype : kTypes) {
      const Weights w(dtype, 40, 256, 6);
      for (const DType x : {kF32, kI8}) {
        if (x == kI8 && !is_block_quantized(dtype)) continue;
        for (const int64_t tokens : {1, 6, 70, 257}) {
          Team one(1, isa);
          const auto want = multiply(one, w, x, 0, tokens);
          for (const int threads : {2, 3, 7}) {
            if (kSanitized && threads < 7) continue;
            Team many(threads, isa);
            EXPECT_EQ(multiply(many, w, x, 0, tokens), want) << dtype_name(dtype) << " " << threads;
          }
        }
      }
    }
}

using WideCase = std::tuple<Isa, std::pair<DType, DType>>;  // of w and of x
class WideLinear : public testing::TestWithParam<WideCase> {};

/// K9's and K46's own size, K = 4096 and N = 1024, where one would split K.
TEST_P(WideLinear, K9_K46_a_row_is_bitwise_the_same_in_every_batch_and_with_any_number_of_threads) {
  constexpr int64_t kIn = 4096, kOut = kSanitized ? 64 : 1024, kMost = 129;
  const auto [isa, types] = GetParam();
  const Weights w(types.first, kOut, kIn, 5);
  Team one(1, isa);
  const auto want = multiply(one, w, types.second, 0, kMost);
  for (const int threads : {1, 2, 3, 7}) {
    Team cpu(threads, isa);
    for (const int64_t tokens : {int64_t{1}, int64_t{2}, int64_t{17}, kMost}) {
      if (threads < 7 && tokens == kMost) continue;  // the longest: the most threads against one
      const int64_t first = kMost - tokens;
      const auto batch = multiply(cpu, w, types.second, first, tokens);
      ASSERT_EQ(std::memcmp(batch.data(), want.data() + first * kOut, batch.size() * 4), 0)
          << tokens << " tokens, " << threads << " threads";
    }
  }
}
INSTANTIATE_TEST_SUITE_P(, WideLinear,
                         testing::Combine(testing::ValuesIn(tests::isas()),
                                          testing::Values(std::pair{kBF16, kBF16}, std::pair{kF32, kF32},
                                                          std::pair{kQ8_0, kI8}, std::pair{kQ4_1, kI8})),
                         [](const auto& i) {
                           return text(isa_name(std::get<0>(i.param)), "_",
                                       dtype_name(std::get<1>(i.param).first));
                         });

/// Activations beyond what a thread packs at a time, in tokens of its own and in those that threads share.
TEST(Linear, K46_nor_do_they_where_a_thread_packs_its_tokens_in_several_chunks) {
  const Weights w(kQ8_0, 20, 8192, 6);
  Team one(1);
  const auto want = multiply(one, w, kI8, 0, 257), last = multiply(one, w, kI8, 256, 1);
  EXPECT_EQ(std::vector<float>(want.end() - 20, want.end()), last);
  for (const int threads : {2, 3}) {
    Team many(threads);
    EXPECT_EQ(multiply(many, w, kI8, 0, 257), want) << threads;
  }
}

TEST(Linear, K4_rows_of_x_and_y_further_apart_than_31_bits_are_found) {
  const int64_t far = (int64_t{1} << 31) + 64, bytes = far * 4 + 4096;
  const auto reserve = [&] {
    return static_cast<float*>(mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  };
  float *x = reserve(), *y = reserve();
  ASSERT_NE(static_cast<void*>(x), MAP_FAILED);
  ASSERT_NE(static_cast<void*>(y), MAP_FAILED);
  for (int64_t k = 0; k < 64; ++k) x[k] = 1, x[far + k] = 2;
  Weights w(kBF16, 8, 64, 1);
  for (int64_t r = 0; r < 8; ++r)
    for (int64_t k = 0; k < 64; ++k) w.file.set(1, r, k);
  rows16::pack(w.file, *w.packed.layout, w.memory.data(), 0, 8);
  LinearArgs a;
  a.x = Tensor(x, {2, 64}), a.y = Tensor(y, {2, 8}), a.w = w.packed;
  a.x.strides[0] = a.y.strides[0] = far;
  Team cpu(2);
  ASSERT_TRUE(linear(*cpu.stream, a).ok());
  for (int64_t r = 0; r < 8; ++r) {
    EXPECT_EQ(y[r], 64);
    EXPECT_EQ(y[far + r], 128);
  }
  munmap(x, static_cast<size_t>(bytes)), munmap(y, static_cast<size_t>(bytes));
}

TEST(Linear, K1_a_tile_wider_than_the_matrix_writes_no_further) {
  for (const Isa isa : tests::isas())
    for (const DType dtype : {kF32, kF16, kBF16})
      for (const DType x_dtype : {kF32, kBF16})
        for (const int64_t out : {127, 128, 129}) {
          std::vector<float> ones(33 * 127, 1);
          std::vector<bf16> narrow(33 * 127, to_bf16(1));
          Weights w(dtype, out, 127, 1);
          for (int64_t r = 0; r < out; ++r)
            for (int64_t k = 0; k < 127; ++k) w.file.set(1, r, k);
          rows16::pack(w.file, *w.packed.layout, w.memory.data(), 0, out);
          std::vector<float> y(33 * 192, -5);
          LinearArgs a;
          a.x = x_dtype == kF32 ? Tensor(ones.data(), {33, 127}) : Tensor(narrow.data(), {33, 127});
          a.y = Tensor(y.data(), {33, out}), a.w = w.packed;
          a.y.strides[0] = 192;
          Team cpu(2, isa);
          ASSERT_TRUE(linear(*cpu.stream, a).ok());
          for (size_t i = 0; i < y.size(); ++i)
            ASSERT_EQ(y[i], static_cast<int64_t>(i % 192) < out ? 127 : -5)
                << i << " of " << out << ", w " << dtype_name(dtype) << ", x " << dtype_name(x_dtype) << ", "
                << isa_name(isa);
        }
}

TEST(Linear, residual_may_be_the_output) {
  const Weights w(kQ8_0, 40, 256, 8);
  Team cpu(2);
  const auto product = multiply(cpu, w, kF32, 0, 20);
  const auto x = randoms(300 * 256, 7);
  std::vector<float> y(20 * 40, 3);
  LinearArgs a;
  a.x = Tensor(x.data(), {20, 256}), a.y = Tensor(y.data(), {20, 40}), a.w = w.packed, a.residual = a.y;
  ASSERT_TRUE(linear(*cpu.stream, a).ok());
  for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], product[i] + 3);
}

TEST(Linear, refuses_codes_without_scales_and_codes_times_plain_weights) {
  const Weights q(kQ8_0, 16, 64, 1), plain(kF16, 16, 64, 1);
  std::vector<int8_t> codes(64);
  std::vector<float> y(16), scale(2, 1.0f);
  Team cpu(1);
  LinearArgs a;
  a.x = Tensor(codes.data(), {1, 64}), a.y = Tensor(y.data(), {1, 16}), a.w = q.packed;
  EXPECT_NE(linear(*cpu.stream, a).message().find("x_scale is missing"), std::string::npos);
  a.x_scale = Tensor(scale.data(), {1, 2}), a.w = plain.packed;
  EXPECT_NE(linear(*cpu.stream, a).message().find("needs a block-quantized w"), std::string::npos);
  a.w = q.packed, a.x_scale = Tensor(scale.data(), {1, 1});
  EXPECT_NE(linear(*cpu.stream, a).message().find("needs in / 32 = 2"), std::string::npos);
}

TEST(Linear, a_block_that_is_not_finite_makes_its_row_NaN_and_no_other) {
  const Weights w(kQ4_0, 16, 64, 1);
  Team cpu(1);
  std::vector<float> x(2 * 64, 0.5f), y(32), scale(4);
  std::vector<int8_t> codes(2 * 64);
  x[70] = INFINITY;
  QuantizeRowsArgs q{Tensor(codes.data(), {2, 64}), Tensor(scale.data(), {2, 2}), Tensor(x.data(), {2, 64})};
  ASSERT_TRUE(quantize_rows(*cpu.stream, q).ok());
  LinearArgs a;
  a.x = q.q, a.x_scale = q.scale, a.w = w.packed, a.y = Tensor(y.data(), {2, 16});
  ASSERT_TRUE(linear(*cpu.stream, a).ok());
  for (int i = 0; i < 16; ++i) {
    EXPECT_TRUE(std::isfinite(y[static_cast<size_t>(i)]));
    EXPECT_TRUE(std::isnan(y[static_cast<size_t>(16 + i)]));
  }
}

TEST(Embedding, a_packed_table_gives_the_rows_of_the_file) {
  Team cpu(2);
  for (const DType dtype : kTypes) {
    const Weights w(dtype, 37, 256, 9);
    std::vector<int64_t> ids = {36, 0, 17};
    std::vector<float> from_file(3 * 256), from_packed(3 * 256);
    EmbeddingArgs a{Tensor(from_file.data(), {3, 256}), Tensor(ids.data(), {3}), w.file, 1.0f};
    ASSERT_TRUE(embedding(*cpu.stream, a).ok());
    a.y = Tensor(from_packed.data(), {3, 256}), a.w = w.packed;
    ASSERT_TRUE(embedding(*cpu.stream, a).ok());
    EXPECT_EQ(from_file, from_packed) << dtype_name(dtype);
    for (int64_t c = 0; c < 256; ++c)
      ASSERT_EQ(from_file[static_cast<size_t>(c)], static_cast<float>(w.file.f64(36, c)));
  }
}

TEST(Embedding, an_id_outside_the_table_is_named_and_nothing_is_written) {
  Team cpu(1);
  const Weights w(kF32, 5, 8, 1);
  for (const int64_t bad : {int64_t{5}, int64_t{-1}, int64_t{1} << 40}) {
    std::vector<int64_t> ids = {2, bad};
    std::vector<float> y(16, -3);
    const EmbeddingArgs a{Tensor(y.data(), {2, 8}), Tensor(ids.data(), {2}), w.file, 1.0f};
    const Status s = embedding(*cpu.stream, a);
    EXPECT_NE(s.message().find(text("ids[1] is ", bad, ", the table has 5 rows")), std::string::npos)
        << s.message();
    EXPECT_EQ(y, std::vector<float>(16, -3));
  }
}

}  // namespace
}  // namespace ridge
