#include <cstring>

#include "base/random.h"
#include "base/text.h"
#include "cases/device_case.h"
#include "kernels/rows16/rows16.h"
#include "ops/add/add.h"
#include "ops/gelu_mul/gelu_mul.h"
#include "ops/linear/linear.h"
#include "ops/linear_add/linear_add.h"
#include "ops/linear_geglu/linear_geglu.h"
#include "ops/linear_qkv/linear_qkv.h"
#include "ops/linear_swiglu/linear_swiglu.h"
#include "ops/norm_linear/norm_linear.h"
#include "ops/norm_linear_qkv/norm_linear_qkv.h"
#include "ops/norm_linear_swiglu/norm_linear_swiglu.h"
#include "ops/rms_norm/rms_norm.h"
#include "ops/silu_mul/silu_mul.h"
#include "tensor/blocks.h"

namespace ridge::cases {

namespace {

/// w of one type from values, packed as the operator wants it for CUDA.
Tensor packed_weights(Bench& bench, DType dtype, const std::vector<float>& values, int64_t out, int64_t in) {
  const int64_t row_bytes = in / dtype_block(dtype) * dtype_block_bytes(dtype);
  std::vector<uint8_t> file(static_cast<size_t>(out * row_bytes));
  for (int64_t r = 0; r < out; ++r)
    encode_row(dtype, values.data() + r * in, in, file.data() + r * row_bytes);
  const PackedLayout& layout = *rows16::layout(dtype);
  std::vector<uint8_t> packed(static_cast<size_t>(layout.bytes(out, in)));
  rows16::pack(Tensor(file.data(), dtype, {out, in}), layout, packed.data(), 0, out);
  Tensor t = bench.upload(packed, {static_cast<int64_t>(packed.size())});
  t.dtype = dtype, t.shape = {out, in}, t.strides = {in, 1}, t.layout = &layout;
  return t;
}

std::vector<float> normals(int64_t n, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(static_cast<size_t>(n));
  for (float& v : values) v = random.normal();
  return values;
}

void k1_nothing_past_the_last_column(Bench& bench) {
  const int64_t m = 33, n = 129, k = 127, stride = 192;
  const Tensor x = bench.upload_as(kBF16, std::vector<float>(m * k, 1), {m, k});
  const Tensor w = bench.upload_as(kBF16, std::vector<float>(n * k, 1), {n, k});
  Tensor y = bench.output(kF32, {m, stride});
  const Tensor all = y;
  y.shape = {m, n};
  bench.run([&](CudaStream& s) { return linear(s, {.y = y, .x = x, .w = w}); });
  const std::vector<float> got = bench.floats(all);
  for (int64_t i = 0; i < m * stride; ++i)
    if (i % stride < n)
      bench.expect_near(got[i], 127, 0, text("y[", i / stride, ", ", i % stride, "]"));
    else
      bench.expect(std::isnan(got[i]), text("column ", i % stride, " was written"));
}

void k4_rows_that_lie_far_apart(Bench& bench) {
  const int64_t k = 64, n = 8, far = (int64_t{1} << 31) + 64;
  for (const bool far_w : {false, true}) {
    bench.free_memory();
    void* memory = bench.memory((far + k) * 2);
    std::vector<bf16> ones(k, to_bf16(1)), twos(k, to_bf16(2));
    bench.must(bench.device().upload(memory, ones.data(), k * 2));
    bench.must(bench.device().upload(static_cast<bf16*>(memory) + far, twos.data(), k * 2));
    Tensor rows(memory, kBF16, {2, k});
    rows.strides[0] = far;
    const Tensor others = bench.upload_as(kBF16, std::vector<float>(n * k, 1), {n, k});
    const Tensor y = bench.output(kF32, far_w ? Shape{n, 2} : Shape{2, n});
    bench.run([&](CudaStream& s) {
      return far_w ? linear(s, {.y = y, .x = others, .w = rows})
                   : linear(s, {.y = y, .x = rows, .w = others});
    });
    const std::vector<float> got = bench.floats(y);
    for (int64_t i = 0; i < 2 * n; ++i)
      bench.expect_near(got[i], (far_w ? i % 2 : i / n) == 0 ? 64 : 128, 0,
                        text(far_w ? "far w " : "far x ", i));
    if (bench.failures() > 0) return;
  }
}

void k5_any_shape_runs_or_declines(Bench& bench) {
  Random random(5);
  for (int trial = 0; trial < 60; ++trial) {
    bench.free_memory();
    const int64_t n = trial == 0 ? 5472 : 8 * (1 + random.below(300)),
                  k = trial == 0 ? 4096 : 32 * (1 + random.below(48));
    // Every weight 0.5: a block of equal values is exact in q4_1 (all minimum).
    const Tensor w = packed_weights(bench, kQ4_1, std::vector<float>(static_cast<size_t>(n * k), 0.5f), n, k);
    const Tensor x = bench.upload(std::vector<float>(static_cast<size_t>(k), 1), {1, k}),
                 y = bench.output(kF32, {1, n});
    bench.run([&](CudaStream& s) { return linear(s, {.y = y, .x = x, .w = w}); });
    for (const float v : bench.floats(y))
      bench.expect_near(v, 0.5 * static_cast<double>(k), 1e-6 * static_cast<double>(k),
                        text("n ", n, " k ", k));
    if (bench.failures() > 0) return;
  }
}

void k9_a_row_does_not_see_its_batch(Bench& bench) {
  const int64_t k = 4096, n = 1024;
  for (const DType dtype : {kQ4_1, kQ8_0, kQ5_0, kQ4_K, kQ6_K})
    for (const DType activations : {kF32, kBF16}) {
      bench.free_memory();
      const Tensor w = packed_weights(bench, dtype, normals(n * k, 9), n, k);
      std::vector<float> first;
      for (const int64_t m : {1, 2, 8, 17, 64, 257}) {
        std::vector<float> x = normals(m * k, 100 + static_cast<uint64_t>(m));
        const std::vector<float> row = normals(k, 7);
        std::copy(row.begin(), row.end(), x.begin() + (m - 1) * k);
        const Tensor y = bench.output(kF32, {m, n}), rows = bench.upload_as(activations, x, {m, k});
        bench.run([&](CudaStream& s) { return linear(s, {.y = y, .x = rows, .w = w}); });
        const std::vector<float> all = bench.floats(y), last(all.end() - n, all.end());
        if (first.empty()) first = last;
        bench.expect(
            std::memcmp(first.data(), last.data(), first.size() * 4) == 0,
            text(dtype_name(dtype), " ", dtype_name(activations), ": M = ", m, " changes bits of a row"));
      }
      if (bench.failures() > 0) return;
    }
}

void nan_and_infinity_stay_in_their_row(Bench& bench) {
  const int64_t k = 256, n = 48, m = 5;
  std::vector<float> x = normals(m * k, 3);
  x[k + 5] = NAN, x[3 * k + 9] = INFINITY;
  const Tensor w = packed_weights(bench, kQ4_1, normals(n * k, 4), n, k);
  const Tensor y = bench.output(kF32, {m, n}), rows = bench.upload(x, {m, k});
  bench.run([&](CudaStream& s) { return linear(s, {.y = y, .x = rows, .w = w}); });
  const std::vector<float> got = bench.floats(y);
  for (int64_t i = 0; i < m * n; ++i) {
    const int64_t row = i / n;
    if (row == 1) bench.expect(std::isnan(got[i]), "the row with NaN is not NaN");
    if (row == 3) bench.expect(!std::isfinite(got[i]), "the row with infinity is finite");
    if (row % 2 == 0) bench.expect(std::isfinite(got[i]), text("row ", row, " caught NaN or infinity"));
  }
}

/// Products are equal bit for bit where the parts of `in` are; the activation rounds alike.
void gated_linear_equals_its_sequence(Bench& bench) {
  const int64_t k = 512, n = 72;
  for (const DType dtype : {kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ4_K, kQ6_K})
    for (const int64_t m : {1, 2, 3, 40})
      for (const bool gelu : {false, true}) {
        bench.free_memory();
        const Tensor gate = packed_weights(bench, dtype, normals(n * k, 1), n, k);
        const Tensor up = packed_weights(bench, dtype, normals(n * k, 2), n, k);
        const Tensor x = bench.upload(normals(m * k, 3), {m, k}), g = bench.output(kF32, {m, n});
        const Tensor u = bench.output(kF32, {m, n}), apart = bench.output(kF32, {m, n}),
                     fused = bench.output(kF32, {m, n});
        bench.run([&](CudaStream& s) -> Status {
          RIDGE_TRY(linear(s, {.y = g, .x = x, .w = gate}));
          RIDGE_TRY(linear(s, {.y = u, .x = x, .w = up}));
          return gelu ? gelu_mul(s, {.y = apart, .gate = g, .up = u})
                      : silu_mul(s, {.y = apart, .gate = g, .up = u});
        });
        bench.run([&](CudaStream& s) {
          LinearSwigluArgs swiglu;
          LinearGegluArgs geglu;
          for (LinearGated* a : {static_cast<LinearGated*>(&swiglu), static_cast<LinearGated*>(&geglu)})
            a->y = fused, a->x = x, a->w_gate = gate, a->w_up = up;
          return gelu ? linear_geglu(s, geglu) : linear_swiglu(s, swiglu);
        });
        const std::vector<float> want = bench.floats(apart), got = bench.floats(fused);
        for (size_t i = 0; i < want.size(); ++i)
          bench.expect_near(got[i], want[i], 1e-6 * std::fabs(want[i]) + 1e-5,
                            text(dtype_name(dtype), " M = ", m, gelu ? " gelu " : " silu ", i));
        if (bench.failures() > 0) return;
      }
}

/// bf16 weights, for each kernel of plain ones: one token, a few, many; y in f32 and cast along.
void gated_plain_linear_equals_its_sequence(Bench& bench) {
  const int64_t k = 520, n = 75;
  for (const DType x_type : {kF32, kBF16})
    for (const DType y_type : {kF32, kBF16})
      for (const int64_t m : {1, 5, 8, 40, 70}) {
        if (x_type == kF32 && (m > 1 || y_type == kBF16)) continue;
        bench.free_memory();
        const Tensor gate = bench.upload_as(kBF16, normals(n * k, 1), {n, k});
        const Tensor up = bench.upload_as(kBF16, normals(n * k, 2), {n, k});
        const Tensor x = bench.upload_as(x_type, normals(m * k, 3), {m, k}), g = bench.output(kF32, {m, n});
        const Tensor u = bench.output(kF32, {m, n}), apart = bench.output(kF32, {m, n}),
                     fused = bench.output(y_type, {m, n});
        bench.run([&](CudaStream& s) -> Status {
          RIDGE_TRY(linear(s, {.y = g, .x = x, .w = gate}));
          RIDGE_TRY(linear(s, {.y = u, .x = x, .w = up}));
          RIDGE_TRY(silu_mul(s, {.y = apart, .gate = g, .up = u}));
          LinearSwigluArgs a;
          a.y = fused, a.x = x, a.w_gate = gate, a.w_up = up;
          return linear_swiglu(s, a);
        });
        const std::vector<float> want = bench.floats(apart), got = bench.floats(fused);
        const double unit = y_type == kBF16 ? 0x1p-8 : 1e-5;  // products of different order, k = 520
        for (size_t i = 0; i < want.size(); ++i)
          bench.expect_near(got[i], want[i], unit * std::fabs(want[i]) + 1e-3,
                            text("M = ", m, " x ", dtype_name(x_type), " y ", dtype_name(y_type), " ", i));
        if (bench.failures() > 0) return;
      }
}

void qkv_linear_equals_its_sequence(Bench& bench) {
  const int64_t in = 512, out[3] = {144, 48, 33};
  for (const DType dtype : {kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ4_K, kQ6_K})
    for (const int64_t m : {1, 2, 3, 40}) {
      bench.free_memory();
      Tensor w[3], apart[3], fused[3];
      const Tensor x = bench.upload(normals(m * in, 3), {m, in});
      for (int i = 0; i < 3; ++i) {
        w[i] = packed_weights(bench, dtype, normals(out[i] * in, static_cast<uint64_t>(i)), out[i], in);
        apart[i] = bench.output(kF32, {m, out[i]}), fused[i] = bench.output(kF32, {m, out[i]});
      }
      bench.run([&](CudaStream& s) -> Status {
        for (int i = 0; i < 3; ++i) RIDGE_TRY(linear(s, {.y = apart[i], .x = x, .w = w[i]}));
        return linear_qkv(
            s, {.q = fused[0], .k = fused[1], .v = fused[2], .x = x, .w_q = w[0], .w_k = w[1], .w_v = w[2]});
      });
      for (int i = 0; i < 3; ++i)
        bench.expect(bench.floats(apart[i]) == bench.floats(fused[i]),
                     text(dtype_name(dtype), " M = ", m, " matrix ", i));
      if (bench.failures() > 0) return;
    }
}

/// One token, normalized on the way and added to at the end: the bits of the sequences. 520 columns: the last
/// part is short; 1536 rows of two matrices: as in a model.
void normalized_linears_equal_their_sequences(Bench& bench) {
  struct Sizes {
    int64_t in, q, kv, inner;
  };
  for (const DType dtype : {kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ4_K, kQ6_K})
    for (const Sizes& size : {Sizes{512, 144, 33, 72}, Sizes{768, 576, 192, 1536}}) {
      bench.free_memory();
      const auto matrix = [&](int64_t out, uint64_t seed) {
        return packed_weights(bench, dtype, normals(out * size.in, seed), out, size.in);
      };
      const Tensor wq = matrix(size.q, 1), wk = matrix(size.kv, 2), wv = matrix(size.kv, 3);
      const Tensor gate = matrix(size.inner, 4), up = matrix(size.inner, 5);
      const Tensor x = bench.upload(normals(size.in, 6), {1, size.in});
      const Tensor norm = bench.upload(normals(size.in, 7), {size.in});
      const Tensor residual = bench.upload(normals(size.q, 8), {1, size.q});
      const Tensor n = bench.output(kF32, {1, size.in}), product = bench.output(kF32, {1, size.q});
      std::vector<Tensor> apart, fused;
      for (std::vector<Tensor>* list : {&apart, &fused})
        for (const int64_t out : {size.q, size.kv, size.kv, size.inner, size.q, size.q})
          list->push_back(bench.output(kF32, {1, out}));
      bench.run([&](CudaStream& s) -> Status {
        RIDGE_TRY(rms_norm(s, {.y = n, .x = x, .w = norm, .weight_offset = 1}));
        RIDGE_TRY(linear_qkv(
            s, {.q = apart[0], .k = apart[1], .v = apart[2], .x = n, .w_q = wq, .w_k = wk, .w_v = wv}));
        LinearSwigluArgs a;
        a.y = apart[3], a.x = n, a.w_gate = gate, a.w_up = up;
        RIDGE_TRY(linear_swiglu(s, a));
        RIDGE_TRY(linear(s, {.y = apart[5], .x = n, .w = wq}));
        RIDGE_TRY(linear(s, {.y = product, .x = x, .w = wq}));
        return add(s, {apart[4], residual, product});
      });
      bench.run([&](CudaStream& s) -> Status {
        RIDGE_TRY(norm_linear_qkv(s, {.q = fused[0],
                                      .k = fused[1],
                                      .v = fused[2],
                                      .x = x,
                                      .norm = norm,
                                      .w_q = wq,
                                      .w_k = wk,
                                      .w_v = wv,
                                      .weight_offset = 1}));
        RIDGE_TRY(norm_linear_swiglu(
            s, {.y = fused[3], .x = x, .norm = norm, .w_gate = gate, .w_up = up, .weight_offset = 1}));
        RIDGE_TRY(norm_linear(s, {.y = fused[5], .x = x, .norm = norm, .w = wq, .weight_offset = 1}));
        return linear_add(s, {.y = fused[4], .x = x, .w = wq, .residual = residual});
      });
      for (size_t i = 0; i < apart.size(); ++i)
        bench.expect(bench.floats(apart[i]) == bench.floats(fused[i]),
                     text(dtype_name(dtype), " in ", size.in, " output ", i));
      if (bench.failures() > 0) return;
    }
}

/// Workspace of packed weights depends on x alone: no copy of them, whole or in part, has room in it.
void workspace_holds_no_unpacked_weights(Bench& bench) {
  constexpr int64_t kIn = 4096;
  const auto bytes = [&](DType dtype, DType x_type, int64_t tokens, int64_t out) {
    void* const nowhere = reinterpret_cast<void*>(int64_t{1} << 20);  // nothing runs
    LinearArgs a;
    a.y = Tensor(nowhere, kF32, {tokens, out}), a.x = Tensor(nowhere, x_type, {tokens, kIn});
    a.w = Tensor(nowhere, dtype, {out, kIn}), a.w.layout = rows16::layout(dtype);
    const auto selected = registered<LinearArgs>().select(bench.device().target(), &a);
    bench.must(selected.status());
    return selected.ok() ? (*selected).workspace_bytes : -1;
  };
  for (const DType dtype : {kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ4_K, kQ6_K})
    for (const DType x_type : {kF32, kBF16})
      for (const int64_t tokens : {1, 2, 8, 64, 512}) {
        const int64_t few = bytes(dtype, x_type, tokens, 16), many = bytes(dtype, x_type, tokens, 16384);
        bench.expect(few == many, text(dtype_name(dtype), ", ", tokens, " tokens: ", few,
                                       " bytes of workspace for 16 rows, ", many, " for 16384"));
      }
}

}  // namespace

std::vector<DeviceCase> linear_cases() {
  return {{"K1", k1_nothing_past_the_last_column},
          {"K4", k4_rows_that_lie_far_apart, kLarge},
          {"K5", k5_any_shape_runs_or_declines, kLarge},
          {"K9", k9_a_row_does_not_see_its_batch, kLarge},
          {"linear_nan_stays_in_its_row", nan_and_infinity_stay_in_their_row},
          {"workspace_holds_no_unpacked_weights", workspace_holds_no_unpacked_weights},
          {"gated_linear_equals_its_sequence", gated_linear_equals_its_sequence},
          {"gated_plain_linear_equals_its_sequence", gated_plain_linear_equals_its_sequence},
          {"qkv_linear_equals_its_sequence", qkv_linear_equals_its_sequence},
          {"normalized_linears_equal_their_sequences", normalized_linears_equal_their_sequences}};
}

}  // namespace ridge::cases
