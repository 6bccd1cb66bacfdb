#pragma once
// rope_kv_write: turns the query and key heads of each token by its position and writes key and value into
// their slot. Limit: bandwidth; below about 100 tokens the launch. Few tokens: a thread has a pair (or an
// element beyond the pairs) of one head, whose angle it works out itself. Many: a block has a token, works
// its angles out once for all heads, and moves four elements at a time. Angles are as exact as rope's, and
// made before the wait where positions are settled. A slot outside of the pages is skipped, as in kv_write.

#include "device/convert.cuh"
#include "device/launch.cuh"

namespace ridge::cuda {

template <class T>
struct PagesOf {
  device::Fresh<T> data;
  int64_t strides[3] = {};  // page, head, slot; elements
  __device__ T* at(device::Waited waited, int64_t page, int64_t head, int64_t place) const {
    return data.after(waited) + page * strides[0] + head * strides[1] + place * strides[2];
  }
};

template <class K, class V>
struct RopeKvCall {
  device::Fresh<float> q;           // [tokens, heads, head_dim], turned in place
  device::Fresh<const float> k, v;  // [tokens, kv_heads, head_dim]
  PagesOf<K> k_pages;               // [pages, kv_heads, page_size, head_dim]
  PagesOf<V> v_pages;
  const int64_t* slots = nullptr;   // these two are read before the wait where they are settled
  const void* positions = nullptr;  // i32 or i64
  const float* frequencies = nullptr;
  int64_t tokens = 0, heads = 0, kv_heads = 0, head_dim = 0, pairs = 0, page_size = 0, capacity = 0;
  int64_t q_strides[2] = {}, k_strides[2] = {}, v_strides[2] = {};
  int64_t slot_stride = 0, position_stride = 0, frequency_stride = 0;
  bool interleaved = false, wide_positions = false, settled = false;
  bool quads = false;  // pairs, head_dim, strides and addresses are whole groups of 4 elements
  float magnitude = 1;

