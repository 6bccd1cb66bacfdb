#pragma once
// A ring of boxes for wgmma: a stage has kAtoms boxes of 64 of depth of w (b, kRows rows), then as many of x
// (a, 64 tokens). One thread asks the copy engine for them, of w before the wait, of x after it; a warpgroup
// multiplies. That thread also releases the next launch: at the start, so that each of its blocks may begin
// as soon as a multiprocessor has room, or, where that measured slower, once the last boxes have been asked
// for.

#include "device/convert.cuh"
#include "device/mma.cuh"
#include "device/tensor_map.cuh"
#include "kernels/linear_call.cuh"

namespace ridge::cuda {

enum class Release { kAtStart, kAtLastCopy };  // of the next launch

template <int kRowsIn, int kStagesIn, int kAtomsIn, int kAheadIn, Release kReleaseIn>
struct BoxRing {
  static constexpr int kRows = kRowsIn, kTokens = 64, kStages = kStagesIn, kAtoms = kAtomsIn;
  static constexpr int kAhead = kAheadIn;  // stages of w asked for before the wait
  static constexpr Release kRelease = kReleaseIn;
  static constexpr int kDepth = kAtoms * 64;
  static constexpr int kWeightBytes = kRows * 128, kTokenBytes = kTokens * 128;  // of an atom
  static constexpr int kStageBytes = kAtoms * (kWeightBytes + kTokenBytes), kBytes = kStages * kStageBytes;
  static_assert(kRows == 64 || kRows == 96 || kRows == 224);
};

struct BoxMaps {
  device::BoxMap w, w_up;
  device::FreshBoxMap x;
  int32_t rows = 0;    // of y, of a block or pair; of each matrix
  int32_t tokens = 0;  // of a box of x; what the operand has besides is of tokens that nobody stores
  int32_t stages = 0, half = 0;  // of `in`; of them of the first block of a pair
  bool pairs = false;            // two neighbouring outputs are one aligned store
  bool eights = false;           // eight are 16 aligned bytes, and rows a multiple of it
};

/// Maps of a call's operands; `rows` of y, even, are a block's or a pair's.
template <class Ring, class Y, class T>
Result<BoxMaps> box_maps(const LinearCall<T, T, Y>& call, int32_t rows, device::BoxFetch fetch) {
  BoxMaps maps;
  maps.rows = rows;
  maps.stages = static_cast<int32_t>(ceil_div(call.in, int64_t{Ring::kDepth}));
  maps.half = (maps.stages + 1) / 2;
  maps.tokens = static_cast<int32_t>(min(ceil_div(call.tokens, int64_t{8}) * 8, int64_t{Ring::kTokens}));
  maps.pairs = call.out % 2 == 0 && call.y_stride % 2 == 0 &&
               reinterpret_cast<uintptr_t>(call.y.address()) % (2 * sizeof(Y)) == 0;
  maps.eights = call.out % 8 == 0 && rows % 8 == 0 && call.y_stride % 8 == 0 &&
                reinterpret_cast<uintptr_t>(call.y.address()) % 16 == 0;
  RIDGE_TRY(device::make_box_map(&maps.w.map, call.w, call.out, call.in, call.w_stride, rows, fetch));
  maps.w_up = maps.w;
  if (call.w_up != nullptr)
    RIDGE_TRY(device::make_box_map(&maps.w_up.map, call.w_up, call.out, call.in, call.w_stride, rows, fetch));
  const int64_t x_stride = call.tokens > 1 ? call.x_stride : call.in;  // of one row it may be anything
  RIDGE_TRY(device::make_box_map(&maps.x.map, call.x.address(), call.tokens, call.in, x_stride, maps.tokens));
  return maps;
}

template <int kStages>
struct RingBarriers {
  uint64_t full[kStages], done[kStages];

  __device__ __forceinline__ void init() {
    namespace ptx = device::ptx;
    for (uint64_t& one : full) ptx::barrier_init(ptx::shared_address(&one), 1);
    for (uint64_t& one : done) ptx::barrier_init(ptx::shared_address(&one), 4);
    ptx::barrier_init_fence();
  }
  static __device__ __forceinline__ void wait(const uint64_t& barrier, uint32_t parity) {
    const uint32_t at = device::ptx::shared_address(&barrier);
    while (!device::ptx::barrier_try_wait(at, parity)) {
    }
  }
};

/// What the copying thread does.
template <class Ring, Gate kGate>
struct RingCopies {
  const BoxMaps& maps;
  RingBarriers<Ring::kStages>& barriers;
  uint32_t ring;
  int32_t column0, row0, stages;

