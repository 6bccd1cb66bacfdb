#pragma once
// One element of a weight matrix as f32, from the file's rows or from rows16 (kernels/rows16/rows16.h): for
// operators that pick rows. Exact, but for types with a minimum and q6_k, which round once.

#include "device/convert.cuh"
#include "kernels/rows16/rows16.h"

namespace ridge::cuda {

__device__ __forceinline__ float half_at(const uint8_t* p) {  // any even address
  return device::to_float(*reinterpret_cast<const f16*>(p));
}

/// Element i of a block of the file. `dtype` is the same for all threads.
__device__ inline float file_value(DType dtype, const uint8_t* b, int i) {
  switch (dtype) {
    case kQ8_0:
      return half_at(b) * static_cast<float>(static_cast<int8_t>(b[2 + i]));
    case kQ4_0:
      return half_at(b) * static_cast<float>((b[2 + i % 16] >> (i < 16 ? 0 : 4) & 15) - 8);
    case kQ4_1:
      return fmaf(half_at(b), static_cast<float>(b[4 + i % 16] >> (i < 16 ? 0 : 4) & 15), half_at(b + 2));
    case kQ5_0: {
      const int high = b[2 + i / 8] >> i % 8 & 1, low = b[6 + i % 16] >> (i < 16 ? 0 : 4) & 15;
      return half_at(b) * static_cast<float>((low | high << 4) - 16);
    }
    case kQ4_K: {
      const int sub = i / 32, code = b[16 + sub / 2 * 32 + i % 32] >> (sub % 2 == 0 ? 0 : 4) & 15;
      const uint8_t* const s = b + 4;  // eight 6-bit scales and minima in 12 bytes
      const int scale = sub < 4 ? s[sub] & 63 : (s[sub + 4] & 15) | s[sub - 4] >> 6 << 4;
      const int minimum = sub < 4 ? s[sub + 4] & 63 : s[sub + 4] >> 4 | s[sub] >> 6 << 4;
      return fmaf(half_at(b) * static_cast<float>(scale), static_cast<float>(code),
                  -half_at(b + 2) * static_cast<float>(minimum));
    }
    default: {  // q6_k
      const int half = i / 128, quarter = i / 32 % 4, at = i % 32;
      const int low = b[half * 64 + quarter % 2 * 32 + at] >> quarter / 2 * 4 & 15;
      const int high = b[128 + half * 32 + at] >> quarter * 2 & 3;
      const float scale = half_at(b + 208) * static_cast<float>(static_cast<int8_t>(b[192 + i / 16]));
      return scale * static_cast<float>((low | high << 4) - 32);
    }
  }
}

/// Element (row, k) of a tile of 16 rows in rows16; quantized types.
__device__ inline float rows16_value(DType dtype, const uint8_t* tile, int64_t panels, int row,
                                     int64_t column) {
  const rows16::Panel at = rows16::locate(rows16::format_of(dtype), tile, panels, column / 32);
  const int k = static_cast<int>(column % 32), v = k / 4, byte = row * 4 + k % 4;
  if (dtype == kQ8_0)
    return half_at(at.scales + 2 * row) * static_cast<float>(int{at.codes[v * 64 + byte]} - 128);
  int code = at.codes[v % 4 * 64 + byte] >> (v < 4 ? 0 : 4) & 15;
  if (dtype == kQ5_0) code |= (at.codes[256 + byte] >> v & 1) << 4;
  if (dtype == kQ6_K) code |= (at.codes[256 + v / 4 * 64 + byte] >> 2 * (v % 4) & 3) << 4;
  const float c = static_cast<float>(code - rows16::zero_point(dtype));
  if (dtype == kQ4_K)
    return fmaf(half_at(at.header + 2 * row) * static_cast<float>(at.scales[row]), c,
                -half_at(at.header + 32 + 2 * row) * static_cast<float>(at.scales[16 + row]));
  if (dtype == kQ6_K)
    return *reinterpret_cast<const float*>(at.header + 4 * row) *
           static_cast<float>(static_cast<int8_t>(at.scales[k / 16 * 16 + row])) * c;
  if (dtype == kQ4_1) return fmaf(half_at(at.scales + 2 * row), c, half_at(at.scales + 32 + 2 * row));
  return half_at(at.scales + 2 * row) * c;
}

}  // namespace ridge::cuda
