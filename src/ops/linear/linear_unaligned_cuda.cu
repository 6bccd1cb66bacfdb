// Plain weights of any shape, stride and alignment: what the other kernels decline. Limit: latency.

#include "kernels/linear_elements.cuh"
#include "ops/linear/linear_dense.cuh"

namespace ridge::cuda {

namespace {

Status run(Stream& stream, const LinearArgs& a) {
  if (a.y.elements() == 0) return {};
  return with_dtype<f16, bf16, float>(a.w, [&]<class W>(W) {
    return with_dtype<float, bf16>(a.x, [&]<class X>(X) {
      return launch_linear_elements(as_cuda(stream).native(), dense_call<W, X>(a),
                                    as_cuda(stream).multiprocessors());
    });
  });
}

}  // namespace

void linear_unaligned_cuda(Kernels<LinearArgs>& kernels) {
  kernels.add("linear_elements", declines_plain, run);
}

}  // namespace ridge::cuda
