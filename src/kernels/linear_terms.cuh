#pragma once
// linear_terms: y = x · wᵀ + bias + residual at f32 accuracy by the bf16 matrix instruction
// (docs/kernels/linear_terms.md). Limit: read bandwidth of w for few tokens, the matrix instruction and the
// unpacking of codes for many.
//
// Quantized codes are small integers, which bf16 holds exactly, and f32 is the exact sum of three bf16 terms
// (f16 of two). So codes, or terms of w, are multiplied by terms of x without any rounding but that of f32
// sums; a panel's sum is then scaled once. A column of operand b is a term of a token: three for f32 x, one
// for bf16. The sums of x that offsets are multiplied by come from the same instruction, with ones as operand
// a.
//
// w goes in pairs of 16-row tiles, and k in `parts`, a matter of w's shape alone. With few tokens a part is a
// warp's, which splits x into terms itself; with many a launch before this one has done it (split_terms.cuh),
// and a warp does all parts of its pair in turn. Parts are joined in shared memory in their order, so neither
// the batch nor the place in it changes a bit of a row.

#include "kernels/linear_terms_small.cuh"

namespace ridge::cuda {

/// Parts in order: a thread a row and column; the sums replace those of a pair's first warp. All threads call
/// it.
template <class Traits>
__device__ __forceinline__ void join_parts(float* join, const LinearTermsCall& call, int columns) {
  if (call.sharing == 1) return;
  const int all = Traits::kWarps / call.sharing * 32 * columns;
  for (int i = threadIdx.x; i < all; i += Traits::kThreads) {
    const int column = i % columns, row = i / columns;
    float* const at = join + (row / 32 * call.sharing * 32 + row % 32) * Traits::kRow + column;
    float sum = *at;
#pragma unroll 4
    for (int warp = 1; warp < call.sharing; ++warp) sum += at[warp * 32 * Traits::kRow];
    *at = sum;
  }
  __syncthreads();
}

/// Terms in order.
__device__ __forceinline__ float joined(const float* row, const LinearTermsCall& call, int token) {
  const float* const from = row + token * call.terms;
  float sum = from[0];
  for (int term = 1; term < call.terms; ++term) sum += from[term];
  return sum;
}

/// A thread an output.
template <class Traits>
__device__ __forceinline__ void store_outputs(float* join, const LinearTermsCall& call, device::Waited waited,
                                              const BlockRows& block, int64_t first_token, int tokens) {
  join_parts<Traits>(join, call, tokens * call.terms);
  const int height = rows_of_pair(call.gate), rows = Traits::kWarps / call.sharing * height;
  const LinearTermsPart& m = call.matrices[block.matrix];
  float* const y = m.y.after(waited);
  const float* const residual = call.residual.after(waited);
  for (int i = threadIdx.x; i < rows * tokens; i += Traits::kThreads) {
    const int row = i % rows, token = i / rows;
    const int64_t out = block.first_pair * height + row;
    if (out >= m.out) continue;
    const float* const from = join + (row / height * call.sharing * 32 + row % height) * Traits::kRow;
    float sum = joined(from, call, token);
    if (m.bias) sum += m.bias[out];
    if (call.gate != Gate::kNone) {
      float up = joined(from + 16 * Traits::kRow, call, token);
      if (call.matrices[1].bias) up += call.matrices[1].bias[out];
      sum = (call.gate == Gate::kSilu ? Silu::of(sum) : GeluTanh::of(sum)) * up;
    }
    if (residual) sum += residual[(first_token + token) * call.residual_stride + out];
    y[(first_token + token) * m.y_stride + out] = sum;
  }
}

/// One or two tokens: a warp splits the x of its part, four units of two panels at a time.
template <class Traits>
__global__ __launch_bounds__(Traits::kThreads,
                             Traits::kBlocksPerSm) void linear_terms_few(device::Upstream upstream,
                                                                         LinearTermsCall call) {
  using Panel = typename Traits::Panel;
  static_assert(Traits::kColumns == 1);
  constexpr int kDepth = Panel::kDepth, kStage = 4;
  extern __shared__ __align__(128) unsigned char shared[];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, part = warp % call.sharing;
  const BlockRows block(call, Traits::kWarps / call.sharing);
  const typename Panel::Rows rows(call, block.tile(call, block.first_pair + warp / call.sharing));
  const int begin = part * call.part_units, end = min(begin + call.part_units, call.units);
  // Early: the launches after this one load their weights while it waits.
  upstream.release_next();
  Panel raw[kDepth][2];  // unit u in place (u - begin) mod kDepth, until it is ready
  ReadyPanel<Panel> ready[2];
  const auto make_ready = [&](int place, int unit) {
    ready[0].take(raw[place][0]), ready[1].take(raw[place][1]);
    if (unit + kDepth < end) rows.load(raw[place], unit + kDepth);
  };
#pragma unroll
  for (int i = 0; i < kDepth; ++i)
    if (begin + i < end) rows.load(raw[i], begin + i);
  if (begin < end) make_ready(0, begin);
  const auto waited = upstream.wait();

  const int tokens = static_cast<int>(call.tokens);
  unsigned char* const own = shared + warp * kStage * 2 * 512;
  const bool has_column = lane >> 2 < tokens * call.terms;
  SplitX<kStage, Panel::kNeighbours> x;
  x.load(call, call.x.after(waited), begin, end);
  float total[2][1][4] = {};
  for (int stage = begin; stage < end; stage += kStage) {
    __syncwarp();  // the stage before is used up
    x.split(call, own);
    __syncwarp();
    if (stage + kStage < end) x.load(call, call.x.after(waited), stage + kStage, end);
#pragma unroll
    for (int i = 0; i < kStage; ++i) {
      const int unit = stage + i;
      if (unit >= end) break;
#pragma unroll
      for (int p = 0; p < 2; ++p) {
        uint4 terms[1] = {};
        if (has_column) terms[0] = *reinterpret_cast<const uint4*>(own + (i * 2 + p) * 512 + lane * 16);
        if (2 * unit + p < call.panels) add_panel<Panel, 1>(total, ready[p], terms);
      }
      if (unit + 1 < end) make_ready((i + 1) % kDepth, unit + 1);
    }
  }
  __syncthreads();
  float* const join = reinterpret_cast<float*>(shared);
  leave_part<Traits>(total, join + warp * 32 * Traits::kRow, true);
  __syncthreads();
  store_outputs<Traits>(join, call, waited, block, 0, tokens);
}

/// Many tokens: blockIdx.x is the group of columns, so that blocks which read the same w run side by side.
template <class Traits>
__global__ __launch_bounds__(Traits::kThreads,
                             Traits::kBlocksPerSm) void linear_terms_many(device::Upstream upstream,
                                                                          LinearTermsCall call) {
  using Panel = typename Traits::Panel;
  constexpr int kColumns = Traits::kColumns;
  extern __shared__ __align__(128) unsigned char shared[];
  float* const join = reinterpret_cast<float*>(shared);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const BlockRows block(call, Traits::kWarps / call.sharing);
  const int64_t first_token = int64_t{blockIdx.x} * (kColumns * 8 / call.terms);
  const typename Panel::Rows rows(call, block.tile(call, block.first_pair + warp / call.sharing));
  const int first_part = call.sharing == 1 ? 0 : warp % call.sharing,
            parts = call.sharing == 1 ? call.parts : 1;
  upstream.release_next();
  const auto waited = upstream.wait();
  const uint4* const b =
      call.split_x.after(waited) + int64_t{blockIdx.x} * call.units * 2 * kColumns * 32 + lane;

  for (int part = first_part; part < first_part + parts; ++part) {
    const int begin = part * call.part_units, end = min(begin + call.part_units, call.units);
    Panel now[2], next[2];
    if (begin < end) rows.load(now, begin);
    float total[2][kColumns][4] = {};
    for (int unit = begin; unit < end; ++unit) {
      if (unit + 1 < end) rows.load(next, unit + 1);
#pragma unroll
      for (int p = 0; p < 2; ++p) {
        uint4 terms[kColumns];
#pragma unroll
        for (int n = 0; n < kColumns; ++n) terms[n] = __ldg(b + (int64_t{2 * unit + p} * kColumns + n) * 32);
        if (2 * unit + p >= call.panels) continue;
        ReadyPanel<Panel> ready;
        ready.take(now[p]);
        add_panel<Panel, kColumns>(total, ready, terms);
      }
      now[0] = next[0], now[1] = next[1];
    }
    leave_part<Traits>(total, join + warp * 32 * Traits::kRow, part == first_part);
  }
  __syncthreads();
  const int tokens = static_cast<int>(min(int64_t{kColumns * 8 / call.terms}, call.tokens - first_token));
  store_outputs<Traits>(join, call, waited, block, first_token, tokens);
}

template <class Panel, int kWarps>
static Status launch_linear_terms_few(cudaStream_t stream, LinearTermsCall call) {
  using Traits = LinearTermsTraits<Panel, 1, kWarps>;
  static const cudaError_t allowed = cudaFuncSetAttribute(
      linear_terms_few<Traits>, cudaFuncAttributeMaxDynamicSharedMemorySize, Traits::kSharedBytes);
  RIDGE_TRY(device::cuda_status(allowed, "cudaFuncSetAttribute of linear_terms_few"));
  call.sharing = call.parts;
  device::LaunchShape shape;
  shape.grid.y = static_cast<unsigned>(place_blocks(&call, Traits::kWarps));
  shape.block.x = Traits::kThreads;
  shape.shared_bytes = Traits::kSharedBytes;
  return device::launch_dependent(stream, shape, "linear_terms_few", linear_terms_few<Traits>, call);
}

/// `sms`: multiprocessors.
template <class Panel>
static Status launch_linear_terms_many(cudaStream_t stream, LinearTermsCall call, int sms) {
  using Traits = LinearTermsTraits<Panel, kManyColumns, 16>;
  static const cudaError_t allowed = cudaFuncSetAttribute(
      linear_terms_many<Traits>, cudaFuncAttributeMaxDynamicSharedMemorySize, Traits::kSharedBytes);
  RIDGE_TRY(device::cuda_status(allowed, "cudaFuncSetAttribute of linear_terms_many"));
  const int64_t groups = ceil_div(call.tokens, int64_t{kManyColumns * 8 / call.terms});
  const int64_t items = groups * call.units * 2 * kManyColumns * 32;
  device::LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(min(ceil_div(items, int64_t{256}), int64_t{sms} * 16));
  shape.block.x = 256;
  RIDGE_TRY(
      device::launch_dependent(stream, shape, "split_terms", split_terms, call, Panel::kNeighbours, items));
  // A warp a pair reads x once for 16 pairs, if that leaves no multiprocessor without a block.
  call.sharing = 1;
  if (place_blocks(&call, Traits::kWarps) * groups < sms) call.sharing = call.parts;
  shape = {};
  shape.grid.x = static_cast<unsigned>(groups);
  shape.grid.y = static_cast<unsigned>(place_blocks(&call, Traits::kWarps));
  shape.block.x = Traits::kThreads;
  shape.shared_bytes = Traits::kSharedBytes;
  return device::launch_dependent(stream, shape, "linear_terms_many", linear_terms_many<Traits>, call);
}

template <class Panel>
static Status launch_panels(cudaStream_t stream, const LinearTermsCall& call, int sms) {
  if (is_small(call)) return launch_linear_terms_small<Panel>(stream, call);
  if (call.norm != nullptr) return internal_error("linear_terms: in is ", call.in, ": not normalized here");
  // A block a pair: small blocks, several on a multiprocessor, where there are many pairs.
  if (call.tokens <= kFewTerms && call.parts == 16) return launch_linear_terms_few<Panel, 16>(stream, call);
  if (call.tokens <= kFewTerms && call.parts == 8) return launch_linear_terms_few<Panel, 8>(stream, call);
  if (call.tokens <= kFewTerms) return launch_linear_terms_few<Panel, 4>(stream, call);
  return launch_linear_terms_many<Panel>(stream, call, sms);
}

}  // namespace ridge::cuda
