#pragma once
// A panel (32 k) of 32 rows of bf16 or f16 weights, as in the file, in the registers of a warp as operand a
// of the matrix step: the counterpart of rows16_panel.cuh. f16 is the exact sum of two terms of bf16. Lane 4
// g + t has rows 16 (g / 4) + 4 (g mod 4) … + 3 and of each k 8t … 8t + 3 (step 0) and 8t + 4 … (step 1).

#include "kernels/linear_terms_call.cuh"

namespace ridge::cuda {

template <class W>
struct PlainPanel {
  static_assert(sizeof(W) == 2);
  static constexpr int kTerms = kDTypeOf<W> == kBF16 ? 1 : 2;
  static constexpr bool kOffsets = false, kHalves = false, kNeighbours = true;
  static constexpr int kDepth = 1;  // units in flight that registers allow
  uint4 rows[4];

  /// This lane's four rows of a tile. Rows past the end, and columns from `in` on, are zeros.
  class Rows {
   public:
    __device__ Rows(const LinearTermsCall& call, const LaneTile& at) : stride_(at.w_stride), in_(call.in) {
      const int64_t row = at.tile * 16 + (threadIdx.x >> 2 & 3) * 4;
      live_ = static_cast<int>(min(max(at.out - row, int64_t{0}), int64_t{4}));
      w_ = reinterpret_cast<const W*>(at.w) + row * stride_ + (threadIdx.x & 3) * 8;
    }
    __device__ __forceinline__ void load(PlainPanel (&two)[2], int unit) const {
#pragma unroll
      for (int p = 0; p < 2; ++p) {
        const int64_t k = int64_t{2 * unit + p} * 32;
#pragma unroll
        for (int r = 0; r < 4; ++r)
          two[p].rows[r] = r < live_ && k + (threadIdx.x & 3) * 8 < in_
                               ? device::ptx::load_once(w_ + r * stride_ + k)
                               : uint4{};
      }
    }

   private:
    const W* w_;
    int64_t stride_, in_;
    int live_;
  };

  __device__ static float scale_of(int, int) {
    return 1;
  }

  /// Term `term` of the four elements of row `row` in step `step`, as two pairs of bf16.
  __device__ __forceinline__ void values_of(int row, int step, int term, uint32_t (&pairs)[2]) const {
    const uint32_t first = step == 0 ? rows[row].x : rows[row].z,
                   second = step == 0 ? rows[row].y : rows[row].w;
    if constexpr (kTerms == 1) {
      pairs[0] = first, pairs[1] = second;
    } else {
      const float2 a = device::unpack2<f16>(first), b = device::unpack2<f16>(second);
      float4 v = {a.x, a.y, b.x, b.y};
      uint2 four = take_term(v);
      if (term == 1) four = take_term(v);
      pairs[0] = four.x, pairs[1] = four.y;
    }
  }
};

}  // namespace ridge::cuda
