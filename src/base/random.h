#pragma once
// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
// SC 2011). A draw is a pure function of (key, counter): no state, so a request's tokens depend on its seed
// and position alone.

#include <array>
#include <cstdint>

namespace ridge {

using Philox4 = std::array<uint32_t, 4>;

constexpr Philox4 philox(uint64_t key, uint64_t counter_low, uint64_t counter_high = 0) {
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  Philox4 c = {static_cast<uint32_t>(counter_low), static_cast<uint32_t>(counter_low >> 32),
               static_cast<uint32_t>(counter_high), static_cast<uint32_t>(counter_high >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c[0], p1 = uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

/// Uniform in [0, 1) with 24 bits.
constexpr float unit_float(uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24f;
}

/// A stream of draws for tests and synthetic data.
class Random {
 public:
  explicit Random(uint64_t seed) : seed_(seed) {}
  uint32_t bits() {
    if (lane_ == 4) block_ = philox(seed_, counter_++), lane_ = 0;
    return block_[lane_++];
  }
  float uniform() { return unit_float(bits()); }
  float uniform(float low, float high) { return low + (high - low) * uniform(); }
  float normal();  // Box and Muller
  int64_t below(int64_t n) {
    return static_cast<int64_t>((uint64_t{bits()} << 32 | bits()) % static_cast<uint64_t>(n));
  }

 private:
  uint64_t seed_, counter_ = 0;
  Philox4 block_{};
  unsigned lane_ = 4;
};

}  // namespace ridge
