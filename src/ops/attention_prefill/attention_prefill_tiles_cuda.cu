// Limit: f32 FMA. kernels/attention_tiles.cuh. The host does not see lengths and pages: a key whose page is
// not in the cache, or beyond the page table, is NaN, for the sequence that has it alone.

#include "ops/attention_prefill/attention_prefill.h"
#include "ops/attention_tiles_args.cuh"

namespace ridge::cuda {

namespace {

Decline declines(const AttentionPrefillArgs& a) {
  return declines_tiles(a);
}

template <class Traits>
Status launch_prefill(Stream& stream, const AttentionPrefillArgs& a) {
  AttentionTilesCall call = tiles_call(a);
  call.query_start = a.query_start.as<const int64_t>(), call.start_stride = a.query_start.stride(0);
  // As many tiles as there can be; the device knows how long the chunks are.
  const int64_t tiles = ceil_div(call.rows * call.ratio, int64_t{Traits::kRows}) + call.sequences;
  return launch_attention_tiles<Traits>(
      as_cuda(stream).native(), call,
      {static_cast<unsigned>(tiles), static_cast<unsigned>(call.kv_heads), 1});
}

template <class Body>
auto with_tile_shape(const AttentionPrefillArgs& a, const Body& body) {
  if (a.q.dim(2) <= 64) return body(TileTraits<64, 64, 64, 256>{});
  if (a.q.dim(2) <= 128) return body(TileTraits<128, 64, 64, 256>{});
  if (a.q.dim(2) <= 256) return body(TileTraits<256, 64, 64, 256>{});
  return body(TileTraits<576, 16, 16, 128>{});
}

Status run(Stream& stream, const AttentionPrefillArgs& a) {
  if (a.q.elements() == 0 || a.kv_length.dim(0) == 0) return {};
  return with_tile_shape(a, [&]<class Traits>(Traits) { return launch_prefill<Traits>(stream, a); });
}

int64_t executed(const AttentionPrefillArgs& a) {
  return with_tile_shape(a, [&]<class Traits>(Traits) { return executed_tiles<Traits>(a); });
}

}  // namespace

void attention_prefill_tiles_cuda(Kernels<AttentionPrefillArgs>& kernels) {
  Kernel<AttentionPrefillArgs> kernel;
  kernel.name = "attention_tiles", kernel.declines = declines, kernel.run = run;
  kernel.executed_flops = executed;
  kernels.add(std::move(kernel));
}

}  // namespace ridge::cuda
