#pragma once
// attention_decode_split as a kernel of the operator, for pages of type T: arguments, workspace, choice of
// shape.

#include "kernels/attention_decode.cuh"
#include "ops/attention_decode/attention_decode.h"
#include "ops/cuda_operands.cuh"
#include "ops/paged_attention.h"
#include "runtime/cuda/cuda_device.h"

namespace ridge::cuda {

// Shapes by head_dim, batch and layout of pages, never by the room for keys, on which no bit may depend:
// warps, stages and blocks an SM fill its shared memory; measured for 128 (docs/kernels/attention_decode.md).
// kBoxes: the copy engine brings 16 keys of a page at once.
template <int kHeadDim, bool kBoxes>
using DecodeShape =
    std::conditional_t<kHeadDim <= 128,
                       DecodeTraits<kHeadDim, 8, kBoxes && kHeadDim == 128 ? 6 : 5, 2, 2, 1, kBoxes>,
                       std::conditional_t<kHeadDim <= 192, DecodeTraits<kHeadDim, 8, 4, 2, 2, 1, kBoxes>,
                                          DecodeTraits<kHeadDim, 8, 4, 3, 1, 1, kBoxes>>>;
// One or two sequences: more warps a block, so that fewer sums meet; of small heads all that a block has of a
// short sequence is copied before the wait, and three tiles are done sooner than shares are joined.
template <int kHeadDim, bool kBoxes>
using DecodeFewShape = std::conditional_t<kHeadDim <= 64, DecodeTraits<kHeadDim, 8, 7, 4, 1, 3, kBoxes>,
                                          DecodeTraits<kHeadDim, 8, 7, 2, 1, 1, kBoxes>>;
// Sequences with shares of their own: smaller tiles fill those more evenly.
template <bool kBoxes>
using DecodeAlignedShape = DecodeTraits<128, 8, 4, 3, 2, 1, kBoxes>;

/// Whether 16 keys of a head are a box of the pool, one that a tensor map can name.
inline bool has_key_boxes(const AttentionDecodeArgs& a) {
  constexpr int64_t kMostStride = int64_t{1} << 39, kMostPages = int64_t{1} << 31;
  if (a.q.dim(2) % 64 != 0 || a.k_pages.dim(2) % 16 != 0) return false;
  for (int i = 0; i < 3; ++i)
    if (a.k_pages.stride(i) <= 0 || a.k_pages.stride(i) >= kMostStride || a.k_pages.stride(i) % 8 != 0)
      return false;
  return a.k_pages.elements() > 0 && a.k_pages.dim(0) <= kMostPages;
}
inline bool has_few_units(const AttentionDecodeArgs& a) {
  return a.kv_length.dim(0) * a.k_pages.dim(1) <= 16;
}
inline int64_t decode_groups(const AttentionDecodeArgs& a) {
  return a.k_pages.dim(1) * ceil_div(a.q.dim(1) / a.k_pages.dim(1), int64_t{8});
}

template <class T>
Decline declines_decode(const AttentionDecodeArgs& a) {
  const int64_t d = a.q.dim(2);
  if (a.k_pages.dtype != kDTypeOf<T> || a.v_pages.dtype != kDTypeOf<T>)
    return decline("k_pages is ", dtype_name(a.k_pages.dtype), " and v_pages ", dtype_name(a.v_pages.dtype),
                   ", this kernel takes ", dtype_name(kDTypeOf<T>), " both");
  if (d != 64 && d != 80 && d != 96 && d != 128 && d != 192 && d != 256)
    return decline("head_dim is ", d, ", this kernel takes 64, 80, 96, 128, 192 and 256");
  for (int i = 0; i < 3; ++i)
    if (a.k_pages.stride(i) != a.v_pages.stride(i))
      return decline("k_pages and v_pages have different strides");
  if (a.q.stride(1) != d || a.o.stride(1) != d)
    return decline("q's or o's heads are ", a.q.stride(1), " apart, need ", d);
  if (a.page_table.rank() == 2 && !a.page_table.rows_are_dense())
    return decline("page_table has strides along its rows");
  if (!a.kv_length.is_dense()) return decline("kv_length has strides: copy it");
  if (a.lse && !a.lse.is_dense()) return decline("lse has strides: make it dense");
  if (a.kv_length.dim(0) * decode_groups(a) > CudaStream::kArrivals)
    return decline("sequences x head groups is ", a.kv_length.dim(0) * decode_groups(a), ", needs at most ",
                   CudaStream::kArrivals);
  return aligned_rows({{"q", &a.q}, {"o", &a.o}, {"k_pages", &a.k_pages}, {"v_pages", &a.v_pages}});
}

template <class T>
AttentionDecodeCall<T, float> decode_call(CudaStream& stream, const AttentionDecodeArgs& a) {
  AttentionDecodeCall<T, float> c;
  c.out = static_cast<float*>(a.o.data), c.narrow = a.o.dtype == kBF16, c.q = a.q.as<const float>(),
  c.k = a.k_pages.as<T>(), c.v = a.v_pages.as<T>();
  if (a.lse) c.lse = a.lse.as<float>();
  c.pages = a.page_table.as<int32_t>(), c.lengths = a.kv_length.as<int64_t>();
  c.partials = static_cast<float*>(stream.workspace()), c.arrivals = stream.arrivals();
  c.batch = a.kv_length.dim(0), c.heads = a.q.dim(1), c.kv_heads = a.k_pages.dim(1),
  c.ratio = c.heads / c.kv_heads;
  c.groups = decode_groups(a);
  c.page_count = a.k_pages.dim(0), c.page_size = a.k_pages.dim(2), c.page_stride = a.k_pages.stride(0),
  c.head_stride = a.k_pages.stride(1);
  c.slot_stride = a.k_pages.stride(2), c.table_stride = a.page_table.stride(0),
  c.max_pages = a.page_table.dim(1);
  c.q_stride = a.q.stride(0), c.out_stride = a.o.stride(0);
  c.window = a.window, c.scale = a.scale, c.softcap = a.softcap;
  c.lengths_settled = a.tables_settled;
  c.unsettled = static_cast<int32_t>(std::min<int64_t>(a.unsettled, INT32_MAX));
  c.whole_pages = c.page_size % 16 == 0;
  if ((c.page_size & (c.page_size - 1)) == 0)
    c.page_shift = __builtin_ctzll(static_cast<unsigned long long>(c.page_size));
  return c;
}

template <bool kBoxes, class Body>
auto with_decode_shape_of(const AttentionDecodeArgs& a, const Body& body) {
  switch (a.q.dim(2)) {
    case 64:
      return has_few_units(a) ? body(DecodeFewShape<64, kBoxes>{}) : body(DecodeShape<64, kBoxes>{});
    case 80:
      return body(DecodeShape<80, false>{});
    case 96:
      return body(DecodeShape<96, false>{});
    case 192:
      return body(DecodeShape<192, kBoxes>{});
    case 256:
      return body(DecodeShape<256, kBoxes>{});
    default:
      if (has_few_units(a)) return body(DecodeFewShape<128, kBoxes>{});
      return a.kv_length.dim(0) <= 32 ? body(DecodeAlignedShape<kBoxes>{}) : body(DecodeShape<128, kBoxes>{});
  }
}
/// body(Traits{}) with the shape that serves the call.
template <class Body>
auto with_decode_shape(const AttentionDecodeArgs& a, const Body& body) {
  return has_key_boxes(a) ? with_decode_shape_of<true>(a, body) : with_decode_shape_of<false>(a, body);
}

/// For any number of multiprocessors up to that of a GPU of compute capability 9.0: the workspace is asked
/// for without a stream.
inline int64_t decode_workspace(const AttentionDecodeArgs& a) {
  constexpr int kMostMultiprocessors = 144;
  return with_decode_shape(a, [&]<class Traits>(Traits) {
    return decode_partial_bytes<Traits>(kMostMultiprocessors, decode_groups(a));
  });
}

/// Units of 8 query heads and stages of 16 keys; the other 8 of the matrix step's 16 rows have the second
/// terms of f32 queries and weights. What causality hides is multiplied by a weight of 0.
inline int64_t executed_decode(const AttentionDecodeArgs& a) {
  if (a.chunks == nullptr) return 4 * a.pairs.get() * a.q.dim(1) * a.q.dim(2);
  return with_decode_shape(a, [&]<class Traits>(Traits) {
    constexpr int64_t kMatrixRows = 16;
    return 4 * tiled_scores(a, Traits::kRows, Traits::kStageKeys) * kMatrixRows / Traits::kRows * a.q.dim(2);
  });
}

template <class T>
Status run_decode(Stream& stream, const AttentionDecodeArgs& a) {
  if (a.kv_length.dim(0) == 0 || a.q.dim(1) == 0) return {};
  CudaStream& cuda = as_cuda(stream);
  return with_decode_shape(a, [&]<class Traits>(Traits) {
    return launch_attention_decode<Traits>(cuda.native(), decode_call<T>(cuda, a), cuda.multiprocessors());
  });
}

template <class T>
void add_decode(Kernels<AttentionDecodeArgs>& kernels, const char* name) {
  Kernel<AttentionDecodeArgs> kernel;
  kernel.name = name, kernel.declines = declines_decode<T>, kernel.run = run_decode<T>,
  kernel.workspace = decode_workspace;
  kernel.engine = Engine::kBf16, kernel.executed_flops = executed_decode;
  kernels.add(std::move(kernel));
}

}  // namespace ridge::cuda
