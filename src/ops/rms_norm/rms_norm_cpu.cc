// Limit: read bandwidth; a row is read twice, the second time from L1 or L2 (16 KiB at hidden 4096).

#include "ops/rms_norm/rms_norm.h"
#include "runtime/cpu/cpu_device.h"
#include "simd/simd.h"
#include "tensor/with_dtype.h"

namespace ridge::RIDGE_ISA {

namespace {

template <class X, class Y>
void normalize_row(const RmsNormArgs& a, const X* x /* [hidden] */, Y* y /* [hidden] */) {
  const int64_t hidden = a.x.dim(1);
  simd::F32 squares = simd::zero();
  simd::for_each(hidden, [&](int64_t h, int live) {
    const auto v = simd::load(x + h, live);
    squares = simd::fma(v, v, squares);
  });
  const auto scale =
      simd::set1(1.0f / std::sqrt(simd::sum(squares) / static_cast<float>(hidden) + a.epsilon));
  const auto offset = simd::set1(a.weight_offset);
  const auto* w = a.w.as<float>();
  simd::for_each(hidden, [&](int64_t h, int live) {
    simd::store(y + h, simd::load(x + h, live) * scale * (simd::load(w + h, live) + offset), live);
  });
}

Decline dense_rows(const RmsNormArgs& a) {
  if (!a.x.rows_are_dense()) return decline("x has strides along hidden: copy x");
  if (!a.y.rows_are_dense()) return decline("y has strides along hidden: make y dense");
  if (!a.w.is_dense()) return decline("w has strides: copy w");
  return {};
}

Status run(Stream& stream, const RmsNormArgs& a) {
  return with_dtype<float, bf16>(a.x, [&]<class X>(X) {
    return with_dtype<float, bf16>(a.y, [&]<class Y>(Y) {
      const double bytes = static_cast<double>(a.x.dim(1)) * (sizeof(X) + sizeof(Y));
      return as_cpu(stream).for_each(a.x.dim(0), bytes,
                                     [&](int64_t r) { normalize_row(a, a.x.row<X>(r), a.y.row<Y>(r)); });
    });
  });
}

}  // namespace

void rms_norm_cpu(Kernels<RmsNormArgs>& kernels) {
  kernels.add("rms_norm_by_row", dense_rows, run);
}

}  // namespace ridge::RIDGE_ISA
