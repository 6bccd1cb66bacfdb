#pragma once
// rows16: the packed layout of weight matrices that `linear` multiplies by and `embedding` reads rows of.
//
// Output rows go in tiles of 16 (the last one is filled up with rows of zeros): one tile is one contiguous
// stream over k, so that a thread reads weights in one direction, and one 64-byte vector holds all 16 rows,
// so that no sum crosses lanes. The same bytes serve every instruction set.
//
//   f32, f16     for each k: 16 values                              (64, 32 bytes)
//   bf16         for each pair (k, k + 1): 16 x 2 values            (64 bytes; an odd last k is paired with
//   0) quantized    panels of 32 k, in groups (so that code vectors stay on cache lines):
//                group = header, the panels' scales, the panels' codes
//
//   type   header           scales of a panel          codes of a panel               group    bytes a weight
//   q8_0   -                f16 s[16]                  8 vectors                      2        as the file
//   q4_0   -                f16 s[16]                  4 vectors                      2        as the file
//   q4_1   -                f16 s[16], f16 m[16]       4 vectors                      2        as the file
//   q5_0   -                f16 s[16]                  4 vectors, bit plane 64        2        as the file
//   q4_k   f16 d[16], m[16] u8 s[16], u8 m[16]         4 vectors                      8        148 / 144
//   q6_k   f32 d[16]        i8 s[16], i8 s[16]         4 vectors, 2-bit planes 128    8        212 / 210
//
// Code vector v holds k = 4v ... 4v + 3 of 16 rows: byte 4 row + j is code (row, 4v + j), unsigned (q8_0 with
// its top bit flipped), which is what dot4 wants. With 4 bits, byte vector u holds code vector u in its low
// halves and u + 4 in its high ones. Bit v of the q5_0 plane is bit 4 of code vector v; bits 2 (v mod 4) of
// q6_k plane v / 4 are bits 4 and 5 of it. Scales of 6 bits become bytes, f16 of q6_k becomes f32: one
// instruction each, and cache lines stay whole; all values are held exactly.

#include <cstdint>

#include "tensor/packed.h"
#include "tensor/tensor.h"

namespace ridge::rows16 {

inline constexpr int64_t kRows = 16;   // of a tile
inline constexpr int64_t kPanel = 32;  // k of a panel

/// Bytes of a group's header, of a panel's scales and codes; panels of a full group.
struct Format {
  int64_t header, scales, codes, panels;
  constexpr int64_t group_bytes(int64_t n) const { return header + n * (scales + codes); }
};
constexpr Format format_of(DType dtype) {
  switch (dtype) {
    case kQ8_0:
      return {0, 32, 512, 2};
    case kQ4_0:
      return {0, 32, 256, 2};
    case kQ4_1:
      return {0, 64, 256, 2};
    case kQ5_0:
      return {0, 32, 320, 2};
    case kQ4_K:
      return {64, 32, 256, 8};
    case kQ6_K:
      return {64, 32, 384, 8};
    default:
      return {0, 0, 0, 1};
  }
}
/// A code minus this is the signed weight; 0 for types with a minimum.
constexpr int zero_point(DType dtype) {
  return dtype == kQ8_0 ? 128 : dtype == kQ4_0 ? 8 : dtype == kQ5_0 ? 16 : dtype == kQ6_K ? 32 : 0;
}
constexpr bool has_minimum(DType dtype) {
  return dtype == kQ4_1 || dtype == kQ4_K;
}

/// Where panel p of a tile of `panels` lies.
struct Panel {
  const uint8_t *header, *scales, *codes;
};
constexpr Panel locate(const Format& f, const uint8_t* tile, int64_t panels, int64_t p) {
  const int64_t group = p / f.panels, i = p % f.panels, left = panels - group * f.panels;
  const uint8_t* base = tile + group * f.group_bytes(f.panels);
  const uint8_t* scales = base + f.header;
  return {base, scales + i * f.scales, scales + (left < f.panels ? left : f.panels) * f.scales + i * f.codes};
}

/// Bytes of one tile, and the part of them that is scales and minima.
int64_t tile_bytes(DType dtype, int64_t columns);
int64_t tile_scale_bytes(DType dtype, int64_t columns);
inline int64_t tiles(int64_t rows) {
  return (rows + kRows - 1) / kRows;
}

/// The descriptor for weights of `dtype`; null for types that are no weights (i8, indices).
const PackedLayout* layout(DType dtype);

/// Packs rows [first, last) of a dense matrix in the file's layout; first is a multiple of 16, last one or
/// the end. Disjoint ranges may be packed by several threads at once: nothing but their own tiles is written.
void pack(const Tensor& rows, const PackedLayout& layout, void* packed, int64_t first, int64_t last);

/// One row of a packed matrix as f32: exact, but for types with a minimum, which round once.
void decode_row(DType dtype, const void* packed, int64_t columns, int64_t row, float* out);

}  // namespace ridge::rows16
