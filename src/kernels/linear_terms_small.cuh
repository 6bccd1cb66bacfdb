#pragma once
// linear_terms for one token of f32 x and a small matrix, where the chain from the wait to the last store is
// all that counts: a block has one pair of tiles and a warp one part of it, of at most kUnits units. Weights
// are operands in registers before the wait. Bits are those of linear_terms_few, and with a norm those of
// rms_norm before it.

#include "device/reduce.cuh"
#include "kernels/linear_terms_multiply.cuh"

namespace ridge::cuda {

/// The most units of a part, and the longest row that is normalized on the way.
inline constexpr int kSmallUnits = 2;
inline constexpr int64_t kSmallNorm = 1024;

/// Orders what makes `operands` and `all` before the wait; the compiler would rather put it after.
template <class Panel>
__device__ __forceinline__ void finish_early(const ReadyPanel<Panel> (&operands)[2], uint32_t all) {
#pragma unroll
  for (int p = 0; p < 2; ++p)
#pragma unroll
    for (int m = 0; m < 2; ++m) {
#pragma unroll
      for (int step = 0; step < 2; ++step)
#pragma unroll
        for (int term = 0; term < Panel::kTerms; ++term)
#pragma unroll
          for (int i = 0; i < 4; ++i) all ^= operands[p].a[m][step][term][i];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int half = 0; half < ReadyPanel<Panel>::kHalves; ++half)
          all ^= __float_as_uint(operands[p].scale[m][half][r]);
        if constexpr (Panel::kOffsets) all ^= __float_as_uint(operands[p].offset[m][r]);
      }
    }
  device::ptx::complete_before(all);
}

/// Sum of squares of a row of at most kSmallNorm columns, in the order of rms_norm_row. The block calls it,
/// of at least four warps; each has the row's columns of one warp there. `sums`: four floats of shared
/// memory.
__device__ __forceinline__ float squares_of_row(const float* x, int64_t in, float* sums) {
  const int at = static_cast<int>(threadIdx.x) * 8;
  if (threadIdx.x < 128) {
    float v[8] = {}, squares = 0;
    if (at < in) device::load8(x + at, v);
#pragma unroll
    for (int j = 0; j < 8; ++j) squares = fmaf(v[j], v[j], squares);
    squares = device::warp_reduce<device::Sum>(squares);
    if ((threadIdx.x & 31) == 0) sums[threadIdx.x >> 5] = squares;
  }
  __syncthreads();
  return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

template <class PanelIn, int kUnitsIn>
struct LinearTermsSmallTraits {
  using Panel = PanelIn;
  static constexpr int kUnits = kUnitsIn, kColumns = 1, kRow = 9;
  static constexpr int kSplitBytes = kUnits * 2 * 512, kJoinBytes = 32 * kRow * 4;  // of a warp
};

/// Threads 0 … 127 end a pair: four lanes a row, one of them a term; with a gate the rows of both matrices in
/// turns.
template <bool kGated>
struct SmallRow {
  int term = threadIdx.x & 3;
  int row = kGated ? threadIdx.x >> 3 : threadIdx.x >> 2;           // of y
  int join_row = kGated ? row + 16 * (threadIdx.x >> 2 & 1) : row;  // of the pair
  bool stores = threadIdx.x < 128 && (threadIdx.x & (kGated ? 7 : 3)) == 0;
};

/// The sum of a row over the parts, in their order, then of its terms: right where term is 0.
template <int kRow>
__device__ __forceinline__ float sum_of_parts(const float* from, int parts) {
  constexpr int kMostParts = 16;
  float each[kMostParts];
#pragma unroll
  for (int part = 0; part < kMostParts; ++part) each[part] = part < parts ? from[part * 32 * kRow] : 0;
  float sum = each[0];
#pragma unroll
  for (int part = 1; part < kMostParts; ++part) sum += each[part];
  const float second = __shfl_down_sync(0xffffffffu, sum, 1), third = __shfl_down_sync(0xffffffffu, sum, 2);
  return sum + second + third;
}

template <class Traits, bool kGated>
__global__ __launch_bounds__(512) void linear_terms_small(device::Upstream upstream, LinearTermsCall call) {
  using Panel = typename Traits::Panel;
  constexpr int kRow = Traits::kRow, kUnits = Traits::kUnits;
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ float squares[4];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  const BlockRows block(call, 1);
  const int begin = warp * call.part_units, end = min(begin + call.part_units, call.units);
  upstream.release_next();
  Panel raw[kUnits][2] = {};  // what is not there has the scale 0
  const typename Panel::Rows rows(call, block.tile(call, block.first_pair));
#pragma unroll
  for (int u = 0; u < kUnits; ++u)
    if (begin + u < end) rows.load(raw[u], begin + u);
  // Lane 8 i + 4 step + t has four columns of panel i of this part.
  const int panel = lane >> 3;
  const int64_t column = column_of(Panel::kNeighbours, 2 * begin + panel, lane >> 2 & 1, lane & 3);
  const bool has_x = panel < 2 * kUnits && panel < 2 * (end - begin) && column < call.in;
  float4 weight = {};
  if (has_x && call.norm) weight = *reinterpret_cast<const float4*>(call.norm + column);
  const LinearTermsPart& m = call.matrices[block.matrix];
  const SmallRow<kGated> mine;
  const int64_t out = block.first_pair * rows_of_pair(kGated ? Gate::kSilu : Gate::kNone) + mine.row;
  const bool stores = mine.stores && out < m.out;
  const float bias = !kGated && stores && m.bias ? m.bias[out] : 0;
  ReadyPanel<Panel> ready[2];
  ready[0].take(raw[0][0]), ready[1].take(raw[0][1]);
  const float columns = static_cast<float>(static_cast<int>(call.in));
  finish_early(ready, __float_as_uint(columns));
  const auto waited = upstream.wait();

  const float* const x = reinterpret_cast<const float*>(call.x.after(waited));
  float4 v = {};
  if (has_x) v = *reinterpret_cast<const float4*>(x + column);
  const float* const residual = call.residual.after(waited);
  const float added = !kGated && stores && residual ? residual[out] : 0;
  if (call.norm) {
    const float scale = rsqrtf(squares_of_row(x, call.in, squares) / columns + call.norm_epsilon);
    v = {v.x * scale * (weight.x + call.norm_offset), v.y * scale * (weight.y + call.norm_offset),
         v.z * scale * (weight.z + call.norm_offset), v.w * scale * (weight.w + call.norm_offset)};
  }
  unsigned char* const own = shared + warp * Traits::kSplitBytes;  // [panels, 8 columns, 4 t, 16 bytes]
  if (panel < 2 * kUnits) {
#pragma unroll
    for (int term = 0; term < 3; ++term)
      *reinterpret_cast<uint2*>(own + panel * 512 + (term * 4 + (lane & 3)) * 16 + (lane >> 2 & 1) * 8) =
          take_term(v);
  }
  __syncwarp();
  float total[2][1][4] = {};
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
    if (u > 0) ready[0].take(raw[u][0]), ready[1].take(raw[u][1]);
#pragma unroll
    for (int p = 0; p < 2; ++p) {
      uint4 terms[1] = {};
      if (lane < 12) terms[0] = *reinterpret_cast<const uint4*>(own + (u * 2 + p) * 512 + lane * 16);
      add_panel<Panel, 1>(total, ready[p], terms);
    }
  }
  float* const join = reinterpret_cast<float*>(shared + warps * Traits::kSplitBytes);
  if ((lane & 3) < 2) leave_part<Traits>(total, join + warp * 32 * kRow, true);
  __syncthreads();
  if (threadIdx.x >= 128) return;

  float sum = sum_of_parts<kRow>(join + mine.join_row * kRow + min(mine.term, 2), warps);
  if constexpr (kGated) {
    const float up = __shfl_down_sync(0xffffffffu, sum, 4);
    sum = (call.gate == Gate::kSilu ? Silu::of(sum) : GeluTanh::of(sum)) * up;
  } else {
    if (m.bias) sum += bias;
    if (residual) sum += added;
  }
  if (stores) m.y.after(waited)[out] = sum;
}

