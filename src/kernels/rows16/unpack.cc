#include "kernels/rows16/unpack.h"

#include <algorithm>
#include <cstring>

#include "kernels/rows16/rows16.h"

namespace ridge::rows16 {

namespace {

void copy(uint8_t* to, const uint8_t* from, int64_t bytes) {
  std::memcpy(to, from, static_cast<size_t>(bytes));
}
void merge(uint8_t& byte, int bits) {
  byte = static_cast<uint8_t>(byte | bits);
}

/// Panel `sub` of a block that was zero: codes.
void put_codes(DType dtype, const uint8_t* codes, int64_t lane, int64_t sub, uint8_t* b) {
  for (int64_t k = 0; k < kPanel; ++k) {
    const int code = packed_code(dtype, codes, lane, k);
    if (dtype == kQ8_0) {
      b[2 + k] = static_cast<uint8_t>(code ^ 0x80);
    } else if (dtype == kQ4_K) {
      merge(b[16 + sub / 2 * 32 + k], code << (sub % 2 * 4));
    } else if (dtype == kQ6_K) {
      const int64_t half = sub / 4, quarter = sub % 4;
      merge(b[half * 64 + quarter % 2 * 32 + k], (code & 15) << (quarter / 2 * 4));
      merge(b[128 + half * 32 + k], (code >> 4) << (quarter * 2));
    } else {
      const int64_t first = dtype == kQ4_0 ? 2 : dtype == kQ4_1 ? 4 : 6;
      merge(b[first + k % 16], (code & 15) << (k / 16 * 4));
      if (dtype == kQ5_0) merge(b[2 + k / 8], (code >> 4) << (k % 8));
    }
  }
}

/// Likewise: scales and minima.
void put_scales(DType dtype, const Panel& at, int64_t lane, int64_t sub, uint8_t* b) {
  if (dtype == kQ4_K) {
    copy(b, at.header + lane * 2, 2), copy(b + 2, at.header + 32 + lane * 2, 2);
    uint8_t* s = b + 4;  // eight 6-bit scales and minima in 12 bytes
    const int scale = at.scales[lane], minimum = at.scales[16 + lane];
    if (sub < 4) {
      merge(s[sub], scale), merge(s[sub + 4], minimum);
    } else {
      merge(s[sub + 4], (scale & 15) | (minimum & 15) << 4);
      merge(s[sub - 4], scale >> 4 << 6), merge(s[sub], minimum >> 4 << 6);
    }
  } else if (dtype == kQ6_K) {
    float d;
    std::memcpy(&d, at.header + lane * 4, 4);
    const f16 half = to_f16(d);
    std::memcpy(b + 208, &half, 2);
    b[192 + 2 * sub] = at.scales[lane], b[193 + 2 * sub] = at.scales[16 + lane];
  } else {
    copy(b, at.scales + lane * 2, 2);
    if (dtype == kQ4_1) copy(b + 2, at.scales + 32 + lane * 2, 2);
  }
}

void unpack_plain(const Tensor& packed, int64_t row, uint8_t* out) {
  const int64_t columns = packed.dim(1), size = dtype_block_bytes(packed.dtype),
                pair = packed.dtype == kBF16 ? 2 : 1;
  const uint8_t* tile = packed.as<uint8_t>() + row / kRows * tile_bytes(packed.dtype, columns);
  for (int64_t k = 0; k < columns; ++k)
    copy(out + k * size, tile + (k / pair * kRows * pair + row % kRows * pair + k % pair) * size, size);
}

void unpack_blocks(const Tensor& packed, int64_t row, uint8_t* out) {
  const DType dtype = packed.dtype;
  const int64_t columns = packed.dim(1), panels = columns / kPanel, per_block = dtype_block(dtype) / kPanel;
  const uint8_t* tile = packed.as<uint8_t>() + row / kRows * tile_bytes(dtype, columns);
  for (int64_t p = 0; p < panels; ++p) {
    uint8_t* block = out + p / per_block * dtype_block_bytes(dtype);
    const Panel at = locate(format_of(dtype), tile, panels, p);
    put_codes(dtype, at.codes, row % kRows, p % per_block, block);
    put_scales(dtype, at, row % kRows, p % per_block, block);
  }
}

}  // namespace

void unpack(const Tensor& packed, void* rows) {
  auto* out = static_cast<uint8_t*>(rows);
  const int64_t row_bytes = packed.dim(1) / dtype_block(packed.dtype) * dtype_block_bytes(packed.dtype);
  std::fill_n(out, packed.dim(0) * row_bytes, uint8_t{0});
  for (int64_t row = 0; row < packed.dim(0); ++row, out += row_bytes)
    is_block_quantized(packed.dtype) ? unpack_blocks(packed, row, out) : unpack_plain(packed, row, out);
}

}  // namespace ridge::rows16