  __device__ __forceinline__ int32_t column(int32_t stage) const { return column0 + stage * Ring::kDepth; }
  __device__ __forceinline__ void copy_w(int32_t stage, int slot) const {
    namespace ptx = device::ptx;
    const uint32_t full = ptx::shared_address(&barriers.full[slot]);
    const int bytes = (maps.rows * (kGate == Gate::kNone ? 1 : 2) + maps.tokens) * 128;
    ptx::barrier_expect(full, Ring::kAtoms * bytes);
#pragma unroll
    for (int atom = 0; atom < Ring::kAtoms; ++atom) {
      const uint32_t place = ring + slot * Ring::kStageBytes + atom * Ring::kWeightBytes;
      ptx::copy_box(place, maps.w.address(), column(stage) + atom * 64, row0, full);
      if constexpr (kGate != Gate::kNone)
        ptx::copy_box(place + Ring::kWeightBytes / 2, maps.w_up.address(), column(stage) + atom * 64, row0,
                      full);
    }
  }
  __device__ __forceinline__ void copy_x(device::Waited waited, int32_t stage, int slot) const {
    namespace ptx = device::ptx;
    const uint32_t full = ptx::shared_address(&barriers.full[slot]),
                   place = ring + slot * Ring::kStageBytes + Ring::kAtoms * Ring::kWeightBytes;
#pragma unroll
    for (int atom = 0; atom < Ring::kAtoms; ++atom)
      ptx::copy_box(place + atom * Ring::kTokenBytes, maps.x.after(waited), column(stage) + atom * 64, 0,
                    full);
  }
  __device__ __forceinline__ void release(const device::Upstream& upstream, Release now) const {
    if (Ring::kRelease == now) upstream.release_next();
  }
  /// What does not wait.
  __device__ __forceinline__ void begin(const device::Upstream& upstream) const {
    release(upstream, Release::kAtStart);
    for (int s = 0; s < Ring::kAhead && s < stages; ++s) copy_w(s, s);
  }
  __device__ __forceinline__ void run(const device::Upstream& upstream) const {
    if (stages <= Ring::kAhead) release(upstream, Release::kAtLastCopy);
    const auto waited = upstream.wait();
    for (int s = 0; s < Ring::kStages && s < stages; ++s) {
      copy_x(waited, s, s);
      const int ahead = s + Ring::kAhead;
      if (ahead < Ring::kStages && ahead < stages) copy_w(ahead, ahead);
    }
    if (stages > Ring::kAhead && stages <= Ring::kStages) release(upstream, Release::kAtLastCopy);
    int slot = 0;
    uint32_t parity = 0;
    for (int32_t stage = Ring::kStages; stage < stages; ++stage) {
      RingBarriers<Ring::kStages>::wait(barriers.done[slot], parity);
      copy_w(stage, slot), copy_x(waited, stage, slot);
      if (stage + 1 == stages) release(upstream, Release::kAtLastCopy);
      if (++slot == Ring::kStages) slot = 0, parity ^= 1;
    }
  }
};

template <int kRows>
__device__ __forceinline__ void wgmma_rows(float (&sum)[kRows / 2], uint64_t a, uint64_t b) {
  if constexpr (kRows == 64)
    device::ptx::wgmma_m64n64k16_bf16(sum, a, b);
  else if constexpr (kRows == 96)
    device::ptx::wgmma_m64n96k16_bf16(sum, a, b);
  else
    device::ptx::wgmma_m64n224k16_bf16(sum, a, b);
}

/// What the warpgroup does with a ring of stages of kAtoms boxes of w, then as many of x. Slots are unrolled:
/// what names an operand is then a constant more than the ring's.
template <class Ring>
__device__ __forceinline__ void multiply_ring(float (&sum)[Ring::kRows / 2],
                                              RingBarriers<Ring::kStages>& barriers, uint32_t ring,
                                              int32_t stages) {
  namespace ptx = device::ptx;
  constexpr int kStages = Ring::kStages;
#pragma unroll
  for (int i = 0; i < Ring::kRows / 2; ++i) sum[i] = 0, ptx::keep_here(sum[i]);
  const uint64_t operands = device::matrix_descriptor(__shfl_sync(0xffffffffu, ring, 0));
  uint32_t parity = 0;
  for (int32_t first = 0; first < stages; first += kStages, parity ^= 1) {
#pragma unroll
    for (int slot = 0; slot < kStages; ++slot) {
      if (first + slot >= stages) break;
      barriers.wait(barriers.full[slot], parity);
      ptx::wgmma_fence();
#pragma unroll
      for (int k = 0; k < Ring::kAtoms * 4; ++k) {
        const int w = slot * Ring::kStageBytes + k / 4 * Ring::kWeightBytes + k % 4 * 32,
                  x = slot * Ring::kStageBytes + Ring::kAtoms * Ring::kWeightBytes +
                      k / 4 * Ring::kTokenBytes + k % 4 * 32;
        wgmma_rows<Ring::kRows>(sum, operands + (x >> 4), operands + (w >> 4));
      }
      ptx::wgmma_commit();
      ptx::wgmma_wait<1>();  // the stage before is free
      if ((slot > 0 || first > 0) && (threadIdx.x & 31) == 0)
        ptx::barrier_arrive(ptx::shared_address(&barriers.done[(slot + kStages - 1) % kStages]));
    }
  }
  ptx::wgmma_wait<0>();
#pragma unroll
  for (int i = 0; i < Ring::kRows / 2; ++i) ptx::keep_here(sum[i]);
}

/// Where this thread's sums go: of groups of 8 rows two neighbours each, of two tokens 8 apart. Four warps
/// alone run this, so what a store needs is worked out once.
template <class Y>
struct BoxOutputs {
  Y* y[2];
  const Y* residual[2];
  const Y* bias;
  int live[2];  // rows from this thread's first on that exist; of a token that does not exist 0

