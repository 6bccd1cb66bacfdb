#include "account/cost.h"

#include <algorithm>
#include <numeric>

namespace ridge {

const char* data_class_name(DataClass c) {
  static const char* const kNames[] = {"weights", "kv", "activations", "scales", "indices"};
  return kNames[static_cast<int>(c)];
}
const char* engine_name(Engine e) {
  static const char* const kNames[] = {"f32", "bf16", "f16", "int8", "fp8"};
  return kNames[static_cast<int>(e)];
}

template <class Array>
static int64_t sum(const Array& values) {
  return std::accumulate(values.begin(), values.end(), int64_t{0});
}

int64_t Cost::total_flops() const {
  return sum(flops);
}
int64_t Cost::total_executed() const {
  return sum(executed_flops);
}
int64_t Cost::total_read() const {
  return sum(read_bytes);
}
int64_t Cost::total_written() const {
  return sum(written_bytes);
}

Cost& Cost::operator+=(const Cost& o) {
  for (size_t i = 0; i < kEngines; ++i) flops[i] += o.flops[i], executed_flops[i] += o.executed_flops[i];
  square_flops += o.square_flops;
  for (size_t i = 0; i < kDataClasses; ++i)
    read_bytes[i] += o.read_bytes[i], written_bytes[i] += o.written_bytes[i];
  sent_intra_bytes += o.sent_intra_bytes;
  sent_inter_bytes += o.sent_inter_bytes;
  launches += o.launches;
  return *this;
}

int64_t causal_pairs(int64_t past, int64_t chunk, int64_t window) {
  if (window <= 0 || past + chunk <= window) return chunk * past + chunk * (chunk + 1) / 2;
  // Queries whose whole history fits in the window come first, the others see `window` keys each.
  const int64_t whole = std::clamp<int64_t>(window - past, 0, chunk);
  return whole * past + whole * (whole + 1) / 2 + (chunk - whole) * window;
}

int64_t square_pairs(int64_t past, int64_t chunk) {
  return chunk * (2 * past + chunk);
}

int64_t causal_keys(int64_t past, int64_t chunk, int64_t window) {
  if (chunk == 0) return 0;
  if (window <= 0) return past + chunk;
  return std::min(past + chunk, chunk + window - 1);  // the first query reaches back window - 1 before itself
}

}  // namespace ridge
