#pragma once
// Boxes of a matrix for the copy engine: a map names a matrix in memory and the box that one copy brings, 64
// columns of 16 bits (128 bytes) by some rows, laid out as matrix_descriptor() (mma.cuh) wants an operand.

#include <cuda.h>
#include <cuda_runtime.h>

#include "base/dtype.h"
#include "device/launch.cuh"

namespace ridge::device {

/// Of a matrix that is complete before the step: weights.
struct BoxMap {
  CUtensorMap map;
  __device__ const void* address() const { return &map; }
};
/// Of a matrix that the launch before writes: a copy asks for the wait.
struct FreshBoxMap {
  CUtensorMap map;
  __device__ const void* address() const { return &map; }  // to prefetch the map itself
  __device__ const void* after(Waited) const { return &map; }
};

/// What the L2 cache fetches for a box: its own sectors, or the 256 bytes around each.
enum class BoxFetch { kAsIs, k256Bytes };

/// The map of a tensor of 16-bit elements, innermost dimension first, whose box has 64 of them and `box[i]`
/// of dimension i; `strides[i]` elements lie between neighbours along dimension i + 1. The data and its
/// strides are multiples of 16 bytes. Errors: kInternal, naming the driver's call.
template <class T, int kDims>
Status make_map(CUtensorMap* map, const T* data, const int64_t (&sizes)[kDims],
                const int64_t (&strides)[kDims - 1], const int (&box)[kDims], BoxFetch fetch) {
  using Encode = decltype(&cuTensorMapEncodeTiled);
  static const Encode encode = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result;
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result);
    return error == cudaSuccess && result == cudaDriverEntryPointSuccess ? reinterpret_cast<Encode>(found)
                                                                         : nullptr;
  }();
  if (encode == nullptr) return internal_error("the driver has no cuTensorMapEncodeTiled: update it");
  cuuint64_t size[kDims], stride[kDims - 1];
  cuuint32_t boxes[kDims], steps[kDims];
  for (int i = 0; i < kDims; ++i)
    size[i] = static_cast<cuuint64_t>(sizes[i]), boxes[i] = static_cast<cuuint32_t>(box[i]), steps[i] = 1;
  for (int i = 0; i + 1 < kDims; ++i) stride[i] = static_cast<cuuint64_t>(strides[i]) * 2;
  const CUresult error = encode(
      map, kDTypeOf<T> == kBF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16, kDims,
      const_cast<std::remove_const_t<T>*>(data), size, stride, boxes, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_128B,
      fetch == BoxFetch::k256Bytes ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B : CU_TENSOR_MAP_L2_PROMOTION_NONE,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (error != CUDA_SUCCESS)
    return internal_error("cuTensorMapEncodeTiled of ", kDims, " dimensions, ", sizes[1], " of ", sizes[0],
                          " elements, ", strides[0], " apart: error ", static_cast<int>(error));
  return {};
}

/// The map of data[rows, columns], `stride` elements between rows; a box has 64 columns and `box_rows` (up to
/// 256) rows.
template <class T>
Status make_box_map(CUtensorMap* map, const T* data, int64_t rows, int64_t columns, int64_t stride,
                    int box_rows, BoxFetch fetch = BoxFetch::k256Bytes) {
  return make_map<T, 2>(map, data, {columns, rows}, {stride}, {64, box_rows}, fetch);
}

}  // namespace ridge::device
