#include "tensor/blocks.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ridge {

namespace {

double half_at(const uint8_t* p) {
  f16 h;
  std::memcpy(&h, p, 2);
  return to_f32(h);
}
void put_half(uint8_t* p, float v) {
  const f16 h = to_f16(v);
  std::memcpy(p, &h, 2);
}
int low_nibble_order(const uint8_t* codes, int i) {
  return i < 16 ? codes[i] & 15 : codes[i - 16] >> 4;
}

/// Scale and minimum (6 bits each) of sub-block j of a q4_k block: 12 bytes hold eight pairs.
void q4_k_scale(const uint8_t* packed, int j, int* scale, int* minimum) {
  if (j < 4) {
    *scale = packed[j] & 63;
    *minimum = packed[j + 4] & 63;
  } else {
    *scale = (packed[j + 4] & 15) | (packed[j - 4] >> 6 << 4);
    *minimum = (packed[j + 4] >> 4) | (packed[j] >> 6 << 4);
  }
}

void decode_q4_k(const uint8_t* b, double* out) {
  const double d = half_at(b), dmin = half_at(b + 2);
  const uint8_t* codes = b + 16;
  for (int j = 0; j < 8; ++j) {
    int scale, minimum;
    q4_k_scale(b + 4, j, &scale, &minimum);
    for (int i = 0; i < 32; ++i) {
      const int byte = codes[j / 2 * 32 + i], code = j % 2 == 0 ? byte & 15 : byte >> 4;
      out[j * 32 + i] = d * scale * code - dmin * minimum;
    }
  }
}

void decode_q6_k(const uint8_t* b, double* out) {
  const uint8_t *low = b, *high = b + 128;
  const auto* scales = reinterpret_cast<const int8_t*>(b + 192);
  const double d = half_at(b + 208);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, quarter = i % 128 / 32, lane = i % 32;
    const int four = low[half * 64 + quarter % 2 * 32 + lane] >> (quarter / 2 * 4) & 15;
    const int two = high[half * 32 + lane] >> (quarter * 2) & 3;
    out[i] = d * scales[i / 16] * ((four | two << 4) - 32);
  }
}

int clamp_code(float v, int top) {
  return std::clamp(static_cast<int>(std::lrint(v)), 0, top);
}

void encode_q4_k(const float* v, uint8_t* b) {
  float scale[8], minimum[8], top_scale = 0, top_minimum = 0;
  for (int j = 0; j < 8; ++j) {
    const auto [low, high] = std::minmax_element(v + j * 32, v + j * 32 + 32);
    minimum[j] = std::max(0.0f, -*low);
    scale[j] = (*high + minimum[j]) / 15;
    top_scale = std::max(top_scale, scale[j]);
    top_minimum = std::max(top_minimum, minimum[j]);
  }
  put_half(b, top_scale / 63);
  put_half(b + 2, top_minimum / 63);
  const auto d = static_cast<float>(half_at(b)), dmin = static_cast<float>(half_at(b + 2));
  std::memset(b + 4, 0, 140);
  for (int j = 0; j < 8; ++j) {
    const int s = d > 0 ? clamp_code(scale[j] / d, 63) : 0,
              m = dmin > 0 ? clamp_code(minimum[j] / dmin, 63) : 0;
    uint8_t* packed = b + 4;
    if (j < 4) {
      packed[j] = static_cast<uint8_t>(packed[j] | s);
      packed[j + 4] = static_cast<uint8_t>(packed[j + 4] | m);
    } else {
      packed[j + 4] = static_cast<uint8_t>((s & 15) | (m & 15) << 4);
      packed[j - 4] = static_cast<uint8_t>(packed[j - 4] | (s >> 4) << 6);
      packed[j] = static_cast<uint8_t>(packed[j] | (m >> 4) << 6);
    }
    for (int i = 0; i < 32; ++i) {
      const float step = d * static_cast<float>(s);
      const int code = step > 0 ? clamp_code((v[j * 32 + i] + dmin * static_cast<float>(m)) / step, 15) : 0;
      uint8_t& byte = b[16 + j / 2 * 32 + i];
      byte = static_cast<uint8_t>(byte | (j % 2 == 0 ? code : code << 4));
    }
  }
}

