// What attention_decode_split declines: f32 and i8 pages, K and V of different types, any head_dim, stride
// and alignment. Limit: f32 FMA. kernels/attention_tiles.cuh.

#include <algorithm>

#include "ops/attention_decode/attention_decode.h"
#include "ops/attention_tiles_args.cuh"

namespace ridge::cuda {

namespace {

Decline declines(const AttentionDecodeArgs& a) {
  return declines_tiles(a);
}

int64_t groups_of(const AttentionDecodeArgs& a, int64_t rows) {
  return a.k_pages.dim(1) * ceil_div(a.q.dim(1) / a.k_pages.dim(1), rows);
}

/// Blocks that share the keys of a sequence: of the batch's size, not of the room for keys, so that a
/// declared maximum changes no bit.
int64_t splits_of(const AttentionDecodeArgs& a, int64_t rows) {
  constexpr int64_t kBlocks = 264, kMost = 32;
  const int64_t units = a.kv_length.dim(0) * groups_of(a, rows);
  if (units == 0 || units > CudaStream::kArrivals) return 1;
  return std::clamp(kBlocks / units, int64_t{1}, kMost);
}

template <class Body>
auto with_tile_shape(const AttentionDecodeArgs& a, const Body& body) {
  if (a.q.dim(2) <= 64) return body(TileTraits<64, 16, 64, 128>{});
  if (a.q.dim(2) <= 128) return body(TileTraits<128, 16, 64, 128>{});
  if (a.q.dim(2) <= 256) return body(TileTraits<256, 16, 32, 128>{});
  return body(TileTraits<576, 16, 16, 128>{});
}

int64_t workspace(const AttentionDecodeArgs& a) {
  return with_tile_shape(a, [&]<class Traits>(Traits) {
    const int64_t splits = splits_of(a, Traits::kRows);
    return splits == 1
               ? int64_t{0}
               : a.kv_length.dim(0) * groups_of(a, Traits::kRows) * splits * Traits::kPartialFloats * 4;
  });
}

Status run(Stream& stream, const AttentionDecodeArgs& a) {
  if (a.q.elements() == 0) return {};
  CudaStream& cuda = as_cuda(stream);
  return with_tile_shape(a, [&]<class Traits>(Traits) {
    AttentionTilesCall call = tiles_call(a);
    const int64_t splits = splits_of(a, Traits::kRows);
    call.splits = static_cast<int>(splits);
    call.partials = static_cast<float*>(cuda.workspace()), call.arrivals = cuda.arrivals();
    return launch_attention_tiles<Traits>(
        cuda.native(), call,
        {static_cast<unsigned>(splits), static_cast<unsigned>(groups_of(a, Traits::kRows)),
         static_cast<unsigned>(call.sequences)});
  });
}

int64_t executed(const AttentionDecodeArgs& a) {
  return with_tile_shape(a, [&]<class Traits>(Traits) { return executed_tiles<Traits>(a); });
}

}  // namespace

void attention_decode_tiles_cuda(Kernels<AttentionDecodeArgs>& kernels) {
  Kernel<AttentionDecodeArgs> kernel;
  kernel.name = "attention_tiles_split", kernel.declines = declines, kernel.run = run,
  kernel.workspace = workspace, kernel.executed_flops = executed;
  kernels.add(std::move(kernel));
}

}  // namespace ridge::cuda
