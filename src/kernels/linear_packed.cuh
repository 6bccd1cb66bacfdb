#pragma once
// linear_packed: y = x · wᵀ + bias + residual with quantized w in rows16, consumed packed
// (docs/kernels/linear_packed.md). Limit: read bandwidth of w for few tokens, the matrix instruction and the
// unpacking of codes for many.
//
// Codes are small integers, which bf16 holds exactly; f32 x is the exact sum of three bf16 terms. So the
// matrix instruction multiplies codes by terms without any rounding but that of its f32 sums, and a panel's
// sum is scaled once: f32 accuracy at the instruction's rate. A column of operand b is a term of a token:
// three for f32 x, one for bf16.
//
// A warp has a pair of tiles (32 rows of w) and a part of the panels; kWarps / split pairs share a block. x
// is split into terms once a block, for a chunk of panels at a time, and laid out in shared memory as the
// instruction wants it. The parts of a pair meet in shared memory in their order. Neither the batch nor the
// place in it changes a bit of a row.

#include "base/checked.h"
#include "device/launch.cuh"
#include "kernels/rows16_panel.cuh"

namespace ridge::cuda {

struct LinearPackedCall {
  device::Fresh<float> y;                // [tokens, out]
  device::Fresh<const unsigned char> x;  // [tokens, in] f32 or bf16
  const uint8_t* w = nullptr;  // rows16 of [out, in]; complete before the step, so it is read before the wait
  const float* bias = nullptr;          // [out] or none
  device::Fresh<const float> residual;  // [tokens, out] or none; may be y
  int64_t tokens = 0, out = 0, panels = 0, tile_bytes = 0;
  int64_t y_stride = 0, x_stride = 0, residual_stride = 0;  // elements
  int split = 1;                                            // warps that share a pair of tiles
  int terms = 3;                                            // 3: f32 x; 1: bf16
  bool vectors = false;                                     // four neighbouring x are aligned
};

/// kColumns: column tiles of 8. A chunk of kChunk panels is staged together; kBatch panels are loaded
/// together.
template <DType dtypeIn, int kColumnsIn>
struct LinearPackedTraits {
  static constexpr DType dtype = dtypeIn;
  static constexpr int kColumns = kColumnsIn, kWarps = 8, kThreads = kWarps * 32;
  static constexpr int kChunk = kColumns == 1 ? 64 : kColumns <= 3 ? 32 : 16;
  static constexpr int kBatch = kColumns <= 3 && dtype != kQ6_K && dtype != kQ8_0 ? 4 : 2;
  static constexpr int kBlocksPerSm = kColumns <= 3 ? 2 : 1;
  static constexpr bool kOffsets = rows16::has_minimum(dtype);
  static constexpr int kStageBytes = kChunk * kColumns * 512, kSumBytes = kChunk * kColumns * 8 * 4;
  static constexpr int kJoinRow = kColumns * 8 + 1;  // floats of a row in shared memory when warps meet
  static constexpr int kJoinBytes = kWarps * 32 * kJoinRow * 4;
  static constexpr int kUsed = kStageBytes + kSumBytes;
  static constexpr int kSharedBytes = kUsed > kJoinBytes ? kUsed : kJoinBytes;
};

/// Four neighbouring elements of a row of x.
__device__ __forceinline__ float4 load_x(const LinearPackedCall& call, const unsigned char* x, int64_t at) {
  if (call.terms == 3) {
    const float* const p = reinterpret_cast<const float*>(x) + at;
    if (call.vectors) return *reinterpret_cast<const float4*>(p);
    return {p[0], p[1], p[2], p[3]};
  }
  const bf16* const p = reinterpret_cast<const bf16*>(x) + at;
  if (call.vectors) {
    const uint2 v = *reinterpret_cast<const uint2*>(p);
    const float2 a = device::unpack2<bf16>(v.x), b = device::unpack2<bf16>(v.y);
    return {a.x, a.y, b.x, b.y};
  }
  return {device::to_float(p[0]), device::to_float(p[1]), device::to_float(p[2]), device::to_float(p[3])};
}

/// The first eight bits of v; *rest becomes what they leave, exactly. Infinity leaves nothing.
__device__ __forceinline__ uint32_t first_term(float v, float* rest) {
  const uint32_t bits = __float_as_uint(v) & 0xffff0000u;
  *rest = isinf(v) ? 0 : v - __uint_as_float(bits);
  return bits;
}

/// Splits the x of chunk `chunk` into terms. Panel part * each + chunk * own + j is at place part * own + j:
/// own = kChunk / split. Eight threads have a token's panel: step and t of the matrix step.
template <class Traits>
__device__ __forceinline__ void stage_x(unsigned char* shared, const LinearPackedCall& call,
                                        const unsigned char* x, int64_t first_token, int tokens, int64_t each,
                                        int64_t chunk) {
  const int own = Traits::kChunk / call.split;
  float* const sums = reinterpret_cast<float*>(shared + Traits::kStageBytes);
  const int step = threadIdx.x >> 2 & 1, t = threadIdx.x & 3;
  for (int item = threadIdx.x / 8; item < tokens * Traits::kChunk; item += Traits::kThreads / 8) {
    const int place = item % Traits::kChunk, token = item / Traits::kChunk;
    const int64_t within = chunk * own + place % own, panel = place / own * each + within;
    const bool live = within < each && panel < call.panels;
    float4 v = {};
    if (live) v = load_x(call, x, (first_token + token) * call.x_stride + panel * 32 + step * 16 + 4 * t);
    for (int term = 0; term < call.terms; ++term) {
      float4 rest;
      const uint32_t a = first_term(v.x, &rest.x), b = first_term(v.y, &rest.y), c = first_term(v.z, &rest.z),
                     d = first_term(v.w, &rest.w);
      const int column = token * call.terms + term;
      if (live)
        *reinterpret_cast<uint2*>(shared + (place * Traits::kColumns + column / 8) * 512 +
                                  ((column % 8) * 4 + t) * 16 + step * 8) = {a >> 16 | b, c >> 16 | d};
      if constexpr (Traits::kOffsets) {
        float sum = (__uint_as_float(a) + __uint_as_float(b)) + (__uint_as_float(c) + __uint_as_float(d));
        // Items of a warp differ by a quarter of it only: all 8 threads of one are here together.
        const unsigned mask = 0xffu << (threadIdx.x & 24);
#pragma unroll
        for (int lanes = 1; lanes < 8; lanes *= 2) sum += __shfl_xor_sync(mask, sum, lanes);
        if (live && (threadIdx.x & 7) == 0) sums[place * Traits::kColumns * 8 + column] = sum;
      }
      v = rest;
    }
  }
}

/// Adds one panel: codes by terms, scaled.
template <class Traits>
__device__ __forceinline__ void add_panel(float (&total)[2][Traits::kColumns][4],
                                          const PanelRegisters<Traits::dtype>& panel,
                                          const unsigned char* shared, int place) {
  constexpr bool kHalves = Traits::dtype == kQ6_K;  // a scale for every 16 k
  const int lane = threadIdx.x & 31;
  const unsigned char* const b = shared + place * Traits::kColumns * 512 + lane * 16;
  const float* const sums = reinterpret_cast<const float*>(shared + Traits::kStageBytes) +
                            place * Traits::kColumns * 8 + (lane & 3) * 2;
#pragma unroll
  for (int m = 0; m < 2; ++m) {
    uint32_t a[2][4];
#pragma unroll
    for (int step = 0; step < 2; ++step)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        uint32_t pairs[2];
        panel.values_of(2 * m + r, step, pairs);
        a[step][r] = pairs[0], a[step][r + 2] = pairs[1];
      }
    float scale[2][2], offset[2] = {};
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      scale[0][r] = panel.scale_of(2 * m + r, 0);
      if constexpr (kHalves) scale[1][r] = panel.scale_of(2 * m + r, 1);
      if constexpr (Traits::kOffsets) offset[r] = panel.offset_of(2 * m + r);
    }
#pragma unroll
    for (int n = 0; n < Traits::kColumns; ++n) {
      const uint4 terms = *reinterpret_cast<const uint4*>(b + n * 512);
      float d[4] = {};
      device::mma<bf16>(d, a[0], terms.x, terms.y);
      if constexpr (kHalves) {
#pragma unroll
        for (int j = 0; j < 4; ++j) total[m][n][j] = fmaf(scale[0][j >> 1], d[j], total[m][n][j]), d[j] = 0;
      }
      device::mma<bf16>(d, a[1], terms.z, terms.w);
#pragma unroll
      for (int j = 0; j < 4; ++j) total[m][n][j] = fmaf(scale[kHalves][j >> 1], d[j], total[m][n][j]);
      if constexpr (Traits::kOffsets) {
        const float2 sum = *reinterpret_cast<const float2*>(sums + n * 8);
#pragma unroll
        for (int j = 0; j < 4; ++j)
          total[m][n][j] = fmaf(offset[j >> 1], j & 1 ? sum.y : sum.x, total[m][n][j]);
      }
    }
  }
}

