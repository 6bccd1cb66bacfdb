#pragma once
// attention_flash as a kernel of the operator, for pages of type T.

#include "kernels/attention_flash.cuh"
#include "ops/attention_prefill/attention_prefill.h"
#include "ops/attention_tiles_args.cuh"

namespace ridge::cuda {

/// Keys of a tile depend on head_dim alone, so that no bit depends on how many rows a block has.
template <int kHeadDim, int kGroups>
using FlashShape = std::conditional_t<kHeadDim <= 128, FlashTraits<kHeadDim, 128, kGroups, 4>,
                                      FlashTraits<kHeadDim, 64, kGroups, kHeadDim <= 192 ? 4 : 3>>;

/// Blocks of 128 rows, which take a third longer than blocks of 64, where those would not fit an H200's
/// multiprocessors at once.
inline bool flash_has_many_rows(const AttentionPrefillArgs& a) {
  constexpr int64_t kMultiprocessors = 132;
  return ceil_div(a.q.dim(0) * (a.q.dim(1) / a.k_pages.dim(1)), int64_t{64}) * a.k_pages.dim(1) >
         kMultiprocessors;
}
template <class Body>
auto with_flash_shape(const AttentionPrefillArgs& a, const Body& body) {
  const auto of_rows = [&]<int kHeadDim>() {
    return flash_has_many_rows(a) ? body(FlashShape<kHeadDim, 2>{}) : body(FlashShape<kHeadDim, 1>{});
  };
  if (a.q.dim(2) <= 64) return of_rows.template operator()<64>();
  if (a.q.dim(2) <= 128) return of_rows.template operator()<128>();
  if (a.q.dim(2) <= 192) return of_rows.template operator()<192>();
  return of_rows.template operator()<256>();
}

template <class T>
Decline declines_flash(const AttentionPrefillArgs& a) {
  constexpr int64_t kMostStride = int64_t{1} << 39, kMostPages = INT32_MAX, kMostBlocks = INT32_MAX;
  const int64_t d = a.q.dim(2);
  if (a.k_pages.dtype != kDTypeOf<T> || a.v_pages.dtype != kDTypeOf<T>)
    return decline("k_pages is ", dtype_name(a.k_pages.dtype), " and v_pages ", dtype_name(a.v_pages.dtype),
                   ", this kernel takes ", dtype_name(kDTypeOf<T>), " both");
  if (d < 32 || d > 256 || d % 8 != 0)
    return decline("head_dim is ", d, ", this kernel takes multiples of 8 from 32 to 256");
  if (flash_box_keys(a.k_pages.dim(2)) == 0)
    return decline("page_size is ", a.k_pages.dim(2), ", this kernel takes multiples of 8");
  if (a.k_pages.elements() == 0) return decline("k_pages is empty");
  // A tensor map names every stride, those of one page or head too.
  for (const Tensor* pages : {&a.k_pages, &a.v_pages})
    for (int i = 0; i < 3; ++i)
      if (pages->stride(i) <= 0 || pages->stride(i) >= kMostStride || pages->stride(i) % 8 != 0)
        return decline(pages == &a.k_pages ? "k_pages" : "v_pages", " has stride ", pages->stride(i),
                       ", this kernel takes multiples of 8 below ", kMostStride);
  if (a.page_table.dim(1) > INT32_MAX / a.k_pages.dim(2))
    return decline("page_table has room for ", a.page_table.dim(1), " pages of ", a.k_pages.dim(2),
                   " keys, this kernel takes up to ", INT32_MAX, " keys");
  if (a.k_pages.dim(0) > kMostPages)
    return decline("pages is ", a.k_pages.dim(0), ", needs at most ", kMostPages);
  const int64_t rows = a.q.dim(0) * (a.q.dim(1) / std::max(a.k_pages.dim(1), int64_t{1}));
  if ((rows / 64 + 1 + a.kv_length.dim(0)) * a.k_pages.dim(1) > kMostBlocks)
    return decline("q has ", a.q.dim(0), " tokens of ", a.q.dim(1), " heads: more than a grid holds");
  if (a.page_table && !a.page_table.rows_are_dense())
    return decline("page_table has strides along its rows: copy it");
  return aligned_rows({{"q", &a.q}, {"o", &a.o}, {"k_pages", &a.k_pages}, {"v_pages", &a.v_pages}});
}

template <class T>
Status run_flash(Stream& stream, const AttentionPrefillArgs& a) {
  if (a.q.elements() == 0 || a.kv_length.dim(0) == 0) return {};
  AttentionTilesCall call = tiles_call(a);
  call.query_start = a.query_start.as<const int64_t>(), call.start_stride = a.query_start.stride(0);
  return with_flash_shape(a, [&]<class Traits>(Traits) {
    return launch_attention_flash<Traits, T>(as_cuda(stream).native(), call);
  });
}

/// Whole tiles, of whole panels of columns, two terms of q and of the weights each.
inline int64_t executed_flash(const AttentionPrefillArgs& a) {
  if (a.chunks == nullptr) return 4 * a.pairs.get() * a.q.dim(1) * a.q.dim(2);
  return with_flash_shape(a, [&]<class Traits>(Traits) {
    return 2 * 4 * tiled_scores(a, Traits::kRows, Traits::kKeys) * Traits::kHeadDim;
  });
}

template <class T>
void add_flash(Kernels<AttentionPrefillArgs>& kernels, const char* name) {
  Kernel<AttentionPrefillArgs> kernel;
  kernel.name = name, kernel.declines = declines_flash<T>, kernel.run = run_flash<T>;
  kernel.engine = Engine::kBf16, kernel.executed_flops = executed_flash;
  kernels.add(std::move(kernel));
}

}  // namespace ridge::cuda
