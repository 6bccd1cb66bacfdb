// Limit: bandwidth; below about 100 tokens the launch. A thread an element of K and of V; where pages are i8
// a warp a row, whose scale it finds first. The host does not see the slots: one outside of the pages is
// skipped, so that it cannot reach other memory.

#include <algorithm>

#include "device/convert.cuh"
#include "device/launch.cuh"
#include "device/reduce.cuh"
#include "ops/cuda_operands.cuh"
#include "ops/kv_write/kv_write.h"
#include "runtime/cuda/cuda_device.h"
#include "tensor/with_dtype.h"

namespace ridge::cuda {

namespace {

template <class K, class V>
struct KvWriteCall {
  device::Fresh<const float> k, v;  // [tokens, kv_heads, head_dim] through the strides
  device::Fresh<K> k_pages;         // [pages, kv_heads, page_size, head_dim] through the strides
  device::Fresh<V> v_pages;
  device::Fresh<const int64_t> slots;  // [tokens]; negative: skipped
  int64_t capacity = 0;                // pages * page_size
  int64_t tokens = 0, kv_heads = 0, head_dim = 0, page_size = 0, slot_stride = 0;
  int64_t k_strides[2] = {}, v_strides[2] = {}, k_page_strides[3] = {},
          v_page_strides[3] = {};  // elements, outermost first
};

template <class K, class V>
__global__ __launch_bounds__(256) void kv_write_elements(device::Upstream upstream, KvWriteCall<K, V> call) {
  upstream.release_next();
  const auto waited = upstream.wait();
  const int64_t all = call.tokens * call.kv_heads * call.head_dim, step = int64_t{gridDim.x} * 256;
  for (int64_t i = int64_t{blockIdx.x} * 256 + threadIdx.x; i < all; i += step) {
    const int64_t d = i % call.head_dim, head = i / call.head_dim % call.kv_heads,
                  token = i / (call.head_dim * call.kv_heads);
    const int64_t slot = call.slots.after(waited)[token * call.slot_stride];
    (void)upstream.fit(FaultKind::kSlot, token, 0, slot, -1, call.capacity - 1);
    if (slot < 0 || slot >= call.capacity) continue;
    const int64_t page = slot / call.page_size, place = slot % call.page_size;
    const auto at = [&](const int64_t(&strides)[3]) {
      return page * strides[0] + head * strides[1] + place * strides[2] + d;
    };
    call.k_pages.after(waited)[at(call.k_page_strides)] =
        device::from_float<K>(call.k.after(waited)[token * call.k_strides[0] + head * call.k_strides[1] + d]);
    call.v_pages.after(waited)[at(call.v_page_strides)] =
        device::from_float<V>(call.v.after(waited)[token * call.v_strides[0] + head * call.v_strides[1] + d]);
  }
}

/// K or V, for kv_write_rows.
struct KvSide {
  device::Fresh<const float> x;  // [tokens, kv_heads, head_dim]
  device::Fresh<void> pages;     // [pages, kv_heads, page_size, head_dim]
  device::Fresh<float> scale;    // [pages, kv_heads, page_size], of i8 pages
  int64_t x_strides[2] = {}, page_strides[3] = {}, scale_strides[3] = {};  // elements, outermost first
  DType dtype = kF32;
};
struct KvRowsCall {
  KvSide sides[2];
  device::Fresh<const int64_t> slots;
  int64_t capacity = 0, tokens = 0, kv_heads = 0, head_dim = 0, page_size = 0, slot_stride = 0;
};

__device__ void write_code_row(const float* x, int64_t head_dim, int8_t* codes, float* scale) {
  const int lane = threadIdx.x & 31;
  float largest = 0;
  bool finite = true;
  for (int64_t d = lane; d < head_dim; d += 32) {
    largest = fmaxf(largest, fabsf(x[d]));
    finite = finite && isfinite(x[d]);
  }
  largest = device::warp_reduce<device::Max>(largest);
  finite = __all_sync(0xffffffffu, finite) != 0;
  constexpr float kLeastNormal = 1.17549435e-38f;
  const float step = finite ? fmaxf(largest / 127, kLeastNormal) : NAN;
  if (lane == 0) *scale = step;
  for (int64_t d = lane; d < head_dim; d += 32)
    codes[d] = finite ? static_cast<int8_t>(__float2int_rn(x[d] / step)) : int8_t{0};
}

template <class T>
__device__ void write_plain_row(const float* x, int64_t head_dim, void* pages, int64_t at) {
  for (int64_t d = threadIdx.x & 31; d < head_dim; d += 32)
    static_cast<T*>(pages)[at + d] = device::from_float<T>(x[d]);
}

/// A warp a token, head and side.
__global__ __launch_bounds__(256) void kv_write_rows(device::Upstream upstream, KvRowsCall call) {
  upstream.release_next();
  const auto waited = upstream.wait();
  const int64_t all = call.tokens * call.kv_heads * 2, step = int64_t{gridDim.x} * 8;
  for (int64_t i = int64_t{blockIdx.x} * 8 + (threadIdx.x >> 5); i < all; i += step) {
    const KvSide& side = call.sides[i % 2];
    const int64_t head = i / 2 % call.kv_heads, token = i / 2 / call.kv_heads;
    const int64_t slot = call.slots.after(waited)[token * call.slot_stride];
    (void)upstream.fit(FaultKind::kSlot, token, 0, slot, -1, call.capacity - 1);
    if (slot < 0 || slot >= call.capacity) continue;
    const int64_t page = slot / call.page_size, place = slot % call.page_size;
    const float* const x = side.x.after(waited) + token * side.x_strides[0] + head * side.x_strides[1];
    const int64_t at =
        page * side.page_strides[0] + head * side.page_strides[1] + place * side.page_strides[2];
    void* const pages = side.pages.after(waited);
    if (side.dtype == kF32) write_plain_row<float>(x, call.head_dim, pages, at);
    if (side.dtype == kF16) write_plain_row<f16>(x, call.head_dim, pages, at);
    if (side.dtype == kBF16) write_plain_row<bf16>(x, call.head_dim, pages, at);
    if (side.dtype == kI8)
      write_code_row(x, call.head_dim, static_cast<int8_t*>(pages) + at,
                     side.scale.after(waited) + page * side.scale_strides[0] + head * side.scale_strides[1] +
                         place * side.scale_strides[2]);
  }
}

KvSide side_of(const Tensor& x, const Tensor& pages, const Tensor& scale) {
  KvSide side;
  side.x = x.as<const float>(), side.pages = pages.data, side.dtype = pages.dtype;
  for (int i = 0; i < 2; ++i) side.x_strides[i] = x.stride(i);
  for (int i = 0; i < 3; ++i) side.page_strides[i] = pages.stride(i);
  if (!scale) return side;
  side.scale = scale.as<float>();
  for (int i = 0; i < 3; ++i) side.scale_strides[i] = scale.stride(i);
  return side;
}

Decline declines_rows(const KvWriteArgs& a) {
  return dense_rows({{"k", &a.k}, {"v", &a.v}, {"k_pages", &a.k_pages}, {"v_pages", &a.v_pages}});
}

Status run_rows(Stream& stream, const KvWriteArgs& a) {
  if (a.k.elements() == 0) return {};
  KvRowsCall call;
  call.sides[0] = side_of(a.k, a.k_pages, a.k_scale), call.sides[1] = side_of(a.v, a.v_pages, a.v_scale);
  call.slots = a.slots.as<const int64_t>(), call.slot_stride = a.slots.stride(0);
  call.tokens = a.k.dim(0), call.kv_heads = a.k.dim(1), call.head_dim = a.k.dim(2);
  call.page_size = a.k_pages.dim(2), call.capacity = a.k_pages.dim(0) * a.k_pages.dim(2);
  device::LaunchShape shape;
  shape.block.x = 256;
  shape.grid.x = static_cast<unsigned>(std::min((call.tokens * call.kv_heads * 2 + 7) / 8, int64_t{8192}));
  return device::launch_dependent(as_cuda(stream).native(), shape, "kv_write_rows", kv_write_rows, call);
}

Decline declines(const KvWriteArgs& a) {
  if (a.k_pages.dtype == kI8 || a.v_pages.dtype == kI8)
    return decline("k_pages is ", dtype_name(a.k_pages.dtype), " and v_pages ", dtype_name(a.v_pages.dtype),
                   ", this kernel takes f32, f16 and bf16");
  return dense_rows({{"k", &a.k}, {"v", &a.v}, {"k_pages", &a.k_pages}, {"v_pages", &a.v_pages}});
}

Status run(Stream& stream, const KvWriteArgs& a) {
  if (a.k.elements() == 0) return {};
  return with_dtype<float, f16, bf16>(a.k_pages, [&]<class K>(K) {
    return with_dtype<float, f16, bf16>(a.v_pages, [&]<class V>(V) {
      KvWriteCall<K, V> call;
      call.k = a.k.as<const float>(), call.v = a.v.as<const float>(), call.k_pages = a.k_pages.as<K>(),
      call.v_pages = a.v_pages.as<V>();
      call.slots = a.slots.as<const int64_t>(), call.slot_stride = a.slots.stride(0);
      call.tokens = a.k.dim(0), call.kv_heads = a.k.dim(1), call.head_dim = a.k.dim(2),
      call.page_size = a.k_pages.dim(2);
      call.capacity = a.k_pages.dim(0) * a.k_pages.dim(2);
      for (int i = 0; i < 2; ++i) call.k_strides[i] = a.k.stride(i), call.v_strides[i] = a.v.stride(i);
      for (int i = 0; i < 3; ++i)
        call.k_page_strides[i] = a.k_pages.stride(i), call.v_page_strides[i] = a.v_pages.stride(i);
      device::LaunchShape shape;
      shape.block.x = 256;
      shape.grid.x = static_cast<unsigned>(std::min((a.k.elements() + 255) / 256, int64_t{8192}));
      return device::launch_dependent(as_cuda(stream).native(), shape, "kv_write_elements",
                                      kv_write_elements<K, V>, call);
    });
  });
}

}  // namespace

void kv_write_cuda(Kernels<KvWriteArgs>& kernels) {
  kernels.add("kv_write_elements", declines, run);
  kernels.add("kv_write_rows", declines_rows, run_rows);
}

}  // namespace ridge::cuda
