// Plain 16-bit weights and many tokens, by cuBLASLt: a product a matrix, which one launch for all three could
// only save launches of. Limit: the matrix instruction. Before linear_qkv_cuda.cu, which takes what this
// declines.

#include <array>

#include "ops/cublaslt_call.cuh"
#include "ops/linear_qkv/linear_qkv.h"

namespace ridge::cuda {

namespace {

struct Part {
  const char* w_name;
  CublasLtCall call;
};
std::array<Part, 3> parts_of(const LinearQkvArgs& a) {
  return {{{"w_q", {a.q, a.x, a.w_q, a.bias_q, {}}},
           {"w_k", {a.k, a.x, a.w_k, a.bias_k, {}}},
           {"w_v", {a.v, a.x, a.w_v, a.bias_v, {}}}}};
}

Decline declines(const LinearQkvArgs& a) {
  for (const Part& p : parts_of(a))
    if (Decline no = declines_cublaslt(p.call, "x", p.w_name)) return no;
  return {};
}
int64_t workspace(const LinearQkvArgs& a) {
  int64_t most = 0;
  for (const Part& p : parts_of(a)) most = std::max(most, cublaslt_workspace(p.call));
  return most;
}
Status run(Stream& stream, const LinearQkvArgs& a) {
  for (const Part& p : parts_of(a)) RIDGE_TRY(run_cublaslt(stream, p.call, stream.workspace()));
  return {};
}

}  // namespace

void linear_qkv_cublaslt_cuda(Kernels<LinearQkvArgs>& kernels) {
  Kernel<LinearQkvArgs> kernel;
  kernel.name = "cublaslt", kernel.declines = declines, kernel.run = run, kernel.workspace = workspace;
  kernel.engine = Engine::kBf16;
  kernels.add(std::move(kernel));
}

}  // namespace ridge::cuda
