#include "ops/rope_kv_write/rope_kv_write.h"

#include "ops/kv_slots.h"

namespace ridge {

void rope_kv_write_reference(const RopeKvWriteArgs& a);

namespace {

/// Positions far and near.
void prepare_rope_kv_write(RopeKvWriteArgs& a, const Dims& d, Random& random) {
  for (int64_t t = 0; t < d["tokens"]; ++t)
    a.positions.set(static_cast<double>(t == 0 ? 60000 : random.below(int64_t{1} << (t % 31))), t);
  const auto pairs = static_cast<double>(a.frequencies.dim(0));
  for (int64_t i = 0; i < a.frequencies.dim(0); ++i)
    a.frequencies.set(std::pow(10000.0, -static_cast<double>(i) / pairs), i);
  a.written = fill_slots(a.slots, d["pages"] * d["page_size"], 5, random);
}

/// rope's bound for element d of a head of x.
double rotation_bound(const RopeKvWriteArgs& a, const Tensor& x, int64_t t, int64_t h, int64_t d) {
  constexpr double kTable = 2.5, kRoundings = 2;  // ops/rope/README.md
  const int64_t pairs = a.frequencies.dim(0);
  if (d >= 2 * pairs) return 0;
  const int64_t partner = a.interleaved ? d ^ 1 : d < pairs ? d + pairs : d - pairs;
  return (kTable + kRoundings) * 0x1p-24 * std::fabs(a.magnitude) *
         (std::fabs(x.f64(t, h, d)) + std::fabs(x.f64(t, h, partner)));
}

/// v is exact.
double rope_kv_write_bound(const Judged<RopeKvWriteArgs>& judged, Tensor RopeKvWriteArgs::*out, int64_t i,
                           int64_t j, int64_t k, int64_t l) {
  const RopeKvWriteArgs& a = judged.inputs;
  if (out == &RopeKvWriteArgs::q) return rotation_bound(a, a.q, i, j, k);
  if (out == &RopeKvWriteArgs::v_pages) return 0;
  for (int64_t t = 0; t < a.slots.dim(0); ++t)
    if (a.slots.i64(t) == i * a.k_pages.dim(2) + k) return rotation_bound(a, a.k, t, j, l);
  return 0;
}

std::optional<RopeKvWriteArgs> fuse_rope_kv_write(const std::vector<const AnyCall*>& calls) {
  const AnyCall &rope_q = *calls[0], &rope_k = *calls[1], &write = *calls[2];
  RopeKvWriteArgs a;
  a.q = operand_of(rope_q, "x"), a.k = operand_of(rope_k, "x"), a.v = operand_of(write, "v");
  a.k_pages = operand_of(write, "k_pages"), a.v_pages = operand_of(write, "v_pages");
  a.slots = operand_of(write, "slots"), a.positions = operand_of(rope_q, "positions");
  a.frequencies = operand_of(rope_q, "frequencies");
  a.written = count_of(write, "written");
  a.interleaved = param_of(rope_q, "interleaved") != 0;
  a.magnitude = static_cast<float>(param_of(rope_q, "magnitude"));
  a.settled = param_of(rope_q, "settled") != 0 && param_of(write, "settled") != 0;
  if (a.q.dtype != kF32 || operand_of(write, "k").data != a.k.data || a.q.data == a.k.data ||
      a.k_pages.dtype == kI8 || a.v_pages.dtype == kI8 ||
      operand_of(rope_k, "positions").data != a.positions.data ||
      operand_of(rope_k, "frequencies").data != a.frequencies.data ||
      (param_of(rope_k, "interleaved") != 0) != a.interleaved ||
      static_cast<float>(param_of(rope_k, "magnitude")) != a.magnitude)
    return {};
  return a;
}

}  // namespace

Operator<RopeKvWriteArgs> describe_rope_kv_write() {
  using A = RopeKvWriteArgs;
  Operator<A> op;
  op.name = "rope_kv_write";
  const std::vector<DType> stored = {kF32, kF16, kBF16};
  op.operands = {{"q", &A::q, kInOut, kActivations, "tokens heads head_dim", {kF32}},
                 {"k", &A::k, kIn, kActivations, "tokens kv_heads head_dim", {kF32}},
                 {"v", &A::v, kIn, kActivations, "tokens kv_heads head_dim", {kF32}},
                 {"k_pages", &A::k_pages, kInto, kKv, "pages kv_heads page_size head_dim", stored},
                 {"v_pages", &A::v_pages, kInto, kKv, "pages kv_heads page_size head_dim", stored},
                 {"slots", &A::slots, kIn, kIndices, "tokens", {kI64}},
                 {"positions", &A::positions, kIn, kIndices, "tokens", {kI32, kI64}},
                 {"frequencies", &A::frequencies, kIn, kScales, "pairs", {kF32}}};
  op.counts = {{"written", &A::written}};
  op.params = {{"interleaved", &A::interleaved}, {"magnitude", &A::magnitude}, {"settled", &A::settled}};
  // Two products and a sum for each rotated element.
  op.flops = [](const Dims& d) { return d["tokens"] * (d["heads"] + d["kv_heads"]) * 2 * d["pairs"] * 3; };
  op.touched = {{"k", written_elements},
                {"v", written_elements},
                {"k_pages", written_elements},
                {"v_pages", written_elements},
                {"q", [](const Dims& d) { return d["tokens"] * d["heads"] * 2 * d["pairs"]; }}};
  op.reference = rope_kv_write_reference;
  op.case_dims = "tokens heads kv_heads head_dim pairs pages page_size";
  const auto interleaved = [](A& a) { a.interleaved = true, a.magnitude = 1.25f; };
  op.cases = {{{0, 1, 1, 8, 4, 1, 1}},
              {{1, 1, 1, 1, 0, 1, 1}},
              {{7, 3, 1, 46, 23, 3, 16}},
              {{7, 3, 1, 46, 23, 3, 16}, 0, interleaved},
              {{9, 6, 2, 64, 32, 7, 5}},
              {{3, 4, 2, 128, 32, 2, 16}, 0, nullptr, "half of the head"},
              {{3, 2, 2, 80, 7, 2, 256}, 0, interleaved},
              {{300, 3, 1, 16, 8, 20, 16}, 0, nullptr, "many tokens"},
              {{260, 1, 2, 24, 8, 5, 64}, 0, interleaved, "many tokens, part of the head"},
              {{1, 9, 3, 64, 32, 64, 16}, kBench},
              {{512, 9, 3, 64, 32, 64, 16}, kBench}};
  op.prepare = prepare_rope_kv_write;
  op.tolerance = {rope_kv_write_bound, false};
  op.check = [](const A& a, const Dims& d) -> Status {
    if (2 * d["pairs"] > d["head_dim"])
      return invalid_argument("frequencies has ", d["pairs"], " pairs, which rotate ", 2 * d["pairs"],
                              " elements; q has head_dim ", d["head_dim"]);
    if (!std::isfinite(a.magnitude))
      return invalid_argument("magnitude is ", a.magnitude, ", needs a finite number");
    return {};
  };
  op.replaces = {"rope", "rope", "kv_write"};
  op.fuse = fuse_rope_kv_write;
  return op;
}

Status rope_kv_write(Stream& stream, const RopeKvWriteArgs& args) {
  return dispatch(stream, args);
}

}  // namespace ridge
