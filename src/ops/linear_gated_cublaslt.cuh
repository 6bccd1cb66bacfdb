#pragma once
// cuBLASLt as a kernel of linear_swiglu and linear_geglu: both products in f32 in the workspace, then a
// launch that joins them, so that nothing is rounded which the other kernels keep in registers. Matrices
// whose products would take too much memory go by slices of their rows.

#include <array>
#include <type_traits>

#include "kernels/gate.cuh"
#include "ops/cublaslt_call.cuh"
#include "ops/linear_gated.h"
#include "tensor/with_dtype.h"

namespace ridge::cuda {

/// Both products of up to 2048 tokens of Llama-3-8B take 224 MiB.
inline constexpr int64_t kMostGatedBytes = int64_t{256} << 20;

struct GatedSlices {
  int64_t rows = 0;    // of the matrices, in each slice but the last
  int64_t stride = 0;  // elements between a product's rows: its lines begin at multiples of 16 bytes
  int64_t bytes = 0;   // of one product of a slice, rounded up to kWorkspaceAlignment
};
inline GatedSlices gated_slices(int64_t tokens, int64_t inner) {
  constexpr int64_t kGrain = 256;  // what the library's tiles are divisors of
  const int64_t whole = 2 * tokens * inner * 4,
                slices = std::max<int64_t>(1, ceil_div(whole, kMostGatedBytes));
  GatedSlices s;
  s.rows = slices == 1 ? inner : ceil_div(ceil_div(inner, slices), kGrain) * kGrain;
  s.stride = ceil_div(s.rows, int64_t{4}) * 4;
  s.bytes = ceil_div(tokens * s.stride * 4, kWorkspaceAlignment) * kWorkspaceAlignment;
  return s;
}

/// The product of rows of w from `first` on, a slice of them or what is left, in f32 at `memory`. For what
/// asks only for shapes that may be null: products are aligned to kWorkspaceAlignment.
inline CublasLtCall gated_part(const LinearGated& a, const Tensor& w, int64_t first,
                               const GatedSlices& slices, void* memory) {
  const int64_t rows = std::min(slices.rows, w.dim(0) - first);
  CublasLtCall call;
  call.x = a.x, call.w = w.slice(first, rows);
  call.y = Tensor(memory, kF32, {a.x.dim(0), rows});
  call.y.strides[0] = slices.stride;
  return call;
}
/// First rows of the slices of different shapes: the first, and the last.
inline std::array<int64_t, 2> gated_shapes(const LinearGated& a, const GatedSlices& slices) {
  const int64_t inner = a.w_gate.dim(0);
  return {0, inner == 0 ? 0 : (ceil_div(inner, slices.rows) - 1) * slices.rows};
}

inline Decline declines_gated_cublaslt(const LinearGated& a) {
  const GatedSlices slices = gated_slices(a.x.dim(0), a.w_gate.dim(0));
  for (const auto& [name, w] : {std::pair{"w_gate", &a.w_gate}, std::pair{"w_up", &a.w_up}})
    for (const int64_t first : gated_shapes(a, slices))
      if (Decline no = declines_cublaslt(gated_part(a, *w, first, slices, nullptr), "x", name)) return no;
  return dense_rows({{"y", &a.y}});
}

inline int64_t gated_cublaslt_workspace(const LinearGated& a) {
  const GatedSlices slices = gated_slices(a.x.dim(0), a.w_gate.dim(0));
  int64_t own = 0;
  for (const Tensor* w : {&a.w_gate, &a.w_up})
    for (const int64_t first : gated_shapes(a, slices))
      own = std::max(own, cublaslt_workspace(gated_part(a, *w, first, slices, nullptr)));
  return kWorkspaceAlignment + 2 * slices.bytes + own;
}

/// y's columns from `first` on, of both products.
template <Gate kGate, class Y>
Status launch_join(cudaStream_t stream, const LinearGated& a, int64_t first, const CublasLtCall& gate,
                   const CublasLtCall& up) {
  GluCall<float, Y> call;
  call.y = a.y.as<Y>() + first, call.gate = gate.y.as<const float>(), call.up = up.y.as<const float>();
  call.rows = gate.y.dim(0), call.inner = gate.y.dim(1);
  call.y_stride = a.y.stride(0), call.gate_stride = gate.y.stride(0), call.up_stride = up.y.stride(0);
  // A slice begins at a multiple of 256 columns: as aligned as y.
  return launch_glu<std::conditional_t<kGate == Gate::kSilu, Silu, GeluTanh>>(stream, call,
                                                                              rows_aligned(a.y));
}

template <Gate kGate, class A>
Status run_gated_cublaslt(Stream& stream, const A& a) {
  if (a.y.elements() == 0) return {};
  const GatedSlices slices = gated_slices(a.x.dim(0), a.w_gate.dim(0));
  std::byte* const products = aligned_workspace(stream.workspace());
  std::byte* const own = products + 2 * slices.bytes;
  for (int64_t first = 0; first < a.w_gate.dim(0); first += slices.rows) {
    const CublasLtCall gate = gated_part(a, a.w_gate, first, slices, products),
                       up = gated_part(a, a.w_up, first, slices, products + slices.bytes);
    RIDGE_TRY(run_cublaslt(stream, gate, own));
    RIDGE_TRY(run_cublaslt(stream, up, own));
    RIDGE_TRY((with_dtype<float, bf16>(a.y, [&]<class Y>(Y) {
      return launch_join<kGate, Y>(as_cuda(stream).native(), a, first, gate, up);
    })));
  }
  return {};
}

template <Gate kGate, class A>
void add_linear_gated_cublaslt(Kernels<A>& kernels) {
  Kernel<A> kernel;
  kernel.name = "cublaslt", kernel.run = run_gated_cublaslt<kGate, A>, kernel.engine = Engine::kBf16;
  kernel.declines = [](const A& a) { return declines_gated_cublaslt(a); };
  kernel.workspace = [](const A& a) { return gated_cublaslt_workspace(a); };
  kernels.add(std::move(kernel));
}

}  // namespace ridge::cuda
