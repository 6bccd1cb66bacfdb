// G1, G1b: y = x · wᵀ in bf16 beside cuBLASLt.

#include "harness.h"

#include <cmath>

#include "kernels/gemm_boxes.cuh"
#include "kernels/gemm_pair.cuh"
#include "kernels/gemm_rows.cuh"
#include "kernels/gemm_stream.cuh"
#include "kernels/gemm_tokens.cuh"
#include "kernels/gemm_wgmma.cuh"
#include "kernels/gemv.cuh"
#include "kernels/gemv_stream.cuh"
#include "kernels/linear_choice.cuh"

namespace ridge::bench {

namespace {

using cuda::GemmTokensTraits;
using cuda::GemvTraits;
using cuda::LinearCall;

template <class T>
using Launch = Status (*)(cudaStream_t, const LinearCall<T>&);

template <class T>
struct Variant {
  const char* name;
  Launch<T> launch;
};

#define GEMV(...) \
  { "gemv " #__VA_ARGS__, cuda::launch_gemv<GemvTraits<__VA_ARGS__>, bf16, bf16, bf16> }
template <class Traits>
Status stream_all(cudaStream_t stream, const LinearCall<bf16>& call) {
  return cuda::launch_gemv_stream<Traits>(stream, call, 132);
}
template <class Traits>
Status tiles_all(cudaStream_t stream, const LinearCall<bf16>& call) {
  return cuda::launch_gemm_stream<Traits>(stream, call, 132);
}
#define WGMMA(...) \
  { "wgmma " #__VA_ARGS__, cuda::launch_gemm_wgmma<cuda::GemmWgmmaTraits<__VA_ARGS__>, bf16, bf16> }
template <class Traits>
Status boxes_all(cudaStream_t stream, const LinearCall<bf16>& call) {
  return cuda::launch_gemm_boxes<Traits>(stream, call, 132);
}
#define BOXES(...) \
  { "boxes " #__VA_ARGS__, boxes_all<cuda::GemmBoxesTraits<__VA_ARGS__>> }
template <class Traits>
Status pair_all(cudaStream_t stream, const LinearCall<bf16>& call) {
  return cuda::launch_gemm_pair<Traits>(stream, call, 132);
}
#define PAIR(...) \
  { "pair " #__VA_ARGS__, pair_all<cuda::GemmPairTraits<__VA_ARGS__>> }
#define TILES(...) \
  { "tiles " #__VA_ARGS__, tiles_all<cuda::GemmStreamTraits<__VA_ARGS__>> }
#define STREAM(...) \
  { "stream " #__VA_ARGS__, stream_all<cuda::GemvStreamTraits<__VA_ARGS__>> }
template <class Traits>
Status rows_all(cudaStream_t stream, const LinearCall<bf16>& call) {
  return cuda::launch_gemm_rows<Traits>(stream, call, 132);
}
#define ROWS(...) \
  { "rows " #__VA_ARGS__, rows_all<cuda::GemmRowsTraits<__VA_ARGS__>> }
#define GEMM(...) \
  { "gemm " #__VA_ARGS__, cuda::launch_gemm_tokens<GemmTokensTraits<__VA_ARGS__>, bf16, bf16> }

// warps, rows, unroll, split
const std::vector<Variant<bf16>> kGemv = {GEMV(8, 1, 4, 4)};
// warps, vectors, group, stages, blocks an SM, released early; for `in` up to 4096 and up to 14336
const std::vector<Variant<bf16>> kStream4096 = {STREAM(16, 1, 4, 6, 1), STREAM(16, 1, 6, 4, 1)};
const std::vector<Variant<bf16>> kStream14336 = {STREAM(28, 2, 1, 7, 1), STREAM(14, 4, 1, 4, 1)};
// warps, steps, unroll, stages, cluster, blocks an SM
const std::vector<Variant<bf16>> kTiles4096 = {TILES(16, 8, 1, 12, 1, 1), TILES(16, 8, 1, 9, 1, 1)};
const std::vector<Variant<bf16>> kTiles14336 = {TILES(16, 14, 1, 12, 2, 1), TILES(16, 14, 1, 8, 2, 1)};
// warps, stages; 3 show what more in flight does
const std::vector<Variant<bf16>> kRows4096 = {ROWS(16, 2), ROWS(16, 3)};
// tokens, row tiles, warps along rows, warps along depth, cluster, chunk, unroll, stages, blocks an SM
const std::vector<Variant<bf16>> kGemm8 = {GEMM(8, 1, 2, 4, 2, 1024, 2, 4, 2)};
const std::vector<Variant<bf16>> kGemm64 = {GEMM(64, 2, 4, 1, 4, 128, 2, 3, 2)};
// warpgroups, stages, cluster, blocks an SM, atoms of 64 of depth in a stage
const std::vector<Variant<bf16>> kWgmma = {WGMMA(1, 6, 2, 1, 2), WGMMA(4, 5, 4, 1), WGMMA(1, 6, 1, 2),
                                           WGMMA(3, 5, 4, 1)};

// rows a block at most, stages, those of w before the wait
const std::vector<Variant<bf16>> kBoxes = {BOXES(224, 6, 4), BOXES(224, 6, 6)};
// rows a pair of blocks at most, stages, atoms of 64 of depth in a stage, stages before the wait
const std::vector<Variant<bf16>> kPair64 = {PAIR(64, 13, 1, 6), PAIR(64, 6, 2, 4)},
                                 kPair96 = {PAIR(96, 10, 1, 6)};

/// What the operator's kernels choose, whatever the lists above hold.
Status operators_choice(cudaStream_t stream, const LinearCall<bf16>& call) {
  if (call.tokens == 1) return cuda::launch_one_token(stream, call, 132);
  if (call.tokens <= 8 && call.in <= cuda::kFewTokensWidth) return cuda::launch_few_tokens(stream, call, 132);
  return cuda::launch_many_tokens(stream, call, 132);
}

int sets_for(double bytes) {
  return std::max(2, std::min(40, static_cast<int>(230e6 / bytes) + 1));
}

struct Data {
  DeviceBlock w, x, y;
  int64_t m, n, k;
  int sets;
  Data(int64_t m_, int64_t n_, int64_t k_)
      : w(2 * n_ * k_ * sets_for(2.0 * n_ * k_)),
        x(2 * m_ * k_ * sets_for(2.0 * n_ * k_)),
        y(2 * m_ * n_ * sets_for(2.0 * n_ * k_)),
        m(m_),
        n(n_),
        k(k_),
        sets(sets_for(2.0 * n_ * k_)) {
    fill_field(w.as<bf16>(), n * k * sets, 1), fill_field(x.as<bf16>(), m * k * sets, 2);
  }
  LinearCall<bf16> call(int set) const {
    LinearCall<bf16> c;
    c.w = w.as<bf16>() + set * n * k, c.x = x.as<const bf16>() + set * m * k,
    c.y = y.as<bf16>() + set * m * n;
    c.tokens = m, c.out = n, c.in = k, c.y_stride = n, c.x_stride = c.w_stride = k;
    return c;
  }
};

double as_bf16(float v) {
  return to_f32(to_bf16(v));
}

/// Compares sampled elements with a double-precision sum; y is [m, n] with row stride `stride`, rows of x are
/// k + pad apart.
template <class T>
void compare(Session& session, const std::string& what, const std::vector<T>& y, int64_t stride, int64_t m,
             int64_t n, int64_t k, int64_t x_stride, int64_t step, bool extras) {
  double worst = 0;
  const auto round_t = [](float v) {
    return kDTypeOf<T> == kBF16 ? as_bf16(v) : static_cast<double>(to_f32(to_f16(v)));
  };
  for (int64_t e = 0; e < m * n; e += step) {
    const int64_t i = e / n, j = e % n;
    double sum = 0, magnitude = 0;
    for (int64_t l = 0; l < k; ++l) {
      const double p = round_t(field(static_cast<uint64_t>(j * k + l), 1)) *
                       round_t(field(static_cast<uint64_t>(i * x_stride + l), 2));
      sum += p, magnitude += std::fabs(p);
    }
    if (extras)
      sum +=
          round_t(field(static_cast<uint64_t>(j), 3)) + round_t(field(static_cast<uint64_t>(i * n + j), 4));
    // f32 sums (style: n + 2 roundings of the magnitudes) and half an ulp of the 16-bit result.
    const double bound = (static_cast<double>(k) + 4) * 0x1p-24 * (magnitude + 2) +
                         std::fabs(sum) * (kDTypeOf<T> == kBF16 ? 0x1p-8 : 0x1p-11) + 1e-7;
    const double got = to_f32(y[static_cast<size_t>(i * stride + j)]);
    const double ratio = std::fabs(got - sum) / bound;
    worst = std::isnan(ratio) ? INFINITY : std::max(worst, ratio);
  }
  session.check(worst <= 1, what, worst, 1);
}

/// One launch on strided, poisoned data; every element checked when step is 1. Guards round y must survive.
template <class T>
void check_launch(Session& session, const std::string& name, Launch<T> launch, int64_t m, int64_t n,
                  int64_t k, int64_t step, bool extras) {
  const int64_t x_stride = k + 8, y_stride = n + 8;
  DeviceBlock w(2 * n * k), x(2 * m * x_stride), y(2 * (m * y_stride + 16)), bias(2 * n), residual(2 * m * n);
  fill_bytes(x.data, x.bytes, 0xff), fill_bytes(y.data, y.bytes, 0xff);
  fill_field(w.as<T>(), n * k, 1), fill_field(bias.as<T>(), n, 3), fill_field(residual.as<T>(), m * n, 4);
  for (int64_t i = 0; i < m; ++i)
    fill_field(x.as<T>() + i * x_stride, k, 2, 1, static_cast<uint64_t>(i * x_stride));
  LinearCall<T> c;
  c.w = w.as<T>(), c.x = x.as<const T>(), c.y = y.as<T>() + 8;
  c.tokens = m, c.out = n, c.in = k, c.y_stride = y_stride, c.x_stride = x_stride, c.w_stride = k;
  if (extras) c.bias = bias.as<T>(), c.residual = residual.as<const T>(), c.residual_stride = n;
  must(cudaDeviceSynchronize(), "fill");
  must(launch(session.stream(), c));
  must(cudaStreamSynchronize(session.stream()), name.c_str());
  std::vector<T> host(static_cast<size_t>(m * y_stride + 16));
  must(cudaMemcpy(host.data(), y.data, host.size() * 2, cudaMemcpyDeviceToHost), "download");
  bool guards = true;
  for (size_t i = 0; i < 8; ++i)
    guards = guards && host[i].bits == 0xffff && host[host.size() - 1 - i].bits == 0xffff;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = n; j < y_stride; ++j)
      guards = guards && host[static_cast<size_t>(8 + i * y_stride + j)].bits == 0xffff;
  const std::string what = name + " m " + std::to_string(m) + " n " + std::to_string(n) + " k " +
                           std::to_string(k) + (extras ? " bias residual" : "");
  session.check(guards, what + ": nothing outside y is written", guards ? 0 : 1, 0);
  host.erase(host.begin(), host.begin() + 8);
  compare(session, what, host, y_stride, m, n, k, x_stride, step, extras);
}

using GatedLaunch = Status (*)(cudaStream_t, const LinearCall<bf16, bf16, float>&);

/// Element i, j of a gated linear of check_gated's fields, in double precision.
double gated_element(int64_t i, int64_t j, int64_t n, int64_t k) {
  double gate = 0, up = 0;
  for (int64_t l = 0; l < k; ++l) {
    const double x = as_bf16(field(static_cast<uint64_t>(i * k + l), 2));
    gate += x * as_bf16(0.1f * field(static_cast<uint64_t>(j * k + l), 1));
    up += x * as_bf16(0.1f * field(static_cast<uint64_t>((n + j) * k + l), 1));
  }
  return gate / (1 + std::exp(-gate)) * up;
}

/// A kernel of a gated linear on the same data as wgmma's, which the conformance cases hold against the
/// reference: their shapes are too small for the others. Every 499th element is held against a sum in double
/// precision too.
void check_gated(Session& session, const char* name, GatedLaunch launch, int64_t m, int64_t n, int64_t k) {
  DeviceBlock w(4 * n * k), x(2 * m * k), y(4 * m * n), expected(4 * m * n);
  fill_field(w.as<bf16>(), 2 * n * k, 1, 0.1f), fill_field(x.as<bf16>(), m * k, 2);
  fill_bytes(y.data, y.bytes, 0xff), fill_bytes(expected.data, expected.bytes, 0xff);
  LinearCall<bf16, bf16, float> c;
  c.w = w.as<bf16>(), c.w_up = w.as<bf16>() + n * k, c.x = x.as<const bf16>(), c.y = y.as<float>();
  c.tokens = m, c.out = n, c.in = k, c.y_stride = n, c.x_stride = c.w_stride = k;
  must(cudaDeviceSynchronize(), "fill");
  must(launch(session.stream(), c));
  c.y = expected.as<float>();
  must(cuda::launch_gemm_wgmma<cuda::GemmWgmmaTraits<1, 6, 1, 2>, bf16, float, cuda::Gate::kSilu>(
      session.stream(), c));
  must(cudaStreamSynchronize(session.stream()), "gated");
  std::vector<float> got(static_cast<size_t>(m * n)), want(got.size());
  must(cudaMemcpy(got.data(), y.data, got.size() * 4, cudaMemcpyDeviceToHost), "download");
  must(cudaMemcpy(want.data(), expected.data, want.size() * 4, cudaMemcpyDeviceToHost), "download");
  // A tensor core cuts its sum off at every step of 16 of depth: the error grows with k.
  const double share = 1e-4 * std::max(1.0, static_cast<double>(k) / 1024);
  const auto error = [&](double value, double right) {
    const double found = std::fabs(value - right) / (share * (1 + std::fabs(right)));
    return std::isnan(found) ? INFINITY : found;
  };
  double worst = 0, worst_exact = 0;
  for (size_t i = 0; i < got.size(); ++i) worst = std::max(worst, error(got[i], want[i]));
  for (int64_t e = 0; e < m * n; e += 499)
    worst_exact =
        std::max(worst_exact, error(got[static_cast<size_t>(e)], gated_element(e / n, e % n, n, k)));
  const std::string what = std::string(name) + " of two matrices, m " + std::to_string(m) + " n " +
                           std::to_string(n) + " k " + std::to_string(k);
  session.check(worst <= 1, what + ": as wgmma's", worst, 1);
  session.check(worst_exact <= 1, what + ": as in double precision", worst_exact, 1);
}
Status gated_boxes(cudaStream_t stream, const LinearCall<bf16, bf16, float>& call) {
  return cuda::launch_gemm_boxes<cuda::GemmBoxesTraits<224, 6, 4>, bf16, float, cuda::Gate::kSilu>(stream,
                                                                                                   call, 132);
}
Status gated_rows(cudaStream_t stream, const LinearCall<bf16, bf16, float>& call) {
  return cuda::launch_gemm_rows<cuda::GemmRowsTraits<16, 2>, cuda::Gate::kSilu>(stream, call, 132);
}

}  // namespace

void check_linear(Session& session) {
  for (const auto& v : kGemv)
    for (const auto& [n, k] :
         std::vector<std::pair<int64_t, int64_t>>{{1, 8}, {129, 128}, {33, 1000}, {517, 4096}, {70, 14336}})
      check_launch<bf16>(session, v.name, v.launch, 1, n, k, 1, n == 517 || n == 33);
  const auto tokens = [&](const std::vector<Variant<bf16>>& list, std::vector<int64_t> ms) {
    for (const auto& v : list)
      for (const int64_t m : ms)
        for (const auto& [n, k] :
             std::vector<std::pair<int64_t, int64_t>>{{129, 128}, {33, 1000}, {515, 4096}, {40, 4104}})
          check_launch<bf16>(session, v.name, v.launch, m, n, k, 1 + (m * n * k > 20000000 ? 61 : 6),
                             n == 33 || n == 515);
  };
  for (const auto& v : kStream4096)
    for (const auto& [n, k] :
         std::vector<std::pair<int64_t, int64_t>>{{1, 8}, {129, 128}, {133, 1000}, {517, 4096}, {2000, 4088}})
      check_launch<bf16>(session, v.name, v.launch, 1, n, k, 1, n == 517 || n == 133);
  for (const auto& v : kStream14336)
    for (const auto& [n, k] :
         std::vector<std::pair<int64_t, int64_t>>{{1, 8}, {129, 128}, {70, 14336}, {300, 14328}})
      check_launch<bf16>(session, v.name, v.launch, 1, n, k, 1, n == 129);
  for (const auto& v : kTiles4096)
    for (const int64_t m : {1, 3, 8})
      for (const auto& [n, k] : std::vector<std::pair<int64_t, int64_t>>{
               {1, 8}, {129, 128}, {133, 1000}, {517, 4096}, {5000, 520}})
        check_launch<bf16>(session, v.name, v.launch, m, n, k, 1 + (m * n > 4000 ? 6 : 0),
                           n == 517 || n == 133);
  for (const auto& v : kRows4096)
    for (const int64_t m : {1, 3, 8})
      for (const auto& [n, k] : std::vector<std::pair<int64_t, int64_t>>{
               {1, 8}, {129, 128}, {133, 1000}, {517, 4096}, {5003, 520}})
        check_launch<bf16>(session, v.name, v.launch, m, n, k, 1 + (m * n > 4000 ? 6 : 0),
                           n == 517 || n == 133);
  for (const auto& v : kTiles14336)
    for (const int64_t m : {1, 3, 8})
      for (const auto& [n, k] :
           std::vector<std::pair<int64_t, int64_t>>{{1, 8}, {129, 128}, {70, 14336}, {300, 14328}})
        check_launch<bf16>(session, v.name, v.launch, m, n, k, 1 + (m * n > 400 ? 6 : 0), n == 129);
  tokens(kGemm8, {1, 3, 8});
  tokens(kGemm64, {2, 33, 64, 65});
  tokens(kWgmma, {2, 33, 64, 65});
  tokens(kBoxes, {2, 33, 64});
  tokens(kPair64, {2, 33, 64}), tokens(kPair96, {2, 33, 64});
  check_gated(session, "boxes", gated_boxes, 64, 14336, 584);
  check_gated(session, "boxes", gated_boxes, 9, 13333, 64);
  check_gated(session, "boxes", gated_boxes, 1, 77, 4096);
  check_gated(session, "rows", gated_rows, 8, 14336, 4096);
  check_gated(session, "rows", gated_rows, 3, 9001, 2056);
  check_gated(session, "rows", gated_rows, 1, 77, 8);
  for (const auto& v : kBoxes) check_launch<bf16>(session, v.name, v.launch, 64, 132 * 220, 584, 97, true);
  check_launch<f16>(session, "wgmma f16",
                    cuda::launch_gemm_wgmma<cuda::GemmWgmmaTraits<2, 4, 4, 2>, f16, f16>, 40, 130, 584, 1,
                    true);
  check_launch<f16>(
      session, "gemm_stream f16",
      [](cudaStream_t stream, const LinearCall<f16>& c) {
        return cuda::launch_gemm_stream<cuda::GemmStreamTraits<16, 8, 1, 6, 1, 1>>(stream, c, 132);
      },
      5, 130, 584, 1, true);
  check_launch<f16>(session, "gemv f16", cuda::launch_gemv<GemvTraits<8, 1, 4, 1>, f16, f16, f16>, 1, 130,
                    584, 1, true);
  check_launch<f16>(session, "gemm f16",
                    cuda::launch_gemm_tokens<GemmTokensTraits<8, 1, 8, 1, 8, 256, 4, 3, 2>, f16, f16>, 7, 130,
                    584, 1, true);
}

void bench_linear(Session& session, LinearPeer& cublas, bool sweep) {
  struct Shape {
    int64_t n, k;
    double share1, share_small;
  };
  for (const Shape shape : {Shape{4096, 4096, 0.60, 0.80},
                            {6144, 4096, 0.76, 0.90},
                            {4096, 14336, 0.87, 0.95},
                            {28672, 4096, 0.97, 1.0}})
    for (const int64_t m : {int64_t{1}, int64_t{8}, int64_t{64}}) {
      Data data(m, shape.n, shape.k);
      const double share = m == 1 ? shape.share1 : shape.share_small;
      Condition condition{(m == 1 ? "G1-" : "G1b-") + std::to_string(shape.n) + "x" +
                              std::to_string(shape.k) + "-m" + std::to_string(m),
                          "bf16 linear, N x K = " + std::to_string(shape.n) + " x " +
                              std::to_string(shape.k) + ", M = " + std::to_string(m) + ", dependent launches",
                          2.0 * static_cast<double>(shape.n * shape.k + m * (shape.n + shape.k)),
                          2.0 * static_cast<double>(m * shape.n * shape.k), data.sets};
      condition.target = "<= " + std::to_string(share).substr(0, 4) + " of cuBLASLt's best";
      auto contenders = cublas.contenders(
          session, m, shape.n, shape.k, [&](int s) { return (void*)data.call(s).w; },
          [&](int s) { return (void*)(data.x.as<bf16>() + s * m * shape.k); },
          [&](int s) { return (void*)(data.y.as<bf16>() + s * m * shape.n); }, data.sets);
      auto list = m == 1 ? kGemv : m == 8 ? kGemm8 : kGemm64;
      const auto add = [&](const std::vector<Variant<bf16>>& more) {
        list.insert(list.end(), more.begin(), more.end());
      };
      if (m == 1) add(shape.k == 4096 ? kStream4096 : kStream14336);
      if (m <= 8 && shape.k == 4096) add(kRows4096);
      if (m > 8) add(kWgmma);
      if (m > 8 && shape.n > 132 * 64) add(kBoxes);
      if ((m > 8 || (m > 1 && shape.k > 4096)) && shape.n <= 66 * 64) add(kPair64);
      if (m > 8 && shape.n <= 66 * 96) add(kPair96);
      if (m <= 8) add(shape.k == 4096 ? kTiles4096 : kTiles14336);
      list.push_back({"operator", operators_choice});
      std::vector<Contender> ours;
      for (const auto& v : list)
        ours.push_back({v.name, [&, launch = v.launch](cudaStream_t stream, int set) {
                          must(launch(stream, data.call(set)));
                        }});
      (void)sweep;
      contenders.insert(contenders.end(), ours.begin(), ours.end());
      const auto timings = session.measure(condition, contenders);
      double peer = 1e30, best = 1e30, chosen = 0;
      std::string name;
      for (const auto& t : timings) {
        if (t.name == "operator") chosen = t.us;
        if (!t.ours)
          peer = std::min(peer, t.us);
        else if (t.us < best)
          best = t.us, name = t.name;
      }
      char line[200];
      std::snprintf(line, sizeof line,
                    "== %s: best ours %s %.2f us = %.2f of cuBLASLt %.2f us, target %.2f: %s; the operator's "
                    "%.2f us",
                    condition.row.c_str(), name.c_str(), best, best / peer, peer, share,
                    best <= share * peer ? "met" : "MISSED", chosen);
      session.note(line);
    }
}

}  // namespace ridge::bench