  /// The slot of a token; -1 where it has none in the cache.
  __device__ int64_t slot_of(device::Checks checks, int64_t token) const {
    const int64_t slot = slots[token * slot_stride];
    (void)checks.fit(FaultKind::kSlot, token, 0, slot, -1, capacity - 1);
    return slot >= 0 && slot < capacity ? slot : -1;
  }
  /// Cosine and sine of a pair of a token, times the magnitude.
  __device__ float2 turn_of(device::Checks checks, int64_t token, int64_t pair) const {
    const int64_t at = token * position_stride;
    const double position = wide_positions ? static_cast<double>(static_cast<const int64_t*>(positions)[at])
                                           : static_cast<double>(static_cast<const int32_t*>(positions)[at]);
    (void)checks.fit(FaultKind::kPosition, token, 0, static_cast<int64_t>(position), 0, kMostPosition);
    double sine, cosine;
    sincos(position * static_cast<double>(frequencies[pair * frequency_stride]), &sine, &cosine);
    return {static_cast<float>(cosine * magnitude), static_cast<float>(sine * magnitude)};
  }
};

/// A thread's pair (or element beyond the pairs): where it is in its head and its page, and how it turns.
struct Turn {
  int64_t token = 0, first = 0, second = 0, page = 0, place = 0;
  bool is_pair = false, live = false;
  float2 turn = {1, 0};
};

/// Of item i: items < pairs of a token are pairs, the others elements. Reads positions and slots alone.
template <class K, class V>
__device__ Turn turn_of(const RopeKvCall<K, V>& call, device::Checks checks, int64_t i, bool is_query,
                        bool is_value) {
  const int64_t items = call.head_dim - call.pairs, item = i % items;
  Turn turn;
  turn.token = i / items, turn.is_pair = item < call.pairs;
  turn.first = !turn.is_pair ? call.pairs + item : call.interleaved ? 2 * item : item;
  turn.second = !turn.is_pair ? turn.first : call.interleaved ? turn.first + 1 : call.pairs + item;
  const int64_t slot = is_query ? 0 : call.slot_of(checks, turn.token);
  turn.live = slot >= 0;
  if (!turn.live) return turn;
  turn.page = slot / call.page_size, turn.place = slot % call.page_size;
  if (turn.is_pair && !is_value) turn.turn = call.turn_of(checks, turn.token, item);
  return turn;
}

/// Turns and writes one item.
template <class K, class V>
__device__ void write_turned(const RopeKvCall<K, V>& call, device::Waited waited, const Turn& turn,
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
    const float turned = a * turn.turn.x - b * turn.turn.y;
    b = b * turn.turn.x + a * turn.turn.y, a = turned;
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
__global__ __launch_bounds__(128) void rope_kv_write_pairs(device::Upstream upstream, RopeKvCall<K, V> call) {
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

template <class T>
__device__ __forceinline__ void store4(T* to, float a, float b, float c, float d) {
  if constexpr (sizeof(T) == 4)
    *reinterpret_cast<float4*>(to) = {a, b, c, d};
  else
    *reinterpret_cast<uint2*>(to) = {device::pack2<T>(a, b), device::pack2<T>(c, d)};
}

/// Four pairs from the `pair`-th on, of one head: from `from` to `to`.
template <class T>
__device__ __forceinline__ void turn_quad(const float* from, T* to, const float2* turns, int pair, int pairs,
                                          bool interleaved) {
  const float4 u = *reinterpret_cast<const float4*>(from + (interleaved ? 2 * pair : pair)),
               w = *reinterpret_cast<const float4*>(from + (interleaved ? 2 * pair + 4 : pairs + pair));
  const float a[4] = {u.x, interleaved ? u.z : u.y, interleaved ? w.x : u.z, interleaved ? w.z : u.w},
              b[4] = {interleaved ? u.y : w.x, interleaved ? u.w : w.y, interleaved ? w.y : w.z, w.w};
  float x[4], y[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 turn = turns[pair + i];
    x[i] = a[i] * turn.x - b[i] * turn.y;
    y[i] = b[i] * turn.x + a[i] * turn.y;
  }
  if (interleaved) {
    store4(to + 2 * pair, x[0], y[0], x[1], y[1]);
    store4(to + 2 * pair + 4, x[2], y[2], x[3], y[3]);
  } else {
    store4(to + pair, x[0], x[1], x[2], x[3]);
    store4(to + pairs + pair, y[0], y[1], y[2], y[3]);
  }
}

/// A quad of a turned head: four pairs, or four elements beyond them.
template <class T>
__device__ __forceinline__ void move_quad(const float* from, T* to, const float2* turns, int quad, int pairs,
                                          bool interleaved) {
  if (4 * quad < pairs) return turn_quad(from, to, turns, 4 * quad, pairs, interleaved);
  const float4 u = *reinterpret_cast<const float4*>(from + pairs + 4 * quad);
  store4(to + pairs + 4 * quad, u.x, u.y, u.z, u.w);
}

inline constexpr int kTurnsOfBlock = 256;  // pairs, at most

/// A block a token.
template <class K, class V>
__global__ __launch_bounds__(128) void rope_kv_write_tokens(device::Upstream upstream,
                                                            RopeKvCall<K, V> call) {
  __shared__ float2 turns[kTurnsOfBlock];
  upstream.release_next();
  if (!call.settled) (void)upstream.wait();
  const int64_t token = blockIdx.x, slot = call.slot_of(upstream, token);
  const int pairs = static_cast<int>(call.pairs), head_dim = static_cast<int>(call.head_dim);
  for (int i = threadIdx.x; i < pairs; i += 128) turns[i] = call.turn_of(upstream, token, i);
  __syncthreads();
  const auto waited = upstream.wait();
  const int turned = (head_dim - pairs) / 4, plain = head_dim / 4;  // quads of a head
  const int queries = static_cast<int>(call.heads) * turned, keys = static_cast<int>(call.kv_heads) * turned,
            values = static_cast<int>(call.kv_heads) * plain;
  float* const q = call.q.after(waited) + token * call.q_strides[0];
  for (int i = threadIdx.x; i < queries; i += 128) {
    float* const row = q + i / turned * call.q_strides[1];
    move_quad(row, row, turns, i % turned, pairs, call.interleaved);
  }
  if (slot < 0) return;
  const int64_t page = slot / call.page_size, place = slot - page * call.page_size;
  for (int i = threadIdx.x; i < keys; i += 128)
    move_quad(call.k.after(waited) + token * call.k_strides[0] + i / turned * call.k_strides[1],
              call.k_pages.at(waited, page, i / turned, place), turns, i % turned, pairs, call.interleaved);
  for (int i = threadIdx.x; i < values; i += 128) {
    const int head = i / plain, column = i % plain * 4;
    const float4 u = *reinterpret_cast<const float4*>(call.v.after(waited) + token * call.v_strides[0] +
                                                      head * call.v_strides[1] + column);
    store4(call.v_pages.at(waited, page, head, place) + column, u.x, u.y, u.z, u.w);
  }
}

template <class K, class V>
Status launch_rope_kv(cudaStream_t stream, const RopeKvCall<K, V>& call) {
  constexpr int64_t kManyTokens = 256;
  device::LaunchShape shape;
  shape.block.x = 128;
  if (call.quads && call.tokens >= kManyTokens && call.pairs <= kTurnsOfBlock) {
    shape.grid.x = static_cast<unsigned>(call.tokens);
    return device::launch_dependent(stream, shape, "rope_kv_write_tokens", rope_kv_write_tokens<K, V>, call);
  }
  const int64_t items = call.tokens * (call.head_dim - call.pairs);
  shape.grid.x = static_cast<unsigned>(min((items + 127) / 128, int64_t{4096}));
  shape.grid.y = static_cast<unsigned>(call.heads + 2 * call.kv_heads);
  return device::launch_dependent(stream, shape, "rope_kv_write_pairs", rope_kv_write_pairs<K, V>, call);
}

}  // namespace ridge::cuda
