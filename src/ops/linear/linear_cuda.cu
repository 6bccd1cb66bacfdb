// Plain 16-bit weights at speed. Limit: read bandwidth of w up to 64 tokens; above, linear_cublaslt_cuda.cu
// comes before these. Packed weights, and x that is wider than w with several tokens: linear_terms_cuda.cu;
// the rest: linear_unaligned_cuda.cu.

#include "kernels/linear_choice.cuh"
#include "ops/linear/linear_dense.cuh"

namespace ridge::cuda {

namespace {

bool is_empty(const LinearArgs& a) {
  return a.x.dim(0) == 0 || a.w.dim(0) == 0;
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

Status run_one(Stream& stream, const LinearArgs& a) {
  if (is_empty(a)) return {};
  return with_dtype<f16, bf16>(a.w, [&]<class W>(W) {
    return with_dtype<float, bf16>(a.x, [&]<class X>(X) {
      return launch_one_token(as_cuda(stream).native(), dense_call<W, X>(a),
                              as_cuda(stream).multiprocessors());
    });
  });
}
Status run_few(Stream& stream, const LinearArgs& a) {
  if (is_empty(a)) return {};
  return launch_few_tokens(as_cuda(stream).native(), dense_call<bf16, bf16>(a),
                           as_cuda(stream).multiprocessors());
}
Status run_many(Stream& stream, const LinearArgs& a) {
  if (is_empty(a)) return {};
  return launch_many_tokens(as_cuda(stream).native(), dense_call<bf16, bf16>(a),
                            as_cuda(stream).multiprocessors());
}
}  // namespace

void linear_cuda(Kernels<LinearArgs>& kernels) {
  kernels.add("gemv_stream", declines_one, run_one);
  kernels.add("gemm_stream", declines_few, run_few, Engine::kBf16);
  kernels.add("gemm_wgmma", declines_matrix, run_many, Engine::kBf16);
}

}  // namespace ridge::cuda
