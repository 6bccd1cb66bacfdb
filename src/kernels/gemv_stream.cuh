#pragma once
// gemv_stream: y[out] = w[out, in] · x[in], one token, as one unbroken stream of w. 16-bit in, f32 sums.
// Limit: read bandwidth of w.
//
// One or two blocks an SM; block b has rows b, b + blocks, … , so that all SMs walk through memory side by
// side. The warps divide `in`: a lane has the same kVectors places of every row, and keeps its part of x in
// registers. Rows come through a ring in shared memory, kGroup rows a stage, kStages deep; a lane copies and
// reads its own 16 bytes only (cp.async), so the ring needs no barrier: it is a register file without
// registers. In flight on an SM: (kStages - 1) x kGroup rows. The next launch is released when the last copy
// has been asked for, not before: its own first stages then arrive while this one adds up its last rows,
// leaves, and while x is fetched.

#include "base/checked.h"
#include "device/convert.cuh"
#include "device/reduce.cuh"
#include "kernels/linear_call.cuh"

namespace ridge::cuda {

template <int kWarpsIn, int kVectorsIn, int kGroupIn, int kStagesIn, int kBlocksPerSmIn,
          bool kEarlyIn = false>
struct GemvStreamTraits {
  static constexpr int kWarps = kWarpsIn, kVectors = kVectorsIn, kGroup = kGroupIn, kStages = kStagesIn;
  static constexpr int kBlocksPerSm = kBlocksPerSmIn, kThreads = kWarps * 32;
  static constexpr bool kEarly = kEarlyIn;
  static constexpr int kWidth = kVectors * kThreads * 8;  // the longest `in`
  static constexpr int kStageBytes = kGroup * kVectors * kThreads * 16, kRingBytes = kStages * kStageBytes;
};

/// Row i of this block, with a gate those of both matrices in turns.
template <Gate kGate, class T, class X, class Y>
__device__ __forceinline__ const T* block_row(const LinearCall<T, X, Y>& call, int32_t i) {
  const T* const matrix = kGate != Gate::kNone && (i & 1) ? call.w_up : call.w;
  const int64_t of_block = kGate != Gate::kNone ? i >> 1 : i;
  return matrix + (int64_t{blockIdx.x} + of_block * gridDim.x) * call.w_stride;
}

/// Starts the copy of stage `stage` (rows kGroup * stage … of this block, with a gate those of both matrices
/// in turns) into `place`, this lane's 16 bytes there.
template <class Traits, Gate kGate, class T, class X, class Y>
__device__ __forceinline__ void copy_rows(uint32_t place, const LinearCall<T, X, Y>& call, int32_t stage,
                                          int32_t rows) {
#pragma unroll
  for (int r = 0; r < Traits::kGroup; ++r) {
    const int32_t i = stage * Traits::kGroup + r;
    if (i >= rows) break;
    const T* const row = block_row<kGate>(call, i);
#pragma unroll
    for (int v = 0; v < Traits::kVectors; ++v) {
      const int k = (v * Traits::kThreads + static_cast<int>(threadIdx.x)) * 8;
      if (k < call.in)
        device::ptx::copy_async_16(place + (r * Traits::kVectors + v) * Traits::kThreads * 16, row + k, 16);
    }
  }
}

template <class Traits, class T, class X, class Y, Gate kGate>
__global__ __launch_bounds__(Traits::kThreads,
                             Traits::kBlocksPerSm) void gemv_stream(device::Upstream upstream,
                                                                    LinearCall<T, X, Y> call) {
  extern __shared__ __align__(128) unsigned char shared[];
  constexpr int kStages = Traits::kStages;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  float* const parts = reinterpret_cast<float*>(shared + Traits::kRingBytes);  // [rows, kWarps]
  const int32_t outputs = static_cast<int32_t>((call.out - 1 - blockIdx.x) / gridDim.x + 1);
  const int32_t rows = kGate == Gate::kNone ? outputs : 2 * outputs;
  const int32_t stages = (rows + Traits::kGroup - 1) / Traits::kGroup;
  const uint32_t ring = device::ptx::shared_address(shared) + threadIdx.x * 16;

#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < stages) copy_rows<Traits, kGate>(ring + s * Traits::kStageBytes, call, s, rows);
    device::ptx::copy_async_commit();
  }
  if (Traits::kEarly || stages < kStages) upstream.release_next();
  const auto waited = upstream.wait();
  float x[Traits::kVectors][8] = {};
#pragma unroll
  for (int v = 0; v < Traits::kVectors; ++v) {
    const int k = (v * Traits::kThreads + static_cast<int>(threadIdx.x)) * 8;
    if (k < call.in) device::load8(call.x.after(waited) + k, x[v]);
  }

