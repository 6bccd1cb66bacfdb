#include <cuda_runtime_api.h>

#include <cstring>

#include "base/random.h"
#include "base/text.h"
#include "cases/device_case.h"
#include "ops/add/add.h"
#include "ops/add_rms_norm/add_rms_norm.h"
#include "ops/embedding/embedding.h"
#include "ops/gather_rows/gather_rows.h"
#include "ops/kv_write/kv_write.h"
#include "ops/linear/linear.h"
#include "ops/linear_rope_kv/linear_rope_kv.h"
#include "ops/rms_norm/rms_norm.h"
#include "ops/rope/rope.h"
#include "ops/rope/rope_frequencies.h"
#include "ops/rope_kv_write/rope_kv_write.h"

namespace ridge::cases {

namespace {

void k23_odd_rows_off_alignment(Bench& bench) {
  for (const int64_t hidden : {1, 2, 3, 7, 46, 576, 2560, 3584, 3586})
    for (const DType dtype : {kF32, kBF16}) {
      bench.free_memory();
      std::vector<float> x(static_cast<size_t>(hidden + 1), 3);
      for (size_t i = 0; i < x.size(); i += 2) x[i] = -3;
      Tensor rows = bench.upload_as(dtype, x, {hidden + 1});
      rows.data = static_cast<std::byte*>(rows.data) + dtype_block_bytes(dtype);
      rows.shape = {1, hidden}, rows.strides = {hidden, 1};
      const Tensor y = bench.output(kF32, {1, hidden});
      const Tensor w = bench.upload(std::vector<float>(static_cast<size_t>(hidden), 1), {hidden});
      bench.run([&](CudaStream& s) { return rms_norm(s, {.y = y, .x = rows, .w = w, .epsilon = 0}); });
      const std::vector<float> got = bench.floats(y);
      for (size_t i = 0; i < got.size(); ++i)
        bench.expect_near(got[i], i % 2 == 0 ? 1 : -1, 1e-6, text("hidden ", hidden));
      if (bench.failures() > 0) return;
    }
}

void k24_rows_beyond_31_bits(Bench& bench) {
  // 2^31 is crossed in row 174762 of bf16; three rows are filled, the others never looked at.
  const int64_t rows = 175000, hidden = 12288;
  Tensor x(bench.memory(rows * hidden * 2), kBF16, {rows, hidden}),
      y(bench.memory(rows * hidden * 2), kBF16, {rows, hidden});
  const std::vector<bf16> twos(static_cast<size_t>(hidden), to_bf16(2));
  bench.must(cuda_status(cudaMemset(x.data, 0, static_cast<size_t>(rows * hidden * 2)), "cudaMemset"));
  for (const int64_t r : {int64_t{174762}, int64_t{174763}, rows - 1})
    bench.must(bench.device().upload(x.as<bf16>() + r * hidden, twos.data(), hidden * 2));
  const Tensor w = bench.upload(std::vector<float>(static_cast<size_t>(hidden), 1), {hidden});
  bench.run([&](CudaStream& s) { return rms_norm(s, {.y = y, .x = x, .w = w, .epsilon = 1e-30f}); });
  for (const int64_t r : {int64_t{174762}, int64_t{174763}, rows - 1}) {
    const Tensor row(y.as<bf16>() + r * hidden, {hidden});
    for (const float v : bench.floats(row)) bench.expect_near(v, 1, 0, text("row ", r));
  }
}

void k25_rotates_what_it_is_told(Bench& bench) {
  std::vector<float> frequencies;
  for (int i = 0; i < 32; ++i) frequencies.push_back(static_cast<float>(std::pow(1e4, -i / 32.0)));
  for (const bool interleaved : {false, true}) {
    const Tensor x = bench.upload(std::vector<float>(128, 1), {1, 1, 128});
    const Tensor positions = bench.upload(std::vector<int64_t>{1}, {1}),
                 table = bench.upload(frequencies, {32});
    bench.run([&](CudaStream& s) {
      return rope(s, {.x = x, .positions = positions, .frequencies = table, .interleaved = interleaved});
    });
    const std::vector<float> got = bench.floats(x);
    bench.expect_near(got[0], -0.301169, 1e-6, "out[0]");
    bench.expect_near(got[interleaved ? 1 : 32], 1.381773, 1e-6, "its partner");
    for (size_t i = 64; i < 128; ++i) bench.expect_near(got[i], 1, 0, "what is not rotated");
  }
}

void k26_positions_of_64_bits(Bench& bench) {
  const Tensor table = bench.upload(std::vector<float>{1}, {1});
  for (const bool wide : {false, true}) {
    const Tensor x = bench.upload(std::vector<float>{1, 0, 1, 0}, {2, 1, 2});
    const Tensor positions =
        wide ? bench.upload(std::vector<int64_t>{7, 9}, {2}) : bench.upload(std::vector<int32_t>{7, 9}, {2});
    bench.run([&](CudaStream& s) { return rope(s, {.x = x, .positions = positions, .frequencies = table}); });
    const std::vector<float> got = bench.floats(x);
    bench.expect_near(got[0], std::cos(7.0), 1e-6, "cos 7"),
        bench.expect_near(got[2], std::cos(9.0), 1e-6, "cos 9");
  }
}

/// Pair 32 of the llama3 scaling at position 60,000, beside the same without scaling.
void k27_long_wavelengths_are_scaled(Bench& bench) {
  for (const bool scaled : {true, false}) {
    RopeConfig config;
    config.type = scaled ? "llama3" : "default", config.rotary_dim = 128, config.base = 5e5;
    if (scaled) config.factor = 8, config.original = 8192;
    const auto made = rope_frequencies(config);
    bench.must(made.status());
    std::vector<float> x(128, 0);
    x[32] = 1;
    const Tensor there = bench.upload(x, {1, 1, 128}), table = bench.upload(made->frequencies, {64}),
                 positions = bench.upload(std::vector<int64_t>{60000}, {1});
    bench.run(
        [&](CudaStream& s) { return rope(s, {.x = there, .positions = positions, .frequencies = table}); });
    bench.expect_near(bench.floats(there)[32], scaled ? 0.997201 : -0.999556, 1e-6,
                      scaled ? "cos of the scaled pair" : "cos of the plain pair");
  }
}

/// A residual beyond what f16 holds: the stream is f32 or bf16, and stays finite.
void k34_large_residuals_stay_finite(Bench& bench) {
  for (const DType dtype : {kF32, kBF16}) {
    const Tensor a = bench.upload_as(dtype, std::vector<float>(8, 60000), {1, 8});
    const Tensor y = bench.output(dtype, {1, 8});
    bench.run([&](CudaStream& s) { return add(s, {.y = y, .a = a, .b = a}); });
    for (const float got : bench.floats(y))
      bench.expect_near(got, dtype == kF32 ? 120000 : 119808, 0, "a + b");
  }
  const Tensor a = bench.upload(std::vector<float>(8, 60000), {1, 8}),
               w = bench.upload(std::vector<float>(8, 1), {8});
  const Tensor sum = bench.output(kF32, {1, 8}), y = bench.output(kF32, {1, 8});
  bench.run([&](CudaStream& s) { return add_rms_norm(s, {.sum = sum, .y = y, .a = a, .b = a, .w = w}); });
  for (const float got : bench.floats(sum)) bench.expect_near(got, 120000, 0, "the sum");
  for (const float got : bench.floats(y)) bench.expect_near(got, 1, 1e-6, "its norm");
}

/// norm -> linear -> kv write, replayed beside a stream that fills the SMs: the bits of the plain chain.
void k28_overlapped_launches_keep_their_order(Bench& bench) {
  const int64_t hidden = 512, heads = 4, head_dim = 64;
  std::vector<float> x(hidden), weights(static_cast<size_t>(heads * head_dim * hidden));
  Random random(28);
  for (float& v : x) v = random.normal();
  for (float& v : weights) v = random.normal();
  const Tensor in = bench.upload(x, {1, hidden}),
               norm = bench.upload(std::vector<float>(hidden, 1), {hidden});
  const Tensor w = bench.upload_as(kBF16, weights, {heads * head_dim, hidden});
  const Tensor normed = bench.output(kF32, {1, hidden}), k = bench.output(kF32, {1, heads * head_dim});
  const Tensor slots = bench.upload(std::vector<int64_t>{5}, {1});
  KvWriteArgs write;
  write.k = Tensor(k.data, kF32, {1, heads, head_dim}), write.v = write.k, write.slots = slots;
  write.k_pages = bench.output(kBF16, {1, heads, 16, head_dim}),
  write.v_pages = bench.output(kBF16, {1, heads, 16, head_dim});
  const auto chain = [&](CudaStream& s) -> Status {
    RIDGE_TRY(rms_norm(s, {.y = normed, .x = in, .w = norm}));
    RIDGE_TRY(linear(s, {.y = k, .x = normed, .w = w}));
    return kv_write(s, write);
  };
  bench.run(chain);
  const std::vector<bf16> plain = bench.download<bf16>(write.k_pages);
  CudaStream& beside = bench.another_stream();
  const Tensor big = bench.output(kF32, {64, 4096}),
               big_in = bench.upload(std::vector<float>(64 * 4096, 1), {64, 4096});
  const Tensor big_w = bench.output(kBF16, {4096, 4096});
  for (int i = 0; i < 200; ++i) bench.must(linear(beside, {.y = big, .x = big_in, .w = big_w}));
  for (int round = 0; round < 10; ++round) {
    bench.must(cuda_status(cudaMemset(write.k_pages.data, 0xff, plain.size() * 2), "cudaMemset"));
    bench.replay(chain, 1000);
    const std::vector<bf16> got = bench.download<bf16>(write.k_pages);
    bench.expect(std::memcmp(plain.data(), got.data(), plain.size() * 2) == 0,
                 text("round ", round, " differs"));
  }
  bench.must(beside.synchronize());
}

void k42_slots_of_odd_heads(Bench& bench) {
  const int64_t d = 46, tokens = 33;
  std::vector<float> x(static_cast<size_t>(tokens * d));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 1024);
  std::vector<int64_t> slots(tokens, -1);
  for (int64_t t = 0; t < tokens; ++t)
    if (t % 5 != 4) slots[t] = (t * 7) % 48;
  KvWriteArgs a;
  a.k = bench.upload(x, {tokens, 1, d}), a.v = a.k;
  a.k_pages = bench.output(kF16, {3, 1, 16, d}), a.v_pages = bench.output(kF32, {3, 1, 16, d});
  a.slots = bench.upload(slots, {tokens});
  bench.run([&](CudaStream& s) { return kv_write(s, a); });
  const std::vector<float> k = bench.floats(a.k_pages), v = bench.floats(a.v_pages);
  for (int64_t slot = 0; slot < 48; ++slot)
    for (int64_t i = 0; i < d; ++i) {
      int64_t from = -1;
      for (int64_t t = 0; t < tokens; ++t)
        if (slots[t] == slot) from = t;
      for (const float got : {k[slot * d + i], v[slot * d + i]})
        bench.expect(from < 0 ? std::isnan(got) : got == x[from * d + i],
                     text("slot ", slot, " element ", i));
    }
}

void ids_outside_of_the_table_are_nan(Bench& bench) {
  const Tensor w = bench.upload(std::vector<float>(12, 2), {3, 4});
  const Tensor ids = bench.upload(std::vector<int32_t>{2, 3, -1, 0}, {4}), y = bench.output(kF32, {4, 4});
  const Tensor z = bench.output(kF32, {4, 4});
  bench.run([&](CudaStream& s) { return embedding(s, {.y = y, .ids = ids, .w = w}); });
  bench.run([&](CudaStream& s) { return gather_rows(s, {.y = z, .x = w, .index = ids}); });
  for (const Tensor& t : {y, z}) {
    const std::vector<float> got = bench.floats(t);
    for (size_t i = 0; i < 16; ++i)
      bench.expect(i / 4 % 3 == 0 ? got[i] == 2 : std::isnan(got[i]), text("element ", i));
  }
}

/// q, k and v from one matrix, turned and written: fused and as linear and rope_kv_write. 4104 columns: two
/// blocks share a tile. The third token has no slot.
void linear_rope_kv_equals_its_sequence(Bench& bench) {
  constexpr int64_t kHeads = 6, kKvHeads = 2, kDim = 64, kRows = (kHeads + 2 * kKvHeads) * kDim;
  for (const int64_t in : {520, 4104})
    for (const int64_t m : {1, 3, 8}) {
      bench.free_memory();
      Random random(42);
      const auto normals = [&](int64_t n) {
        std::vector<float> values(static_cast<size_t>(n));
        for (float& v : values) v = random.normal();
        return values;
      };
      std::vector<int64_t> slots, positions;
      for (int64_t t = 0; t < m; ++t) slots.push_back(t == 2 ? -1 : 5 * t), positions.push_back(1000 * t + 7);
      std::vector<float> frequencies(kDim / 2);
      for (size_t i = 0; i < frequencies.size(); ++i) frequencies[i] = 1.0f / static_cast<float>(1 + i);
      const Tensor x = bench.upload_as(kBF16, normals(m * in), {m, in}),
                   w = bench.upload_as(kBF16, normals(kRows * in), {kRows, in}),
                   at = bench.upload(slots, {m}), where = bench.upload(positions, {m}),
                   turns = bench.upload(frequencies, {kDim / 2}), y = bench.output(kF32, {m, kRows}),
                   fused = bench.output(kF32, {m, kHeads, kDim});
      Tensor pages[4];
      for (Tensor& t : pages) t = bench.output(kBF16, {3, kKvHeads, 16, kDim});
      const auto part = [&](int64_t head, int64_t heads) {
        Tensor t(y.as<float>() + head * kDim, kF32, {m, heads, kDim});
        t.strides[0] = kRows;
        return t;
      };
      const Tensor q = part(0, kHeads);
      bench.run([&](CudaStream& s) -> Status {
        RIDGE_TRY(linear(s, {.y = y, .x = x, .w = w}));
        RopeKvWriteArgs a;
        a.q = q, a.k = part(kHeads, kKvHeads), a.v = part(kHeads + kKvHeads, kKvHeads);
        a.k_pages = pages[0], a.v_pages = pages[1], a.slots = at, a.positions = where, a.frequencies = turns;
        a.interleaved = true;
        return rope_kv_write(s, a);
      });
      bench.run([&](CudaStream& s) {
        LinearRopeKvArgs a;
        a.q = fused, a.k_pages = pages[2], a.v_pages = pages[3], a.x = x, a.w = w, a.slots = at;
        a.positions = where, a.frequencies = turns, a.interleaved = a.settled = true;
        return linear_rope_kv(s, a);
      });
      const std::vector<float> all = bench.floats(y), got = bench.floats(fused);
      const double unit = 1e-4 * std::sqrt(static_cast<double>(in));  // other orders of the sums
      for (size_t i = 0; i < got.size(); ++i)
        bench.expect_near(got[i], all[i / (kHeads * kDim) * kRows + i % (kHeads * kDim)], unit,
                          text("in ", in, " M = ", m, " q ", i));
      for (int side = 0; side < 2; ++side) {
        const std::vector<float> want = bench.floats(pages[side]), have = bench.floats(pages[side + 2]);
        for (size_t i = 0; i < want.size(); ++i)
          if (std::isnan(want[i]))
            bench.expect(std::isnan(have[i]), text("page element ", i, " was written"));
          else
            bench.expect_near(have[i], want[i], unit + std::fabs(want[i]) * 0x1p-7,
                              text("in ", in, " M = ", m, side == 0 ? " k " : " v ", i));
      }
      if (bench.failures() > 0) return;
    }
}

}  // namespace

std::vector<DeviceCase> row_cases() {
  return {{"K23", k23_odd_rows_off_alignment},
          {"K24", k24_rows_beyond_31_bits, kLarge},
          {"K25", k25_rotates_what_it_is_told},
          {"K26", k26_positions_of_64_bits},
          {"K27", k27_long_wavelengths_are_scaled},
          {"K28", k28_overlapped_launches_keep_their_order, kLarge},
          {"K34", k34_large_residuals_stay_finite},
          {"K42", k42_slots_of_odd_heads},
          {"ids_outside_of_the_table_are_nan", ids_outside_of_the_table_are_nan},
          {"linear_rope_kv_equals_its_sequence", linear_rope_kv_equals_its_sequence}};
}

}  // namespace ridge::cases
