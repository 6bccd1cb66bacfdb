// bf16 weights and up to 8 tokens, by linear's own stream: the threads that add up a tile of rows turn them
// and write them where they belong. Limit: read bandwidth of w.

#include "kernels/linear_choice.cuh"
#include "ops/cuda_operands.cuh"
#include "ops/linear_rope_kv/linear_rope_kv.h"
#include "runtime/cuda/cuda_device.h"
#include "tensor/with_dtype.h"

namespace ridge::cuda {

namespace {

Decline declines(const LinearRopeKvArgs& a) {
  if (!a.interleaved) return decline("pairs are half a head apart, this kernel takes interleaved ones");
  if (a.x.dim(0) > kTurnTokens) return decline("tokens is ", a.x.dim(0), ", needs at most ", kTurnTokens);
  if (a.x.dim(1) > kFewTokensWidth || a.x.dim(1) % 8 != 0)
    return decline("in is ", a.x.dim(1), ", needs a multiple of 8 up to ", kFewTokensWidth);
  if (a.q.dim(2) % 2 != 0) return decline("head_dim is ", a.q.dim(2), ", needs to be even");
  if (a.frequencies.dim(0) > kTurnPairs)
    return decline("frequencies has ", a.frequencies.dim(0), " pairs, needs at most ", kTurnPairs);
  if (a.w.layout != nullptr) return decline("w is packed for the CPU: keep the file's layout");
  if (Decline no = aligned_rows({{"x", &a.x}, {"w", &a.w}})) return no;
  return dense_rows({{"q", &a.q}, {"k_pages", &a.k_pages}, {"v_pages", &a.v_pages}, {"bias", &a.bias}});
}

template <class K, class V>
RopeKvEnd<K, V> end_of(const LinearRopeKvArgs& a) {
  RopeKvEnd<K, V> end;
  end.q = a.q.as<float>(), end.k_pages = a.k_pages.as<K>(), end.v_pages = a.v_pages.as<V>();
  end.slots = a.slots.as<const int64_t>(), end.slot_stride = a.slots.stride(0);
  end.positions = static_cast<const void*>(a.positions.data), end.position_stride = a.positions.stride(0);
  end.wide_positions = a.positions.dtype == kI64;
  end.frequencies = a.frequencies.as<const float>(), end.frequency_stride = a.frequencies.stride(0);
  end.page_size = a.k_pages.dim(2), end.capacity = a.k_pages.dim(0) * a.k_pages.dim(2);
  for (int i = 0; i < 2; ++i) end.q_strides[i] = a.q.stride(i);
  for (int i = 0; i < 3; ++i) end.k_strides[i] = a.k_pages.stride(i), end.v_strides[i] = a.v_pages.stride(i);
  end.heads = static_cast<int32_t>(a.q.dim(1)), end.kv_heads = static_cast<int32_t>(a.k_pages.dim(1));
  end.head_dim = static_cast<int32_t>(a.q.dim(2)), end.pairs = static_cast<int32_t>(a.frequencies.dim(0));
  end.settled = a.settled, end.magnitude = a.magnitude;
  return end;
}

Status run(Stream& stream, const LinearRopeKvArgs& a) {
  if (a.x.dim(0) == 0 || a.w.dim(0) == 0) return {};
  LinearCall<bf16, bf16, float> call;
  call.x = a.x.as<const bf16>(), call.w = a.w.as<bf16>();
  if (a.bias) call.bias = a.bias.as<const float>();
  call.tokens = a.x.dim(0), call.out = a.w.dim(0), call.in = a.w.dim(1);
  call.x_stride = a.x.stride(0), call.w_stride = a.w.stride(0);
  return with_dtype<float, f16, bf16>(a.k_pages, [&]<class K>(K) {
    return with_dtype<float, f16, bf16>(a.v_pages, [&]<class V>(V) {
      return launch_few_tokens(as_cuda(stream).native(), call, as_cuda(stream).multiprocessors(),
                               end_of<K, V>(a));
    });
  });
}

}  // namespace

void linear_rope_kv_cuda(Kernels<LinearRopeKvArgs>& kernels) {
  kernels.add("gemm_stream_rope_kv", declines, run, Engine::kBf16);
}

}  // namespace ridge::cuda