  int slot = 0;
  for (int32_t stage = 0; stage < stages; ++stage) {
    device::ptx::copy_async_wait<kStages - 2>();
    const int32_t ahead = stage + kStages - 1;
    if (ahead < stages)
      copy_rows<Traits, kGate>(ring + (slot == 0 ? kStages - 1 : slot - 1) * Traits::kStageBytes, call, ahead,
                               rows);
    device::ptx::copy_async_commit();
    if (!Traits::kEarly && ahead + 1 == stages) upstream.release_next();
    const unsigned char* const place = shared + slot * Traits::kStageBytes + threadIdx.x * 16;
    float sum[Traits::kGroup] = {};
#pragma unroll
    for (int v = 0; v < Traits::kVectors; ++v) {
      const bool live = (v * Traits::kThreads + static_cast<int>(threadIdx.x)) * 8 <
                        call.in;  // the ring holds no zeros elsewhere
#pragma unroll
      for (int r = 0; r < Traits::kGroup; ++r) {
        float ws[8];
        device::unpack<T>(
            *reinterpret_cast<const uint4*>(place + (r * Traits::kVectors + v) * Traits::kThreads * 16), ws);
        if (live) {
#pragma unroll
          for (int i = 0; i < 8; ++i) sum[r] = fmaf(ws[i], x[v][i], sum[r]);
        }
      }
    }
#pragma unroll
    for (int r = 0; r < Traits::kGroup; ++r) {
      sum[r] = device::warp_reduce<device::Sum>(sum[r]);
      const int32_t i = stage * Traits::kGroup + r;
      if (lane == 0 && i < rows) parts[i * Traits::kWarps + warp] = sum[r];
    }
    slot = slot + 1 == kStages ? 0 : slot + 1;
  }
  __syncthreads();
  const auto sum_of = [&](int32_t row) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < Traits::kWarps; ++w) sum += parts[row * Traits::kWarps + w];
    return sum;
  };
  for (int32_t i = threadIdx.x; i < outputs; i += Traits::kThreads) {
    const int64_t row = int64_t{blockIdx.x} + int64_t{i} * gridDim.x;
    if constexpr (kGate == Gate::kNone)
      store_output(call, waited, 0, row, sum_of(i));
    else
      store_gated<kGate>(call, waited, 0, row, sum_of(2 * i), sum_of(2 * i + 1));
  }
}

template <class Traits, class T, class X, class Y, Gate kGate = Gate::kNone>
static Status launch_gemv_stream(cudaStream_t stream, const LinearCall<T, X, Y>& call, int multiprocessors) {
  static const cudaError_t allowed = cudaFuncSetAttribute(
      gemv_stream<Traits, T, X, Y, kGate>, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 * 1024);
  RIDGE_TRY(device::cuda_status(allowed, "cudaFuncSetAttribute of gemv_stream"));
  if (call.in > Traits::kWidth)
    return declined("gemv_stream: in is ", call.in, ", this kernel takes up to ", Traits::kWidth);
  device::LaunchShape shape;
  shape.grid.x = static_cast<unsigned>(min(call.out, int64_t{multiprocessors} * Traits::kBlocksPerSm));
  shape.block.x = Traits::kThreads;
  const int64_t parts =
      ceil_div(call.out, int64_t{shape.grid.x}) * (kGate == Gate::kNone ? 1 : 2) * Traits::kWarps * 4;
  if (Traits::kRingBytes + parts > 227 * 1024)
    return declined("gemv_stream: out is ", call.out, ", its sums do not fit in shared memory");
  shape.shared_bytes = static_cast<int>(Traits::kRingBytes + parts);
  return device::launch_dependent(stream, shape, "gemv_stream", gemv_stream<Traits, T, X, Y, kGate>, call);
}

}  // namespace ridge::cuda
