// f32 and bf16 activations: weights become f32 in registers (exactly, but for one rounding of types with a
// minimum), products are summed in f32.
//
// Limit: with one token, read bandwidth for f32, f16 and bf16 weights, the decoding for quantized ones (some
// 4 instructions per 16 weights); with many, the FMA rate.

#include "ops/linear/linear_call.h"

namespace ridge::RIDGE_ISA {

namespace {

using rows16::B64;
using rows16::F32;

/// Packed group of width T: f32 [columns][T]. One token of f32 x is read where it is.
template <DType dtype>
class FloatProduct {
 public:
  static constexpr double kOpsPerByte = 2;
  static constexpr bool kManyWidths = !is_block_quantized(dtype);

  explicit FloatProduct(const LinearArgs& a) : x_(a.x), columns_(a.x.dim(1)) {}
  int64_t steps() const { return (columns_ + 31) / 32; }
  int64_t bytes_per_token() const { return columns_ * 4; }
  bool packs_one_token() const { return x_.dtype != kF32; }

  template <int T>
  void pack(int64_t token, int64_t live, int64_t first, int64_t last, uint8_t* to) const {
    if (x_.dtype == kF32) return pack_rows<T, float>(token, live, first, last, reinterpret_cast<float*>(to));
    pack_rows<T, bf16>(token, live, first, last, reinterpret_cast<float*>(to));
  }

  template <int T, int R>
  RIDGE_FLATTEN inline void run(const uint8_t* tile, int64_t tile_bytes, const uint8_t* group, int64_t token,
                                F32 (&sums)[R][T]) const {
    const bool direct = T == 1 && x_.dtype == kF32;
    const auto* x = direct ? x_.row<float>(token) : reinterpret_cast<const float*>(group);
    if constexpr (is_block_quantized(dtype))
      run_panels<T, R>(tile, tile_bytes, x, sums);
    else
      run_plain<T, R>(tile, tile_bytes, x, sums);
  }

 private:
  template <int T, class X>
  void pack_rows(int64_t token, int64_t live, int64_t first, int64_t last, float* to) const {
    const int64_t end = std::min(columns_, last * 32);
    for (int64_t t = 0; t < T; ++t) {
      const X* row = t < live ? x_.row<X>(token + t) : nullptr;
      for (int64_t k = first * 32; k < end; ++k) to[k * T + t] = t < live ? to_f32(row[k]) : 0.0f;
    }
  }

  /// sum[t] += weight * x[t], of one k.
  template <int T>
  RIDGE_FLATTEN static void step(F32 weight, const float* x, F32 (&sum)[T]) {
    simd::unrolled<T>([&](auto t) { sum[t] = simd::fma(weight, simd::set1(x[t]), sum[t]); });
  }

  template <int T, int R>
  RIDGE_FLATTEN inline void run_panels(const uint8_t* tile, int64_t tile_bytes, const float* x,
                                       F32 (&sums)[R][T]) const {
    const int64_t panels = columns_ / 32;
    for (int64_t p = 0; p < panels; ++p) {
      B64 w[R][8];
      rows16::Affine affine[R];
      simd::unrolled<R>([&](auto r) {
        const auto at = rows16::locate(rows16::format_of(dtype), tile + r * tile_bytes, panels, p);
        rows16::unpack<dtype>(at.codes, w[r]);
        affine[r] = rows16::panel_affine<dtype>(at);
      });
      // Code vectors wait in L1: written out, the 8 rounds of this loop are more code than they are worth.
#pragma GCC unroll 1
      for (int v = 0; v < 8; ++v, x += 4 * T)
        simd::unrolled<R>([&](auto r) {
          const F32 scale = affine[r].scale[v / 4], offset = affine[r].offset[v / 4];
          simd::unrolled<4>([&](auto j) {
            const F32 weight = simd::fma(simd::to_f32(simd::byte_of_lane<j>(w[r][v])), scale, offset);
            step<T>(weight, x + j * T, sums[r]);
          });
        });
    }
  }

  template <int T, int R>
  RIDGE_FLATTEN inline void run_plain(const uint8_t* tile, int64_t tile_bytes, const float* x,
                                      F32 (&sums)[R][T]) const {
    if constexpr (dtype == kBF16) {
      const int64_t pairs = columns_ / 2;
      for (int64_t i = 0; i < pairs; ++i)
        simd::unrolled<R>([&](auto r) {
          const B64 two = simd::load_bytes(tile + r * tile_bytes + i * 64);
          step<T>(simd::low_bf16(two), x + 2 * i * T, sums[r]);
          step<T>(simd::high_bf16(two), x + (2 * i + 1) * T, sums[r]);
        });
      if (columns_ % 2 != 0)
        simd::unrolled<R>([&](auto r) {
          step<T>(simd::low_bf16(simd::load_bytes(tile + r * tile_bytes + pairs * 64)), x + 2 * pairs * T,
                  sums[r]);
        });
    } else {
      using W = std::conditional_t<dtype == kF32, float, f16>;
      for (int64_t k = 0; k < columns_; ++k)
        simd::unrolled<R>([&](auto r) {
          step<T>(simd::load(reinterpret_cast<const W*>(tile + r * tile_bytes) + k * 16), x + k * T, sums[r]);
        });
    }
  }

  Tensor x_;
  int64_t columns_;
};

/// Calls body with the Product of w's dtype.
template <class Body>
auto with_product(const LinearArgs& a, const Body& body) -> decltype(body(FloatProduct<kF32>(a))) {
  switch (a.w.dtype) {
    case kF32:
      return body(FloatProduct<kF32>(a));
    case kF16:
      return body(FloatProduct<kF16>(a));
    case kBF16:
      return body(FloatProduct<kBF16>(a));
    default:
      return with_quantized<FloatProduct>(a, body);
  }
}

Decline declines(const LinearArgs& a) {
  if (a.x.dtype == kI8) return decline("x is i8, needs f32 or bf16");
  return declines_layout(a);
}

}  // namespace

void linear_float_cpu(Kernels<LinearArgs>& kernels) {
  kernels.add(rows16_kernel("linear_float_rows16", Engine::kF32, declines,
                            [](const auto& a, const auto& body) { return with_product(a, body); }));
}

}  // namespace ridge::RIDGE_ISA
