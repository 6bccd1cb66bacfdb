#include "ops/kv_write/kv_write.h"

#include "ops/kv_slots.h"

namespace ridge {

void kv_write_reference(const KvWriteArgs& a);

namespace {

void prepare_kv_write(KvWriteArgs& a, const Dims& d, Random& random) {
  a.written = fill_slots(a.slots, d["pages"] * d["page_size"], 7, random);
}

bool scales_fit(const Tensor& pages, const Tensor& scale) {
  return (pages.dtype == kI8) == static_cast<bool>(scale);
}

Status check_scales(const char* name, const Tensor& pages, const Tensor& scale) {
  if (scales_fit(pages, scale)) return {};
  return scale ? invalid_argument(name, "_scale is given, but ", name, "_pages is ", dtype_name(pages.dtype),
                                  ": leave it out")
               : invalid_argument(name, "_pages is i8, which needs ", name, "_scale");
}

/// Exact, but for a code whose x / scale lies within the rounding of the division of a tie.
double kv_write_bound(const Judged<KvWriteArgs>& judged, Tensor KvWriteArgs::*out, int64_t page, int64_t head,
                      int64_t offset, int64_t i) {
  const KvWriteArgs& a = judged.inputs;
  const bool keys = out == &KvWriteArgs::k_pages;
  if ((!keys && out != &KvWriteArgs::v_pages) || (a.*out).dtype != kI8) return 0;
  const Tensor& x = keys ? a.k : a.v;
  const Tensor& scale = keys ? judged.reference.k_scale : judged.reference.v_scale;
  const int64_t slot = page * a.k_pages.dim(2) + offset;
  for (int64_t t = 0; t < a.slots.dim(0); ++t) {
    if (a.slots.i64(t) != slot) continue;
    const double q = std::fabs(x.f64(t, head, i) / scale.f64(page, head, offset));
    return std::fabs(q - std::floor(q) - 0.5) <= q * 0x1p-24 ? 1 : 0;
  }
  return 0;
}

}  // namespace

Operator<KvWriteArgs> describe_kv_write() {
  using A = KvWriteArgs;
  Operator<A> op;
  op.name = "kv_write";
  const std::vector<DType> stored = {kF32, kF16, kBF16, kI8};
  op.operands = {{"k", &A::k, kIn, kActivations, "tokens kv_heads head_dim", {kF32}},
                 {"v", &A::v, kIn, kActivations, "tokens kv_heads head_dim", {kF32}},
                 {"k_pages", &A::k_pages, kInto, kKv, "pages kv_heads page_size head_dim", stored},
                 {"v_pages", &A::v_pages, kInto, kKv, "pages kv_heads page_size head_dim", stored},
                 {"k_scale", &A::k_scale, kInto, kScales, "pages kv_heads page_size", {kF32}, true},
                 {"v_scale", &A::v_scale, kInto, kScales, "pages kv_heads page_size", {kF32}, true},
                 {"slots", &A::slots, kIn, kIndices, "tokens", {kI64}}};
  op.params = {{"settled", &A::settled}};
  op.counts = {{"written", &A::written}};
  // Copies and conversions count no FLOPs.
  op.flops = [](const Dims&) { return int64_t{0}; };
  op.touched = {{"k", written_elements},       {"v", written_elements},     {"k_pages", written_elements},
                {"v_pages", written_elements}, {"k_scale", written_scales}, {"v_scale", written_scales}};
  op.reference = kv_write_reference;
  op.case_dims = "tokens kv_heads head_dim pages page_size";
  op.cases = {{{0, 1, 8, 1, 1}},
              {{1, 1, 1, 1, 1}},
              {{33, 2, 46, 3, 16}, 0, nullptr, "K42"},
              {{20, 3, 64, 7, 5}},
              {{3, 1, 80, 2, 256}},
              {{9, 2, 128, 4, 16}},
              {{1, 3, 64, 64, 16}, kBench},
              {{512, 3, 64, 64, 16}, kBench}};
  op.pace_dims = [](const A& a) { return std::vector<int64_t>{a.k.dim(1), a.k.dim(2)}; };
  for (const int64_t kv_heads : {1, 3, 8})
    for (const int64_t head_dim : {64, 256})
      for (const int64_t tokens : {1, 64}) op.pace.push_back({{tokens, kv_heads, head_dim, 8, 16}});
  op.prepare = prepare_kv_write;
  op.choice_exists = [](const A& a) {
    return scales_fit(a.k_pages, a.k_scale) && scales_fit(a.v_pages, a.v_scale);
  };
  op.tolerance = {kv_write_bound, false};
  op.check = [](const A& a, const Dims&) -> Status {
    RIDGE_TRY(check_scales("k", a.k_pages, a.k_scale));
    return check_scales("v", a.v_pages, a.v_scale);
  };
  return op;
}

Status kv_write(Stream& stream, const KvWriteArgs& args) {
  return dispatch(stream, args);
}

}  // namespace ridge
