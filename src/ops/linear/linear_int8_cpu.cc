// i8 activations: sums of products of codes are exact integers, 32 columns at a time.
//
// Limit: with one token, read bandwidth (a panel of 288 bytes at 4 bits is some 45 instructions); with many,
// the dot4 rate. Per panel, tile and token: 8 dot4, one conversion, one product of scales, one fma; the zero
// point costs nothing, because -zero * sum(x codes) is where the integer sum starts.

#include "ops/linear/linear_call.h"

namespace ridge::RIDGE_ISA {

namespace {

using rows16::B64;
using rows16::F32;
using rows16::I32;

/// Packed group of width T, one record a panel: i8 codes[T][32], f32 scale[T], then two numbers a token: the
/// starts of the integer sum (i32; per half panel for q6_k), or f32 scale * sum(codes) for types with a
/// minimum.
template <DType dtype>
class Int8Product {
 public:
  static constexpr double kOpsPerByte = 8;
  static constexpr bool kManyWidths = true;
  static constexpr int kHalves = dtype == kQ6_K ? 2 : 1;  // sums of a panel

  explicit Int8Product(const LinearArgs& a) : x_(a.x), x_scale_(a.x_scale), panels_(a.x.dim(1) / 32) {}
  int64_t steps() const { return std::max<int64_t>(panels_, 1); }
  bool packs_one_token() const { return false; }
  int64_t bytes_per_token() const { return panels_ * kTokenBytes; }

  template <int T>  // never 1
  void pack(int64_t token, int64_t live, int64_t first, int64_t last, uint8_t* to) const {
    for (int64_t p = first; p < std::min(last, panels_); ++p) {
      uint8_t* record = to + p * T * kTokenBytes;
      std::memset(record, 0, T * kTokenBytes);
      for (int64_t t = 0; t < live; ++t) {
        const int8_t* codes = x_.row<int8_t>(token + t) + p * 32;
        const float scale = x_scale_.row<float>(token + t)[p];
        std::memcpy(record + t * 32, codes, 32);
        std::memcpy(record + T * 32 + t * 4, &scale, 4);
        const int32_t low = simd::sum(simd::load_i32(codes)), high = simd::sum(simd::load_i32(codes + 16));
        if constexpr (rows16::has_minimum(dtype)) {
          const float sum = static_cast<float>(low + high) * scale;
          std::memcpy(record + T * 36 + t * 4, &sum, 4);
        } else {
          constexpr int zero = rows16::zero_point(dtype);
          const int32_t starts[2] = {-zero * (kHalves == 2 ? low : low + high), -zero * high};
          std::memcpy(record + T * 36 + t * 4, &starts[0], 4);
          std::memcpy(record + T * 40 + t * 4, &starts[1], 4);
        }
      }
    }
  }

  template <int T, int R>
  RIDGE_FLATTEN inline void run(const uint8_t* tile, int64_t tile_bytes, const uint8_t* group, int64_t token,
                                F32 (&sums)[R][T]) const {
    for (int64_t p = 0; p < panels_; ++p) {
      Activations<T> x;
      if constexpr (T == 1)
        x = one_token(token, p);
      else
        x = packed<T>(group, p);
      simd::unrolled<R>([&](auto r) {
        multiply_panel<T>(rows16::locate(rows16::format_of(dtype), tile + r * tile_bytes, panels_, p), x,
                          sums[r]);
        // Past its end a tile is followed by the one that this stream reads next, R tiles on.
        const int64_t ahead = p * kPanelBytes + kAhead;
        const uint8_t* next =
            tile + r * tile_bytes + ahead + (ahead >= tile_bytes ? (R - 1) * tile_bytes : 0);
        for (int64_t line = 0; line < kPanelBytes; line += 64) simd::prefetch(next + line);
      });
    }
  }

 private:
  static constexpr int64_t kTokenBytes = 44;
  static constexpr int64_t kPanelBytes = rows16::format_of(dtype).codes + rows16::format_of(dtype).scales;
  // Some tiles on, where the hardware's own prefetch does not reach; chosen by whole decode steps on Zen 4.
  static constexpr int64_t kAhead = 16384;

