// Limit: bandwidth; below about 100 tokens the launch. A thread has a pair (or an element beyond the pairs)
// of one head; angles are as exact as rope's, and made before the wait where positions are settled. A slot
// outside of the pages is skipped, as in kv_write.

#include <algorithm>

#include "device/convert.cuh"
#include "device/launch.cuh"
#include "ops/cuda_operands.cuh"
#include "ops/rope_kv_write/rope_kv_write.h"
#include "runtime/cuda/cuda_device.h"
#include "tensor/with_dtype.h"

namespace ridge::cuda {

namespace {

template <class T>
struct PagesOf {
  device::Fresh<T> data;
  int64_t strides[3] = {};  // page, head, slot; elements
  __device__ T* at(device::Waited waited, int64_t page, int64_t head, int64_t place) const {
    return data.after(waited) + page * strides[0] + head * strides[1] + place * strides[2];
  }
};

template <class K, class V>
struct RopeKvWriteCall {
  device::Fresh<float> q;
  device::Fresh<const float> k, v;
  PagesOf<K> k_pages;
  PagesOf<V> v_pages;
  const int64_t* slots = nullptr;   // these two are read before the wait where they are settled
  const void* positions = nullptr;  // i32 or i64
  const float* frequencies = nullptr;
  int64_t tokens = 0, heads = 0, kv_heads = 0, head_dim = 0, pairs = 0, page_size = 0, capacity = 0;
  int64_t q_strides[2] = {}, k_strides[2] = {}, v_strides[2] = {};
  int64_t slot_stride = 0, position_stride = 0, frequency_stride = 0;
  bool interleaved = false, wide_positions = false, settled = false;
  float magnitude = 1;
};

/// A thread's pair (or element beyond the pairs): where it is in its head and its page, and how it turns.
struct Turn {
  int64_t token = 0, first = 0, second = 0, page = 0, place = 0;
  bool is_pair = false, live = false;
  float sine = 0, cosine = 1;
};

/// Of item i: items < pairs of a token are pairs, the others elements. Reads positions and slots alone.
template <class K, class V>
__device__ Turn turn_of(const RopeKvWriteCall<K, V>& call, device::Checks checks, int64_t i, bool is_query,
                        bool is_value) {
  const int64_t items = call.head_dim - call.pairs, item = i % items;
  Turn turn;
  turn.token = i / items, turn.is_pair = item < call.pairs;
  turn.first = !turn.is_pair ? call.pairs + item : call.interleaved ? 2 * item : item;
  turn.second = !turn.is_pair ? turn.first : call.interleaved ? turn.first + 1 : call.pairs + item;
  const int64_t slot = is_query ? 0 : call.slots[turn.token * call.slot_stride];
  if (!is_query) (void)checks.fit(FaultKind::kSlot, turn.token, 0, slot, -1, call.capacity - 1);
  turn.live = slot >= 0 && (is_query || slot < call.capacity);
  if (!turn.live) return turn;
  turn.page = slot / call.page_size, turn.place = slot % call.page_size;
  if (!turn.is_pair || is_value) return turn;
  const int64_t at = turn.token * call.position_stride;
  const double position = call.wide_positions
                              ? static_cast<double>(static_cast<const int64_t*>(call.positions)[at])
                              : static_cast<double>(static_cast<const int32_t*>(call.positions)[at]);
  (void)checks.fit(FaultKind::kPosition, turn.token, 0, static_cast<int64_t>(position), 0, kMostPosition);
  double sine, cosine;
  sincos(position * static_cast<double>(call.frequencies[item * call.frequency_stride]), &sine, &cosine);
  turn.sine = static_cast<float>(sine * call.magnitude),
  turn.cosine = static_cast<float>(cosine * call.magnitude);
  return turn;
}

/// Turns and writes one item.
template <class K, class V>
__device__ void write_turned(const RopeKvWriteCall<K, V>& call, device::Waited waited, const Turn& turn,
                             int64_t head, bool is_query, bool is_value) {
  if (is_value) {
    const float* const v = call.v.after(waited) + turn.token * call.v_strides[0] + head * call.v_strides[1];
    V* const to = call.v_pages.at(waited, turn.page, head, turn.place);
    to[turn.first] = device::from_float<V>(v[turn.first]);
    if (turn.is_pair) to[turn.second] = device::from_float<V>(v[turn.second]);
    return;
  }
  float* const q = call.q.after(waited) + turn.token * call.q_strides[0] + head * call.q_strides[1];
  const float* const from =
      is_query ? q : call.k.after(waited) + turn.token * call.k_strides[0] + head * call.k_strides[1];
  float a = from[turn.first], b = from[turn.second];
  if (turn.is_pair) {
    const float turned = a * turn.cosine - b * turn.sine;
    b = b * turn.cosine + a * turn.sine, a = turned;
  }
  if (is_query) {
    q[turn.first] = a, q[turn.second] = b;
  } else {
    K* const to = call.k_pages.at(waited, turn.page, head, turn.place);
    to[turn.first] = device::from_float<K>(a);
    if (turn.is_pair) to[turn.second] = device::from_float<K>(b);
  }
}

/// blockIdx.y: query heads, then heads of k, then of v.
template <class K, class V>
__global__ __launch_bounds__(128) void rope_kv_write_pairs(device::Upstream upstream,
                                                           RopeKvWriteCall<K, V> call) {
  upstream.release_next();
  if (!call.settled) (void)upstream.wait();
  const bool is_query = blockIdx.y < call.heads, is_value = blockIdx.y >= call.heads + call.kv_heads;
  const int64_t head = is_query ? blockIdx.y : blockIdx.y - call.heads - (is_value ? call.kv_heads : 0);
  const int64_t all = call.tokens * (call.head_dim - call.pairs);
  int64_t i = int64_t{blockIdx.x} * 128 + threadIdx.x;
  Turn turn;
  if (i < all) turn = turn_of(call, upstream, i, is_query, is_value);
  const auto waited = upstream.wait();
  while (i < all) {
    if (turn.live) write_turned(call, waited, turn, head, is_query, is_value);
    i += int64_t{gridDim.x} * 128;
    if (i < all) turn = turn_of(call, upstream, i, is_query, is_value);
  }
}

Decline declines(const RopeKvWriteArgs& a) {
  if (a.q.dim(1) + 2 * a.k.dim(1) > 65535)
    return decline("q has ", a.q.dim(1), " heads: more than a grid holds");
  return dense_rows(
      {{"q", &a.q}, {"k", &a.k}, {"v", &a.v}, {"k_pages", &a.k_pages}, {"v_pages", &a.v_pages}});
}

template <class K, class V>
RopeKvWriteCall<K, V> call_of(const RopeKvWriteArgs& a) {
  RopeKvWriteCall<K, V> call;
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
  return call;
}

Status run(Stream& stream, const RopeKvWriteArgs& a) {
  if (a.q.dim(0) == 0 || a.q.dim(2) == 0) return {};
  return with_dtype<float, f16, bf16>(a.k_pages, [&]<class K>(K) {
    return with_dtype<float, f16, bf16>(a.v_pages, [&]<class V>(V) {
      const RopeKvWriteCall<K, V> call = call_of<K, V>(a);
      device::LaunchShape shape;
      shape.block.x = 128;
      const int64_t items = call.tokens * (call.head_dim - call.pairs);
      shape.grid.x = static_cast<unsigned>(std::min((items + 127) / 128, int64_t{4096}));
      shape.grid.y = static_cast<unsigned>(call.heads + 2 * call.kv_heads);
      return device::launch_dependent(as_cuda(stream).native(), shape, "rope_kv_write_pairs",
                                      rope_kv_write_pairs<K, V>, call);
    });
  });
}

}  // namespace

void rope_kv_write_cuda(Kernels<RopeKvWriteArgs>& kernels) {
  kernels.add("rope_kv_write_pairs", declines, run);
}

}  // namespace ridge::cuda
