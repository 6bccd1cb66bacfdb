// Quantized linear from rows16, f32 activations, and exact attention in f32: times, and the share of the read
// ceiling.

#include "harness.h"

#include <algorithm>

#include "base/text.h"
#include "kernels/attention_tiles.cuh"
#include "kernels/linear_terms_call.cuh"
#include "kernels/rows16/rows16.h"

namespace ridge::bench {

namespace {

using cuda::LinearTermsCall;

template <DType dtype>
void bench_shape(Session& session, int64_t out, int64_t in, int64_t tokens, int parts) {
  const int64_t tile_bytes = rows16::tile_bytes(dtype, in), bytes = rows16::tiles(out) * tile_bytes;
  const int sets = std::clamp(static_cast<int>(230e6 / static_cast<double>(bytes)) + 1, 2, 400);
  const DeviceBlock w(bytes * sets), x(tokens * in * 4), y(tokens * out * 4);
  const DeviceBlock workspace(cuda::split_terms_bytes(tokens, in, 3));
  // As f16 scales these bits are finite; as codes they are anything.
  fill_field(w.as<bf16>(), bytes * sets / 2, 1);
  fill_field(x.as<float>(), tokens * in, 2);
  const auto run = [&](cudaStream_t stream, int set) {
    LinearTermsCall c;
    c.matrices[0].w = w.as<uint8_t>() + set * bytes, c.matrices[0].y = y.as<float>();
    c.matrices[0].out = c.matrices[0].y_stride = out, c.x = x.as<const unsigned char>();
    c.split_x = workspace.as<uint4>();
    c.tokens = tokens, c.in = in, c.tile_bytes = tile_bytes, c.x_stride = in;
    c.panels = static_cast<int>(in / 32), c.units = (c.panels + 1) / 2;
    c.parts = parts, c.part_units = (c.units + parts - 1) / parts, c.vectors = true;
    must(cuda::launch_linear_terms<dtype>(stream, c, session.multiprocessors()));
  };
  Condition condition;
  condition.row = text("packed-", dtype_name(dtype), "-", out, "x", in, "-m", tokens);
  condition.text = text(dtype_name(dtype), " in rows16, f32 x, ", out, " x ", in, ", M = ", tokens);
  condition.bytes = static_cast<double>(bytes),
  condition.flops = 2.0 * static_cast<double>(tokens * out * in);
  condition.sets = sets;
  session.measure(condition, {{text("linear_terms, ", parts, " parts"), run, true}});
}

/// Prefill of one sequence after `past` keys, f32 pages of 16.
void bench_prefill(Session& session, int64_t tokens, int64_t past, int64_t heads, int64_t kv_heads,
                   DType dtype) {
  constexpr int64_t kHeadDim = 64, kPage = 16;
  const int64_t keys = past + tokens, pages = ceil_div(keys, kPage),
                elements = pages * kv_heads * kPage * kHeadDim;
  const DeviceBlock k(elements * 4), v(elements * 4), q(tokens * heads * kHeadDim * 4),
      o(tokens * heads * kHeadDim * 4);
  fill_field(q.as<float>(), tokens * heads * kHeadDim, 1);
  if (dtype == kF32)
    fill_field(k.as<float>(), elements, 2), fill_field(v.as<float>(), elements, 3);
  else
    fill_field(k.as<bf16>(), elements, 2), fill_field(v.as<bf16>(), elements, 3);
  std::vector<int32_t> table(static_cast<size_t>(pages));
  for (int64_t p = 0; p < pages; ++p) table[static_cast<size_t>(p)] = static_cast<int32_t>(p * 7 % pages);
  const int64_t starts[3] = {0, tokens, keys};
  const DeviceBlock device_table(pages * 4), numbers(24);
  must(cudaMemcpy(device_table.data, table.data(), static_cast<size_t>(pages) * 4, cudaMemcpyHostToDevice),
       "copy");
  must(cudaMemcpy(numbers.data, starts, 24, cudaMemcpyHostToDevice), "copy");
  cuda::AttentionTilesCall c;
  c.o = o.as<float>(), c.q = q.as<const float>(), c.page_table = device_table.as<const int32_t>();
  c.query_start = numbers.as<const int64_t>(), c.lengths = numbers.as<const int64_t>() + 2,
  c.start_stride = 1;
  for (cuda::PagedSide* side : {&c.k, &c.v}) {
    side->pages = side == &c.k ? k.data : v.data, side->dtype = dtype, side->vectors = true;
    side->page_stride = kv_heads * kPage * kHeadDim, side->head_stride = kPage * kHeadDim,
    side->slot_stride = kHeadDim;
  }
  c.rows = tokens, c.heads = heads, c.kv_heads = kv_heads, c.ratio = heads / kv_heads, c.head_dim = kHeadDim,
  c.sequences = 1;
  c.pages = pages, c.page_size = kPage, c.max_pages = pages, c.table_stride = pages, c.length_stride = 1;
  c.q_stride = c.o_stride = heads * kHeadDim, c.q_head_stride = c.o_head_stride = kHeadDim, c.scale = 0.125f;
  using Traits = cuda::TileTraits<64, 64, 64, 256>;
  const dim3 grid(static_cast<unsigned>(ceil_div(tokens * c.ratio, int64_t{64}) + 1),
                  static_cast<unsigned>(kv_heads), 1);
  const auto run = [&](cudaStream_t stream, int) {
    must(cuda::launch_attention_tiles<Traits>(stream, c, grid));
  };
  Condition condition;
  condition.row = text("prefill-", dtype_name(dtype), "-", tokens, "-after-", past);
  condition.text = text(tokens, " tokens after ", past, ", ", heads, "/", kv_heads, " heads of 64, ",
                        dtype_name(dtype), " pages");
  condition.flops = 4.0 * static_cast<double>(heads * kHeadDim) *
                    (static_cast<double>(past) * tokens + tokens * (tokens + 1) / 2.0);
  session.measure(condition, {{"attention_tiles", run, true}});
}

}  // namespace

void bench_packed(Session& session, bool) {
  for (const int64_t tokens : {1, 8}) {
    bench_shape<kQ4_1>(session, 576, 576, tokens, 16);
    bench_shape<kQ4_1>(session, 1536, 576, tokens, 16);
    bench_shape<kQ4_1>(session, 576, 1536, tokens, 16);
    bench_shape<kQ8_0>(session, 49152, 576, tokens, 4);
    bench_shape<kQ4_1>(session, 4096, 4096, tokens, 16);
    bench_shape<kQ8_0>(session, 4096, 4096, tokens, 16);
    bench_shape<kQ5_0>(session, 4096, 4096, tokens, 16);
    bench_shape<kQ4_K>(session, 4096, 14336, tokens, 16);
    bench_shape<kQ6_K>(session, 4096, 14336, tokens, 16);
    bench_shape<kQ4_K>(session, 28672, 4096, tokens, 4);
  }
  for (const int64_t tokens : {16, 64, 512}) {
    bench_shape<kQ4_1>(session, 1536, 576, tokens, 16);
    bench_shape<kQ4_1>(session, 4096, 4096, tokens, 16);
  }
  bench_prefill(session, 512, 0, 9, 3, kF32);
  bench_prefill(session, 512, 0, 9, 3, kBF16);
  bench_prefill(session, 2048, 0, 9, 3, kF32);
  bench_prefill(session, 64, 8192, 9, 3, kF32);
}

}  // namespace ridge::bench