  /// `row0`: of y, of this thread in group 0; `own_row`: the same in the block or pair.
  template <class T>
  __device__ __forceinline__ BoxOutputs(const LinearCall<T, T, Y>& call, const BoxMaps& maps,
                                        device::Waited waited, int64_t row0, int own_row, int token0)
      : bias(call.bias == nullptr ? nullptr : call.bias + row0) {
    const Y* const added = call.residual.after(waited);
    const int rows = static_cast<int>(min(int64_t{maps.rows - own_row}, call.out - row0));
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int64_t token = token0 + half * 8;
      y[half] = call.y.after(waited) + token * call.y_stride + row0;
      residual[half] = added == nullptr ? nullptr : added + token * call.residual_stride + row0;
      live[half] = token < call.tokens ? rows : 0;
    }
  }
  /// Residual and bias.
  __device__ __forceinline__ float2 added(int group, int half) const {
    float2 two = {};
    const auto fetch = [&](const Y* from) {
      if (from == nullptr) return;
      if (group * 8 < live[half]) two.x += device::to_float(from[group * 8]);
      if (group * 8 + 1 < live[half]) two.y += device::to_float(from[group * 8 + 1]);
    };
    fetch(residual[half]), fetch(bias);
    return two;
  }
  /// Without `pairs` one at a time. Of a pair both rows exist or none: the host sees to it.
  template <bool kPairs>
  __device__ __forceinline__ void store(int group, int half, float first, float second) const {
    Y* const to = y[half] + group * 8;
    if constexpr (!kPairs) {
      if (group * 8 < live[half]) to[0] = device::from_float<Y>(first);
      if (group * 8 + 1 < live[half]) to[1] = device::from_float<Y>(second);
    } else if (group * 8 < live[half]) {
      if constexpr (sizeof(Y) == 4)
        *reinterpret_cast<float2*>(to) = float2{first, second};
      else
        *reinterpret_cast<uint32_t*>(to) = device::pack2<Y>(first, second);
    }
  }
  /// Four groups from `group` on (those below `groups`), two neighbours of each in a word: the four lanes of
  /// a row exchange them, so that each has eight rows of one group.
  __device__ __forceinline__ void store_eights(int group, int groups, int half, uint32_t (&words)[4]) const {
    const int own = threadIdx.x & 3;
#pragma unroll
    for (int bit = 1; bit <= 2; bit *= 2)
#pragma unroll
      for (int low = 0; low < 4; ++low) {
        if ((low & bit) != 0) continue;
        uint32_t& kept = words[low];
        uint32_t& sent = words[low | bit];
        const uint32_t got = __shfl_xor_sync(0xffffffffu, (own & bit) != 0 ? kept : sent, bit);
        if ((own & bit) != 0)
          kept = got;
        else
          sent = got;
      }
    if (group + own < groups && (group + own) * 8 < live[half] + own * 2)
      *reinterpret_cast<uint4*>(y[half] - own * 2 + (group + own) * 8) =
          uint4{words[0], words[1], words[2], words[3]};
  }
};

}  // namespace ridge::cuda
