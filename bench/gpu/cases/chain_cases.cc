// A decode step of SmolLM2's shape from operators, captured in one graph: with fused operators and without.
// kNormed is what a plan makes of it.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>

#include "base/random.h"
#include "base/text.h"
#include "cases/device_case.h"
#include "kernels/rows16/rows16.h"
#include "ops/add_rms_norm/add_rms_norm.h"
#include "ops/attention_decode/attention_decode.h"
#include "ops/kv_write/kv_write.h"
#include "ops/linear/linear.h"
#include "ops/linear_add/linear_add.h"
#include "ops/linear_qkv/linear_qkv.h"
#include "ops/linear_swiglu/linear_swiglu.h"
#include "ops/norm_linear_qkv/norm_linear_qkv.h"
#include "ops/norm_linear_swiglu/norm_linear_swiglu.h"
#include "ops/rms_norm/rms_norm.h"
#include "ops/rope/rope.h"
#include "ops/rope_kv_write/rope_kv_write.h"
#include "ops/sample/sample.h"
#include "ops/silu_mul/silu_mul.h"
#include "tensor/blocks.h"

namespace ridge::cases {

namespace {

constexpr int64_t kLayers = 30, kHidden = 576, kHeads = 9, kKvHeads = 3, kHeadDim = 64, kInner = 1536,
                  kVocab = 49152, kContext = 512, kPage = 16;

Tensor random_weights(Bench& bench, DType dtype, int64_t out, int64_t in, uint64_t seed) {
  Random random(seed);
  const int64_t row_bytes = in / dtype_block(dtype) * dtype_block_bytes(dtype);
  std::vector<float> row(static_cast<size_t>(in));
  std::vector<uint8_t> file(static_cast<size_t>(out * row_bytes));
  for (int64_t r = 0; r < out; ++r) {
    if (r < 64)  // rows repeat: encoding costs more than the case
      for (float& v : row) v = random.normal() / 24;
    if (r < 64)
      encode_row(dtype, row.data(), in, file.data() + r * row_bytes);
    else
      std::copy_n(file.data() + r % 64 * row_bytes, row_bytes, file.data() + r * row_bytes);
  }
  const PackedLayout& layout = *rows16::layout(dtype);
  std::vector<uint8_t> packed(static_cast<size_t>(layout.bytes(out, in)));
  rows16::pack(Tensor(file.data(), dtype, {out, in}), layout, packed.data(), 0, out);
  Tensor t = bench.upload(packed, {static_cast<int64_t>(packed.size())});
  t.dtype = dtype, t.shape = {out, in}, t.strides = {in, 1}, t.layout = &layout;
  return t;
}

struct Layer {
  Tensor q, k, v, o, gate, up, down, k_pages, v_pages;
};

/// Everything of a step that has an address.
struct Model {
  std::vector<Layer> layers;
  Tensor head, norm, hidden, normed, q, k, v, attended, projected, gate, up, inner, logits, frequencies,
      positions, slots, table, lengths;
  SampleArgs sampling;

