// Dense weights. Limit: read bandwidth of w up to 64 tokens. Block-quantized types: linear_packed_*_cuda.cu.

#include "kernels/linear_choice.cuh"
#include "kernels/linear_elements.cuh"
#include "ops/cuda_operands.cuh"
#include "ops/linear/linear.h"
#include "runtime/cuda/cuda_device.h"
#include "tensor/with_dtype.h"

namespace ridge::cuda {

namespace {

template <class W, class X>
LinearCall<W, X, float> call_of(const LinearArgs& a) {
  LinearCall<W, X, float> call;
  call.y = a.y.as<float>(), call.x = a.x.as<const X>(), call.w = a.w.as<W>();
  if (a.bias) call.bias = a.bias.as<float>();
  if (a.residual) call.residual = a.residual.as<const float>(), call.residual_stride = a.residual.stride(0);
  call.tokens = a.x.dim(0), call.out = a.w.dim(0), call.in = a.w.dim(1);
  call.y_stride = a.y.stride(0), call.x_stride = a.x.stride(0), call.w_stride = a.w.stride(0);
  return call;
}

bool is_empty(const LinearArgs& a) {
  return a.x.dim(0) == 0 || a.w.dim(0) == 0;
}

Decline declines_plain(const LinearArgs& a) {
  if (a.w.layout) return decline("w is packed for the CPU: keep the file's layout");
  if (is_block_quantized(a.w.dtype) || a.x.dtype == kI8)
    return decline("w is ", dtype_name(a.w.dtype), " with x ", dtype_name(a.x.dtype),
                   ": the CUDA kernels take f32, f16 and bf16");
  return dense_rows({{"y", &a.y}, {"x", &a.x}, {"w", &a.w}, {"bias", &a.bias}, {"residual", &a.residual}});
}
/// What the kernels that move 16 bytes ask for.
Decline declines_vectors(const LinearArgs& a) {
  if (Decline no = declines_plain(a)) return no;
  if (a.w.dim(1) % 8 != 0) return decline("in is ", a.w.dim(1), ", needs a multiple of 8");
  if (a.w.dtype == kF32) return decline("w is f32, needs f16 or bf16");
  return aligned_rows({{"x", &a.x}, {"w", &a.w}});
}
Decline declines_one(const LinearArgs& a) {
  if (a.x.dim(0) > 1) return decline("tokens is ", a.x.dim(0), ", needs 1");
  return declines_vectors(a);
}
Decline declines_matrix(const LinearArgs& a) {
  if (a.x.dtype != kBF16 || a.w.dtype != kBF16)
    return decline("x is ", dtype_name(a.x.dtype), " and w is ", dtype_name(a.w.dtype),
                   ": the matrix instruction needs bf16 both");
  return declines_vectors(a);
}
Decline declines_few(const LinearArgs& a) {
  if (a.x.dim(0) > 8) return decline("tokens is ", a.x.dim(0), ", needs at most 8");
  if (a.w.dim(1) > kFewTokensWidth) return decline("in is ", a.w.dim(1), ", needs at most ", kFewTokensWidth);
  return declines_matrix(a);
}

template <class Body>
Status with_types(const LinearArgs& a, const Body& body) {
  return with_dtype<f16, bf16, float>(a.w, [&]<class W>(W) {
    return with_dtype<float, bf16>(a.x, [&]<class X>(X) { return body(call_of<W, X>(a)); });
  });
}

Status run_one(Stream& stream, const LinearArgs& a) {
  if (is_empty(a)) return {};
  return with_dtype<f16, bf16>(a.w, [&]<class W>(W) {
    return with_dtype<float, bf16>(a.x, [&]<class X>(X) {
      return launch_one_token(as_cuda(stream).native(), call_of<W, X>(a), as_cuda(stream).multiprocessors());
    });
  });
}
Status run_few(Stream& stream, const LinearArgs& a) {
  if (is_empty(a)) return {};
  return launch_few_tokens(as_cuda(stream).native(), call_of<bf16, bf16>(a),
                           as_cuda(stream).multiprocessors());
}
Status run_many(Stream& stream, const LinearArgs& a) {
  if (is_empty(a)) return {};
  return launch_many_tokens(as_cuda(stream).native(), call_of<bf16, bf16>(a),
                            as_cuda(stream).multiprocessors());
}
Status run_elements(Stream& stream, const LinearArgs& a) {
  if (is_empty(a)) return {};
  return with_types(a, [&](const auto& call) {
    return launch_linear_elements(as_cuda(stream).native(), call, as_cuda(stream).multiprocessors());
  });
}

}  // namespace

void linear_cuda(Kernels<LinearArgs>& kernels) {
  kernels.add("gemv_stream", declines_one, run_one);
  kernels.add("gemm_stream", declines_few, run_few, Engine::kBf16);
  kernels.add("gemm_wgmma", declines_matrix, run_many, Engine::kBf16);
  kernels.add("linear_elements", declines_plain, run_elements);
}

}  // namespace ridge::cuda