/// The warps' sums meet; a thread finishes outputs: terms of a part in order, parts in order.
template <class Traits>
__device__ __forceinline__ void store_sums(const float (&total)[2][Traits::kColumns][4],
                                           unsigned char* shared, const LinearPackedCall& call,
                                           device::Waited waited, int64_t first_token, int tokens) {
  float* const join = reinterpret_cast<float*>(shared);  // [kWarps, 32, kJoinRow]
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  __syncthreads();  // the last chunk is used up
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int n = 0; n < Traits::kColumns; ++n)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int row = (g >> 2) * 16 + (g & 3) * 4 + 2 * m + (j >> 1);
        join[(warp * 32 + row) * Traits::kJoinRow + n * 8 + t * 2 + (j & 1)] = total[m][n][j];
      }
  __syncthreads();
  const int pairs = Traits::kWarps / call.split, rows = pairs * 32;
  float* const y = call.y.after(waited);
  const float* const residual = call.residual.after(waited);
  for (int i = threadIdx.x; i < rows * tokens; i += Traits::kThreads) {
    const int row = i % rows, token = i / rows;
    const int64_t out = int64_t{blockIdx.x} * rows + row;
    if (out >= call.out) continue;
    float sum = 0;
    for (int part = 0; part < call.split; ++part) {
      const float* const from =
          join + ((row / 32 * call.split + part) * 32 + row % 32) * Traits::kJoinRow + token * call.terms;
      float own = from[0];
      for (int term = 1; term < call.terms; ++term) own += from[term];
      sum += own;
    }
    if (call.bias) sum += call.bias[out];
    if (residual) sum += residual[(first_token + token) * call.residual_stride + out];
    y[(first_token + token) * call.y_stride + out] = sum;
  }
}