  explicit Model(Bench& bench) {
    // Layers of their own addresses, so that weights come from memory as in a model: 85 MB.
    for (int64_t i = 0; i < kLayers; ++i) {
      const auto seed = static_cast<uint64_t>(10 * i);
      Layer l;
      l.q = random_weights(bench, kQ4_1, kHidden, kHidden, seed),
      l.k = random_weights(bench, kQ4_1, 192, kHidden, seed + 1);
      l.v = random_weights(bench, kQ4_1, 192, kHidden, seed + 2),
      l.o = random_weights(bench, kQ4_1, kHidden, kHidden, seed + 3);
      l.gate = random_weights(bench, kQ4_1, kInner, kHidden, seed + 4);
      l.up = random_weights(bench, kQ4_1, kInner, kHidden, seed + 5);
      l.down = random_weights(bench, kQ4_1, kHidden, kInner, seed + 6);
      for (Tensor* t : {&l.k_pages, &l.v_pages}) {
        const int64_t pages = kContext / kPage;
        std::vector<float> values(static_cast<size_t>(kContext * kKvHeads * kHeadDim), 0.01f);
        *t = bench.upload_as(kF16, values, {pages, kKvHeads, kPage, kHeadDim});
      }
      layers.push_back(l);
    }
    head = random_weights(bench, kQ8_0, kVocab, kHidden, 999);
    norm = bench.upload(std::vector<float>(kHidden, 1), {kHidden});
    hidden = bench.output(kF32, {1, kHidden}), normed = bench.output(kF32, {1, kHidden});
    q = bench.output(kF32, {1, kHidden}), k = bench.output(kF32, {1, 192}), v = bench.output(kF32, {1, 192});
    attended = bench.output(kF32, {1, kHidden}), projected = bench.output(kF32, {1, kHidden});
    gate = bench.output(kF32, {1, kInner}), up = bench.output(kF32, {1, kInner}),
    inner = bench.output(kF32, {1, kInner});
    logits = bench.output(kF32, {1, kVocab});
    frequencies = bench.upload(std::vector<float>(32, 0.5f), {32});
    positions = bench.upload(std::vector<int64_t>{kContext - 1}, {1}),
    slots = bench.upload(std::vector<int64_t>{kContext - 1}, {1});
    std::vector<int32_t> pages;
    for (int32_t p = 0; p < kContext / kPage; ++p) pages.push_back(p);
    table = bench.upload(pages, {1, kContext / kPage}),
    lengths = bench.upload(std::vector<int64_t>{kContext}, {1});
    SampleArgs& s = sampling;
    s.ids = bench.output(kI32, {1}), s.status = bench.output(kI32, {1}), s.logprob = bench.output(kF32, {1}),
    s.logits = logits;
    s.temperature = bench.upload(std::vector<float>{0}, {1}),
    s.top_k = bench.upload(std::vector<int32_t>{0}, {1});
    s.top_p = bench.upload(std::vector<float>{1}, {1}), s.min_p = bench.upload(std::vector<float>{0}, {1});
    s.seed = s.position = bench.upload(std::vector<int64_t>{1}, {1});
  }
};

enum class Fused : uint8_t { kNone, kSome, kNormed };  // kNormed: norms and sums with the linears around them

Tensor as_heads(const Tensor& t, int64_t heads) {
  return Tensor(t.data, kF32, {1, heads, kHeadDim});
}

Status rope_part(CudaStream& s, const Model& m, const Layer& l) {
  RopeKvWriteArgs a;
  a.q = as_heads(m.q, kHeads), a.k = as_heads(m.k, kKvHeads), a.v = as_heads(m.v, kKvHeads);
  a.k_pages = l.k_pages, a.v_pages = l.v_pages, a.slots = m.slots, a.positions = m.positions;
  a.frequencies = m.frequencies, a.settled = true;
  return rope_kv_write(s, a);
}

Status decode_part(CudaStream& s, const Model& m, const Layer& l) {
  AttentionDecodeArgs d;
  d.o = as_heads(m.attended, kHeads), d.q = as_heads(m.q, kHeads), d.k_pages = l.k_pages,
  d.v_pages = l.v_pages;
  d.page_table = m.table, d.kv_length = m.lengths, d.scale = 0.125f;
  d.tables_settled = true, d.unsettled = 1;
  return attention_decode(s, d);
}

Status swiglu_part(CudaStream& s, const Model& m, const Layer& l) {
  LinearSwigluArgs a;
  a.y = m.inner, a.x = m.normed, a.w_gate = l.gate, a.w_up = l.up;
  return linear_swiglu(s, a);
}

/// Notes the device's clock for each call that follows, where `stamps` counts them.
void stamp(CudaStream& s, int64_t* stamps) {
  if (stamps != nullptr) s.stamp_next((*stamps)++);
}

Status normed_qkv_part(CudaStream& s, const Model& m, const Layer& l) {
  return norm_linear_qkv(
      s, {.q = m.q, .k = m.k, .v = m.v, .x = m.hidden, .norm = m.norm, .w_q = l.q, .w_k = l.k, .w_v = l.v});
}

Status attention_part(CudaStream& s, const Model& m, const Layer& l, Fused fused, int64_t* stamps) {
  stamp(s, stamps);
  if (fused != Fused::kNone) {
    if (fused == Fused::kNormed)
      RIDGE_TRY(normed_qkv_part(s, m, l));
    else
      RIDGE_TRY(
          linear_qkv(s, {.q = m.q, .k = m.k, .v = m.v, .x = m.normed, .w_q = l.q, .w_k = l.k, .w_v = l.v}));
    stamp(s, stamps);
    RIDGE_TRY(rope_part(s, m, l));
  } else {
    RIDGE_TRY(linear(s, {.y = m.q, .x = m.normed, .w = l.q}));
    RIDGE_TRY(linear(s, {.y = m.k, .x = m.normed, .w = l.k}));
    RIDGE_TRY(linear(s, {.y = m.v, .x = m.normed, .w = l.v}));
    RIDGE_TRY(rope(s, {.x = as_heads(m.q, kHeads), .positions = m.positions, .frequencies = m.frequencies}));
    RIDGE_TRY(
        rope(s, {.x = as_heads(m.k, kKvHeads), .positions = m.positions, .frequencies = m.frequencies}));
    KvWriteArgs a;
    a.k = as_heads(m.k, kKvHeads), a.v = as_heads(m.v, kKvHeads), a.k_pages = l.k_pages,
    a.v_pages = l.v_pages, a.slots = m.slots;
    RIDGE_TRY(kv_write(s, a));
  }
  stamp(s, stamps);
  RIDGE_TRY(decode_part(s, m, l));
  stamp(s, stamps);
  if (fused == Fused::kNormed)
    return linear_add(s, {.y = m.hidden, .x = m.attended, .w = l.o, .residual = m.hidden});
  return linear(s, {.y = m.projected, .x = m.attended, .w = l.o});
}

Status mlp_part(CudaStream& s, const Model& m, const Layer& l, Fused fused, int64_t* stamps) {
  stamp(s, stamps);
  if (fused == Fused::kNormed) {
    RIDGE_TRY(
        norm_linear_swiglu(s, {.y = m.inner, .x = m.hidden, .norm = m.norm, .w_gate = l.gate, .w_up = l.up}));
    stamp(s, stamps);
    return linear_add(s, {.y = m.hidden, .x = m.inner, .w = l.down, .residual = m.hidden});
  }
  if (fused == Fused::kSome) {
    RIDGE_TRY(swiglu_part(s, m, l));
  } else {
    RIDGE_TRY(linear(s, {.y = m.gate, .x = m.normed, .w = l.gate}));
    RIDGE_TRY(linear(s, {.y = m.up, .x = m.normed, .w = l.up}));
    RIDGE_TRY(silu_mul(s, {.y = m.inner, .gate = m.gate, .up = m.up}));
  }
  stamp(s, stamps);
  return linear(s, {.y = m.projected, .x = m.inner, .w = l.down});
}

/// Microseconds of each fused operator in a chain of itself over all layers.
void print_shares(Bench& bench, const Model& m) {
  const auto each = [&](const char* name, const std::function<Status(CudaStream&, const Layer&)>& call) {
    const double us = bench.replay_us(
        [&](CudaStream& s) -> Status {
          for (const Layer& l : m.layers) RIDGE_TRY(call(s, l));
          return {};
        },
        20);
    std::printf("     %-18s %.2f us\n", name, us / kLayers);
  };
  each("linear_qkv", [&](CudaStream& s, const Layer& l) {
    return linear_qkv(s, {.q = m.q, .k = m.k, .v = m.v, .x = m.normed, .w_q = l.q, .w_k = l.k, .w_v = l.v});
  });
  each("rope_kv_write", [&](CudaStream& s, const Layer& l) { return rope_part(s, m, l); });
  each("attention_decode", [&](CudaStream& s, const Layer& l) { return decode_part(s, m, l); });
  each("linear o", [&](CudaStream& s, const Layer& l) {
    return linear(s, {.y = m.projected, .x = m.attended, .w = l.o});
  });
  each("add_rms_norm", [&](CudaStream& s, const Layer&) {
    return add_rms_norm(s, {.sum = m.hidden, .y = m.normed, .a = m.hidden, .b = m.projected, .w = m.norm});
  });
  each("norm_linear_qkv", [&](CudaStream& s, const Layer& l) { return normed_qkv_part(s, m, l); });
  each("linear_swiglu", [&](CudaStream& s, const Layer& l) { return swiglu_part(s, m, l); });
  each("norm_linear_swiglu", [&](CudaStream& s, const Layer& l) {
    return norm_linear_swiglu(s,
                              {.y = m.inner, .x = m.hidden, .norm = m.norm, .w_gate = l.gate, .w_up = l.up});
  });
  each("linear_add down", [&](CudaStream& s, const Layer& l) {
    return linear_add(s, {.y = m.hidden, .x = m.inner, .w = l.down, .residual = m.hidden});
  });
  each("linear down", [&](CudaStream& s, const Layer& l) {
    return linear(s, {.y = m.projected, .x = m.inner, .w = l.down});
  });
  each("head",
       [&](CudaStream& s, const Layer&) { return linear(s, {.y = m.logits, .x = m.normed, .w = m.head}); });
  each("sample", [&](CudaStream& s, const Layer&) { return sample(s, m.sampling); });
}

Status step(CudaStream& s, const Model& m, Fused fused, int64_t* stamps = nullptr) {
  const auto norm = [&] {
    stamp(s, stamps);
    return add_rms_norm(s, {.sum = m.hidden, .y = m.normed, .a = m.hidden, .b = m.projected, .w = m.norm});
  };
  const auto plain_norm = [&] {
    stamp(s, stamps);
    return rms_norm(s, {.y = m.normed, .x = m.hidden, .w = m.norm});
  };
  if (fused != Fused::kNormed) RIDGE_TRY(plain_norm());
  for (const Layer& l : m.layers) {
    RIDGE_TRY(attention_part(s, m, l, fused, stamps));
    if (fused != Fused::kNormed) RIDGE_TRY(norm());
    RIDGE_TRY(mlp_part(s, m, l, fused, stamps));
    if (fused != Fused::kNormed) RIDGE_TRY(norm());
  }
  if (fused == Fused::kNormed) RIDGE_TRY(plain_norm());
  stamp(s, stamps);
  RIDGE_TRY(linear(s, {.y = m.logits, .x = m.normed, .w = m.head}));
  stamp(s, stamps);
  return sample(s, m.sampling);
}

/// What it costs to time every call of a step inside its graph, beside the same step untimed.
void stamps_cost_little(Bench& bench) {
  const Model m(bench);
  bench.must(bench.stream().prepare_stamps(10 * kLayers));
  double best[2] = {HUGE_VAL, HUGE_VAL};
  for (int round = 0; round < 10; ++round) {
    int64_t stamps = 0;
    best[0] =
        std::min(best[0], bench.replay_us([&](CudaStream& s) { return step(s, m, Fused::kNormed); }, 50));
    best[1] = std::min(
        best[1], bench.replay_us([&](CudaStream& s) { return step(s, m, Fused::kNormed, &stamps); }, 50));
  }
  const double cost = best[1] / best[0] - 1;
  std::printf("     a step of %.1f us, with every call timed %.1f us: %+.2f %%\n", best[0], best[1],
              100 * cost);
  bench.expect(cost <= 0.03, text("timing every call costs ", 100 * cost, " %, at most 3 are asked for"));
}

/// norm, linear and kv_write eight times over the same two buffers: whoever does not wait for the launch
/// before it, or overwrites what the one after it still reads, leaves another row's bits in the pages.
struct SharedChains {
  static constexpr int64_t kChains = 8, kTokens = 8, kWidth = 512, kHeadsOfKv = 4, kDim = 64;
  Tensor w, norm, normed, k, k_pages, v_pages;
  std::vector<Tensor> x, slots;

