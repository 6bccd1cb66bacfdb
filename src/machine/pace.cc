#include "machine/pace.h"

#include <algorithm>
#include <cmath>

#include "machine/machine.h"

namespace ridge {

namespace {

/// Sum of |log ratio|; dims of another number are no neighbours.
double distance(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  if (a.size() != b.size()) return HUGE_VAL;
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += std::fabs(std::log(static_cast<double>(std::max<int64_t>(1, a[i])) /
                              static_cast<double>(std::max<int64_t>(1, b[i]))));
  return sum;
}

double us_at(const std::vector<PacePoint>& points, double work) {
  if (points.empty() || work <= 0) return 0;
  const PacePoint& first = points.front();
  size_t high = 1;
  while (high + 1 < points.size() && points[high].work < work) ++high;
  if (high >= points.size()) return first.us * work / first.work;
  const PacePoint &a = points[high - 1], &b = points[high];
  const double slope = b.work > a.work ? std::max(0.0, (b.us - a.us) / (b.work - a.work)) : 0;
  const double line = a.us + slope * (work - a.work);
  // A fixed part below nothing is noise: then time goes with the work.
  return work < first.work ? std::max(line, first.us * work / first.work) : line;
}

bool possible_line(const PacePoint& a, const PacePoint& b) {
  // Of the longer call. A kernel lays its activations out once, whatever the work; that is no half of it.
  constexpr double kLeastFixed = -0.1, kMostFixed = 0.4;
  if (b.work <= a.work) return true;
  const double fixed = a.us - (b.us - a.us) / (b.work - a.work) * a.work;
  return fixed >= kLeastFixed * b.us && fixed <= kMostFixed * b.us;
}

double arithmetic(const Machine& m, int threads) {
  return m.at(threads).flops[static_cast<size_t>(Engine::kF32)];
}

}  // namespace

double pace_work(const Cost& cost) {
  const int64_t flops = cost.total_flops();
  return static_cast<double>(flops > 0 ? flops : cost.total_bytes());
}

Status settle_points(std::vector<PacePoint>* points, int tries,
                     const std::function<Result<double>(size_t)>& again) {
  const auto settled = [&] {
    for (size_t i = 1; i < points->size(); ++i)
      if (!possible_line((*points)[i - 1], (*points)[i])) return false;
    return true;
  };
  for (int round = 0; round < tries && !settled(); ++round)
    for (size_t i = 0; i < points->size(); ++i) {
      RIDGE_ASSIGN(const double us, again(i));
      (*points)[i].us = std::min((*points)[i].us, us);
    }
  return {};
}

const KernelPace* nearest_pace(const Machine& m, const PaceQuery& q) {
  const KernelPace* best = nullptr;
  double least = HUGE_VAL;
  for (const KernelPace& k : m.kernels) {
    if (k.op != q.op || k.formats != q.formats || (!q.kernel.empty() && k.kernel != q.kernel)) continue;
    const double d = distance(k.dims, q.dims);
    if (d < least) least = d, best = &k;
  }
  return best;
}

double kernel_us(const Machine& m, const PaceQuery& q, double work, int threads) {
  const KernelPace* best = nearest_pace(m, q);
  if (best == nullptr) return 0;
  const double one = arithmetic(m, 1), all = arithmetic(m, threads);
  const double speedup = one > 0 && all > 0 ? all / one : m.at(threads).threads;
  // Of dims in another proportion the call is so many of the measured ones: what each of those has to do
  // once, whatever the amount of work (activations laid out anew, sines of a token), it has to do as often.
  double times = 1;
  for (size_t i = 0; i < q.dims.size(); ++i)
    times *= static_cast<double>(std::max<int64_t>(1, q.dims[i])) /
             static_cast<double>(std::max<int64_t>(1, best->dims[i]));
  return times * us_at(best->points, work / times) / speedup;
}

}  // namespace ridge
