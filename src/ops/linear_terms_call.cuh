#pragma once
// The call of linear_terms from operands: what linear and its fused forms share.

#include "kernels/linear_terms_call.cuh"
#include "kernels/rows16/rows16.h"
#include "ops/cuda_operands.cuh"
#include "runtime/cuda/cuda_device.h"

namespace ridge::cuda {

inline int terms_of(const Tensor& x) {
  return x.dtype == kF32 ? 3 : 1;
}
inline int64_t terms_workspace_bytes(const Tensor& x) {
  return split_terms_bytes(x.dim(0), x.dim(1), terms_of(x));
}

/// Layout and shape of weights that linear_terms takes; their alignment is the caller's to ask for.
inline Decline declines_terms_weights(const Tensor& w) {
  if (is_block_quantized(w.dtype)) {
    if (w.layout == rows16::layout(w.dtype)) return {};
    return decline("weights are not in rows16: pack them with linear's pack_rows");
  }
  if (w.layout != nullptr) return decline("weights are packed for the CPU: keep the file's layout");
  if (w.dtype != kBF16 && w.dtype != kF16)
    return decline("weights are ", dtype_name(w.dtype), ", needs 16 bits or rows16");
  if (w.dim(1) % 8 != 0) return decline("in is ", w.dim(1), ", needs a multiple of 8");
  return {};
}

/// body.operator()<dtype>() of w's type, one that declines_terms_weights() takes.
template <class Body>
Status with_terms_dtype(const Tensor& w, const Body& body) {
  switch (w.dtype) {
    case kF16:
      return body.template operator()<kF16>();
    case kBF16:
      return body.template operator()<kBF16>();
    case kQ8_0:
      return body.template operator()<kQ8_0>();
    case kQ4_0:
      return body.template operator()<kQ4_0>();
    case kQ4_1:
      return body.template operator()<kQ4_1>();
    case kQ5_0:
      return body.template operator()<kQ5_0>();
    case kQ4_K:
      return body.template operator()<kQ4_K>();
    case kQ6_K:
      return body.template operator()<kQ6_K>();
    default:
      return internal_error("linear_terms has no code for dtype ", dtype_name(w.dtype));
  }
}

inline LinearTermsPart terms_part(const Tensor& y, const Tensor& w, const Tensor& bias) {
  LinearTermsPart part;
  part.w = w.as<const uint8_t>(), part.out = w.dim(0), part.w_stride = w.stride(0);
  if (y) part.y = y.as<float>(), part.y_stride = y.stride(0);
  if (bias) part.bias = bias.as<float>();
  return part;
}

/// The more rows, the fewer warps need to share them: launch_linear_terms knows 16, 8 and 4. Of the shape of
/// w alone: no bit depends on the batch.
constexpr int terms_parts(int64_t pairs) {
  return pairs <= 264 ? 16 : pairs <= 528 ? 8 : 4;
}

/// What a call whose x is normalized on the way asks for besides; `pairs` of tiles are in all matrices.
inline Decline declines_normalized(const Tensor& x, const Tensor& norm, int64_t pairs) {
  constexpr int64_t kMostColumns = 1024;  // kSmallNorm of linear_terms_small.cuh
  const int64_t in = x.dim(1), units = ceil_div(in, int64_t{64});
  if (x.dim(0) > 1) return decline("tokens is ", x.dim(0), ", needs 1");
  if (x.dtype != kF32) return decline("x is ", dtype_name(x.dtype), ", this kernel takes f32");
  if (in > kMostColumns || in % 8 != 0)
    return decline("in is ", in, ", needs a multiple of 8 up to ", kMostColumns);
  if (ceil_div(units, int64_t{terms_parts(pairs)}) > 2)
    return decline("in is ", in, " with ", pairs * 32, " rows: too many columns a warp");
  return aligned_rows({{"x", &x}, {"norm", &norm}});
}

/// What does not depend on the matrices one by one; `pairs` of tiles are in all of them.
template <DType dtype>
LinearTermsCall terms_call_of(const Tensor& x, const Tensor& w, int64_t pairs, void* workspace) {
  LinearTermsCall call;
  call.x = x.as<const unsigned char>(), call.split_x = static_cast<uint4*>(workspace);
  call.tokens = x.dim(0), call.in = x.dim(1), call.x_stride = x.stride(0);
  if constexpr (is_block_quantized(dtype)) call.tile_bytes = rows16::tile_bytes(dtype, w.dim(1));
  call.panels = static_cast<int>(ceil_div(call.in, int64_t{32})), call.units = (call.panels + 1) / 2;
  call.parts = terms_parts(pairs);
  call.part_units = (call.units + call.parts - 1) / call.parts;
  call.terms = terms_of(x), call.vectors = rows_aligned(x);
  return call;
}

}  // namespace ridge::cuda