  explicit SharedChains(Bench& bench) {
    Random random(28);
    const auto normals = [&](int64_t n) {
      std::vector<float> v(static_cast<size_t>(n));
      for (float& value : v) value = random.normal();
      return v;
    };
    w = bench.upload_as(kBF16, normals(kHeadsOfKv * kDim * kWidth), {kHeadsOfKv * kDim, kWidth});
    norm = bench.upload(normals(kWidth), {kWidth});
    normed = bench.output(kBF16, {kTokens, kWidth}), k = bench.output(kF32, {kTokens, kHeadsOfKv * kDim});
    k_pages = bench.output(kBF16, {kChains, kHeadsOfKv, kTokens, kDim}),
    v_pages = bench.output(kBF16, {kChains, kHeadsOfKv, kTokens, kDim});
    for (int64_t c = 0; c < kChains; ++c) {
      std::vector<int64_t> at;
      for (int64_t t = 0; t < kTokens; ++t) at.push_back(c * kTokens + t);
      x.push_back(bench.upload(normals(kTokens * kWidth), {kTokens, kWidth}));
      slots.push_back(bench.upload(at, {kTokens}));
    }
  }
  /// Call by call with `apart`.
  Status run(CudaStream& s, bool apart) const {
    const auto settle = [&] { return apart ? s.synchronize() : Status(); };
    for (size_t c = 0; c < x.size(); ++c) {
      RIDGE_TRY(rms_norm(s, {.y = normed, .x = x[c], .w = norm, .epsilon = 1e-5f}));
      RIDGE_TRY(settle());
      RIDGE_TRY(linear(s, {.y = k, .x = normed, .w = w}));
      RIDGE_TRY(settle());
      KvWriteArgs a;
      a.k = a.v = Tensor(k.data, kF32, {kTokens, kHeadsOfKv, kDim}), a.slots = slots[c];
      a.k_pages = k_pages, a.v_pages = v_pages;
      RIDGE_TRY(kv_write(s, a));
      RIDGE_TRY(settle());
    }
    return {};
  }
  std::vector<float> pages(Bench& bench) const {
    std::vector<float> both = bench.floats(k_pages);
    const std::vector<float> values = bench.floats(v_pages);
    both.insert(both.end(), values.begin(), values.end());
    return both;
  }
};

/// `calls` recorded, or nothing after a failure.
std::unique_ptr<Graph> record(Bench& bench, CudaStream& stream, const std::function<Status()>& calls) {
  bench.must(stream.begin_recording());
  bench.must(calls());
  auto graph = stream.end_recording();
  bench.must(graph.status());
  return graph.ok() ? graph.take() : nullptr;
}

void k28_ten_thousand_replays(Bench& bench) {
  const SharedChains chains(bench);
  bench.run([&](CudaStream& s) { return chains.run(s, true); });
  const std::vector<float> want = chains.pages(bench);

  // Beside a stream that keeps the multiprocessors busy.
  constexpr int64_t kBig = 4096;
  CudaStream &s = bench.stream(), &other = bench.another_stream();
  const Tensor w = bench.output(kBF16, {kBig, kBig}), x = bench.output(kBF16, {8, kBig}),
               y = bench.output(kF32, {8, kBig});
  bench.must(linear(other, {.y = y, .x = x, .w = w}));  // sets up what a recording must not
  bench.must(other.synchronize());
  const auto chain = record(bench, s, [&] { return chains.run(s, false); });
  const auto filler = record(bench, other, [&]() -> Status {
    for (int i = 0; i < 100; ++i) RIDGE_TRY(linear(other, {.y = y, .x = x, .w = w}));
    return {};
  });
  for (int i = 0; i < 10000 && bench.failures() == 0; ++i) {
    if (i % 10 == 0) bench.must(other.launch(*filler));
    bench.must(s.launch(*chain));
    if (i % 100 != 99) continue;
    bench.must(s.synchronize());
    bench.expect(chains.pages(bench) == want,
                 text("after ", i + 1, " replays the pages are not those of the plain chain"));
  }
  bench.must(other.synchronize());
}

void smollm2_step(Bench& bench) {
  const Model m(bench);
  constexpr const char* kNames[] = {"operator by operator", "fused", "fused, norms and sums too"};
  std::vector<float> answers[3];
  for (const Fused fused : {Fused::kNone, Fused::kSome, Fused::kNormed}) {
    const auto at = static_cast<size_t>(fused);
    std::vector<float> start(kHidden);
    for (size_t i = 0; i < start.size(); ++i) start[i] = static_cast<float>(i % 7) - 3;
    bench.must(bench.device().upload(m.hidden.data, start.data(), kHidden * 4));
    bench.run([&](CudaStream& s) { return step(s, m, fused); });
    answers[at] = bench.floats(m.logits);
    double best = HUGE_VAL;
    for (int round = 0; round < 5; ++round)
      best = std::min(best, bench.replay_us([&](CudaStream& s) { return step(s, m, fused); }, 50));
    std::printf("     a step of SmolLM2's shape, Q4_1, f32 activations, f16 cache of %lld: %.0f us %s\n",
                static_cast<long long>(kContext), best, kNames[at]);
  }
  print_shares(bench, m);
  bench.expect(answers[2] == answers[1], "norms and sums joined change bits");
  for (size_t i = 0; i < answers[0].size(); ++i)
    bench.expect_near(answers[1][i], answers[0][i], 2e-3 * (std::fabs(answers[0][i]) + 1), text("logit ", i));
}

}  // namespace

std::vector<DeviceCase> chain_cases() {
  return {{"smollm2_step_fused_equals_apart", smollm2_step, kLarge},
          {"stamps_cost_at_most_3_percent", stamps_cost_little, kLarge},
          {"K28", k28_ten_thousand_replays, kLarge}};
}

}  // namespace ridge::cases