template <class Traits>
__global__ __launch_bounds__(Traits::kThreads,
                             Traits::kBlocksPerSm) void linear_packed(device::Upstream upstream,
                                                                      LinearPackedCall call) {
  extern __shared__ __align__(128) unsigned char shared[];
  constexpr int kBatch = Traits::kBatch;
  const int warp = threadIdx.x >> 5, part = warp % call.split;
  const int64_t pair = int64_t{blockIdx.x} * (Traits::kWarps / call.split) + warp / call.split;
  const int64_t tiles = (call.out + 15) / 16;
  // A tile past the end reads the last one; its rows are dropped.
  const int64_t tile = min(pair * 2 + (threadIdx.x >> 4 & 1), tiles - 1);
  const uint8_t* const w = call.w + tile * call.tile_bytes;
  const int64_t each = ceil_div(call.panels, int64_t{call.split});  // of w's shape alone, as packed_split()
  const int64_t begin = min(part * each, call.panels), end = min(begin + each, call.panels);
  const int own = Traits::kChunk / call.split;

  PanelRegisters<Traits::dtype> now[kBatch], next[kBatch];
#pragma unroll
  for (int i = 0; i < kBatch; ++i)
    if (begin + i < end) now[i].load(w, call.panels, begin + i);
  for (int i = threadIdx.x; i < Traits::kUsed / 16; i += Traits::kThreads)  // columns of no token stay 0
    reinterpret_cast<uint4*>(shared)[i] = {};
  const int capacity = Traits::kColumns * 8 / call.terms;
  const int64_t first_token = int64_t{blockIdx.y} * capacity;
  const int tokens = static_cast<int>(min(int64_t{capacity}, call.tokens - first_token));
  upstream.release_next();
  const auto waited = upstream.wait();
  const unsigned char* const x = call.x.after(waited);

  float total[2][Traits::kColumns][4] = {};
  for (int64_t chunk = 0; chunk * own < each; ++chunk) {
    __syncthreads();  // the chunk before is used up; the zeros are there
    stage_x<Traits>(shared, call, x, first_token, tokens, each, chunk);
    __syncthreads();
    for (int place = 0; place < own; place += kBatch) {
      const int64_t first = begin + chunk * own + place;
      if (first >= end) break;
#pragma unroll
      for (int i = 0; i < kBatch; ++i)
        if (first + kBatch + i < end) next[i].load(w, call.panels, first + kBatch + i);
#pragma unroll
      for (int i = 0; i < kBatch; ++i)
        if (first + i < end) add_panel<Traits>(total, now[i], shared, part * own + place + i);
#pragma unroll
      for (int i = 0; i < kBatch; ++i) now[i] = next[i];
    }
  }
  store_sums<Traits>(total, shared, call, waited, first_token, tokens);
}

template <class Traits>
static Status launch_linear_packed(cudaStream_t stream, const LinearPackedCall& call) {
  static const cudaError_t allowed = cudaFuncSetAttribute(
      linear_packed<Traits>, cudaFuncAttributeMaxDynamicSharedMemorySize, Traits::kSharedBytes);
  RIDGE_TRY(device::cuda_status(allowed, "cudaFuncSetAttribute of linear_packed"));
  device::LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(ceil_div(call.out, int64_t{32} * (Traits::kWarps / call.split)));
  shape.grid.y = static_cast<unsigned>(ceil_div(call.tokens, int64_t{Traits::kColumns * 8 / call.terms}));
  shape.block.x = Traits::kThreads;
  shape.shared_bytes = Traits::kSharedBytes;
  return device::launch_dependent(stream, shape, "linear_packed", linear_packed<Traits>, call);
}

}  // namespace ridge::cuda
