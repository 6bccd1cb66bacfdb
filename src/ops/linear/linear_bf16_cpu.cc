// bf16 activations times bf16 weights, by the instruction that sums pairs of products (AVX-512 BF16; it
// rounds twice a pair and flushes subnormals). Other sets decline: widening costs them the same in
// linear_float.
//
// Limit: with one token, read bandwidth; with many, the bf16 rate.

#include "ops/linear/linear_call.h"

namespace ridge::RIDGE_ISA {

namespace {

using rows16::B64;
using rows16::F32;

/// Packed group of width T: bf16 [pairs][T][2], an odd last column paired with 0.
class Bf16Product {
 public:
  static constexpr double kOpsPerByte = 4;
  static constexpr bool kManyWidths = true;

  explicit Bf16Product(const LinearArgs& a) : x_(a.x), columns_(a.x.dim(1)) {}
  int64_t steps() const { return (columns_ + 31) / 32; }
  bool packs_one_token() const { return false; }
  int64_t bytes_per_token() const { return (columns_ + 1) / 2 * 4; }

  template <int T>
  void pack(int64_t token, int64_t live, int64_t first, int64_t last, uint8_t* to) const {
    const int64_t end = std::min(columns_, last * 32);
    for (int64_t t = 0; t < T; ++t)
      for (int64_t k = first * 32; k < end; k += 2) {
        uint16_t pair[2] = {};
        if (t < live) std::memcpy(pair, x_.row<bf16>(token + t) + k, k + 1 < columns_ ? 4 : 2);
        std::memcpy(to + (k / 2 * T + t) * 4, pair, 4);
      }
  }

  template <int T, int R>
  RIDGE_FLATTEN inline void run(const uint8_t* tile, int64_t tile_bytes, const uint8_t* group, int64_t token,
                                F32 (&sums)[R][T]) const {
    const auto* x = T == 1 ? reinterpret_cast<const uint8_t*>(x_.row<bf16>(token)) : group;
    const auto step = [&](int64_t pair, const uint8_t* at) {
      simd::unrolled<R>([&](auto r) {
        const B64 w = simd::load_bytes(tile + r * tile_bytes + pair * 64);
        simd::unrolled<T>(
            [&](auto t) { sums[r][t] = simd::dot2_bf16(sums[r][t], w, simd::broadcast4(at + t * 4)); });
        if constexpr (T == 1) simd::prefetch(tile + r * tile_bytes + pair * 64 + 2048);
      });
    };
    const int64_t whole = T == 1 ? columns_ / 2 : (columns_ + 1) / 2;
    for (int64_t pair = 0; pair < whole; ++pair) step(pair, x + pair * T * 4);
    if (T == 1 && columns_ % 2 != 0) {
      uint16_t last[2] = {};
      std::memcpy(last, x + whole * 4, 2);
      step(whole, reinterpret_cast<const uint8_t*>(last));
    }
  }

 private:
  Tensor x_;
  int64_t columns_;
};

Decline declines(const LinearArgs& a) {
  if (a.x.dtype != kBF16 || a.w.dtype != kBF16)
    return decline("x is ", dtype_name(a.x.dtype), " and w ", dtype_name(a.w.dtype), ", needs bf16 both");
  return declines_layout(a);
}

}  // namespace

void linear_bf16_cpu(Kernels<LinearArgs>& kernels) {
  if (!simd::kFastBf16) return;
  kernels.add(rows16_kernel("linear_bf16_rows16", Engine::kBf16, declines,
                            [](const auto& a, const auto& body) { return body(Bf16Product(a)); }));
}

}  // namespace ridge::RIDGE_ISA
