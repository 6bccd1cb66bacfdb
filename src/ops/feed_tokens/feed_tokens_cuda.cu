// Limit: the launch. A thread a token.

#include "device/launch.cuh"
#include "ops/cuda_operands.cuh"
#include "ops/feed_tokens/feed_tokens.h"
#include "runtime/cuda/cuda_device.h"

namespace ridge::cuda {

namespace {

struct FeedTokensCall {
  device::Fresh<int32_t> ids;  // [tokens]
  device::Fresh<const int32_t> source, sampled;
  int64_t tokens = 0, rows = 0;
};

__global__ __launch_bounds__(128) void feed_tokens_each(device::Upstream upstream, FeedTokensCall call) {
  upstream.release_next();
  const auto waited = upstream.wait();
  const int64_t t = int64_t{blockIdx.x} * 128 + threadIdx.x;
  if (t >= call.tokens) return;
  const int32_t from = call.source.after(waited)[t];
  if (from >= 0 && from < call.rows) call.ids.after(waited)[t] = call.sampled.after(waited)[from];
}

Decline declines(const FeedTokensArgs& a) {
  return dense_rows({{"ids", &a.ids}, {"source", &a.source}, {"sampled", &a.sampled}});
}

Status run(Stream& stream, const FeedTokensArgs& a) {
  if (a.ids.dim(0) == 0) return {};
  FeedTokensCall call;
  call.ids = a.ids.as<int32_t>(), call.source = a.source.as<const int32_t>(),
  call.sampled = a.sampled.as<const int32_t>();
  call.tokens = a.ids.dim(0), call.rows = a.sampled.dim(0);
  device::LaunchShape shape;
  shape.block.x = 128;
  shape.grid.x = static_cast<unsigned>((call.tokens + 127) / 128);
  return device::launch_dependent(as_cuda(stream).native(), shape, "feed_tokens_each", feed_tokens_each,
                                  call);
}

}  // namespace

void feed_tokens_cuda(Kernels<FeedTokensArgs>& kernels) {
  kernels.add("feed_tokens_each", declines, run);
}

}  // namespace ridge::cuda
