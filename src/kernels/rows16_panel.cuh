#pragma once
// A panel (32 k) of two tiles of rows16, in the registers of a warp, as operand a of the matrix step: codes
// less their zero point, which bf16 holds exactly. Lane 4 g + t has tile g / 4 of the pair, its rows 4 (g mod
// 4) … + 3, and of each row k 4t … 4t + 3 (step 0) and 16 + 4t … (step 1): 16 neighbouring bytes of the
// layout. Matrix m of two has rows 4 (g mod 4) + 2m as row g of the step, + 2m + 1 as row g + 8.

#include "kernels/linear_terms_call.cuh"
#include "kernels/rows16/rows16.h"

namespace ridge::cuda {

/// Codes are centred, so that scale · code and the minimum do not cancel: w = scale (code - kCentre) +
/// offset, and offset is 0 or, for types with a minimum, minimum + scale kCentre.
template <DType dtype>
inline constexpr int kCentre = rows16::has_minimum(dtype) ? 8 : rows16::zero_point(dtype);

/// What a lane reads of a panel.
template <DType dtype>
struct PackedPanel {
  static constexpr int kTerms = 1;
  static constexpr bool kOffsets = rows16::has_minimum(dtype), kHalves = dtype == kQ6_K, kNeighbours = false;
  static constexpr int kDepth =
      dtype == kQ4_0 || dtype == kQ4_1 ? 2 : 1;  // units in flight that registers allow
  static constexpr bool kLarge = dtype == kQ4_K || dtype == kQ6_K;
  static constexpr int kCodes = dtype == kQ8_0 ? 2 : 1, kHigh = dtype == kQ5_0 ? 1 : dtype == kQ6_K ? 2 : 0;
  uint4 codes[kCodes], high[kHigh > 0 ? kHigh : 1];
  uint2 scale, minimum;             // of four rows
  uint32_t header[kLarge ? 4 : 1];  // of a group: f16 scales and minima (q4_k), f32 scales (q6_k)

  /// Rows of a tile; one past the end reads the last one.
  class Rows {
   public:
    __device__ Rows(const LinearTermsCall& call, const LaneTile& at)
        : tile_(at.w + min(at.tile, (at.out + 15) / 16 - 1) * call.tile_bytes), panels_(call.panels) {}
    __device__ __forceinline__ void load(PackedPanel (&two)[2], int unit) const {
      constexpr rows16::Format kFormat = rows16::format_of(dtype);
      constexpr int kUnits = static_cast<int>(kFormat.panels) / 2;  // of a group
      const uint8_t* const header = tile_ + int64_t{unit / kUnits} * kFormat.group_bytes(kFormat.panels);
      const int left = kLarge ? 8 : min(2, panels_ - 2 * unit), i = unit % kUnits * 2;
      const uint8_t* const scales = header + kFormat.header + i * static_cast<int>(kFormat.scales);
      const uint8_t* const codes = header + kFormat.header + left * static_cast<int>(kFormat.scales) +
                                   i * static_cast<int>(kFormat.codes);
      two[0].load(header, scales, codes);
      if (kLarge || left == 2) two[1].load(header, scales + kFormat.scales, codes + kFormat.codes);
    }

   private:
    const uint8_t* tile_;
    int panels_;
  };

