#pragma once
// One row of logits and a block of 1024 threads: statistics, which tokens the filters keep, the draw. Weights
// are summed as integers of 2^-44, so that no answer depends on the order of threads. Which tokens stay is
// one 64-bit key: ascending keys are descending logits, then ascending ids.

#include "device/launch.cuh"
#include "device/reduce.cuh"
#include "kernels/block_scan.cuh"

namespace ridge::cuda {

inline constexpr int kSampleBins = 2048;  // and the longest list that is sorted
inline constexpr double kLog2E = 1.4426950408889634;

__device__ __forceinline__ uint64_t key_of(float value, int64_t id) {
  const uint32_t bits = __float_as_uint(value + 0.0f);  // -0 ties with 0
  const uint32_t ascending = bits >> 31 ? ~bits : bits | 0x80000000u;
  return uint64_t{~ascending} << 32 | static_cast<uint32_t>(id);
}
__device__ __forceinline__ float value_of(uint64_t key) {
  const uint32_t ascending = ~static_cast<uint32_t>(key >> 32);
  return __uint_as_float(ascending >> 31 ? ascending & 0x7fffffffu : ~ascending);
}

/// Of some logits of a row.
struct RowStats {
  float top = -INFINITY;
  int32_t nan = 0;
  int64_t id = -1;       // the first that has the greatest
  int64_t infinite = 0;  // how many are +inf
  double sum = 0;        // of e^(x - top), while top is finite

  __device__ void add(float v, int64_t i) {
    nan |= isnan(v);
    infinite += v == INFINITY;
    const float next = fmaxf(top, v);
    if (next > top) sum *= static_cast<double>(exp2f((top - next) * static_cast<float>(kLog2E)));
    if (next > -INFINITY) sum += static_cast<double>(exp2f((v - next) * static_cast<float>(kLog2E)));
    if (v > top || (id < 0 && v == top)) top = v, id = i;
  }
  /// Ids of `other` may be before or after these. The same sum whichever of the two is added to the other.
  /// f32 exponentials do: what is far below the top, where they are least exact, weighs little.
  __device__ void join(const RowStats& other) {
    const float from = fmaxf(top, other.top);
    const auto scaled = [&](const RowStats& s) {
      return s.sum == 0 ? 0 : s.sum * static_cast<double>(exp2f((s.top - from) * static_cast<float>(kLog2E)));
    };
    sum = scaled(*this) + scaled(other);
    if (other.top > top || (other.top == top && other.id >= 0 && (id < 0 || other.id < id))) id = other.id;
    top = from, nan |= other.nan, infinite += other.infinite;
  }
  /// The sum of e^(x - top) over all; with an infinite top how many have it.
  __device__ double total() const { return top == INFINITY ? static_cast<double>(infinite) : sum; }
};

/// Joins the lanes of a warp; all get the answer.
__device__ inline RowStats join_lanes(RowStats mine) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    RowStats other;
    other.top = __shfl_xor_sync(0xffffffffu, mine.top, step);
    other.nan = __shfl_xor_sync(0xffffffffu, mine.nan, step);
    other.id = __shfl_xor_sync(0xffffffffu, mine.id, step);
    other.infinite = __shfl_xor_sync(0xffffffffu, mine.infinite, step);
    other.sum = __shfl_xor_sync(0xffffffffu, mine.sum, step);
    mine.join(other);
  }
  return mine;
}

/// Joins the threads of a block of at most 32 warps; all get the answer.
__device__ inline RowStats join_stats(const RowStats& mine, RowStats* warps) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, count = blockDim.x >> 5;
  const RowStats own = join_lanes(mine);
  __syncthreads();
  if (lane == 0) warps[warp] = own;
  __syncthreads();
  return join_lanes(lane < count ? warps[lane] : RowStats());
}

struct SampleScratch {
  uint32_t count[kSampleBins];
  union {
    unsigned long long mass[kSampleBins];
    uint64_t keys[kSampleBins];
  };
  unsigned long long warps[kScanWarps];
  RowStats stats[kScanWarps];
  int listed, flag, first, bin;
  uint64_t cut, before_count, before_mass;
};

/// A row whose tokens are chosen among.
struct SampleRow {
  const float* x;  // [columns], adjusted
  int64_t columns;
  float top;                    // the greatest
  float rate;                   // log2(e) / temperature
  uint64_t cut = ~uint64_t{0};  // tokens with keys up to this one are kept

