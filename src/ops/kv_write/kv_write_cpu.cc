// Limit: write bandwidth. One pass over each row, two for i8 (the second reads L1).

#include <limits>

#include "ops/kv_write/kv_write.h"
#include "runtime/cpu/cpu_device.h"
#include "simd/simd.h"
#include "tensor/with_dtype.h"

namespace ridge::RIDGE_ISA {

namespace {

template <class T>
void write_row(const float* x /* [head_dim] */, int64_t head_dim, T* out /* [head_dim] */, float*) {
  simd::for_each(head_dim, [&](int64_t i, int live) { simd::store(out + i, simd::load(x + i, live), live); });
}

void write_row(const float* x, int64_t head_dim, int8_t* out, float* scale) {
  simd::F32 largest = simd::zero(), probe = simd::zero();
  simd::for_each(head_dim, [&](int64_t i, int live) {
    const auto v = simd::load(x + i, live);
    largest = simd::max(largest, simd::abs(v));
    probe = simd::fma(v, simd::zero(), probe);  // NaN once a value is not finite
  });
  if (std::isnan(simd::sum(probe))) {
    *scale = std::numeric_limits<float>::quiet_NaN();
    std::memset(out, 0, static_cast<size_t>(head_dim));
    return;
  }
  *scale = std::max(simd::max_of(largest) / 127.0f, std::numeric_limits<float>::min());
  const auto divisor = simd::set1(*scale);
  simd::for_each(head_dim, [&](int64_t i, int live) {
    simd::store(out + i, simd::round_to_i32(simd::load(x + i, live) / divisor), live);
  });
}

template <class T>
void write_token(const Tensor& x, const Tensor& pages, const Tensor& scale, int64_t t, int64_t slot) {
  const int64_t page = slot / pages.dim(2), offset = slot % pages.dim(2);
  for (int64_t head = 0; head < x.dim(1); ++head) {
    T* out = pages.row<T>(page) + head * pages.stride(1) + offset * pages.stride(2);
    float* s = scale ? scale.row<float>(page) + head * scale.stride(1) + offset * scale.stride(2) : nullptr;
    write_row(x.row<float>(t) + head * x.stride(1), x.dim(2), out, s);
  }
}

Decline dense_heads(const KvWriteArgs& a) {
  if (!a.k.rows_are_dense() || !a.v.rows_are_dense())
    return decline("k or v has strides along head_dim: copy it");
  if (!a.k_pages.rows_are_dense() || !a.v_pages.rows_are_dense())
    return decline("k_pages or v_pages has strides along head_dim: make head_dim innermost");
  return {};
}

Status check_slots(const KvWriteArgs& a) {
  const int64_t pages = a.k_pages.dim(0), page_size = a.k_pages.dim(2);
  for (int64_t t = 0; t < a.slots.dim(0); ++t)
    if (const int64_t slot = a.slots.i64(t); slot < -1 || slot >= pages * page_size)
      return invalid_argument("kv_write: slots[", t, "] is ", slot, ", the cache has ", pages, " pages of ",
                              page_size, ": needs 0 to ", pages * page_size - 1, ", or -1 to skip the token");
  return {};
}

Status run(Stream& stream, const KvWriteArgs& a) {
  RIDGE_TRY(check_slots(a));
  return with_dtype<float, f16, bf16, int8_t>(a.k_pages, [&]<class K>(K) {
    return with_dtype<float, f16, bf16, int8_t>(a.v_pages, [&]<class V>(V) {
      const double bytes =
          static_cast<double>(a.k.dim(1)) * static_cast<double>(a.k.dim(2)) * (8 + sizeof(K) + sizeof(V));
      return as_cpu(stream).for_each(a.slots.dim(0), bytes, [&](int64_t t) {
        const int64_t slot = a.slots.i64(t);
        if (slot < 0) return;
        write_token<K>(a.k, a.k_pages, a.k_scale, t, slot);
        write_token<V>(a.v, a.v_pages, a.v_scale, t, slot);
      });
    });
  });
}

}  // namespace

void kv_write_cpu(Kernels<KvWriteArgs>& kernels) {
  kernels.add("kv_write_by_token", dense_heads, run);
}

}  // namespace ridge::RIDGE_ISA