  __device__ __forceinline__ void load(const uint8_t* head, const uint8_t* scales, const uint8_t* at) {
    using device::ptx::load_once;
    const int t = threadIdx.x & 3, q = threadIdx.x >> 2 & 3;
#pragma unroll
    for (int i = 0; i < kCodes; ++i) codes[i] = load_once(at + (t + 4 * i) * 64 + q * 16);
#pragma unroll
    for (int i = 0; i < kHigh; ++i)
      high[i] = __ldg(reinterpret_cast<const uint4*>(at + 256 + i * 64 + q * 16));
    if constexpr (kLarge) {  // a byte a row
      scale.x = __ldg(reinterpret_cast<const uint32_t*>(scales + q * 4));
      scale.y = __ldg(reinterpret_cast<const uint32_t*>(scales + 16 + q * 4));
      const uint2 first = __ldg(reinterpret_cast<const uint2*>(head + q * (dtype == kQ4_K ? 8 : 16)));
      const uint2 second =
          __ldg(reinterpret_cast<const uint2*>(head + (dtype == kQ4_K ? 32 + q * 8 : q * 16 + 8)));
      header[0] = first.x, header[1] = first.y, header[2] = second.x, header[3] = second.y;
    } else {
      scale = __ldg(reinterpret_cast<const uint2*>(scales + q * 8));
      if constexpr (kOffsets) minimum = __ldg(reinterpret_cast<const uint2*>(scales + 32 + q * 8));
    }
  }

  /// Scale of row `row` (0 … 3) in half `half` of the panel, and its offset.
  __device__ __forceinline__ float scale_of(int row, int half) const {
    if constexpr (dtype == kQ6_K)
      return __uint_as_float(header[row]) *
             static_cast<float>(static_cast<int8_t>((half == 0 ? scale.x : scale.y) >> 8 * row));
    else if constexpr (dtype == kQ4_K)
      return half_of(header[row >> 1], row) * static_cast<float>(scale.x >> 8 * row & 255);
    else
      return half_of(row < 2 ? scale.x : scale.y, row);
  }
  __device__ __forceinline__ float offset_of(int row) const {
    if constexpr (dtype == kQ4_K)
      return fmaf(scale_of(row, 0), kCentre<dtype>,
                  -(half_of(header[2 + (row >> 1)], row) * static_cast<float>(scale.y >> 8 * row & 255)));
    else
      return fmaf(scale_of(row, 0), kCentre<dtype>, half_of(row < 2 ? minimum.x : minimum.y, row));
  }

  /// The four codes of row `row` in step `step`, as two pairs of bf16; the one term.
  __device__ __forceinline__ void values_of(int row, int step, int, uint32_t (&pairs)[2]) const {
    const int t = threadIdx.x & 3;
    if constexpr (dtype == kQ8_0) {
      // A code c of 8 bits: 128 + its lower seven, less 128 where the top bit is set, else 256.
      const uint32_t c = word(codes[step], row), low = c & 0x7f7f7f7fu, top = ~c & 0x80808080u;
      pairs[0] = subtract(spread(low, 0), spread(top, 0)),
      pairs[1] = subtract(spread(low, 2), spread(top, 2));
    } else {
      uint32_t c = word(codes[0], row) >> 4 * step & 0x0f0f0f0fu;
      if constexpr (dtype == kQ5_0) c |= (word(high[0], row) >> (t + 4 * step) & 0x01010101u) << 4;
      if constexpr (dtype == kQ6_K) c |= (word(high[step], row) >> 2 * t & 0x03030303u) << 4;
      constexpr uint32_t kZero = 0x4300 + kCentre<dtype>;  // 128 + centre in bf16
      pairs[0] = subtract(spread(c, 0), kZero | kZero << 16),
      pairs[1] = subtract(spread(c, 2), kZero | kZero << 16);
    }
  }

 private:
  __device__ static float half_of(uint32_t two, int row) {
    return device::to_float(f16{static_cast<uint16_t>(row & 1 ? two >> 16 : two)});
  }
  __device__ static uint32_t word(const uint4& v, int i) {
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
  }
  /// 128 + byte (below 128) in bf16, for bytes `first` and `first` + 1.
  __device__ static uint32_t spread(uint32_t bytes, int first) {
    return __byte_perm(bytes, 0x43434343u, first == 0 ? 0x4140 : 0x4342);
  }
  __device__ static uint32_t subtract(uint32_t a, uint32_t b) {
    __nv_bfloat162 x, y;
    memcpy(&x, &a, 4), memcpy(&y, &b, 4);
    x = __hsub2(x, y);
    memcpy(&a, &x, 4);
    return a;
  }
};

}  // namespace ridge::cuda
