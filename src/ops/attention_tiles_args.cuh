#pragma once
// attention_tiles as a kernel of attention_prefill and attention_decode: what it declines, and its call.

#include "kernels/attention_tiles.cuh"
#include "ops/cuda_operands.cuh"
#include "ops/paged_attention.h"
#include "runtime/cuda/cuda_device.h"

namespace ridge::cuda {

inline Decline declines_tiles(const PagedAttention& a) {
  constexpr int64_t kMostGrid = 65535;
  if (a.q.dim(2) > kMaxHeadDim) return decline("head_dim is ", a.q.dim(2), ", needs at most ", kMaxHeadDim);
  if (a.k_pages.dim(1) * ceil_div(a.q.dim(1) / a.k_pages.dim(1), int64_t{16}) > kMostGrid)
    return decline("q has ", a.q.dim(1), " heads for ", a.k_pages.dim(1),
                   " of the cache: more than a grid holds");
  if (a.kv_length.dim(0) > kMostGrid)
    return decline("sequences is ", a.kv_length.dim(0), ", needs at most ", kMostGrid);
  return dense_rows({{"q", &a.q},
                     {"o", &a.o},
                     {"k_pages", &a.k_pages},
                     {"v_pages", &a.v_pages},
                     {"page_table", &a.page_table}});
}

inline PagedSide paged_side(const Tensor& pages, const Tensor& scale) {
  PagedSide side;
  side.pages = pages.data, side.dtype = pages.dtype;
  side.vectors = rows_aligned(pages) && pages.dim(3) % 8 == 0;
  side.page_stride = pages.stride(0), side.head_stride = pages.stride(1), side.slot_stride = pages.stride(2);
  if (!scale) return side;
  side.scale = scale.as<float>();
  side.scale_page_stride = scale.stride(0), side.scale_head_stride = scale.stride(1),
  side.scale_slot_stride = scale.stride(2);
  return side;
}

/// Dot products go over 4 columns at a time, columns of the output in 64.
template <class Traits, class A>
int64_t executed_tiles(const A& a) {
  return executed_attention(a, Traits::kRows, Traits::kKeys, 4, 64);
}

inline AttentionTilesCall tiles_call(const PagedAttention& a) {
  AttentionTilesCall c;
  c.o = static_cast<float*>(a.o.data), c.narrow = a.o.dtype == kBF16, c.q = a.q.as<const float>();
  c.o_stride = a.o.stride(0), c.o_head_stride = a.o.stride(1), c.q_stride = a.q.stride(0),
  c.q_head_stride = a.q.stride(1);
  if (a.lse) c.lse = a.lse.as<float>(), c.lse_stride = a.lse.stride(0), c.lse_head_stride = a.lse.stride(1);
  c.k = paged_side(a.k_pages, a.k_scale), c.v = paged_side(a.v_pages, a.v_scale);
  c.page_table = a.page_table.as<const int32_t>(), c.table_stride = a.page_table.stride(0);
  c.lengths = a.kv_length.as<const int64_t>(), c.length_stride = a.kv_length.stride(0);
  c.rows = a.q.dim(0), c.heads = a.q.dim(1), c.kv_heads = a.k_pages.dim(1), c.ratio = c.heads / c.kv_heads;
  c.head_dim = a.q.dim(2), c.sequences = a.kv_length.dim(0);
  c.pages = a.k_pages.dim(0), c.page_size = a.k_pages.dim(2), c.max_pages = a.page_table.dim(1);
  c.window = a.window, c.scale = a.scale, c.softcap = a.softcap;
  return c;
}

}  // namespace ridge::cuda
