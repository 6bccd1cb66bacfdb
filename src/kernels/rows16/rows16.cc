#include "kernels/rows16/rows16.h"

#include <algorithm>
#include <cstring>

#include "kernels/rows16/unpack.h"

namespace ridge::rows16 {

namespace {

template <class T>
T read(const uint8_t* p, int64_t i = 0) {
  T value;
  std::memcpy(&value, p + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}
template <class T>
void write(uint8_t* p, int64_t i, T value) {
  std::memcpy(p + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

/// The 32 codes of panel `sub` of a block of the file, as unsigned numbers.
void file_codes(DType dtype, const uint8_t* b, int64_t sub, uint8_t* codes) {
  if (dtype == kQ8_0) {
    for (int i = 0; i < 32; ++i) codes[i] = b[2 + i] ^ 0x80;
  } else if (dtype == kQ4_K) {
    const uint8_t* four = b + 16 + sub / 2 * 32;
    const int shift = sub % 2 == 0 ? 0 : 4;
    for (int i = 0; i < 32; ++i) codes[i] = four[i] >> shift & 15;
  } else if (dtype == kQ6_K) {
    const int64_t half = sub / 4, quarter = sub % 4;
    const uint8_t *low = b + half * 64 + quarter % 2 * 32, *high = b + 128 + half * 32;
    const auto low_shift = quarter / 2 * 4, high_shift = quarter * 2;
    for (int i = 0; i < 32; ++i)
      codes[i] = static_cast<uint8_t>((low[i] >> low_shift & 15) | (high[i] >> high_shift & 3) << 4);
  } else {
    const uint8_t* four = b + (dtype == kQ4_0 ? 2 : dtype == kQ4_1 ? 4 : 6);
    for (int i = 0; i < 16; ++i) codes[i] = four[i] & 15, codes[i + 16] = four[i] >> 4;
    if (dtype == kQ5_0) {
      const auto high = read<uint32_t>(b + 2);
      for (int i = 0; i < 32; ++i) codes[i] = static_cast<uint8_t>(codes[i] | (high >> i & 1) << 4);
    }
  }
}

/// Lane `row` of a panel's scales (and of the header, with the group's first panel).
void write_scales(DType dtype, const uint8_t* b, int64_t sub, uint8_t* header, uint8_t* scales, int64_t row) {
  if (dtype == kQ4_K) {
    const uint8_t* s = b + 4;  // eight 6-bit scales and minima in 12 bytes
    const bool low = sub < 4;
    write<uint16_t>(header, row, read<uint16_t>(b)), write<uint16_t>(header, 16 + row, read<uint16_t>(b, 1));
    scales[row] = low ? s[sub] & 63 : static_cast<uint8_t>((s[sub + 4] & 15) | s[sub - 4] >> 6 << 4);
    scales[16 + row] = low ? s[sub + 4] & 63 : static_cast<uint8_t>(s[sub + 4] >> 4 | s[sub] >> 6 << 4);
  } else if (dtype == kQ6_K) {
    write<float>(header, row, to_f32(read<f16>(b + 208)));
    scales[row] = b[192 + 2 * sub], scales[16 + row] = b[193 + 2 * sub];
  } else {
    write<uint16_t>(scales, row, read<uint16_t>(b));
    if (dtype == kQ4_1) write<uint16_t>(scales, 16 + row, read<uint16_t>(b, 1));
  }
}

/// 16 rows of 32 codes, interleaved.
void write_codes(DType dtype, const uint8_t (*codes)[32], uint8_t* out) {
  if (dtype == kQ8_0) {
    for (int v = 0; v < 8; ++v)
      for (int row = 0; row < 16; ++row) std::memcpy(out + v * 64 + row * 4, codes[row] + v * 4, 4);
    return;
  }
  for (int row = 0; row < 16; ++row)
    for (int k = 0; k < 16; ++k)
      out[k / 4 * 64 + row * 4 + k % 4] =
          static_cast<uint8_t>((codes[row][k] & 15) | (codes[row][k + 16] & 15) << 4);
  if (dtype != kQ5_0 && dtype != kQ6_K) return;
  uint8_t* planes = out + 256;
  for (int row = 0; row < 16; ++row)
    for (int k = 0; k < 32; ++k) {
      const int v = k / 4, byte = row * 4 + k % 4, top = codes[row][k] >> 4;
      uint8_t& plane = planes[dtype == kQ5_0 ? byte : v / 4 * 64 + byte];
      plane = static_cast<uint8_t>(plane | top << (dtype == kQ5_0 ? v : 2 * (v % 4)));
    }
}

void pack_quantized_tile(DType dtype, const Tensor& rows, int64_t tile, uint8_t* out) {
  const Format f = format_of(dtype);
  const int64_t panels = rows.dim(1) / kPanel, live = std::min(kRows, rows.dim(0) - tile * kRows);
  const int64_t per_block = dtype_block(dtype) / kPanel, block_bytes = dtype_block_bytes(dtype);
  const int64_t row_bytes = rows.dim(1) / dtype_block(dtype) * block_bytes;
  const uint8_t* first = rows.as<uint8_t>() + tile * kRows * row_bytes;
  std::memset(out, 0, static_cast<size_t>(tile_bytes(dtype, rows.dim(1))));
  for (int64_t p = 0; p < panels; ++p) {
    const Panel at = locate(f, out, panels, p);
    uint8_t codes[16][32] = {};
    for (int64_t row = 0; row < live; ++row) {
      const uint8_t* block = first + row * row_bytes + p / per_block * block_bytes;
      file_codes(dtype, block, p % per_block, codes[row]);
      write_scales(dtype, block, p % per_block, const_cast<uint8_t*>(at.header),
                   const_cast<uint8_t*>(at.scales), row);
    }
    write_codes(dtype, codes, const_cast<uint8_t*>(at.codes));
  }
}

/// Plain types: element (row, k) at k / pair * 16 pair + row pair + k mod pair.
template <class T>
void pack_plain_tile(const Tensor& rows, int64_t tile, int64_t pair, uint8_t* out) {
  const int64_t columns = rows.dim(1), live = std::min(kRows, rows.dim(0) - tile * kRows);
  const T* in = rows.as<T>() + tile * kRows * columns;
  auto* to = reinterpret_cast<T*>(out);
  if (live < kRows || columns % pair != 0)
    std::memset(out, 0, static_cast<size_t>(tile_bytes(rows.dtype, columns)));
  // Blocks of 16 x 64, so that the lines written stay in L1 until they are full.
  for (int64_t start = 0; start < columns; start += 64)
    for (int64_t row = 0; row < live; ++row)
      for (int64_t k = start; k < std::min(columns, start + 64); ++k)
        to[k / pair * kRows * pair + row * pair + k % pair] = in[row * columns + k];
}

template <DType dtype>
int64_t all_bytes(int64_t rows, int64_t columns) {
  return tiles(rows) * tile_bytes(dtype, columns);
}
template <DType dtype>
int64_t all_scale_bytes(int64_t rows, int64_t columns) {
  return tiles(rows) * tile_scale_bytes(dtype, columns);
}
template <DType dtype>
const PackedLayout* layout_of(const char* name) {
  static const PackedLayout one{name, dtype, all_bytes<dtype>, all_scale_bytes<dtype>};
  return &one;
}

/// value = scale * code + offset, for half `half` (16 k) of a panel.
void packed_scale(DType dtype, const Panel& at, int64_t row, int half, double* scale, double* offset) {
  if (dtype == kQ6_K) {
    *scale = double{read<float>(at.header, row)} * read<int8_t>(at.scales, half * 16 + row);
  } else if (dtype == kQ4_K) {
    *scale = double{to_f32(read<f16>(at.header, row))} * at.scales[row];
    *offset = -double{to_f32(read<f16>(at.header, 16 + row))} * at.scales[16 + row];
    return;
  } else {
    *scale = to_f32(read<f16>(at.scales, row));
  }
  *offset = dtype == kQ4_1 ? double{to_f32(read<f16>(at.scales, 16 + row))} : -*scale * zero_point(dtype);
}

}  // namespace

int packed_code(DType dtype, const uint8_t* codes, int64_t row, int64_t k) {
  const int64_t v = k / 4, byte = row * 4 + k % 4;
  if (dtype == kQ8_0) return codes[v * 64 + byte];
  const int low = codes[v % 4 * 64 + byte] >> (v < 4 ? 0 : 4) & 15;
  if (dtype == kQ5_0) return low | (codes[256 + byte] >> v & 1) << 4;
  if (dtype == kQ6_K) return low | (codes[256 + v / 4 * 64 + byte] >> 2 * (v % 4) & 3) << 4;
  return low;
}

int64_t tile_bytes(DType dtype, int64_t columns) {
  if (dtype == kF32) return columns * kRows * 4;
  if (dtype == kF16) return columns * kRows * 2;
  if (dtype == kBF16) return (columns + 1) / 2 * kRows * 4;
  const Format f = format_of(dtype);
  const int64_t panels = columns / kPanel, whole = panels / f.panels, rest = panels % f.panels;
  return whole * f.group_bytes(f.panels) + (rest > 0 ? f.group_bytes(rest) : 0);
}

int64_t tile_scale_bytes(DType dtype, int64_t columns) {
  if (!is_block_quantized(dtype)) return 0;
  return tile_bytes(dtype, columns) - columns / kPanel * format_of(dtype).codes;
}

const PackedLayout* layout(DType dtype) {
  switch (dtype) {
    case kF32:
      return layout_of<kF32>("rows16_f32");
    case kF16:
      return layout_of<kF16>("rows16_f16");
    case kBF16:
      return layout_of<kBF16>("rows16_bf16");
    case kQ8_0:
      return layout_of<kQ8_0>("rows16_q8_0");
    case kQ4_0:
      return layout_of<kQ4_0>("rows16_q4_0");
    case kQ4_1:
      return layout_of<kQ4_1>("rows16_q4_1");
    case kQ5_0:
      return layout_of<kQ5_0>("rows16_q5_0");
    case kQ4_K:
      return layout_of<kQ4_K>("rows16_q4_k");
    case kQ6_K:
      return layout_of<kQ6_K>("rows16_q6_k");
    default:
      return nullptr;
  }
}

void pack(const Tensor& rows, const PackedLayout& layout, void* packed, int64_t first, int64_t last) {
  const int64_t bytes = tile_bytes(layout.from, rows.dim(1));
  for (int64_t tile = first / kRows; tile < tiles(last); ++tile) {
    uint8_t* out = static_cast<uint8_t*>(packed) + tile * bytes;
    if (layout.from == kF32)
      pack_plain_tile<float>(rows, tile, 1, out);
    else if (layout.from == kF16)
      pack_plain_tile<uint16_t>(rows, tile, 1, out);
    else if (layout.from == kBF16)
      pack_plain_tile<uint16_t>(rows, tile, 2, out);
    else
      pack_quantized_tile(layout.from, rows, tile, out);
  }
}

void decode_row(DType dtype, const void* packed, int64_t columns, int64_t row, float* out) {
  const auto* tile = static_cast<const uint8_t*>(packed) + row / kRows * tile_bytes(dtype, columns);
  const int64_t lane = row % kRows, panels = columns / kPanel;
  if (dtype == kF32) {
    for (int64_t k = 0; k < columns; ++k) out[k] = read<float>(tile, k * kRows + lane);
  } else if (dtype == kF16) {
    for (int64_t k = 0; k < columns; ++k) out[k] = to_f32(read<f16>(tile, k * kRows + lane));
  } else if (dtype == kBF16) {
    for (int64_t k = 0; k < columns; ++k)
      out[k] = to_f32(read<bf16>(tile, k / 2 * 2 * kRows + lane * 2 + k % 2));
  } else {
    for (int64_t p = 0; p < panels; ++p) {
      const Panel at = locate(format_of(dtype), tile, panels, p);
      for (int half = 0; half < 2; ++half) {
        double scale = 0, offset = 0;
        packed_scale(dtype, at, lane, half, &scale, &offset);
        for (int64_t k = half * 16; k < half * 16 + 16; ++k)
          out[p * kPanel + k] = static_cast<float>(scale * packed_code(dtype, at.codes, lane, k) + offset);
      }
    }
  }
}

}  // namespace ridge::rows16
