#pragma once
// What the kernels of linear_terms share: a panel as operands, the matrix step, how a part's sums are left,
// and which block has which rows.

#include "kernels/rowwise.cuh"
#include "kernels/split_terms.cuh"

namespace ridge::cuda {

/// A panel as operands of the matrix step: made of weights alone, so before the wait where there is time.
template <class Panel>
struct ReadyPanel {
  static constexpr int kHalves = Panel::kHalves ? 2 : 1;
  uint32_t a[2][2][Panel::kTerms][4];  // by matrix of 16 rows, step, term
  float scale[2][kHalves][2];          // by matrix, half, row g or g + 8
  float offset[2][2];

  __device__ __forceinline__ void take(const Panel& panel) {
#pragma unroll
    for (int m = 0; m < 2; ++m) {
#pragma unroll
      for (int step = 0; step < 2; ++step)
#pragma unroll
        for (int term = 0; term < Panel::kTerms; ++term)
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            uint32_t pairs[2];
            panel.values_of(2 * m + r, step, term, pairs);
            a[m][step][term][r] = pairs[0], a[m][step][term][r + 2] = pairs[1];
          }
#pragma unroll
      for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int half = 0; half < kHalves; ++half) scale[m][half][r] = panel.scale_of(2 * m + r, half);
        if constexpr (Panel::kOffsets) offset[m][r] = panel.offset_of(2 * m + r);
      }
    }
  }
};

/// total += panel · terms, scaled.
template <class Panel, int kColumns>
__device__ __forceinline__ void add_panel(float (&total)[2][kColumns][4], const ReadyPanel<Panel>& panel,
                                          const uint4 (&terms)[kColumns]) {
  float sums[kColumns][2];  // of x, by column 2t and 2t + 1
  if constexpr (Panel::kOffsets) {
    constexpr uint32_t kOnes = 0x3f803f80u;
    const uint32_t ones[4] = {kOnes, kOnes, kOnes, kOnes};
#pragma unroll
    for (int n = 0; n < kColumns; ++n) {
      float d[4] = {};
      device::mma<bf16>(d, ones, terms[n].x, terms[n].y);
      device::mma<bf16>(d, ones, terms[n].z, terms[n].w);
      sums[n][0] = d[0], sums[n][1] = d[1];
    }
  }
#pragma unroll
  for (int m = 0; m < 2; ++m) {
    float d[kColumns][4] = {};
#pragma unroll
    for (int step = 0; step < 2; ++step) {
#pragma unroll
      for (int term = 0; term < Panel::kTerms; ++term)
#pragma unroll
        for (int n = 0; n < kColumns; ++n)
          device::mma<bf16>(d[n], panel.a[m][step][term], step == 0 ? terms[n].x : terms[n].z,
                            step == 0 ? terms[n].y : terms[n].w);
      if (!Panel::kHalves && step == 0) continue;
#pragma unroll
      for (int n = 0; n < kColumns; ++n)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          total[m][n][j] = fmaf(panel.scale[m][Panel::kHalves ? step : 0][j >> 1], d[n][j], total[m][n][j]),
          d[n][j] = 0;
    }
    if constexpr (Panel::kOffsets) {
#pragma unroll
      for (int n = 0; n < kColumns; ++n)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          total[m][n][j] = fmaf(panel.offset[m][j >> 1], sums[n][j & 1], total[m][n][j]);
    }
  }
}

/// A warp's sums of one part into its rows of shared memory, [32, kRow]: the first part stored, later ones
/// added.
template <class Traits>
__device__ __forceinline__ void leave_part(const float (&total)[2][Traits::kColumns][4], float* rows,
                                           bool first) {
  const int g = threadIdx.x >> 2 & 7, t = threadIdx.x & 3;
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int n = 0; n < Traits::kColumns; ++n)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        float* const at =
            rows + ((g >> 2) * 16 + (g & 3) * 4 + 2 * m + (j >> 1)) * Traits::kRow + n * 8 + t * 2 + (j & 1);
        *at = first ? total[m][n][j] : *at + total[m][n][j];
      }
}

/// Gives every matrix its blocks; how many there are.
inline int64_t place_blocks(LinearTermsCall* call, int warps) {
  const int64_t rows = int64_t{warps / call->sharing} * rows_of_pair(call->gate);
  int64_t blocks = 0;
  for (int i = 0; i < call->count; ++i) {
    if (i > 0 && call->gate != Gate::kNone) break;
    call->matrices[i].first_block = static_cast<int>(blocks);
    blocks += ceil_div(call->matrices[i].out, rows);
  }
  return blocks;
}

}  // namespace ridge::cuda