  __device__ uint64_t weight(float v) const {
    constexpr float kOne = 0x1p44f;
    if (top == INFINITY) return v == top ? static_cast<uint64_t>(kOne) : 0;
    return __float2ull_rn(exp2f((v - top) * rate) * kOne);
  }
  /// One of kSampleBins steps of the logit below the greatest; never falls with the logit. The last takes
  /// what has hardly any weight.
  __device__ int bin(float v) const {
    constexpr float kOctaves = 40;
    if (top == INFINITY) return v == top ? 0 : kSampleBins - 1;
    const float steps = (top - v) * fminf(rate * (kSampleBins / kOctaves), 3.0e38f);
    return steps < kSampleBins - 1 ? static_cast<int>(steps) : kSampleBins - 1;
  }
};

/// Which kept tokens are looked at: those of one bin whose keys begin with a prefix. bin -1: all.
struct Bracket {
  int bin = -1, shift = 64;
  uint64_t prefix = 0;
  __device__ bool has(const SampleRow& row, float v, uint64_t key) const {
    return key <= row.cut && (bin < 0 || row.bin(v) == bin) && (shift == 64 || key >> shift == prefix);
  }
};

/// How much of the order is wanted: `count` tokens, or (kMass) the fewest with `share` of the mass.
struct Wanted {
  uint64_t count = 0;
  double mass = 0;
  __device__ bool met(bool by_mass, uint64_t n, uint64_t m) const {
    return n > 0 && (by_mass ? static_cast<double>(m) >= mass : n >= count);
  }
};

/// Counts and masses of the bracket's tokens by bin, or, below, by the next 11 bits of the key.
template <bool kMass>
__device__ void fill_bins(const SampleRow& row, const Bracket& bracket, int shift, SampleScratch& s) {
  __syncthreads();
  for (int i = threadIdx.x; i < kSampleBins; i += kScanThreads) s.count[i] = 0, s.mass[i] = 0;
  __syncthreads();
  for (int64_t i = threadIdx.x; i < row.columns; i += kScanThreads) {
    const float v = row.x[i];
    const uint64_t key = key_of(v, i);
    if (!bracket.has(row, v, key)) continue;
    const int bin = shift == 64 ? row.bin(v) : static_cast<int>(key >> shift & (kSampleBins - 1));
    atomicAdd(&s.count[bin], 1u);
    if constexpr (kMass) atomicAdd(&s.mass[bin], static_cast<unsigned long long>(row.weight(v)));
  }
  __syncthreads();
}

/// The first bin at whose end what is wanted is there; -1: it never is. Leaves what comes before in
/// s.before_*. `share`, when not negative: wanted->mass becomes that part of the whole.
template <bool kMass>
__device__ int find_bin(Wanted* wanted, double share, uint64_t before_count, uint64_t before_mass,
                        SampleScratch& s) {
  const int at = 2 * threadIdx.x;
  const uint64_t c[2] = {s.count[at], s.count[at + 1]},
                 m[2] = {kMass ? s.mass[at] : 0, kMass ? s.mass[at + 1] : 0};
  const unsigned long long counts = block_inclusive<unsigned long long>(c[0] + c[1], s.warps);
  __syncthreads();
  unsigned long long masses = 0;
  if constexpr (kMass) {
    masses = block_inclusive<unsigned long long>(m[0] + m[1], s.warps);
    if (share >= 0) wanted->mass = share * static_cast<double>(s.warps[kScanWarps - 1]);
  }
  if (threadIdx.x == 0) s.bin = kSampleBins;
  __syncthreads();
  uint64_t n = before_count + counts - c[0] - c[1], mass = before_mass + masses - m[0] - m[1];
  uint64_t found[2] = {};
  int bin = kSampleBins;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (bin == kSampleBins && c[i] > 0 && wanted->met(kMass, n + c[i], mass + m[i]))
      bin = at + i, found[0] = n, found[1] = mass;
    n += c[i], mass += m[i];
  }
  if (bin < kSampleBins) atomicMin(&s.bin, bin);
  __syncthreads();
  if (bin < kSampleBins && s.bin == bin) s.before_count = found[0], s.before_mass = found[1];
  __syncthreads();
  return s.bin == kSampleBins ? -1 : s.bin;
}

