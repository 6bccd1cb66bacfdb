#include "base/sha256.h"

#include <cpuid.h>
#include <immintrin.h>

#include <algorithm>
#include <cstring>

namespace ridge {
namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2).
alignas(16) constexpr uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t rotate(uint32_t x, int n) {
  return x >> n | x << (32 - n);
}

void scalar_block(std::array<uint32_t, 8>& state, const uint8_t* p) {
  uint32_t w[64];
  for (int i = 0; i < 16; ++i)
    w[i] =
        uint32_t{p[4 * i]} << 24 | uint32_t{p[4 * i + 1]} << 16 | uint32_t{p[4 * i + 2]} << 8 | p[4 * i + 3];
  for (int i = 16; i < 64; ++i) {
    const uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + w[i - 7] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) +
           (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
  }
  std::array<uint32_t, 8> s = state;
  for (int i = 0; i < 64; ++i) {
    const uint32_t sum = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) +
                         ((s[4] & s[5]) ^ (~s[4] & s[6])) + kRound[i] + w[i];
    const uint32_t major = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) +
                           ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
    s = {sum + major, s[0], s[1], s[2], s[3] + sum, s[4], s[5], s[6]};
  }
  for (int i = 0; i < 8; ++i) state[i] += s[i];
}

// The SHA instructions keep the state as (A, B, E, F) and (C, D, G, H), highest lane first, and do two rounds
// each (Intel Intrinsics Guide: sha256rnds2, sha256msg1, sha256msg2). Ten times the scalar form's speed.
__attribute__((target("sha,ssse3,sse4.1"))) void instruction_blocks(std::array<uint32_t, 8>& state,
                                                                    const uint8_t* p, size_t count) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  const auto& h = state;
  const auto lanes = [](uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    return _mm_set_epi32(static_cast<int>(a), static_cast<int>(b), static_cast<int>(c), static_cast<int>(d));
  };
  __m128i abef = lanes(h[0], h[1], h[4], h[5]), cdgh = lanes(h[2], h[3], h[6], h[7]);
  for (; count > 0; --count, p += 64) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];  // the last 16 words of the schedule, four a vector, oldest first from w[i % 4]
    for (int i = 0; i < 16; ++i) {
      __m128i& now = w[i % 4];
      if (i < 4) {
        now = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p) + i), swap);
      } else {
        const __m128i seven_back = _mm_alignr_epi8(w[(i + 3) % 4], w[(i + 2) % 4], 4);
        now = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(now, w[(i + 1) % 4]), seven_back),
                                   w[(i + 3) % 4]);
      }
      const __m128i keyed = _mm_add_epi32(now, _mm_loadu_si128(reinterpret_cast<const __m128i*>(kRound) + i));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, keyed);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(keyed, 0x0e));
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  alignas(16) uint32_t x[8];
  _mm_store_si128(reinterpret_cast<__m128i*>(x), abef);
  _mm_store_si128(reinterpret_cast<__m128i*>(x + 4), cdgh);
  state = {x[3], x[2], x[7], x[6], x[1], x[0], x[5], x[4]};
}

bool has_instructions() {
  static const bool has = [] {
    unsigned a, b, c, d;
    constexpr unsigned kSha = 1u << 29;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & kSha) != 0 &&
           __builtin_cpu_supports("sse4.1");
  }();
  return has;
}

}  // namespace

void Sha256::blocks(const uint8_t* p, size_t count) {
  if (instructions_ && has_instructions()) {
    instruction_blocks(state_, p, count);
    return;
  }
  for (; count > 0; --count, p += 64) scalar_block(state_, p);
}

void Sha256::update(std::string_view bytes) {
  const auto* p = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t left = bytes.size();
  size_t held = bytes_ % 64;
  bytes_ += left;
  while (left > 0) {
    if (held == 0 && left >= 64) {
      blocks(p, left / 64);
      p += left / 64 * 64;
      left %= 64;
      continue;
    }
    const size_t n = std::min(left, 64 - held);
    std::memcpy(pending_.data() + held, p, n);
    held += n;
    p += n;
    left -= n;
    if (held == 64) {
      blocks(pending_.data(), 1);
      held = 0;
    }
  }
}

std::array<uint8_t, 32> Sha256::finish() {
  const uint64_t bits = bytes_ * 8;
  std::string tail(1, '\x80');
  tail.append((119 - bytes_ % 64) % 64, '\0');
  for (int i = 7; i >= 0; --i) tail += static_cast<char>(bits >> (8 * i));
  update(tail);
  std::array<uint8_t, 32> out;
  for (int i = 0; i < 32; ++i) out[i] = static_cast<uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
  return out;
}

std::string sha256_hex(Sha256& hash) {
  std::string out;
  for (const uint8_t b : hash.finish()) {
    out += "0123456789abcdef"[b >> 4];
    out += "0123456789abcdef"[b & 15];
  }
  return out;
}

}  // namespace ridge
