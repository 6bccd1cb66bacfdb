#pragma once
// The call of linear_terms and its work: rows in pairs of tiles, k in panels of 32, units of two panels,
// parts of units.

#include "base/checked.h"
#include "device/convert.cuh"
#include "device/launch.cuh"
#include "device/mma.cuh"

namespace ridge::cuda {

/// One weight matrix of a call, and what comes of it.
struct LinearTermsPart {
  device::Fresh<float> y;  // [tokens, out]
  const uint8_t* w =
      nullptr;  // rows16, or rows of a plain type; complete before the step: read before the wait
  const float* bias = nullptr;                  // [out] or none
  int64_t out = 0, y_stride = 0, w_stride = 0;  // elements
  int first_block = 0;                          // blockIdx.y from which on blocks have it
};
enum class Gate : uint8_t { kNone, kSilu, kGelu };

struct LinearTermsCall {
  LinearTermsPart matrices[3];  // of one type and one `in`
  int count = 1;
  Gate gate = Gate::kNone;               // else y = gate(x · w0ᵀ) · (x · w1ᵀ), in matrices[0].y
  device::Fresh<const unsigned char> x;  // [tokens, in] f32 or bf16
  device::Fresh<uint4> split_x;          // [groups, 2 units, kManyColumns, 32]: x as the matrix step wants it
  device::Fresh<const float> residual;   // [tokens, out] or none, of one matrix; may be y
  int64_t tokens = 0, in = 0, x_stride = 0, residual_stride = 0;  // strides in elements
  int64_t tile_bytes = 0;                                         // of rows16
  int panels = 0, units = 0;      // panels of 32 k, the last one maybe short; pairs of them
  int parts = 1, part_units = 0;  // by the shapes of the matrices alone
  int sharing = 1;                // warps that share a pair of tiles: parts, or 1
  int terms = 3;                  // 3: f32 x; 1: bf16
  bool vectors = false;           // four neighbouring x are aligned
  // Then x stands for x / rms(x) (norm + norm_offset): of linear_terms_small alone, x f32 with vectors.
  const float* norm = nullptr;  // [in], aligned to 16 bytes; read before the wait
  float norm_epsilon = 0, norm_offset = 0;
};

/// The tile of 16 rows that half a warp multiplies: lanes 0 … 15 the first of a pair.
struct LaneTile {
  const uint8_t* w;
  int64_t tile, out, w_stride;
};

/// What a block has: a matrix and its first pair of tiles. With a gate a pair is a tile of either matrix.
struct BlockRows {
  int matrix = 0;
  int64_t first_pair = 0;

  __device__ __forceinline__ BlockRows(const LinearTermsCall& call, int pairs_of_block) {
    int64_t block = blockIdx.y;
    if (call.gate == Gate::kNone)
      while (matrix + 1 < call.count && block >= call.matrices[matrix + 1].first_block) ++matrix;
    first_pair = (block - call.matrices[matrix].first_block) * pairs_of_block;
  }
  __device__ __forceinline__ LaneTile tile(const LinearTermsCall& call, int64_t pair) const {
    const int half = threadIdx.x >> 4 & 1;
    const bool gated = call.gate != Gate::kNone;
    const LinearTermsPart& m = call.matrices[gated ? half : matrix];
    return {m.w, gated ? pair : 2 * pair + half, m.out, m.w_stride};
  }
};

/// Rows of y in a pair.
__host__ __device__ inline int rows_of_pair(Gate gate) {
  return gate == Gate::kNone ? 32 : 16;
}

/// Column tiles of 8 that a group of linear_terms_many has.
inline constexpr int kManyColumns = 4;

// Up to so many tokens a warp splits x itself.
inline constexpr int64_t kFewTerms = 2;
/// Bytes of split_x.
inline int64_t split_terms_bytes(int64_t tokens, int64_t in, int terms) {
  if (tokens <= kFewTerms) return 0;
  return ceil_div(tokens, int64_t{kManyColumns * 8 / terms}) * ceil_div(in, int64_t{64}) * 2 * kManyColumns *
         512;
}

/// Weights of one type: rows16 of a quantized one, rows of bf16 or f16. One launch, or two with more than
/// kFewTerms tokens; `sms`: multiprocessors. Defined in a file a type, so that none compiles long.
template <DType dtype>
Status launch_linear_terms(cudaStream_t stream, const LinearTermsCall& call, int sms);

template <class PanelIn, int kColumnsIn, int kWarpsIn>
struct LinearTermsTraits {
  using Panel = PanelIn;
  static constexpr int kColumns = kColumnsIn, kWarps = kWarpsIn, kThreads = kWarps * 32;
  static constexpr int kBlocksPerSm = 16 / kWarps;  // with 128 registers a thread
  static constexpr int kRow = kColumns * 8 + 1;     // floats of a row where parts are joined
  static constexpr int kJoinBytes = kWarps * 32 * kRow * 4,
                       kSplitBytes = kColumns == 1 ? kWarps * 8 * 512 : 0;
  static constexpr int kSharedBytes = kJoinBytes > kSplitBytes ? kJoinBytes : kSplitBytes;
};

/// The first eight bits of v, as the upper half of an f32; *rest becomes what they leave, exactly. Infinity
/// leaves nothing.
__device__ __forceinline__ uint32_t first_term(float v, float* rest) {
  const uint32_t bits = __float_as_uint(v) & 0xffff0000u;
  *rest = isinf(v) ? 0 : v - __uint_as_float(bits);
  return bits;
}
/// One term of four values, which become what it leaves: two pairs of bf16.
__device__ __forceinline__ uint2 take_term(float4& v) {
  const uint32_t a = first_term(v.x, &v.x), b = first_term(v.y, &v.y), c = first_term(v.z, &v.z),
                 d = first_term(v.w, &v.w);
  return {a >> 16 | b, c >> 16 | d};
}

/// Four neighbouring elements of a row of x from column k on; zeros from `in` on.
__device__ __forceinline__ float4 load_x(const LinearTermsCall& call, const unsigned char* x, int64_t token,
                                         int64_t k) {
  if (k >= call.in) return {};
  const int64_t at = token * call.x_stride + k;
  if (call.terms == 3) {
    const float* const p = reinterpret_cast<const float*>(x) + at;
    if (call.vectors) return *reinterpret_cast<const float4*>(p);
    return {p[0], p[1], p[2], p[3]};
  }
  const bf16* const p = reinterpret_cast<const bf16*>(x) + at;
  if (call.vectors) {
    const uint2 v = *reinterpret_cast<const uint2*>(p);
    const float2 a = device::unpack2<bf16>(v.x), b = device::unpack2<bf16>(v.y);
    return {a.x, a.y, b.x, b.y};
  }
  return {device::to_float(p[0]), device::to_float(p[1]), device::to_float(p[2]), device::to_float(p[3])};
}

/// The column of x where the four k of lane place t in step `step` of a panel begin.
__device__ __forceinline__ int64_t column_of(bool neighbours, int64_t panel, int step, int t) {
  return panel * 32 + (neighbours ? 8 * t + 4 * step : 16 * step + 4 * t);
}

}  // namespace ridge::cuda
