#include "ops/sample/sample.h"

#include <limits>

namespace ridge {

void sample_reference(const SampleArgs& a);

const char* sample_status_name(int32_t status) {
  switch (status) {
    case kSampleOk:
      return "fine";
    case kSampleNan:
      return "a logit is NaN";
    case kSampleNoCandidate:
      return "every logit is -inf";
    case kSampleBadParameter:
      return "a sampling parameter is out of range";
    case kSampleBadId:
      return "an id of the history or of the biases is outside the vocabulary";
  }
  return "unknown";
}

namespace {

int64_t live_columns(const SampleArgs& a) {
  return a.vocab == 0 ? a.logits.dim(1) : a.vocab;
}

/// What does not need the values of rows.
Status check_sample(const SampleArgs& a, const Dims& d) {
  if (a.vocab < 0 || a.vocab > d["columns"])
    return invalid_argument("sample: vocab is ", a.vocab, ", needs to be 0 to columns, ", d["columns"]);
  if (d["columns"] > std::numeric_limits<int32_t>::max())
    return invalid_argument("sample: columns is ", d["columns"], ", ids are 32-bit");
  if (a.penalties && !a.history)
    return invalid_argument("sample: penalties without history: pass the tokens that they apply to");
  if (bool(a.bias_ids) != bool(a.bias_values))
    return invalid_argument(
        "sample: ", a.bias_ids ? "bias_ids without bias_values" : "bias_values without bias_ids",
        ": pass both or neither");
  return {};
}

Status in_range(const Tensor& t, const char* name, int64_t row, double low, double high, const char* wanted) {
  const double v = t.f64(row);
  if (v >= low && v <= high) return {};
  return invalid_argument("sample: ", name, " of row ", row, " is ", v, ", needs to be ", wanted);
}

Status check_ids(const Tensor& t, const char* name, int64_t row, int64_t vocab) {
  for (int64_t i = 0; i < t.dim(1); ++i) {
    const int64_t id = t.i64(row, i);
    if (id == -1) return {};
    if (id < 0 || id >= vocab)
      return invalid_argument("sample: ", name, " of row ", row, " holds ", id, ", needs ids below ", vocab,
                              " and -1 for padding");
  }
  return {};
}

/// Parameters of rows, in host memory.
Status check_rows(const SampleArgs& a) {
  constexpr double kFinite = std::numeric_limits<float>::max();
  for (int64_t r = 0; r < a.logits.dim(0); ++r) {
    RIDGE_TRY(in_range(a.temperature, "temperature", r, 0, kFinite, "at least 0 and finite"));
    RIDGE_TRY(in_range(a.top_k, "top_k", r, 0, HUGE_VAL, "at least 0"));
    RIDGE_TRY(in_range(a.top_p, "top_p", r, 0, 1, "from 0 to 1"));
    RIDGE_TRY(in_range(a.min_p, "min_p", r, 0, 1, "from 0 to 1"));
    if (a.history) RIDGE_TRY(check_ids(a.history, "history", r, live_columns(a)));
    if (a.bias_ids) RIDGE_TRY(check_ids(a.bias_ids, "bias_ids", r, live_columns(a)));
    for (int64_t i = 0; a.penalties && i < 3; ++i) {
      const char* const names[] = {"repetition", "presence", "frequency"};
      const double v = a.penalties.f64(r, i);
      if (!(v >= (i == 0 ? 0 : -kFinite) && v <= kFinite))
        return invalid_argument("sample: ", names[i], " penalty of row ", r, " is ", v,
                                ", needs to be finite", i == 0 ? " and at least 0" : "");
    }
  }
  return {};
}

template <class T>
T one_of(Random& random, std::initializer_list<T> choices) {
  return choices.begin()[random.below(static_cast<int64_t>(choices.size()))];
}

/// Rows cycle through every combination of filters off and on; values are random.
void prepare_sample(SampleArgs& a, const Dims& d, Random& random) {
  const int64_t vocab = d["columns"];
  for (int64_t r = 0; r < d["rows"]; ++r) {
    a.temperature.set(r % 9 == 8 ? 0.0f : one_of(random, {0.3f, 0.8f, 1.0f, 1.7f}), r);
    a.top_k.set(r & 1 ? static_cast<double>(1 + random.below(vocab + 2)) : 0, r);
    a.top_p.set(r & 2 ? one_of(random, {0.0f, 0.3f, 0.8f, 0.97f}) : 1, r);
    a.min_p.set(r & 4 ? one_of(random, {0.01f, 0.1f, 0.7f}) : 0, r);
    a.seed.set(static_cast<double>(random.bits()) * (r & 1 ? -1 : 1), r);
    a.position.set(static_cast<double>(random.bits()), r);
    for (int64_t i = 0; i < vocab; ++i) a.logits.set(3 * a.logits.f64(r, i), r, i);
    for (int64_t i = 0; a.history && i < a.history.dim(1); ++i)
      a.history.set(
          i < a.history.dim(1) - r ? static_cast<double>(random.below(std::min<int64_t>(vocab, 40))) : -1, r,
          i);
    for (int64_t i = 0; a.penalties && i < 3; ++i)
      a.penalties.set(i == 0 ? one_of(random, {0.0f, 0.7f, 1.3f}) : one_of(random, {-0.5f, 0.0f, 0.9f}), r,
                      i);
    for (int64_t i = 0; a.bias_ids && i < a.bias_ids.dim(1); ++i)
      a.bias_ids.set(i < a.bias_ids.dim(1) - r % 3 ? static_cast<double>(random.below(vocab)) : -1, r, i);
    for (int64_t i = 0; a.bias_values && i < a.bias_values.dim(1); ++i)
      a.bias_values.set(i == 1 ? -HUGE_VAL : random.uniform(-4, 4), r, i);
  }
}

void fill_row(SampleArgs& a, int64_t r, double value) {
  for (int64_t i = 0; i < a.logits.dim(1); ++i) a.logits.set(value, r, i);
}

/// K30, and a row that must not notice.
void not_finite(SampleArgs& a) {
  fill_row(a, 0, -HUGE_VAL), a.logits.set(-3, 0, 17);
  fill_row(a, 1, -HUGE_VAL);
  a.logits.set(std::nan(""), 2, a.logits.dim(1) - 1);
  a.logits.set(HUGE_VAL, 3, 5);
  a.logits.set(HUGE_VAL, 4, 9), a.logits.set(HUGE_VAL, 4, 30);
  a.logits.set(HUGE_VAL, 5, 9), a.logits.set(std::nan(""), 5, 10);
  a.temperature.set(std::nan(""), 7), a.top_k.set(-1, 8), a.top_p.set(1.5, 9), a.min_p.set(-0.5, 10);
  if (a.history) a.history.set(static_cast<double>(a.logits.dim(1)), 11, 0);
  if (a.bias_ids) a.bias_ids.set(-2, 12, 0);
  if (a.penalties) a.penalties.set(-1, 13, 0);
}

/// Equal logits by the hundred; top_k and top_p cut through them.
void ties(SampleArgs& a) {
  for (int64_t r = 0; r < a.logits.dim(0); ++r)
    for (int64_t i = 0; i < a.logits.dim(1); ++i) a.logits.set(static_cast<double>(i * 7 % 5 + r % 2), r, i);
}

/// K29: pad lanes are NaN and huge.
void padded(SampleArgs& a) {
  a.vocab = a.logits.dim(1) - 64;
  for (int64_t r = 0; r < a.logits.dim(0); ++r)
    for (int64_t i = a.vocab; i < a.logits.dim(1); ++i) a.logits.set(r % 2 ? std::nan("") : 1e30, r, i);
  for (int64_t r = 0; a.bias_ids && r < a.logits.dim(0); ++r)
    for (int64_t i = 0; i < a.bias_ids.dim(1); ++i)
      if (a.bias_ids.i64(r, i) >= a.vocab) a.bias_ids.set(static_cast<double>(i), r, i);
}

}  // namespace

Operator<SampleArgs> describe_sample() {
  Operator<SampleArgs> op;
  op.name = "sample";
  op.operands = {{"ids", &SampleArgs::ids, kOut, kIndices, "rows", {kI32}},
                 {"status", &SampleArgs::status, kOut, kIndices, "rows", {kI32}},
                 {"logprob", &SampleArgs::logprob, kOut, kActivations, "rows", {kF32}},
                 {"logits", &SampleArgs::logits, kIn, kActivations, "rows columns", {kF32}},
                 {"temperature", &SampleArgs::temperature, kIn, kActivations, "rows", {kF32}},
                 {"top_k", &SampleArgs::top_k, kIn, kIndices, "rows", {kI32}},
                 {"top_p", &SampleArgs::top_p, kIn, kActivations, "rows", {kF32}},
                 {"min_p", &SampleArgs::min_p, kIn, kActivations, "rows", {kF32}},
                 {"seed", &SampleArgs::seed, kIn, kIndices, "rows", {kI64}},
                 {"position", &SampleArgs::position, kIn, kIndices, "rows", {kI64}},
                 {"history", &SampleArgs::history, kIn, kIndices, "rows history_length", {kI32}, true},
                 {"penalties", &SampleArgs::penalties, kIn, kActivations, "rows 3", {kF32}, true},
                 {"bias_ids", &SampleArgs::bias_ids, kIn, kIndices, "rows biases", {kI32}, true},
                 {"bias_values", &SampleArgs::bias_values, kIn, kActivations, "rows biases", {kF32}, true}};
  op.params = {{"vocab", &SampleArgs::vocab}};
  // The largest, and of each logit a difference, an exponential and a sum: 4.
  op.flops = [](const Dims& d) { return 4 * d["rows"] * d["columns"]; };
  op.reference = sample_reference;
  op.case_dims = "rows columns history_length biases";
  op.cases = {{{0, 8, 2, 2}},
              {{2, 0, 0, 0}},
              {{1, 1, 1, 1}},
              {{9, 2, 3, 2}},
              {{9, 16, 0, 0}},
              {{18, 97, 20, 4}},
              {{18, 64, 4, 3}, 0, not_finite, "K30"},
              {{18, 600, 4, 3}, 0, ties, "K31"},
              {{18, 320, 30, 3}, 0, padded, "K29"},
              {{18, 5000, 50, 3}},
              {{9, 33000, 50, 3}, kSlow},
              {{9, 9000, 50, 3}, 0, ties, "K31, two blocks"},
              {{1, 49152, 1, 1}, kBench},
              {{1, 262144, 1, 1}, kBench},
              {{64, 154880, 1, 1}, kBench}};
  // Greedy: filters add passes that the Cost does not count, and the account must not forgive.
  const auto greedy = [](SampleArgs& a) {
    for (int64_t r = 0; r < a.logits.dim(0); ++r) a.temperature.set(0, r);
  };
  op.pace = {{{1, 4096, 1, 1}, 0, greedy}, {{1, 65536, 1, 1}, 0, greedy}};
  op.prepare = prepare_sample;
  op.choice_exists = [](const SampleArgs& a) {
    return (!a.penalties || a.history) && bool(a.bias_ids) == bool(a.bias_values);
  };
  // Ids and statuses are exact: no case draws within rounding of a boundary. The logarithm of a sum of
  // positive terms is off by the relative error of the sum: 128 additions a lane, 6 to fold lanes, 2 for the
  // exponential, and 3 roundings of its argument d = largest - logit, each worth d, whose mean is below
  // ln(columns) + 2 < 24.
  op.tolerance = {[](const Judged<SampleArgs>&, Tensor SampleArgs::*out, int64_t, int64_t, int64_t, int64_t) {
    return out == static_cast<Tensor SampleArgs::*>(&SampleArgs::logprob) ? (136 + 3 * 24) * 0x1p-24 : 0.0;
  }};
  op.check = check_sample;
  return op;
}

Status sample(Stream& stream, const SampleArgs& args) {
  if (stream.target().backend == "cpu") {
    // Shapes first: check_rows trusts them.
    RIDGE_TRY(registered<SampleArgs>().check(&args));
    RIDGE_TRY(check_rows(args));
  }
  return dispatch(stream, args);
}

}  // namespace ridge
