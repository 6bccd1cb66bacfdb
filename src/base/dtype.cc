#include "base/dtype.h"

namespace ridge {

namespace {
struct Facts {
  const char* name;
  int64_t block, bytes;
};
constexpr Facts kFacts[kDTypeCount] = {
    {"f32", 1, 4},    {"f16", 1, 2},    {"bf16", 1, 2},     {"i8", 1, 1},      {"u8", 1, 1},
    {"i32", 1, 4},    {"i64", 1, 8},    {"bool", 1, 1},     {"q8_0", 32, 34},  {"q4_0", 32, 18},
    {"q4_1", 32, 20}, {"q5_0", 32, 22}, {"q4_k", 256, 144}, {"q6_k", 256, 210}};
const Facts& facts(DType d) {
  return kFacts[static_cast<int>(d)];
}
}  // namespace

const char* dtype_name(DType d) {
  return facts(d).name;
}
int64_t dtype_block(DType d) {
  return facts(d).block;
}
int64_t dtype_block_bytes(DType d) {
  return facts(d).bytes;
}

f16 to_f16(float v) {
  uint32_t bits;
  std::memcpy(&bits, &v, 4);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {static_cast<uint16_t>(sign | 0x7e00)};
  if (magnitude >= 0x477ff000u) return {static_cast<uint16_t>(sign | 0x7c00)};  // 65520 and up round to inf
  if (magnitude < 0x38800000u) {  // below 2^-14: subnormal, spacing 2^-24
    const float scaled = std::fabs(v) * 0x1p24f;
    return {static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(scaled)))};
  }
  const uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1);
  return {static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13))};
}

}  // namespace ridge
