// Limit: read bandwidth; the sum is written on the first pass and read from L1 or L2 on the second.

#include "ops/add_rms_norm/add_rms_norm.h"
#include "runtime/cpu/cpu_device.h"
#include "simd/simd.h"
#include "tensor/with_dtype.h"

namespace ridge::RIDGE_ISA {

namespace {

template <class Y>
void add_and_normalize_row(const AddRmsNormArgs& args, int64_t r) {
  const int64_t hidden = args.sum.dim(1);
  const float *a = args.a.row<float>(r), *b = args.b.row<float>(r), *w = args.w.as<float>();
  float* sum = args.sum.row<float>(r);
  Y* y = args.y.row<Y>(r);
  simd::F32 squares = simd::zero();
  simd::for_each(hidden, [&](int64_t h, int live) {
    const auto v = simd::load(a + h, live) + simd::load(b + h, live);
    simd::store(sum + h, v, live);
    squares = simd::fma(v, v, squares);
  });
  const auto scale =
      simd::set1(1.0f / std::sqrt(simd::sum(squares) / static_cast<float>(hidden) + args.epsilon));
  const auto offset = simd::set1(args.weight_offset);
  simd::for_each(hidden, [&](int64_t h, int live) {
    simd::store(y + h, simd::load(sum + h, live) * scale * (simd::load(w + h, live) + offset), live);
  });
}

Decline dense_rows(const AddRmsNormArgs& a) {
  for (const Tensor* t : {&a.sum, &a.y, &a.a, &a.b, &a.w})
    if (!t->rows_are_dense()) return decline("strides along hidden: make the rows dense");
  return {};
}

Status run(Stream& stream, const AddRmsNormArgs& a) {
  return with_dtype<float, bf16>(a.y, [&]<class Y>(Y) {
    return as_cpu(stream).for_each(a.sum.dim(0), 16.0 * static_cast<double>(a.sum.dim(1)),
                                   [&](int64_t r) { add_and_normalize_row<Y>(a, r); });
  });
}

}  // namespace

void add_rms_norm_cpu(Kernels<AddRmsNormArgs>& kernels) {
  kernels.add("add_rms_norm_by_row", dense_rows, run);
}

}  // namespace ridge::RIDGE_ISA
