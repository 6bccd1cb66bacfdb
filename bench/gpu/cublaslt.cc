// The peer of the linear figures: cuBLASLt, as runtime/cuda/cublaslt.h loads it.

#include "runtime/cuda/cublaslt.h"

#include "harness.h"

namespace ridge::bench {

namespace {

struct Problem {
  std::vector<std::unique_ptr<Matmul>> found;
  std::unique_ptr<DeviceBlock> workspace;
};

}  // namespace

std::vector<Contender> LinearPeer::contenders(Session& session, int64_t m, int64_t n, int64_t k,
                                              std::function<void*(int)> w, std::function<void*(int)> x,
                                              std::function<void*(int)> y, int sets) {
  MatmulShape shape;
  shape.y_type = kBF16, shape.tokens = m, shape.out = n, shape.in = k;
  shape.x_stride = shape.w_stride = k, shape.y_stride = n;
  constexpr int64_t kWorkspace = 64 << 20;
  auto found = CublasLt::used().candidates(shape, 24, {.workspace_bytes = kWorkspace, .any_reduction = true});
  if (!found.ok()) {
    session.note("no peer: " + found.status().message());
    return {};
  }
  auto p = std::make_shared<Problem>();
  p->found = found.take(), p->workspace = std::make_unique<DeviceBlock>(kWorkspace);
  kept_.push_back(p);
  const auto call = [=](size_t algorithm) {
    return [=, problem = p.get()](cudaStream_t stream, int set) {
      must(problem->found[algorithm]->run(stream, {y(set), x(set), w(set), nullptr, nullptr},
                                          problem->workspace->data));
    };
  };
  size_t best = 0;
  double best_us = 1e30;
  for (size_t i = 0; i < p->found.size(); ++i) {
    const double us = session.glance({"", call(i), false}, sets);
    if (us < best_us) best_us = us, best = i;
  }
  std::vector<Contender> list = {{"cublaslt best of " + std::to_string(p->found.size()), call(best), false}};
  if (best != 0) list.push_back({"cublaslt first", call(0), false});
  return list;
}

}  // namespace ridge::bench
