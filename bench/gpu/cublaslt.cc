// The peer of the linear figures: cuBLASLt, loaded at run time so that neither build nor machine needs it.

#include <cublasLt.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "harness.h"

namespace ridge::bench {

namespace {

struct Api {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtGetVersion) get_version;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
  decltype(&cublasLtMatmulDescCreate) desc_create;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set;
  decltype(&cublasLtMatrixLayoutCreate) layout_create;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set;
} api;

template <class F>
bool find(void* library, const char* name, F& f) {
  return (f = reinterpret_cast<F>(dlsym(library, name))) != nullptr;
}

struct Problem {
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  std::vector<cublasLtMatmulHeuristicResult_t> found;
  std::unique_ptr<DeviceBlock> workspace;
};

}  // namespace

CublasLt::CublasLt() {
  const char* const named = std::getenv("RIDGE_CUBLASLT");
  for (const char* path :
       {named ? named : "libcublasLt.so.13", "libcublasLt.so", "/usr/local/cuda/lib64/libcublasLt.so"})
    if (!library_) library_ = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library_) return;
  cublasLtHandle_t handle;
  if (!find(library_, "cublasLtCreate", api.create) ||
      !find(library_, "cublasLtGetVersion", api.get_version) ||
      !find(library_, "cublasLtMatmul", api.matmul) ||
      !find(library_, "cublasLtMatmulAlgoGetHeuristic", api.heuristic) ||
      !find(library_, "cublasLtMatmulDescCreate", api.desc_create) ||
      !find(library_, "cublasLtMatmulDescSetAttribute", api.desc_set) ||
      !find(library_, "cublasLtMatrixLayoutCreate", api.layout_create) ||
      !find(library_, "cublasLtMatmulPreferenceCreate", api.preference_create) ||
      !find(library_, "cublasLtMatmulPreferenceSetAttribute", api.preference_set) ||
      api.create(&handle) != CUBLAS_STATUS_SUCCESS)
    return;
  handle_ = handle;
  version_ = std::to_string(api.get_version());
}

std::vector<Contender> CublasLt::contenders(Session& session, int64_t m, int64_t n, int64_t k,
                                            std::function<void*(int)> w, std::function<void*(int)> x,
                                            std::function<void*(int)> y, int sets) {
  if (!ready()) return {};
  auto p = std::make_shared<Problem>();
  constexpr size_t kWorkspace = 64 << 20;
  p->workspace = std::make_unique<DeviceBlock>(kWorkspace);
  api.desc_create(&p->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  const cublasOperation_t transposed = CUBLAS_OP_T;
  api.desc_set(p->desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed);
  api.layout_create(&p->a, CUDA_R_16BF, static_cast<uint64_t>(k), static_cast<uint64_t>(n), k);
  api.layout_create(&p->b, CUDA_R_16BF, static_cast<uint64_t>(k), static_cast<uint64_t>(m), k);
  api.layout_create(&p->c, CUDA_R_16BF, static_cast<uint64_t>(n), static_cast<uint64_t>(m), n);
  cublasLtMatmulPreference_t preference;
  api.preference_create(&preference);
  api.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspace, sizeof kWorkspace);
  p->found.resize(24);
  int count = 0;
  const auto handle = static_cast<cublasLtHandle_t>(handle_);
  if (api.heuristic(handle, p->desc, p->a, p->b, p->c, p->c, preference, 24, p->found.data(), &count) !=
      CUBLAS_STATUS_SUCCESS)
    return {};
  kept_.push_back(p);
  const auto call = [=](int algorithm) {
    return [=, problem = p.get()](cudaStream_t stream, int set) {
      const float one = 1, zero = 0;
      const auto status =
          api.matmul(handle, problem->desc, &one, w(set), problem->a, x(set), problem->b, &zero, y(set),
                     problem->c, y(set), problem->c, &problem->found[static_cast<size_t>(algorithm)].algo,
                     problem->workspace->data, kWorkspace, stream);
      if (status != CUBLAS_STATUS_SUCCESS)
        must(internal_error("cublasLtMatmul: status ", static_cast<int>(status)));
    };
  };
  int best = 0;
  double best_us = 1e30;
  for (int i = 0; i < count; ++i) {
    if (p->found[static_cast<size_t>(i)].state != CUBLAS_STATUS_SUCCESS) continue;
    const double us = session.glance({"", call(i), false}, sets);
    if (us < best_us) best_us = us, best = i;
  }
  std::vector<Contender> list = {{"cublaslt best of " + std::to_string(count), call(best), false}};
  if (best != 0) list.push_back({"cublaslt first", call(0), false});
  return list;
}

}  // namespace ridge::bench