  template <int T>
  struct Activations {
    const int8_t* codes;  // [T, 32]
    const float* scale;   // [T]
    const uint8_t* extra;
    I32 start[2];    // T = 1: made here
    F32 scaled_sum;  // T = 1
  };

  template <int T>
  static Activations<T> packed(const uint8_t* group, int64_t p) {
    const uint8_t* record = group + p * T * kTokenBytes;
    Activations<T> x;
    x.codes = reinterpret_cast<const int8_t*>(record),
    x.scale = reinterpret_cast<const float*>(record + T * 32);
    x.extra = record + T * 36;
    return x;
  }
  Activations<1> one_token(int64_t token, int64_t p) const {
    const int8_t* codes = x_.row<int8_t>(token) + p * 32;
    const float* scale = x_scale_.row<float>(token) + p;
    constexpr int factor = rows16::has_minimum(dtype) ? 1 : rows16::zero_point(dtype);
    I32 sum[2] = {simd::zero_i32(), simd::zero_i32()};
    simd::unrolled<8>([&](auto v) {
      constexpr int half = kHalves == 2 ? v / 4 : 0;
      sum[half] = simd::dot4(sum[half], simd::set1_byte(factor), simd::broadcast4(codes + 4 * v));
    });
    return {codes,
            scale,
            nullptr,
            {simd::zero_i32() - sum[0], simd::zero_i32() - sum[1]},
            simd::to_f32(sum[0]) * simd::set1(*scale)};
  }
  static I32 dot(I32 sum, B64 w, B64 x) {
    return dtype == kQ8_0 ? simd::dot4(sum, w, x) : simd::dot4_small(sum, w, x);
  }
  template <int T>
  static I32 start(const Activations<T>& x, int t, int half) {
    if constexpr (rows16::has_minimum(dtype)) return simd::zero_i32();
    if constexpr (T == 1) return x.start[half];
    int32_t value;
    std::memcpy(&value, x.extra + half * T * 4 + t * 4, 4);
    return simd::set1_i32(value);
  }
  template <int T>
  static F32 scaled_sum(const Activations<T>& x, int t) {
    if constexpr (T == 1) return x.scaled_sum;
    float value;
    std::memcpy(&value, x.extra + t * 4, 4);
    return simd::set1(value);
  }

  template <int T>
  RIDGE_FLATTEN static void multiply_panel(const rows16::Panel& at, const Activations<T>& x, F32 (&sums)[T]) {
    B64 w[8];
    rows16::unpack<dtype>(at.codes, w);
    const F32 scale = rows16::panel_scale<dtype>(at);
    I32 half_scale[2];
    if constexpr (kHalves == 2)
      half_scale[0] = rows16::half_scale(at, 0), half_scale[1] = rows16::half_scale(at, 1);
    F32 minimum;
    if constexpr (rows16::has_minimum(dtype)) minimum = rows16::panel_minimum<dtype>(at);
    simd::unrolled<T>([&](auto t) {
      I32 sum[2] = {start<T>(x, t, 0), kHalves == 2 ? start<T>(x, t, 1) : I32{}};
      simd::unrolled<8>([&](auto v) {
        constexpr int half = kHalves == 2 ? v / 4 : 0;
        sum[half] = dot(sum[half], w[v], simd::broadcast4(x.codes + t * 32 + 4 * v));
      });
      if constexpr (kHalves == 2) sum[0] = sum[0] * half_scale[0] + sum[1] * half_scale[1];
      sums[t] = simd::fma(simd::to_f32(sum[0]), scale * simd::set1(x.scale[t]), sums[t]);
      if constexpr (rows16::has_minimum(dtype)) sums[t] = simd::fma(minimum, scaled_sum<T>(x, t), sums[t]);
    });
  }

  Tensor x_, x_scale_;
  int64_t panels_;
};

Decline declines(const LinearArgs& a) {
  if (a.x.dtype != kI8) return decline("x is ", dtype_name(a.x.dtype), ", needs i8 codes");
  return declines_layout(a);
}

}  // namespace

void linear_int8_cpu(Kernels<LinearArgs>& kernels) {
  kernels.add(
      rows16_kernel("linear_int8_rows16", Engine::kInt8, declines,
                    [](const auto& a, const auto& body) { return with_quantized<Int8Product>(a, body); }));
}

}  // namespace ridge::RIDGE_ISA