void encode_q6_k(const float* v, uint8_t* b) {
  float scale[16], top = 0;
  for (int j = 0; j < 16; ++j) {
    float magnitude = 0;
    for (int i = 0; i < 16; ++i) magnitude = std::max(magnitude, std::fabs(v[j * 16 + i]));
    scale[j] = magnitude / 31;
    top = std::max(top, scale[j]);
  }
  std::memset(b, 0, 210);
  put_half(b + 208, top / 127);
  const auto d = static_cast<float>(half_at(b + 208));
  for (int i = 0; i < 256; ++i) {
    const int s = d > 0 ? clamp_code(scale[i / 16] / d, 127) : 0;
    b[192 + i / 16] = static_cast<uint8_t>(s);
    const float step = d * static_cast<float>(s);
    const int code = step > 0 ? clamp_code(v[i] / step + 32, 63) : 32;
    const int half = i / 128, quarter = i % 128 / 32, lane = i % 32;
    uint8_t& low = b[half * 64 + quarter % 2 * 32 + lane];
    low = static_cast<uint8_t>(low | (code & 15) << (quarter / 2 * 4));
    uint8_t& high = b[128 + half * 32 + lane];
    high = static_cast<uint8_t>(high | (code >> 4) << (quarter * 2));
  }
}

void encode_32(DType dtype, const float* v, uint8_t* b) {
  const auto [low, high] = std::minmax_element(v, v + 32);
  const float magnitude = std::max(std::fabs(*low), std::fabs(*high));
  const float steps = dtype == kQ8_0 ? 127 : dtype == kQ5_0 ? 15 : dtype == kQ4_0 ? 7 : 15;
  put_half(b, dtype == kQ4_1 ? (*high - *low) / 15 : magnitude / steps);
  const auto d = static_cast<float>(half_at(b));
  if (dtype == kQ8_0) {
    for (int i = 0; i < 32; ++i)
      b[2 + i] = static_cast<uint8_t>(d > 0 ? std::clamp(std::lrint(v[i] / d), -127l, 127l) : 0);
    return;
  }
  if (dtype == kQ4_1) put_half(b + 2, *low);
  const float offset = dtype == kQ4_1   ? -static_cast<float>(half_at(b + 2)) / (d > 0 ? d : 1)
                       : dtype == kQ5_0 ? 16
                                        : 8;
  const int top = dtype == kQ5_0 ? 31 : 15;
  uint8_t* codes = b + (dtype == kQ4_0 ? 2 : dtype == kQ4_1 ? 4 : 6);
  std::memset(codes, 0, 16);
  uint32_t high_bits = 0;
  for (int i = 0; i < 32; ++i) {
    const int code = d > 0            ? clamp_code(v[i] / d + offset, top)
                     : dtype == kQ4_1 ? 0
                                      : static_cast<int>(offset);
    codes[i % 16] = static_cast<uint8_t>(codes[i % 16] | (code & 15) << (i / 16 * 4));
    high_bits |= static_cast<uint32_t>(code >> 4) << i;
  }
  if (dtype == kQ5_0) std::memcpy(b + 2, &high_bits, 4);
}

}  // namespace

void decode_block(DType dtype, const void* row, int64_t block, double* out) {
  const uint8_t* b = static_cast<const uint8_t*>(row) + block * dtype_block_bytes(dtype);
  switch (dtype) {
    case kQ8_0:
      for (int i = 0; i < 32; ++i) out[i] = half_at(b) * static_cast<int8_t>(b[2 + i]);
      break;
    case kQ4_0:
      for (int i = 0; i < 32; ++i) out[i] = half_at(b) * (low_nibble_order(b + 2, i) - 8);
      break;
    case kQ4_1:
      for (int i = 0; i < 32; ++i) out[i] = half_at(b) * low_nibble_order(b + 4, i) + half_at(b + 2);
      break;
    case kQ5_0: {
      uint32_t high;
      std::memcpy(&high, b + 2, 4);
      for (int i = 0; i < 32; ++i)
        out[i] = half_at(b) * ((low_nibble_order(b + 6, i) | static_cast<int>(high >> i & 1) << 4) - 16);
      break;
    }
    case kQ4_K:
      decode_q4_k(b, out);
      break;
    case kQ6_K:
      decode_q6_k(b, out);
      break;
    default:
      break;
  }
}

void encode_row(DType dtype, const float* values, int64_t count, void* row) {
  auto* out = static_cast<uint8_t*>(row);
  for (int64_t i = 0; i < count; i += dtype_block(dtype), out += dtype_block_bytes(dtype)) {
    if (dtype == kQ4_K)
      encode_q4_k(values + i, out);
    else if (dtype == kQ6_K)
      encode_q6_k(values + i, out);
    else
      encode_32(dtype, values + i, out);
  }
}

}  // namespace ridge
