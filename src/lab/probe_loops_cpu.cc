#include "lab/probe_loops.h"

#include "simd/simd.h"

namespace ridge::RIDGE_ISA {

namespace {

constexpr int kChains = 12;  // more than latency times pipes needs, fewer than there are registers

float read_loop(const void* from, int64_t bytes) {
  const auto* p = static_cast<const float*>(from);
  const int64_t quarter = bytes / 16;  // floats of a stream
  simd::F32 a = simd::zero(), b = a, c = a, d = a, e = a, f = a, g = a, h = a;
  for (int64_t i = 0; i + 32 <= quarter; i += 32) {
    a = a + simd::load(p + i), b = b + simd::load(p + quarter + i);
    c = c + simd::load(p + 2 * quarter + i), d = d + simd::load(p + 3 * quarter + i);
    e = e + simd::load(p + i + 16), f = f + simd::load(p + quarter + i + 16);
    g = g + simd::load(p + 2 * quarter + i + 16), h = h + simd::load(p + 3 * quarter + i + 16);
  }
  return simd::sum((a + b) + (c + d) + ((e + f) + (g + h)));
}

void write_loop(void* to, int64_t bytes) {
  auto* p = static_cast<float*>(to);
  const auto v = simd::set1(1.0f);
  for (int64_t i = 0; i + 32 <= bytes / 4; i += 32) simd::store(p + i, v), simd::store(p + i + 16, v);
}

void copy_loop(void* to, const void* from, int64_t bytes) {
  auto* p = static_cast<float*>(to);
  const auto* q = static_cast<const float*>(from);
  for (int64_t i = 0; i + 32 <= bytes / 4; i += 32)
    simd::store(p + i, simd::load(q + i)), simd::store(p + i + 16, simd::load(q + i + 16));
}

int64_t f32_loop(int64_t rounds, float* sink) {
  simd::F32 acc[kChains];
  for (auto& a : acc) a = simd::set1(*sink);
  const auto x = simd::set1(0.999f), y = simd::set1(1e-3f);
  for (int64_t r = 0; r < rounds; ++r)
    for (auto& a : acc) a = simd::fma(a, x, y);
  for (int i = 1; i < kChains; ++i) acc[0] = acc[0] + acc[i];
  *sink = simd::sum(acc[0]);
  return rounds * kChains * simd::kLanes * 2;
}

#if defined(RIDGE_ISA_avx512)
int64_t bf16_loop(int64_t rounds, float* sink) {
  simd::F32 acc[kChains];
  for (auto& a : acc) a = simd::set1(*sink);
  const auto x = simd::set1_byte(0x3f), y = simd::set1_byte(0x3c);
  for (int64_t r = 0; r < rounds; ++r)
    for (auto& a : acc) a = simd::dot2_bf16(a, x, y);
  for (int i = 1; i < kChains; ++i) acc[0] = acc[0] + acc[i];
  *sink = simd::sum(acc[0]);
  return rounds * kChains * simd::kLanes * 4;
}
#else
int64_t bf16_loop(int64_t, float*) {
  return 0;
}
#endif

int64_t int8_loop(int64_t rounds, float* sink) {
  simd::I32 acc[kChains];
  for (auto& a : acc) a = simd::set1_i32(static_cast<int32_t>(*sink));
  const auto x = simd::set1_byte(3), y = simd::set1_byte(static_cast<uint8_t>(*sink));
  for (int64_t r = 0; r < rounds; ++r)
    for (auto& a : acc) a = simd::dot4_small(a, x, y);
  for (int i = 1; i < kChains; ++i) acc[0] = acc[0] + acc[i];
  *sink = static_cast<float>(simd::sum(acc[0]) & 7);
  return rounds * kChains * simd::kLanes * 8;
}

}  // namespace

ProbeLoops probe_loops() {
  return {read_loop, write_loop, copy_loop, f32_loop, bf16_loop, int8_loop};
}

}  // namespace ridge::RIDGE_ISA
