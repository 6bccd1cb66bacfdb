#pragma once
// rope_kv_write: turns the query and key heads of each token by its position and writes key and value into
// the pages. Limit: bandwidth, and below about 100 tokens the launch. A thread has 8 pairs of one head.

#include "base/checked.h"
#include "device/convert.cuh"
#include "device/launch.cuh"

namespace ridge::cuda {

template <class T>
struct RopeKvCall {
  device::Fresh<T> q_out;              // [tokens, heads, head_dim]; may be q
  device::Fresh<const T> q;            // [tokens, heads, head_dim]
  device::Fresh<const T> k, v;         // [tokens, kv_heads, head_dim]
  device::Fresh<T> k_pages, v_pages;   // pages of [page_size, kv_heads, head_dim] through the strides below
  const int64_t* positions = nullptr;  // [tokens]; complete before the step
  const int64_t* slots = nullptr;      // [tokens]: page * page_size + slot; negative: nothing is written
  const float* turns = nullptr;        // [positions, rotary_dim / 2, 2] cos and sin; read before the wait
  int64_t tokens = 0, heads = 0, kv_heads = 0, head_dim = 0, rotary_dim = 0;  // rotary_dim: a multiple of 16
  int64_t q_stride = 0, q_out_stride = 0, k_stride = 0, v_stride = 0;         // elements between tokens
  int64_t page_size = 0, page_stride = 0, slot_stride = 0, head_stride = 0;   // elements, of the pages
};

/// A row of threads a head: thread i < rotary/16 turns elements 8i … 8i + 7 with their partners rotary/2 on;
/// the others copy 8 elements each.
template <class T>
__global__ __launch_bounds__(256) void rope_kv_write(device::Upstream upstream, RopeKvCall<T> call) {
  const int per_head = static_cast<int>((call.head_dim - call.rotary_dim) / 8 + call.rotary_dim / 16);
  const int turning = static_cast<int>(call.rotary_dim / 16), plain = static_cast<int>(call.head_dim / 8);
  const int turned_heads = static_cast<int>(call.heads + call.kv_heads);
  const int turned = turned_heads * per_head, all = turned + static_cast<int>(call.kv_heads) * plain;
  const int item = blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t token = blockIdx.y + int64_t{blockIdx.z} * gridDim.y;
  if (token >= call.tokens || item >= all) return;

  const bool is_value = item >= turned;
  const int head = is_value ? (item - turned) / plain : item / per_head;
  const int part = is_value ? (item - turned) % plain : item % per_head;
  const bool turns = !is_value && part < turning;
  const int at = turns || is_value ? part * 8 : static_cast<int>(call.rotary_dim) + (part - turning) * 8;
  float4 turn[4];  // cos, sin of 8 pairs
  if (turns) {
    const float* const table = call.turns + (call.positions[token] * (call.rotary_dim / 2) + at) * 2;
#pragma unroll
    for (int i = 0; i < 4; ++i) turn[i] = reinterpret_cast<const float4*>(table)[i];
  }
  const bool is_query = !is_value && head < call.heads;
  const int64_t slot = is_query ? 0 : call.slots[token];
  upstream.release_next();
  const auto waited = upstream.wait();
  if (slot < 0) return;

  const int64_t kv_head = is_value ? head : head - call.heads;
  const T* source = is_query   ? call.q.after(waited) + token * call.q_stride + head * call.head_dim
                    : is_value ? call.v.after(waited) + token * call.v_stride + kv_head * call.head_dim
                               : call.k.after(waited) + token * call.k_stride + kv_head * call.head_dim;
  T* const target = is_query ? call.q_out.after(waited) + token * call.q_out_stride + head * call.head_dim
                             : (is_value ? call.v_pages : call.k_pages).after(waited) +
                                   slot / call.page_size * call.page_stride +
                                   slot % call.page_size * call.slot_stride + kv_head * call.head_stride;
  if (!turns) {
    *reinterpret_cast<uint4*>(target + at) = *reinterpret_cast<const uint4*>(source + at);
    return;
  }
  const int partner = at + static_cast<int>(call.rotary_dim / 2);
  float a[8], b[8], x[8], y[8];
  device::unpack<T>(*reinterpret_cast<const uint4*>(source + at), a);
  device::unpack<T>(*reinterpret_cast<const uint4*>(source + partner), b);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const float c = i & 1 ? turn[i / 2].z : turn[i / 2].x, s = i & 1 ? turn[i / 2].w : turn[i / 2].y;
    x[i] = a[i] * c - b[i] * s;
    y[i] = b[i] * c + a[i] * s;
  }
  *reinterpret_cast<uint4*>(target + at) = device::pack<T>(x);
  *reinterpret_cast<uint4*>(target + partner) = device::pack<T>(y);
}

template <class T>
Status launch_rope_kv(cudaStream_t stream, const RopeKvCall<T>& call) {
  if (call.tokens == 0) return {};
  const int64_t per_head = (call.head_dim - call.rotary_dim) / 8 + call.rotary_dim / 16;
  const int64_t items = (call.heads + call.kv_heads) * per_head + call.kv_heads * (call.head_dim / 8);
  device::LaunchShape shape;
  shape.block.x = items <= 128 ? 128 : 256;
  shape.grid.x = static_cast<unsigned>(ceil_div(items, int64_t{shape.block.x}));
  shape.grid.y = static_cast<unsigned>(min(call.tokens, int64_t{32768}));
  shape.grid.z = static_cast<unsigned>(ceil_div(call.tokens, int64_t{shape.grid.y}));
  return device::launch_dependent(stream, shape, "rope_kv_write", rope_kv_write<T>, call);
}

}  // namespace ridge::cuda
