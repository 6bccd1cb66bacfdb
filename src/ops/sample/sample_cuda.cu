// Limit: the L2 cache's bandwidth into one multiprocessor a row (a pass over 49152 logits: about 3 us), then
// the launch. A block a row: one pass for the largest and the sum of exponentials, one more for a draw, two
// for each filter: a histogram brackets its cut, and what is in the bracket is sorted. Nothing sorts the
// vocabulary.

#include "base/random.h"
#include "ops/cuda_operands.cuh"
#include "ops/sample/sample.h"
#include "ops/sample/sample_row.cuh"
#include "runtime/cuda/cuda_device.h"

namespace ridge::cuda {

namespace {

struct SampleCall {
  device::Fresh<int32_t> ids, status;
  device::Fresh<float> logprob;
  device::Fresh<const float> logits, temperature, top_p, min_p, penalties, bias_values;
  device::Fresh<const int32_t> top_k, history, bias_ids;
  device::Fresh<const int64_t> seed, position;
  device::Fresh<RowStats> chunks;      // [rows, chunks of kChunk]
  device::Fresh<float> adjusted;       // [rows, columns], with history or biases
  device::Fresh<int32_t> occurrences;  // [rows, columns], likewise
  int64_t columns = 0, history_length = 0, biases = 0;
  int64_t logits_stride = 0, history_stride = 0, penalty_stride = 0, bias_id_stride = 0,
          bias_value_stride = 0;
};

constexpr int64_t kChunk = 1024;
constexpr int kChunkThreads = 256;

/// A block a chunk of a row.
__global__ __launch_bounds__(kChunkThreads) void sample_stats(device::Upstream upstream, SampleCall call) {
  __shared__ RowStats warps[kChunkThreads / 32];
  upstream.release_next();
  const auto waited = upstream.wait();
  const float* const row = call.logits.after(waited) + int64_t{blockIdx.y} * call.logits_stride;
  constexpr int kEach = kChunk / kChunkThreads;
  float v[kEach];
  const int64_t first = blockIdx.x * kChunk + threadIdx.x;
#pragma unroll
  for (int i = 0; i < kEach; ++i)
    v[i] = first + i * kChunkThreads < call.columns ? row[first + i * kChunkThreads] : -INFINITY;
  RowStats mine;
#pragma unroll
  for (int i = 0; i < kEach; ++i)
    if (first + i * kChunkThreads < call.columns) mine.add(v[i], first + i * kChunkThreads);
  const RowStats all = join_stats(mine, warps);
  if (threadIdx.x == 0) call.chunks.after(waited)[int64_t{blockIdx.y} * gridDim.x + blockIdx.x] = all;
}

/// What sample_stats left of a row. All threads get it; one warp joins: there are few chunks, and a join is
/// many instructions.
__device__ RowStats raw_stats(const RowStats* chunks, int64_t columns, SampleScratch& s) {
  if (threadIdx.x < 32) {
    RowStats mine;
    for (int64_t i = threadIdx.x; i * kChunk < columns; i += 32) mine.join(chunks[i]);
    mine = join_lanes(mine);
    if (threadIdx.x == 0) s.stats[0] = mine;
  }
  __syncthreads();
  return s.stats[0];
}

/// Of adjusted logits: the sum is not used.
__device__ RowStats adjusted_stats(const float* x, int64_t columns, SampleScratch& s) {
  RowStats mine;
  for (int64_t i = threadIdx.x; i < columns; i += kScanThreads) mine.add(x[i], i);
  return join_stats(mine, s.stats);
}

__device__ bool within(float v, float low, float high) {
  return v >= low && v <= high;
}

__device__ int32_t examine(const SampleCall& call, device::Waited waited, int64_t row) {
  constexpr float kMost = 3.402823466e38f;
  // All at once: none waits for what another says.
  const float temperature = call.temperature.after(waited)[row], top_p = call.top_p.after(waited)[row],
              min_p = call.min_p.after(waited)[row];
  const int32_t top_k = call.top_k.after(waited)[row];
  bool good = within(temperature, 0, kMost) & (top_k >= 0) & within(top_p, 0, 1) & within(min_p, 0, 1);
  if (const float* p = call.penalties.after(waited)) {
    p += row * call.penalty_stride;
    good = good && within(p[0], 0, kMost) && within(p[1], -kMost, kMost) && within(p[2], -kMost, kMost);
  }
  return good ? kSampleOk : kSampleBadParameter;
}

/// Ids before the first -1; -1 when one is outside of the vocabulary. All threads call it.
__device__ int64_t used_ids(const int32_t* ids, int64_t length, int64_t columns, SampleScratch& s) {
  if (ids == nullptr) return 0;
  __syncthreads();
  if (threadIdx.x == 0) s.first = static_cast<int>(length), s.flag = 0;
  __syncthreads();
  for (int64_t i = threadIdx.x; i < length; i += kScanThreads)
    if (ids[i] == -1) atomicMin(&s.first, static_cast<int>(i));
  __syncthreads();
  const int64_t used = s.first;
  for (int64_t i = threadIdx.x; i < used; i += kScanThreads)
    if (ids[i] < 0 || ids[i] >= columns) s.flag = 1;
  __syncthreads();
  return s.flag != 0 ? -1 : used;
}

/// Penalties on tokens of the history, once a token, whichever thread comes to it first.
__device__ void penalize(float* x, const int32_t* ids, int64_t used, const float* p, int32_t* occurrences) {
  for (int64_t i = threadIdx.x; i < used; i += kScanThreads) occurrences[ids[i]] = 0;
  __syncthreads();
  for (int64_t i = threadIdx.x; i < used; i += kScanThreads) atomicAdd(&occurrences[ids[i]], 1);
  __syncthreads();
  const double repetition = p[0] == 0 ? 1.0 : static_cast<double>(p[0]);
  for (int64_t i = threadIdx.x; i < used; i += kScanThreads) {
    const int32_t times = atomicExch(&occurrences[ids[i]], 0);
    if (times == 0) continue;
    const double v = static_cast<double>(x[ids[i]]), repeated = v > 0 ? v / repetition : v * repetition;
    // Two roundings, as the host's arithmetic: no fused multiply-add.
    x[ids[i]] = static_cast<float>(repeated - static_cast<double>(p[1]) -
                                   __dmul_rn(static_cast<double>(p[2]), times));
  }
  __syncthreads();
}

/// Biases in their order: the first entry of an id applies all of that id.
__device__ void add_biases(float* x, const int32_t* ids, const float* values, int64_t used) {
  for (int64_t i = threadIdx.x; i < used; i += kScanThreads) {
    bool first = true;
    for (int64_t j = 0; j < i && first; ++j) first = ids[j] != ids[i];
    if (!first) continue;
    float v = x[ids[i]];
    for (int64_t j = i; j < used; ++j)
      if (ids[j] == ids[i]) v = static_cast<float>(static_cast<double>(v) + static_cast<double>(values[j]));
    x[ids[i]] = v;
  }
  __syncthreads();
}

__device__ double uniform(uint64_t key, uint64_t counter) {
  const Philox4 words = philox(key, counter);
  return static_cast<double>((uint64_t{words[0]} << 32 | words[1]) >> 11) * 0x1p-53;
}

/// The least f32 logit whose weight is at least `least`.
__device__ float lowest_with_weight(float top, double temperature, double least) {
  if (top == INFINITY) return INFINITY;
  const double at = static_cast<double>(top) + temperature * log(least);
  if (at <= -3.402823466e38) return -3.402823466e38f;
  const float rounded = static_cast<float>(at);
  return static_cast<double>(rounded) < at ? nextafterf(rounded, INFINITY) : rounded;
}

__device__ int64_t choose(const SampleCall& call, device::Waited waited, int64_t r, const float* x, float top,
                          SampleScratch& s) {
  constexpr double kShortfall = 0x1p-20;  // sample.h, step 6
  const double temperature = static_cast<double>(call.temperature.after(waited)[r]);
  SampleRow row{x, call.columns, top, static_cast<float>(fmin(kLog2E / temperature, 3.402823466e38))};
  const int32_t top_k = call.top_k.after(waited)[r];
  const double top_p = static_cast<double>(call.top_p.after(waited)[r]);
  const double min_p = static_cast<double>(call.min_p.after(waited)[r]);
  if (top_k > 0 && top_k < call.columns) keep_prefix<false>(&row, static_cast<uint64_t>(top_k), -1, s);
  if (top_p < 1) keep_prefix<true>(&row, 0, top_p * (1 - kShortfall), s);
  if (min_p > 0) {
    const float least = lowest_with_weight(top, temperature, min_p * (1 - kShortfall));
    row.cut = min(row.cut, key_of(least, 0xffffffff));
  }
  return draw(row,
              uniform(static_cast<uint64_t>(call.seed.after(waited)[r]),
                      static_cast<uint64_t>(call.position.after(waited)[r])),
              s);
}

/// All threads return the same; the log-probability is thread 0's.
__device__ int32_t sample_one(const SampleCall& call, device::Waited waited, int64_t r, int64_t* id,
                              float* logprob, SampleScratch& s) {
  if (const int32_t status = examine(call, waited, r); status != kSampleOk) return status;
  const float* const raw = call.logits.after(waited) + r * call.logits_stride;
  const int32_t *history = call.history.after(waited), *bias_ids = call.bias_ids.after(waited);
  if (history) history += r * call.history_stride;
  if (bias_ids) bias_ids += r * call.bias_id_stride;
  int64_t used = used_ids(history, call.history_length, call.columns, s);
  const int64_t biases = used_ids(bias_ids, call.biases, call.columns, s);
  if (used < 0 || biases < 0) return kSampleBadId;
  const RowStats stats =
      raw_stats(call.chunks.after(waited) + r * ((call.columns + kChunk - 1) / kChunk), call.columns, s);
  if (stats.nan) return kSampleNan;
  const float* x = raw;
  RowStats now = stats;
  if (call.penalties.after(waited) == nullptr) used = 0;
  if (used > 0 || biases > 0) {
    float* const adjusted = call.adjusted.after(waited) + r * call.columns;
    for (int64_t i = threadIdx.x; i < call.columns; i += kScanThreads) adjusted[i] = raw[i];
    __syncthreads();
    if (used > 0)
      penalize(adjusted, history, used, call.penalties.after(waited) + r * call.penalty_stride,
               call.occurrences.after(waited) + r * call.columns);
    if (biases > 0)
      add_biases(adjusted, bias_ids, call.bias_values.after(waited) + r * call.bias_value_stride, biases);
    x = adjusted;
    now = adjusted_stats(x, call.columns, s);
    if (now.nan) return kSampleNan;
  }
  if (now.top == -INFINITY) return kSampleNoCandidate;
  *id = call.temperature.after(waited)[r] == 0 ? now.id : choose(call, waited, r, x, now.top, s);
  if (threadIdx.x != 0) return kSampleOk;
  const float chosen = *id == stats.id ? stats.top : raw[*id];
  *logprob =
      chosen == -INFINITY
          ? -INFINITY
          : static_cast<float>(
                (chosen == stats.top ? 0 : static_cast<double>(chosen) - static_cast<double>(stats.top)) -
                log(stats.total()));
  return kSampleOk;
}

__global__ __launch_bounds__(kScanThreads) void sample_rows(device::Upstream upstream, SampleCall call) {
  __shared__ SampleScratch scratch;
  upstream.release_next();
  const auto waited = upstream.wait();
  int64_t id = -1;
  float logprob = NAN;
  const int32_t status = sample_one(call, waited, blockIdx.x, &id, &logprob, scratch);
  if (threadIdx.x != 0) return;
  call.status.after(waited)[blockIdx.x] = status;
  call.ids.after(waited)[blockIdx.x] = static_cast<int32_t>(id);
  call.logprob.after(waited)[blockIdx.x] = logprob;
}

Decline declines(const SampleArgs& a) {
  constexpr int64_t kMostRows = 65535;  // of a grid
  if (a.logits.dim(0) > kMostRows) return decline("rows is ", a.logits.dim(0), ", needs at most ", kMostRows);
  return dense_rows({{"ids", &a.ids},
                     {"status", &a.status},
                     {"logprob", &a.logprob},
                     {"logits", &a.logits},
                     {"temperature", &a.temperature},
                     {"top_k", &a.top_k},
                     {"top_p", &a.top_p},
                     {"min_p", &a.min_p},
                     {"seed", &a.seed},
                     {"position", &a.position},
                     {"history", &a.history},
                     {"penalties", &a.penalties},
                     {"bias_ids", &a.bias_ids},
                     {"bias_values", &a.bias_values}});
}

int64_t columns_of(const SampleArgs& a) {
  return a.vocab == 0 ? a.logits.dim(1) : a.vocab;
}

int64_t chunks_of(const SampleArgs& a) {
  return (columns_of(a) + kChunk - 1) / kChunk;
}

int64_t workspace(const SampleArgs& a) {
  const int64_t adjusted = a.penalties || a.bias_ids ? columns_of(a) * 8 : 0;
  return a.logits.dim(0) * (chunks_of(a) * static_cast<int64_t>(sizeof(RowStats)) + adjusted);
}

Status run(Stream& stream, const SampleArgs& a) {
  if (a.logits.dim(0) == 0) return {};
  SampleCall c;
  c.ids = a.ids.as<int32_t>(), c.status = a.status.as<int32_t>(), c.logprob = a.logprob.as<float>();
  c.logits = a.logits.as<const float>(), c.logits_stride = a.logits.stride(0), c.columns = columns_of(a);
  c.temperature = a.temperature.as<const float>(), c.top_k = a.top_k.as<const int32_t>();
  c.top_p = a.top_p.as<const float>(), c.min_p = a.min_p.as<const float>();
  c.seed = a.seed.as<const int64_t>(), c.position = a.position.as<const int64_t>();
  if (a.history)
    c.history = a.history.as<const int32_t>(), c.history_length = a.history.dim(1),
    c.history_stride = a.history.stride(0);
  if (a.penalties) c.penalties = a.penalties.as<const float>(), c.penalty_stride = a.penalties.stride(0);
  if (a.bias_ids)
    c.bias_ids = a.bias_ids.as<const int32_t>(), c.biases = a.bias_ids.dim(1),
    c.bias_id_stride = a.bias_ids.stride(0), c.bias_values = a.bias_values.as<const float>(),
    c.bias_value_stride = a.bias_values.stride(0);
  const int64_t chunks = chunks_of(a);
  auto* const stats = static_cast<RowStats*>(stream.workspace());
  auto* const adjusted = reinterpret_cast<float*>(stats + a.logits.dim(0) * chunks);
  c.chunks = stats, c.adjusted = adjusted;
  c.occurrences = reinterpret_cast<int32_t*>(adjusted + a.logits.dim(0) * c.columns);
  device::LaunchShape shape;
  if (chunks > 0) {
    shape.grid = {static_cast<unsigned>(chunks), static_cast<unsigned>(a.logits.dim(0)), 1};
    shape.block.x = kChunkThreads;
    RIDGE_TRY(device::launch_dependent(as_cuda(stream).native(), shape, "sample_stats", sample_stats, c));
  }
  shape.grid = {static_cast<unsigned>(a.logits.dim(0)), 1, 1};
  shape.block.x = kScanThreads;
  return device::launch_dependent(as_cuda(stream).native(), shape, "sample_rows", sample_rows, c);
}

}  // namespace

void sample_cuda(Kernels<SampleArgs>& kernels) {
  Kernel<SampleArgs> kernel;
  kernel.name = "sample_rows", kernel.declines = declines, kernel.run = run, kernel.workspace = workspace;
  kernels.add(std::move(kernel));
}

}  // namespace ridge::cuda
