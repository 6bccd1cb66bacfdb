#pragma once
// Which kernel and shape serves a dense linear: measured on one H200 (docs/kernels/linear.md). `in` is a
// multiple of 8 and rows are aligned to 16 bytes.

#include "kernels/gemm_boxes.cuh"
#include "kernels/gemm_pair.cuh"
#include "kernels/gemm_rows.cuh"
#include "kernels/gemm_stream.cuh"
#include "kernels/gemm_wgmma.cuh"
#include "kernels/gemv.cuh"
#include "kernels/gemv_stream.cuh"

namespace ridge::cuda {

/// The longest `in` of one token with a gate, and the most rows of y that its sums have room for.
inline constexpr int64_t kOneGatedWidth = GemvStreamTraits<16, 2, 2, 6, 1>::kWidth, kOneGatedRows = 132 * 256;

/// Rows of w that are read for a row of y.
constexpr int64_t matrices_of(Gate gate) {
  return gate == Gate::kNone ? 1 : 2;
}

/// Pairs of blocks, where one wave of them has all rows; for two such shapes.
using FewRows = GemmPairTraits<64, 13, 1, 6>;
using MoreRows = GemmPairTraits<96, 10, 1, 6>;
constexpr int64_t rows_of_pair(int64_t out, int sms) {
  return ceil_div(out, int64_t{sms / 2 * 2}) * 2;
}

/// Rows of w from which on whole rows at a time are faster than tiles of 16. Without a gate tiles are faster
/// at 28672; whole rows were measured with logits, of 128256.
constexpr int64_t least_whole_rows(Gate gate) {
  return gate == Gate::kNone ? 32768 : 16384;
}
using WholeRows = GemmRowsTraits<16, 2>;

/// 1 … 8 tokens, x and w of one 16-bit type. `end`: what becomes of the rows.
template <Gate kGate = Gate::kNone, class T, class Y, class End = RowsEnd>
Status launch_few_tokens(cudaStream_t stream, const LinearCall<T, T, Y>& call, int sms, const End& end = {}) {
  if constexpr (!End::kTurns)  // of a shorter `in` half of the warps would have nothing
    if (call.in > WholeRows::kWidth / 2 && call.in <= WholeRows::kWidth &&
        call.out * matrices_of(kGate) >= least_whole_rows(kGate))
      return launch_gemm_rows<WholeRows, kGate>(stream, call, sms);
  if (call.in <= 4096)
    return launch_gemm_stream_to<GemmStreamTraits<16, 8, 1, 9, 1, 1>, kGate>(stream, call, sms, end);
  if constexpr (kGate == Gate::kNone && !End::kTurns && kDTypeOf<T> == kBF16)
    if (rows_of_pair(call.out, sms) <= FewRows::kRows) return launch_gemm_pair<FewRows>(stream, call, sms);
  return launch_gemm_stream_to<GemmStreamTraits<16, 14, 1, 8, 2, 1>, kGate>(stream, call, sms, end);
}
inline constexpr int64_t kFewTokensWidth = GemmStreamTraits<16, 14, 1, 8, 2, 1>::kWidth;

/// Rows of w up to which the matrix instruction, which needs no shuffles, adds up one token sooner than
/// gemv_stream: as far as measured without a gate, and where a launch is short with one.
constexpr int64_t most_tiles_of_one(Gate gate) {
  return gate == Gate::kNone ? 28672 : 5120;
}

/// One token, w of 16 bits, x of 16 or 32.
template <Gate kGate = Gate::kNone, class W, class X, class Y>
Status launch_one_token(cudaStream_t stream, const LinearCall<W, X, Y>& call, int sms) {
  const int64_t rows = call.out * matrices_of(kGate);
  if constexpr (std::is_same_v<W, X>)
    if (call.in <= 4096 && rows <= most_tiles_of_one(kGate))
      return launch_few_tokens<kGate>(stream, call, sms);
  // gemv_stream's sums take shared memory by the row: from so many rows on, blocks that come and go are as
  // fast.
  const bool few_rows = rows <= int64_t{sms} * 512;
  if (few_rows && call.in <= 4096)
    return launch_gemv_stream<GemvStreamTraits<16, 1, 4, 6, 1>, W, X, Y, kGate>(stream, call, sms);
  if (few_rows && call.in <= kOneGatedWidth)
    return launch_gemv_stream<GemvStreamTraits<16, 2, 2, 6, 1>, W, X, Y, kGate>(stream, call, sms);
  if constexpr (kGate != Gate::kNone) {
    return declined("one token of a gated linear: in is ", call.in, " and out ", call.out);
  } else {
    if (few_rows && call.in <= 14336)
      return launch_gemv_stream<GemvStreamTraits<28, 2, 1, 7, 1>>(stream, call, sms);
    return launch_gemv<GemvTraits<8, 1, 4, 4>>(stream, call);
  }
}

/// Rows of w a multiprocessor from which on gemm_boxes is faster than gemm_wgmma.
inline constexpr int64_t kLeastBoxRows = 80;

/// Any number of tokens, 64 a block; w is read again for every 64.
template <Gate kGate = Gate::kNone, class T, class Y>
Status launch_many_tokens(cudaStream_t stream, const LinearCall<T, T, Y>& call, int sms) {
  if constexpr (kDTypeOf<T> == kBF16)
    if (call.in > 0 && call.tokens <= 64) {
      if constexpr (kGate == Gate::kNone) {
        const int64_t rows = rows_of_pair(call.out, sms);
        if (rows <= FewRows::kRows) return launch_gemm_pair<FewRows>(stream, call, sms);
        if (rows <= MoreRows::kRows) return launch_gemm_pair<MoreRows>(stream, call, sms);
      }
      if (ceil_div(call.out, int64_t{sms}) * matrices_of(kGate) > kLeastBoxRows)
        return launch_gemm_boxes<GemmBoxesTraits<224, 6, 4>, T, Y, kGate>(stream, call, sms);
    }
  const int64_t blocks = call.tokens > 64 ? ceil_div(call.tokens, int64_t{64}) : 1;
  const auto blocks_of = [&](int64_t rows, int64_t cluster) {
    return ceil_div(call.out * matrices_of(kGate), rows) * cluster * blocks;
  };
  if (blocks_of(64, 2) <= sms)
    return launch_gemm_wgmma<GemmWgmmaTraits<1, 6, 2, 1, 2>, T, Y, kGate>(stream, call);
  if (blocks_of(256, 4) <= sms)
    return launch_gemm_wgmma<GemmWgmmaTraits<4, 5, 4, 1>, T, Y, kGate>(stream, call);
  return launch_gemm_wgmma<GemmWgmmaTraits<1, 6, 1, 2>, T, Y, kGate>(stream, call);
}

}  // namespace ridge::cuda
