#pragma once
// A panel (32 k) of two tiles of rows16, in the registers of a warp, as operand a of the matrix step: codes
// less their zero point, which bf16 holds exactly. Lane 4 g + t has tile g / 4 of the pair, its rows 4 (g mod
// 4) … + 3, and of each row k 4t … 4t + 3 (step 0) and 16 + 4t … (step 1): 16 neighbouring bytes of the
// layout. Matrix m of two has rows 4 (g mod 4) + 2m as row g of the step, + 2m + 1 as row g + 8.

#include "device/convert.cuh"
#include "device/mma.cuh"
#include "kernels/rows16/rows16.h"

namespace ridge::cuda {

/// Codes are centred, so that scale · code and the minimum do not cancel: w = scale (code - kCentre) +
/// offset, and offset is 0 or, for types with a minimum, minimum + scale kCentre.
template <DType dtype>
inline constexpr int kCentre = rows16::has_minimum(dtype) ? 8 : rows16::zero_point(dtype);

/// What a lane reads of a panel.
template <DType dtype>
struct PanelRegisters {
  static constexpr int kCodes = dtype == kQ8_0 ? 2 : 1, kHigh = dtype == kQ5_0 ? 1 : dtype == kQ6_K ? 2 : 0;
  static constexpr int kHeader = dtype == kQ4_K || dtype == kQ6_K ? 4 : 1;
  uint4 codes[kCodes], high[kHigh > 0 ? kHigh : 1];
  uint2 scale, minimum;      // of four rows
  uint32_t header[kHeader];  // of a group: f16 scales and minima (q4_k), f32 scales (q6_k)

  __device__ __forceinline__ void load(const uint8_t* tile, int64_t panels, int64_t p) {
    using device::ptx::load_once;
    constexpr rows16::Format kFormat = rows16::format_of(dtype);
    const rows16::Panel at = rows16::locate(kFormat, tile, panels, p);
    const int t = threadIdx.x & 3, q = threadIdx.x >> 2 & 3;
#pragma unroll
    for (int i = 0; i < kCodes; ++i) codes[i] = load_once(at.codes + (t + 4 * i) * 64 + q * 16);
#pragma unroll
    for (int i = 0; i < kHigh; ++i)
      high[i] = __ldg(reinterpret_cast<const uint4*>(at.codes + 256 + i * 64 + q * 16));
    if constexpr (dtype == kQ4_K || dtype == kQ6_K) {  // a byte a row
      scale.x = __ldg(reinterpret_cast<const uint32_t*>(at.scales + q * 4));
      scale.y = __ldg(reinterpret_cast<const uint32_t*>(at.scales + 16 + q * 4));
      const uint2 first = __ldg(reinterpret_cast<const uint2*>(at.header + q * (dtype == kQ4_K ? 8 : 16)));
      const uint2 second =
          __ldg(reinterpret_cast<const uint2*>(at.header + (dtype == kQ4_K ? 32 + q * 8 : q * 16 + 8)));
      header[0] = first.x, header[1] = first.y, header[2] = second.x, header[3] = second.y;
    } else {
      scale = __ldg(reinterpret_cast<const uint2*>(at.scales + q * 8));
      if constexpr (rows16::has_minimum(dtype))
        minimum = __ldg(reinterpret_cast<const uint2*>(at.scales + 32 + q * 8));
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

  /// The four codes of row `row` in step `step`, as two pairs of bf16.
  __device__ __forceinline__ void values_of(int row, int step, uint32_t (&pairs)[2]) const {
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