/// Whether linear_terms_small takes the call.
inline bool is_small(const LinearTermsCall& call) {
  return call.tokens == 1 && call.terms == 3 && call.vectors && call.in % 4 == 0 &&
         call.part_units <= kSmallUnits && (call.gate == Gate::kNone || call.matrices[0].bias == nullptr);
}

template <class Panel>
static Status launch_linear_terms_small(cudaStream_t stream, LinearTermsCall call) {
  device::LaunchShape shape;
  call.sharing = call.parts;  // a block has one pair
  shape.grid.y = static_cast<unsigned>(place_blocks(&call, call.parts));
  const int warps = max(4, (call.units + call.part_units - 1) / call.part_units);
  shape.block.x = static_cast<unsigned>(warps * 32);
  const auto go = [&]<int kUnits, bool kGated>() {
    using Traits = LinearTermsSmallTraits<Panel, kUnits>;
    constexpr int kWarpBytes = Traits::kSplitBytes + Traits::kJoinBytes;
    static const cudaError_t allowed = cudaFuncSetAttribute(
        linear_terms_small<Traits, kGated>, cudaFuncAttributeMaxDynamicSharedMemorySize, 16 * kWarpBytes);
    RIDGE_TRY(device::cuda_status(allowed, "cudaFuncSetAttribute of linear_terms_small"));
    shape.shared_bytes = warps * kWarpBytes;
    return device::launch_dependent(stream, shape, "linear_terms_small", linear_terms_small<Traits, kGated>,
                                    call);
  };
  const bool gated = call.gate != Gate::kNone;
  if (call.part_units <= 1)
    return gated ? go.template operator()<1, true>() : go.template operator()<1, false>();
  return gated ? go.template operator()<2, true>() : go.template operator()<2, false>();
}

}  // namespace ridge::cuda
