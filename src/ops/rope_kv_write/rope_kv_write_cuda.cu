// Limit: bandwidth; below about 100 tokens the launch. kernels/rope_kv.cuh.

#include "kernels/rope_kv.cuh"
#include "ops/cuda_operands.cuh"
#include "ops/rope_kv_write/rope_kv_write.h"
#include "runtime/cuda/cuda_device.h"
#include "tensor/with_dtype.h"

namespace ridge::cuda {

namespace {

Decline declines(const RopeKvWriteArgs& a) {
  if (a.q.dim(1) + 2 * a.k.dim(1) > 65535)
    return decline("q has ", a.q.dim(1), " heads: more than a grid holds");
  return dense_rows(
      {{"q", &a.q}, {"k", &a.k}, {"v", &a.v}, {"k_pages", &a.k_pages}, {"v_pages", &a.v_pages}});
}

/// Whether every row of `t` begins at a multiple of 4 elements from an address that holds 4 of them aligned.
bool in_quads(const Tensor& t) {
  if (t.dim(t.rank() - 1) % 4 != 0) return false;
  for (int d = 0; d + 1 < t.rank(); ++d)
    if (t.stride(d) % 4 != 0) return false;
  return reinterpret_cast<uintptr_t>(t.data) % static_cast<uintptr_t>(4 * dtype_block_bytes(t.dtype)) == 0;
}

template <class K, class V>
RopeKvCall<K, V> call_of(const RopeKvWriteArgs& a) {
  RopeKvCall<K, V> call;
  call.q = a.q.as<float>(), call.k = a.k.as<const float>(), call.v = a.v.as<const float>();
  call.k_pages.data = a.k_pages.as<K>(), call.v_pages.data = a.v_pages.as<V>();
  for (int i = 0; i < 3; ++i)
    call.k_pages.strides[i] = a.k_pages.stride(i), call.v_pages.strides[i] = a.v_pages.stride(i);
  for (int i = 0; i < 2; ++i)
    call.q_strides[i] = a.q.stride(i), call.k_strides[i] = a.k.stride(i), call.v_strides[i] = a.v.stride(i);
  call.slots = a.slots.as<const int64_t>(), call.slot_stride = a.slots.stride(0);
  call.positions = static_cast<const void*>(a.positions.data), call.position_stride = a.positions.stride(0);
  call.wide_positions = a.positions.dtype == kI64;
  call.frequencies = a.frequencies.as<float>(), call.frequency_stride = a.frequencies.stride(0);
  call.tokens = a.q.dim(0), call.heads = a.q.dim(1), call.kv_heads = a.k.dim(1), call.head_dim = a.q.dim(2);
  call.pairs = a.frequencies.dim(0), call.page_size = a.k_pages.dim(2);
  call.capacity = a.k_pages.dim(0) * a.k_pages.dim(2);
  call.interleaved = a.interleaved, call.magnitude = a.magnitude, call.settled = a.settled;
  call.quads = call.pairs % 4 == 0 && in_quads(a.q) && in_quads(a.k) && in_quads(a.v) &&
               in_quads(a.k_pages) && in_quads(a.v_pages);
  return call;
}

Status run(Stream& stream, const RopeKvWriteArgs& a) {
  if (a.q.dim(0) == 0 || a.q.dim(2) == 0) return {};
  return with_dtype<float, f16, bf16>(a.k_pages, [&]<class K>(K) {
    return with_dtype<float, f16, bf16>(
        a.v_pages, [&]<class V>(V) { return launch_rope_kv(as_cuda(stream).native(), call_of<K, V>(a)); });
  });
}

}  // namespace

void rope_kv_write_cuda(Kernels<RopeKvWriteArgs>& kernels) {
  kernels.add("rope_kv_write_pairs", declines, run);
}

}  // namespace ridge::cuda
