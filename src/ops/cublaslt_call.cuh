#pragma once
// cuBLASLt as a kernel of linear and of what is fused with it, for more tokens than weights are read once for
// (runtime/cuda/cublaslt.h, docs/kernels/linear.md). Its launches are plain ones: they begin when all before
// them has ended, what was released early too. Kernels behind them may begin early only if it lets them, and
// wait for it as for any other launch.

#include <algorithm>
#include <utility>

#include "ops/cuda_operands.cuh"
#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/stamps.h"

namespace ridge::cuda {

/// y = x · wᵀ + bias + residual; bias and residual may be absent.
struct CublasLtCall {
  Tensor y, x, w, bias, residual;
};

/// The largest power of two up to 16 that the address is a multiple of.
inline int32_t alignment_of(const void* at) {
  const auto address = reinterpret_cast<uintptr_t>(at) | 16;
  return static_cast<int32_t>(address & (~address + 1));
}

inline MatmulShape matmul_shape(const CublasLtCall& c) {
  // Where there is one row, how far the next would be says nothing.
  const auto stride = [](const Tensor& t) { return t.dim(0) > 1 ? t.stride(0) : t.dim(1); };
  MatmulShape s;
  s.type = c.w.dtype, s.y_type = c.y.dtype, s.bias = bool(c.bias), s.residual = bool(c.residual);
  s.tokens = c.x.dim(0), s.out = c.w.dim(0), s.in = c.w.dim(1);
  s.x_stride = stride(c.x), s.w_stride = stride(c.w), s.y_stride = stride(c.y);
  s.y_alignment = alignment_of(c.y.data);
  if (c.residual)
    s.residual_stride = stride(c.residual), s.residual_alignment = alignment_of(c.residual.data);
  return s;
}

/// What can be told from the operands alone; `names`: of x and w.
inline Decline declines_cublaslt_operands(const CublasLtCall& c, const char* x_name, const char* w_name) {
  if (const int64_t least = CublasLt::used_from(); c.x.dim(0) < least)
    return decline("tokens is ", c.x.dim(0), ", needs at least ", least);
  if (c.w.layout != nullptr) return decline(w_name, " is packed: keep the file's layout");
  if (c.w.dtype != c.x.dtype || (c.w.dtype != kBF16 && c.w.dtype != kF16))
    return decline(x_name, " is ", dtype_name(c.x.dtype), " and ", w_name, " is ", dtype_name(c.w.dtype),
                   ": cuBLASLt is asked for bf16 both or f16 both");
  if (c.w.dim(1) == 0 || c.w.dim(1) % 8 != 0)
    return decline("in is ", c.w.dim(1), ", needs a multiple of 8 above 0");
  if (Decline no = aligned_rows({{x_name, &c.x}, {w_name, &c.w}, {"bias", &c.bias}})) return no;
  for (const Tensor* t : {&c.y, &c.x, &c.w, &c.residual})
    if (*t && t->dim(0) > 1 && t->stride(0) < t->dim(1))
      return decline("rows of ", t->dim(1), " elements lie ", t->stride(0), " apart: copy them");
  return dense_rows({{"y", &c.y}, {"residual", &c.residual}});
}

/// ... and whether the library is there and has an algorithm, which it keeps for the run.
inline Decline declines_cublaslt(const CublasLtCall& c, const char* x_name = "x", const char* w_name = "w") {
  if (Decline no = declines_cublaslt_operands(c, x_name, w_name)) return no;
  if (const std::string& missing = CublasLt::used().missing(); !missing.empty()) return {missing};
  if (c.y.elements() == 0) return {};
  const auto found = CublasLt::used().find(matmul_shape(c));
  return {found.ok() ? std::string() : found.status().message()};
}

/// The library wants its workspace aligned so; whoever lends one may not know.
inline constexpr int64_t kWorkspaceAlignment = 256;
inline std::byte* aligned_workspace(void* lent) {
  const auto address = reinterpret_cast<uintptr_t>(lent);
  return static_cast<std::byte*>(lent) + (~address + 1) % kWorkspaceAlignment;
}

/// Of a call that declines_cublaslt() takes.
inline int64_t cublaslt_workspace(const CublasLtCall& c) {
  if (c.y.elements() == 0) return 0;
  const auto found = CublasLt::used().find(matmul_shape(c));
  const int64_t bytes = found.ok() ? (*found)->workspace_bytes() : 0;
  return bytes == 0 ? 0 : bytes + kWorkspaceAlignment;
}

/// The library's launches know nothing of stamps: one before them takes what the next launch would.
inline Status take_stamp(cudaStream_t stream) {
  if (g_next_stamp == nullptr) return {};
  const auto notes = std::exchange(g_launch_notes, nullptr);  // it is none of the call's own
  Status stamped = launch_stamp(stream);
  g_launch_notes = notes;
  return stamped;
}

/// `workspace`: cublaslt_workspace() bytes, aligned or not.
inline Status run_cublaslt(Stream& stream, const CublasLtCall& c, void* workspace) {
  if (c.y.elements() == 0) return {};
  RIDGE_ASSIGN(const Matmul* const matmul, CublasLt::used().find(matmul_shape(c)));
  RIDGE_TRY(take_stamp(as_cuda(stream).native()));
  return matmul->run(as_cuda(stream).native(), {c.y.data, c.x.data, c.w.data, c.bias.data, c.residual.data},
                     aligned_workspace(workspace));
}

/// As a kernel of an operator with operands y, x, w, bias and residual.
template <class A>
void add_cublaslt(Kernels<A>& kernels) {
  static constexpr auto call_of = [](const A& a) { return CublasLtCall{a.y, a.x, a.w, a.bias, a.residual}; };
  Kernel<A> kernel;
  kernel.name = "cublaslt", kernel.engine = Engine::kBf16;
  kernel.declines = [](const A& a) { return declines_cublaslt(call_of(a)); };
  kernel.workspace = [](const A& a) { return cublaslt_workspace(call_of(a)); };
  kernel.run = [](Stream& stream, const A& a) {
    return run_cublaslt(stream, call_of(a), stream.workspace());
  };
  kernels.add(std::move(kernel));
}

}  // namespace ridge::cuda