/// Sorts the bracket's tokens, at most kSampleBins, and returns the key at which what is wanted is there.
template <bool kMass>
__device__ uint64_t cut_in_list(const SampleRow& row, const Bracket& bracket, const Wanted& wanted,
                                SampleScratch& s) {
  const uint64_t before_count = s.before_count, before_mass = s.before_mass;
  __syncthreads();
  if (threadIdx.x == 0) s.listed = 0, s.bin = kSampleBins;
  for (int i = threadIdx.x; i < kSampleBins; i += kScanThreads) s.keys[i] = ~uint64_t{0};
  __syncthreads();
  for (int64_t i = threadIdx.x; i < row.columns; i += kScanThreads) {
    const float v = row.x[i];
    const uint64_t key = key_of(v, i);
    if (bracket.has(row, v, key)) s.keys[atomicAdd(&s.listed, 1)] = key;
  }
  __syncthreads();
  const int listed = s.listed;
  int n = 2;
  while (n < listed) n *= 2;
  block_sort(s.keys, n);
  const int at = 2 * threadIdx.x;
  uint64_t weights[2] = {};
  if constexpr (kMass)
    for (int i = 0; i < 2; ++i)
      if (at + i < listed) weights[i] = row.weight(value_of(s.keys[at + i]));
  uint64_t mass = 0;
  if constexpr (kMass)
    mass = block_inclusive<unsigned long long>(weights[0] + weights[1], s.warps) - weights[0] - weights[1];
  mass += before_mass;
  for (int i = 0; i < 2; ++i) {
    mass += weights[i];
    if (at + i < listed && wanted.met(kMass, before_count + at + i + 1, mass)) {
      atomicMin(&s.bin, at + i);
      break;
    }
  }
  __syncthreads();
  const uint64_t cut = s.keys[min(s.bin, listed - 1)];
  __syncthreads();
  return cut;
}

/// Leaves the `count` first tokens of the order, or (kMass) the shortest prefix with `share` of the kept
/// mass.
template <bool kMass>
__device__ void keep_prefix(SampleRow* row, uint64_t count, double share, SampleScratch& s) {
  Wanted wanted{count, 0};
  Bracket bracket;
  fill_bins<kMass>(*row, bracket, 64, s);
  int bin = find_bin<kMass>(&wanted, share, 0, 0, s);
  if (bin < 0) return;
  bracket.bin = bin;
  // Many in one bin (ties, a temperature far from the logits' spread): by the bits of the key, 11 at a time.
  for (int shift = 53; s.count[bin] > kSampleBins; shift = max(shift - 11, 0)) {
    fill_bins<kMass>(*row, bracket, shift, s);
    bin = find_bin<kMass>(&wanted, -1, s.before_count, s.before_mass, s);
    if (bin < 0) return;
    const int width = min(bracket.shift - shift, 11);
    bracket.prefix = bracket.shift == 64
                         ? static_cast<uint64_t>(bin)
                         : bracket.prefix << width | (static_cast<uint64_t>(bin) & ((1u << width) - 1));
    bracket.shift = shift;
  }
  row->cut = cut_in_list<kMass>(*row, bracket, wanted, s);
}

/// The first kept id, ascending, whose running mass exceeds u times the whole.
__device__ inline int64_t draw(const SampleRow& row, double u, SampleScratch& s) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int64_t each =
      (row.columns + kScanThreads - 1) / kScanThreads;  // ids of a segment, one a thread below
  const auto weight_at = [&](int64_t i) {
    const float v = row.x[i];
    return key_of(v, i) <= row.cut ? row.weight(v) : 0;
  };
  __syncthreads();
  for (int segment = warp; segment < kScanThreads; segment += kScanWarps) {
    unsigned long long mass = 0;
    for (int64_t i = segment * each + lane; i < min((segment + 1) * each, row.columns); i += 32)
      mass += weight_at(i);
#pragma unroll
    for (int step = 16; step > 0; step /= 2) mass += __shfl_xor_sync(0xffffffffu, mass, step);
    if (lane == 0) s.mass[segment] = mass;
  }
  __syncthreads();
  const unsigned long long mine = s.mass[threadIdx.x], until = block_inclusive(mine, s.warps);
  const double target = u * static_cast<double>(s.warps[kScanWarps - 1]);
  if (threadIdx.x == 0) s.first = kScanThreads, s.flag = -1;
  __syncthreads();
  if (static_cast<double>(until) > target) atomicMin(&s.first, static_cast<int>(threadIdx.x));
  if (mine > 0) atomicMax(&s.flag, static_cast<int>(threadIdx.x));
  __syncthreads();
  const int segment = s.first < kScanThreads ? s.first : s.flag;  // rounding left the target at the end
  if (static_cast<int>(threadIdx.x) == segment) s.before_mass = until - mine;
  __syncthreads();
  if (segment < 0) return -1;
  unsigned long long running = s.before_mass;
  int64_t id = -1;
  for (int64_t base = segment * each; base < min((segment + 1) * each, row.columns); base += 32) {
    const int64_t i = base + lane;
    const unsigned long long weight = i < min((segment + 1) * each, row.columns) ? weight_at(i) : 0;
    const unsigned long long sum = running + warp_inclusive(weight);
    const unsigned past = __ballot_sync(0xffffffffu, weight > 0 && static_cast<double>(sum) > target);
    const unsigned any = __ballot_sync(0xffffffffu, weight > 0);
    if (past != 0) return base + __ffs(static_cast<int>(past)) - 1;
    if (any != 0) id = base + 31 - __clz(static_cast<int>(any));
    running = __shfl_sync(0xffffffffu, sum, 31);
  }
  return id;
}

}  // namespace ridge::cuda
