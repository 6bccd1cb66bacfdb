// Linears of prompts: what the operators choose without cuBLASLt beside the choice of cuBLASLt that they take
// with it, in turns; y in f32, as the operator writes it.

#include <algorithm>
#include <cstdio>

#include "harness.h"
#include "kernels/linear_choice.cuh"
#include "runtime/cuda/cublaslt.h"

namespace ridge::bench {

namespace {

using cuda::Gate;
using cuda::LinearCall;

constexpr int kSets = 2;  // of inputs, in turns: those of a prompt are larger than the L2 cache or stay there

struct Prompt {
  int64_t tokens, out, in;
  DeviceBlock w, x, y, workspace;
  Prompt(int64_t tokens_, int64_t out_, int64_t in_, int64_t workspace_bytes)
      : tokens(tokens_),
        out(out_),
        in(in_),
        w(2 * out * in * kSets),
        x(2 * tokens * in * kSets),
        y(4 * tokens * out * kSets),
        workspace(workspace_bytes) {
    fill_field(w.as<bf16>(), out * in * kSets, 1), fill_field(x.as<bf16>(), tokens * in * kSets, 2);
  }
  MatmulShape shape() const {
    MatmulShape s;
    s.tokens = tokens, s.out = out, s.in = in, s.x_stride = s.w_stride = in, s.y_stride = out;
    return s;
  }
  MatmulOperands operands(int set) const {
    return {y.as<float>() + set * tokens * out, x.as<bf16>() + set * tokens * in,
            w.as<bf16>() + set * out * in, nullptr, nullptr};
  }
  LinearCall<bf16, bf16, float> call(int set) const {
    LinearCall<bf16, bf16, float> c;
    c.w = w.as<bf16>() + set * out * in, c.x = x.as<const bf16>() + set * tokens * in;
    c.y = y.as<float>() + set * tokens * out;
    c.tokens = tokens, c.out = out, c.in = in, c.y_stride = out, c.x_stride = c.w_stride = in;
    return c;
  }
};

/// A line of docs/kernels/linear.md's table: times and TFLOP/s of ours, of the library's first choice, and of
/// the fastest of its first 8.
void print_line(Session& session, const char* shape, int64_t tokens, double flops,
                const std::vector<Timing>& timings) {
  double us[3] = {};
  for (const Timing& t : timings) us[t.ours ? 0 : t.name == "cublaslt" ? 1 : 2] = t.us;
  if (us[2] == 0) us[2] = us[1];
  const auto rate = [&](double time) { return time > 0 ? flops / time / 1e6 : 0; };
  char line[200];
  std::snprintf(line, sizeof line, "| %s | %lld | %.1f | %.0f | %.1f | %.0f | %.2f | %.1f |", shape,
                static_cast<long long>(tokens), us[0], rate(us[0]), us[1], rate(us[1]),
                us[0] > 0 ? us[1] / us[0] : 0, us[2]);
  session.note(line);
}

std::vector<Timing> time_linear(Session& session, const Condition& condition, const Prompt& p) {
  std::vector<Contender> contenders = {{"launch_many_tokens", [&](cudaStream_t stream, int set) {
                                          must(cuda::launch_many_tokens(stream, p.call(set), 132));
                                        }}};
  const auto of = [&](const Matmul* matmul) {
    return [&p, matmul](cudaStream_t stream, int set) {
      must(matmul->run(stream, p.operands(set), p.workspace.data));
    };
  };
  const auto first = CublasLt::used().find(p.shape());
  const auto more = CublasLt::used().candidates(p.shape(), 8, {});
  if (first.ok() && more.ok()) {
    contenders.push_back({"cublaslt", of(*first), false});
    size_t best = 0;
    double best_us = 1e30;
    for (size_t i = 0; i < more->size(); ++i) {
      const double us = session.glance({"", of((*more)[i].get()), false}, kSets);
      if (us < best_us) best_us = us, best = i;
    }
    if (best != 0) contenders.push_back({"cublaslt's best", of((*more)[best].get()), false});
  }
  return session.measure(condition, contenders);
}

/// Both products and what joins them into bf16, as linear_swiglu does: `out` of p are the rows of both.
std::vector<Timing> time_gated(Session& session, const Condition& condition, const Prompt& p) {
  const int64_t inner = p.out / 2;
  const auto bf16_of = [&p, inner](int set) { return p.y.as<bf16>() + set * p.tokens * inner; };
  std::vector<Contender> contenders = {{"launch_many_tokens", [&](cudaStream_t stream, int set) {
                                          LinearCall<bf16> c;
                                          c.w = p.call(set).w, c.x = p.call(set).x, c.y = bf16_of(set);
                                          c.w_up = c.w + inner * p.in, c.tokens = p.tokens, c.out = inner;
                                          c.in = c.x_stride = c.w_stride = p.in, c.y_stride = inner;
                                          must(cuda::launch_many_tokens<Gate::kSilu>(stream, c, 132));
                                        }}};
  MatmulShape shape = p.shape();
  shape.out = shape.y_stride = inner;
  const auto found = CublasLt::used().find(shape);
  if (!found.ok()) return session.measure(condition, contenders);
  float* const products = p.workspace.as<float>();
  const int64_t size = p.tokens * inner;
  contenders.push_back({"cublaslt",
                        [=, &p](cudaStream_t stream, int set) {
                          MatmulOperands o = p.operands(set);
                          o.y = products;
                          must((*found)->run(stream, o, products + 2 * size));
                          o.w = static_cast<const bf16*>(o.w) + inner * p.in, o.y = products + size;
                          must((*found)->run(stream, o, products + 2 * size));
                          cuda::GluCall<float, bf16> c;
                          c.y = bf16_of(set), c.gate = static_cast<const float*>(products);
                          c.up = static_cast<const float*>(products + size);
                          c.rows = p.tokens, c.inner = c.y_stride = c.gate_stride = c.up_stride = inner;
                          must(cuda::launch_glu<cuda::Silu>(stream, c, true));
                        },
                        false});
  return session.measure(condition, contenders);
}

}  // namespace

void bench_prompts(Session& session) {
  struct Shape {
    const char* name;
    int64_t out, in;
    bool gated;
  };
  std::vector<std::function<void()>> lines;
  for (const Shape& shape :
       {Shape{"4096 × 4096", 4096, 4096, false}, Shape{"6144 × 4096", 6144, 4096, false},
        Shape{"4096 × 14336", 4096, 14336, false}, Shape{"28672 × 4096", 28672, 4096, false},
        Shape{"swiglu 2 × 14336 × 4096", 28672, 4096, true}})
    for (const int64_t tokens : {128, 512, 2048, 4096}) {
      const int64_t products = shape.gated ? 4 * tokens * shape.out : 0;
      const Prompt p(tokens, shape.out, shape.in, products + MatmulLimits().workspace_bytes);
      Condition condition;
      condition.row = std::string(shape.gated ? "prompt-gated-" : "prompt-") + std::to_string(shape.out) +
                      "x" + std::to_string(shape.in) + "-m" + std::to_string(tokens);
      condition.text = std::string("bf16 linear of a prompt, ") + shape.name;
      condition.flops = 2.0 * static_cast<double>(tokens * shape.out * shape.in), condition.sets = kSets;
      condition.bytes =
          2.0 * static_cast<double>(shape.out * shape.in + tokens * shape.in + 2 * tokens * shape.out);
      const auto timings =
          shape.gated ? time_gated(session, condition, p) : time_linear(session, condition, p);
      lines.push_back([&session, shape, tokens, flops = condition.flops, timings] {
        print_line(session, shape.name, tokens, flops, timings);
      });
    }
  session.note("| N × K | M | ours µs | TFLOP/s | cuBLASLt µs | TFLOP/s | ratio | best of its first 8, µs |");
  session.note("|---|---|---|---|---|---|---|---|");
  for (const auto& line : lines) line();
}

}  // namespace ridge::bench
