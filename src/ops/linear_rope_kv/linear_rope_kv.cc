#include "ops/linear_rope_kv/linear_rope_kv.h"

#include <vector>

#include "ops/kv_slots.h"
#include "ops/weight_row.h"

namespace ridge {

namespace {

/// LinearRopeKvArgs sum and that of its terms' magnitudes.
struct Product {
  double sum = 0, magnitude = 0;
};
Product product(const LinearRopeKvArgs& a, int64_t t, int64_t row) {
  Product p;
  if (a.bias) p.sum = a.bias.f64(row), p.magnitude = std::fabs(p.sum);
  for (int64_t k = 0; k < a.x.dim(1); ++k) {
    const double term = a.x.f64(t, k) * a.w.f64(row, k);
    p.sum += term, p.magnitude += std::fabs(term);
  }
  return p;
}

/// Element d of a head, of which `at(d)` gives the element before the rotation.
template <class At>
double rotated_sum(const LinearRopeKvArgs& a, int64_t t, int64_t d, const At& at) {
  const int64_t pairs = a.frequencies.dim(0);
  if (d >= 2 * pairs) return at(d);
  const int64_t pair = a.interleaved ? d / 2 : d % pairs;
  const bool second = a.interleaved ? d % 2 == 1 : d >= pairs;
  const int64_t partner = a.interleaved ? d ^ 1 : second ? d - pairs : d + pairs;
  // long double: 2^31 positions times one radian still leave 33 bits behind the point.
  const long double angle =
      static_cast<long double>(a.positions.i64(t)) * static_cast<long double>(a.frequencies.f64(pair));
  const auto sine = static_cast<double>(std::sin(angle)), cosine = static_cast<double>(std::cos(angle));
  return static_cast<double>(a.magnitude) * (at(d) * cosine + at(partner) * (second ? sine : -sine));
}

void linear_rope_kv_reference(const LinearRopeKvArgs& a) {
  const int64_t heads = a.q.dim(1), kv_heads = a.k_pages.dim(1), head_dim = a.q.dim(2);
  const auto element = [&](int64_t t, int64_t head) {
    return [&a, t, first = head * head_dim](int64_t d) { return product(a, t, first + d).sum; };
  };
  for (int64_t t = 0; t < a.q.dim(0); ++t)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t d = 0; d < head_dim; ++d) a.q.set(rotated_sum(a, t, d, element(t, h)), t, h, d);
  for_each_slot(a.slots, a.k_pages, [&](int64_t t, int64_t page, int64_t offset) {
    for (int64_t h = 0; h < kv_heads; ++h)
      for (int64_t d = 0; d < head_dim; ++d) {
        a.k_pages.set(rotated_sum(a, t, d, element(t, heads + h)), page, h, offset, d);
        a.v_pages.set(element(t, heads + kv_heads + h)(d), page, h, offset, d);
      }
  });
}

/// Positions far and near.
void prepare_linear_rope_kv(LinearRopeKvArgs& a, const Dims& d, Random& random) {
  for (int64_t t = 0; t < d["tokens"]; ++t)
    a.positions.set(static_cast<double>(t == 0 ? 60000 : random.below(int64_t{1} << (t % 31))), t);
  const auto pairs = static_cast<double>(a.frequencies.dim(0));
  for (int64_t i = 0; i < a.frequencies.dim(0); ++i)
    a.frequencies.set(std::pow(10000.0, -static_cast<double>(i) / pairs), i);
  a.written = fill_slots(a.slots, d["pages"] * d["page_size"], 5, random);
}

/// linear's bound of both elements of a pair, turned, and rope's own roundings; of head `head` of all of w.
double turned_bound(const LinearRopeKvArgs& a, int64_t t, int64_t head, int64_t d, bool turns) {
  constexpr double kTable = 2.5, kRoundings = 2;  // ops/rope/README.md
  const int64_t pairs = a.frequencies.dim(0), first = head * a.q.dim(2);
  const double unit = (static_cast<double>(a.x.dim(1)) + 3) * 0x1p-24;
  const Product own = product(a, t, first + d);
  if (!turns || d >= 2 * pairs) return unit * own.magnitude;
  const int64_t partner = a.interleaved ? d ^ 1 : d < pairs ? d + pairs : d - pairs;
  const Product other = product(a, t, first + partner);
  return std::fabs(a.magnitude) *
         (unit * (own.magnitude + other.magnitude) +
          (kTable + kRoundings) * 0x1p-24 * (std::fabs(own.sum) + std::fabs(other.sum)));
}

double linear_rope_kv_bound(const Judged<LinearRopeKvArgs>& judged, Tensor LinearRopeKvArgs::*out, int64_t i,
                            int64_t j, int64_t k, int64_t l) {
  const LinearRopeKvArgs& a = judged.inputs;
  const int64_t heads = a.q.dim(1), kv_heads = a.k_pages.dim(1);
  if (out == &LinearRopeKvArgs::q) return turned_bound(a, i, j, k, true);
  for (int64_t t = 0; t < a.slots.dim(0); ++t)
    if (a.slots.i64(t) == i * a.k_pages.dim(2) + k)
      return out == &LinearRopeKvArgs::k_pages ? turned_bound(a, t, heads + j, l, true)
                                               : turned_bound(a, t, heads + kv_heads + j, l, false);
  return 0;
}

std::optional<LinearRopeKvArgs> fuse_linear_rope_kv(const std::vector<const AnyCall*>& calls) {
  if (calls.size() != 2) return {};
  const AnyCall &linear = *calls[0], &rope = *calls[1];
  const Tensor y = operand_of(linear, "y"), w = operand_of(linear, "w"), x = operand_of(linear, "x");
  LinearRopeKvArgs a;
  a.q = operand_of(rope, "q"), a.k_pages = operand_of(rope, "k_pages"),
  a.v_pages = operand_of(rope, "v_pages");
  const Tensor k = operand_of(rope, "k"), v = operand_of(rope, "v");
  const int64_t q_rows = a.q.dim(1) * a.q.dim(2), k_rows = k.dim(1) * k.dim(2);
  const auto* const rows = y.as<float>();
  if (w.dtype != kBF16 || w.layout != nullptr || x.dtype != kBF16 || operand_of(linear, "residual") ||
      a.q.data != rows || k.data != rows + q_rows || v.data != rows + q_rows + k_rows ||
      w.dim(0) != q_rows + 2 * k_rows)
    return {};
  a.x = x, a.w = w, a.bias = operand_of(linear, "bias");
  a.slots = operand_of(rope, "slots"), a.positions = operand_of(rope, "positions");
  a.frequencies = operand_of(rope, "frequencies"), a.written = count_of(rope, "written");
  a.interleaved = param_of(rope, "interleaved") != 0, a.settled = param_of(rope, "settled") != 0;
  a.magnitude = static_cast<float>(param_of(rope, "magnitude"));
  return a;
}

Status check_linear_rope_kv(const LinearRopeKvArgs& a, const Dims& d) {
  if (2 * d["pairs"] > d["head_dim"])
    return invalid_argument("frequencies has ", d["pairs"], " pairs, which rotate ", 2 * d["pairs"],
                            " elements; q has head_dim ", d["head_dim"]);
  if (const int64_t rows = (d["heads"] + 2 * d["kv_heads"]) * d["head_dim"]; rows != d["rows"])
    return invalid_argument("w has ", d["rows"], " rows, needs (heads + 2 kv_heads) head_dim = ", rows);
  if (!std::isfinite(a.magnitude))
    return invalid_argument("magnitude is ", a.magnitude, ", needs a finite number");
  return {};
}

}  // namespace

