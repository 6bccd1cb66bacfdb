#pragma once
// Element types in registers: eight 16-bit elements travel as a uint4, two as a uint32_t, the first one in
// the low half.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "base/dtype.h"

namespace ridge::device {

__device__ __forceinline__ float to_float(float v) {
  return v;
}
__device__ __forceinline__ float to_float(bf16 v) {
  return __uint_as_float(uint32_t{v.bits} << 16);
}
__device__ __forceinline__ float to_float(f16 v) {
  return __half2float(__ushort_as_half(v.bits));
}

/// Rounds to nearest even.
template <class T>
__device__ __forceinline__ T from_float(float v) {
  if constexpr (kDTypeOf<T> == kF32) return v;
  if constexpr (kDTypeOf<T> == kBF16) return {__bfloat16_as_ushort(__float2bfloat16_rn(v))};
  if constexpr (kDTypeOf<T> == kF16) return {__half_as_ushort(__float2half_rn(v))};
}

template <class T>
__device__ __forceinline__ float2 unpack2(uint32_t v) {
  if constexpr (kDTypeOf<T> == kBF16) return {__uint_as_float(v << 16), __uint_as_float(v & 0xffff0000u)};
  if constexpr (kDTypeOf<T> == kF16) {
    __half2 h;
    memcpy(&h, &v, 4);
    return __half22float2(h);
  }
}
template <class T>
__device__ __forceinline__ uint32_t pack2(float a, float b) {
  uint32_t v;
  if constexpr (kDTypeOf<T> == kBF16) {
    const __nv_bfloat162 p = __floats2bfloat162_rn(a, b);
    memcpy(&v, &p, 4);
  } else {
    const __half2 p = __floats2half2_rn(a, b);
    memcpy(&v, &p, 4);
  }
  return v;
}

/// Two values as two terms of T: the first rounds them, the second rounds what that left.
template <class T>
__device__ __forceinline__ void split_terms(float a, float b, uint32_t& first, uint32_t& second) {
  first = pack2<T>(a, b);
  const float2 rounded = unpack2<T>(first);
  second = pack2<T>(a - rounded.x, b - rounded.y);
}

/// Elements of a 16-byte vector of T.
template <class T>
inline constexpr int kVector = 16 / static_cast<int>(sizeof(T));

template <class T>
__device__ __forceinline__ void unpack(const uint4& v, float (&out)[kVector<T>]) {
  const uint32_t words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (kDTypeOf<T> == kF32) {
      out[i] = __uint_as_float(words[i]);
    } else {
      const float2 two = unpack2<T>(words[i]);
      out[2 * i] = two.x;
      out[2 * i + 1] = two.y;
    }
  }
}
template <class T>
__device__ __forceinline__ uint4 pack(const float (&in)[kVector<T>]) {
  if constexpr (kDTypeOf<T> == kF32) {
    return {__float_as_uint(in[0]), __float_as_uint(in[1]), __float_as_uint(in[2]), __float_as_uint(in[3])};
  } else {
    return {pack2<T>(in[0], in[1]), pack2<T>(in[2], in[3]), pack2<T>(in[4], in[5]), pack2<T>(in[6], in[7])};
  }
}

/// Eight elements in registers, whatever their type.
template <class T>
__device__ __forceinline__ void load8(const T* p, float (&out)[8]) {
  if constexpr (sizeof(T) == 2) {
    unpack<T>(*reinterpret_cast<const uint4*>(p), out);
  } else {
    const float4 a = reinterpret_cast<const float4*>(p)[0], b = reinterpret_cast<const float4*>(p)[1];
    out[0] = a.x, out[1] = a.y, out[2] = a.z, out[3] = a.w, out[4] = b.x, out[5] = b.y, out[6] = b.z,
    out[7] = b.w;
  }
}
template <class T>
__device__ __forceinline__ void store8(T* p, const float (&in)[8]) {
  if constexpr (sizeof(T) == 2) {
    *reinterpret_cast<uint4*>(p) = pack<T>(in);
  } else {
    reinterpret_cast<float4*>(p)[0] = {in[0], in[1], in[2], in[3]};
    reinterpret_cast<float4*>(p)[1] = {in[4], in[5], in[6], in[7]};
  }
}

}  // namespace ridge::device
