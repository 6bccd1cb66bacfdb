#pragma once
// The caller's tensors as views of ours.

#include "capi/boundary.h"
#include "tensor/tensor.h"

namespace ridge::capi {

/// A view of the caller's memory. `name` is what errors call it.
/// Errors: device, rank, shape, dtype, strides, alignment; sizes that overflow.
Result<Tensor> tensor_of(const ridge_tensor& t, const char* name);

/// Dense bytes [rows, bytes of a row] as block-quantized [rows, columns].
Result<Tensor> blocks_of(const ridge_tensor& bytes, DType dtype, const char* name);

Result<DType> dtype_of(int32_t dtype);

/// Alignment to the elements, of blocks to the f16 that they hold.
Status check_element_aligned(const void* data, DType dtype, const char* name);
/// Memory that kernels read in whole vectors.
Status check_aligned(const void* data, const char* name);

}  // namespace ridge::capi
