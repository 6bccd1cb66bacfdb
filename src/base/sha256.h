#pragma once
// SHA-256 (FIPS 180-4): names a tokenizer or a model file where a collision must not be found.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ridge {

class Sha256 {
 public:
  /// Without `instructions` the processor's SHA instructions are not used, where it has them: same value,
  /// slower.
  explicit Sha256(bool instructions = true) : instructions_(instructions) {}
  void update(std::string_view bytes);
  /// Of all bytes so far. Call once.
  std::array<uint8_t, 32> finish();

 private:
  bool instructions_;
  void blocks(const uint8_t* p, size_t count);  // p [count, 64]
  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> pending_ = {};
  uint64_t bytes_ = 0;
};

/// 64 lower-case hex digits.
std::string sha256_hex(Sha256& hash);

}  // namespace ridge