Operator<LinearRopeKvArgs> describe_linear_rope_kv() {
  using A = LinearRopeKvArgs;
  Operator<A> op;
  op.name = "linear_rope_kv";
  op.shape_key = [](const A& a) {
    return text(a.x.dim(0), "x", a.q.dim(1), "+2x", a.k_pages.dim(1), "x", a.q.dim(2), "x", a.x.dim(1));
  };
  const std::vector<DType> stored = {kF32, kF16, kBF16};
  op.operands = {{"q", &A::q, kOut, kActivations, "tokens heads head_dim", {kF32}},
                 {"k_pages", &A::k_pages, kInto, kKv, "pages kv_heads page_size head_dim", stored},
                 {"v_pages", &A::v_pages, kInto, kKv, "pages kv_heads page_size head_dim", stored},
                 {"x", &A::x, kIn, kActivations, "tokens in", {kBF16}},
                 {"w", &A::w, kIn, kWeights, "rows in", {kBF16}},
                 {"bias", &A::bias, kIn, kWeights, "rows", {kF32}, true},
                 {"slots", &A::slots, kIn, kIndices, "tokens", {kI64}},
                 {"positions", &A::positions, kIn, kIndices, "tokens", {kI32, kI64}},
                 {"frequencies", &A::frequencies, kIn, kScales, "pairs", {kF32}}};
  op.counts = {{"written", &A::written}};
  op.params = {{"interleaved", &A::interleaved}, {"magnitude", &A::magnitude}, {"settled", &A::settled}};
  op.flops = [](const Dims& d) {
    return d["tokens"] * (2 * d["rows"] * d["in"] + (d["heads"] + d["kv_heads"]) * 2 * d["pairs"] * 3);
  };
  op.touched = {{"k_pages", written_elements}, {"v_pages", written_elements}};
  op.reference = linear_rope_kv_reference;
  op.case_dims = "tokens heads kv_heads head_dim pairs pages page_size rows in";
  const auto interleaved = [](A& a) { a.interleaved = true, a.magnitude = 1.25f; };
  const auto settled = [](A& a) { a.interleaved = a.settled = true; };
  op.cases = {{{0, 1, 1, 8, 4, 1, 1, 24, 8}},
              {{1, 1, 1, 2, 1, 1, 1, 6, 8}, 0, interleaved},
              {{7, 3, 1, 46, 23, 3, 16, 230, 64}},
              {{7, 3, 1, 46, 23, 3, 16, 230, 64}, 0, interleaved},
              {{8, 6, 2, 64, 32, 7, 5, 640, 40}, 0, settled},
              {{3, 2, 1, 128, 32, 2, 16, 512, 4104}, 0, settled, "half of the head"},
              {{9, 2, 2, 80, 7, 2, 256, 480, 16}, 0, interleaved},
              {{8, 32, 8, 128, 64, 64, 16, 6144, 4096}, kBench, interleaved}};
  op.prepare = prepare_linear_rope_kv;
  op.tolerance = {linear_rope_kv_bound, false};
  op.check = check_linear_rope_kv;
  op.replaces = {"linear", "rope_kv_write"};
  op.fuse = fuse_linear_rope_kv;
  return op;
}

Status linear_rope_kv(Stream& stream, const LinearRopeKvArgs& args) {
  return dispatch(stream, args);
}

}  // namespace ridge
