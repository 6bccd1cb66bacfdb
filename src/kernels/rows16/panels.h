#pragma once
// Reading a panel of rows16 into registers. Included by kernels that are compiled per instruction set.

#include "kernels/rows16/rows16.h"
#include "simd/simd.h"

namespace ridge::RIDGE_ISA::rows16 {

using namespace ridge::rows16;
using simd::B64;
using simd::F32;
using simd::I32;

/// Code vectors 0 … 7 of a panel: vector v holds k = 4v … 4v + 3, four to a lane.
template <DType dtype>
RIDGE_FLATTEN inline void unpack(const uint8_t* codes, B64 (&w)[8]) {
  if constexpr (dtype == kQ8_0) {
    simd::unrolled<8>([&](auto v) { w[v] = simd::load_bytes(codes + 64 * v); });
    return;
  }
  simd::unrolled<4>([&](auto u) {
    const B64 two = simd::load_bytes(codes + 64 * u);
    w[u] = simd::take_bits<0, 15>(two);
    w[u + 4] = simd::take_bits<-4, 15>(two);
  });
  if constexpr (dtype == kQ5_0) {
    const B64 plane = simd::load_bytes(codes + 256);
    simd::unrolled<8>([&](auto v) { w[v] = w[v] | simd::take_bits<4 - v, 16>(plane); });
  }
  if constexpr (dtype == kQ6_K) {
    const B64 planes[2] = {simd::load_bytes(codes + 256), simd::load_bytes(codes + 320)};
    simd::unrolled<8>([&](auto v) { w[v] = w[v] | simd::take_bits<4 - 2 * (v % 4), 48>(planes[v / 4]); });
  }
}

RIDGE_FLATTEN inline F32 load_half(const uint8_t* p) {
  return simd::load(reinterpret_cast<const f16*>(p));
}
RIDGE_FLATTEN inline F32 load_small(const uint8_t* p) {
  return simd::load(reinterpret_cast<const int8_t*>(p));
}

/// The scale of the rows of a panel; for q6_k that of the super-block, which its i8 scales multiply.
template <DType dtype>
RIDGE_FLATTEN inline F32 panel_scale(const Panel& at) {
  if constexpr (dtype == kQ6_K) return simd::load(reinterpret_cast<const float*>(at.header));
  if constexpr (dtype == kQ4_K) return load_half(at.header) * load_small(at.scales);
  return load_half(at.scales);
}
/// What a type with a minimum adds to scale * code.
template <DType dtype>
RIDGE_FLATTEN inline F32 panel_minimum(const Panel& at) {
  if constexpr (dtype == kQ4_K) return simd::zero() - load_half(at.header + 32) * load_small(at.scales + 16);
  return load_half(at.scales + 32);
}
/// The i8 scales of q6_k for half `half` (16 k) of the panel.
RIDGE_FLATTEN inline I32 half_scale(const Panel& at, int half) {
  return simd::load_i32(reinterpret_cast<const int8_t*>(at.scales) + 16 * half);
}

/// weight = scale * code + offset, per half of the panel. Exact, but for types with a minimum: one rounding.
struct Affine {
  F32 scale[2], offset[2];
};
template <DType dtype>
RIDGE_FLATTEN inline Affine panel_affine(const Panel& at) {
  Affine a;
  const F32 scale = panel_scale<dtype>(at);
  simd::unrolled<2>([&](auto half) {
    a.scale[half] = dtype == kQ6_K ? scale * simd::to_f32(half_scale(at, half)) : scale;
    if constexpr (has_minimum(dtype))
      a.offset[half] = panel_minimum<dtype>(at);
    else
      a.offset[half] = a.scale[half] * simd::set1(static_cast<float>(-zero_point(dtype)));
  });
  return a;
}

}  // namespace ridge::RIDGE_ISA::rows16
