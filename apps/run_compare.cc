#include "run_compare.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/stop.h"
#include "lab/compare.h"

namespace ridge::app {

namespace {

using Json = nlohmann::ordered_json;

Result<int> parse_threads(const std::string& word) {
  int threads = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), threads);
  if (error == std::errc() && end == word.data() + word.size() && threads > 0) return threads;
  return invalid_argument("--compare threads=", printable(word), ": use a whole number from 1");
}

std::vector<std::string> names_in(const std::string& list) {
  std::istringstream from(list);
  std::vector<std::string> names;
  for (std::string name; std::getline(from, name, ',');) names.push_back(name);
  return names;
}

/// One side of --compare: the common options with some of them changed, "isa=scalar activations=f32 kv=f32
/// threads=1 no-fuse=all".
Result<SessionOptions> side(CommonOptions common, const std::string& changes) {
  std::istringstream words(changes);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals),
                      value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (key == "isa")
      common.isa = value;
    else if (key == "activations")
      common.activations = value;
    else if (key == "kv")
      common.kv = value;
    else if (key == "threads") {
      RIDGE_ASSIGN(common.threads, parse_threads(value));
    } else if (key == "no-fuse")
      common.without_fusions = names_in(value);
    else
      return invalid_argument("--compare ", printable(word),
                              ": use isa=, activations=, kv=, threads= or no-fuse=");
  }
  return common.session();
}

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

std::string index_text(const std::vector<int64_t>& at) {
  std::string out;
  for (const int64_t i : at) out += text(out.empty() ? "[" : ", ", i);
  return out + "]";
}

Json output_json(const std::optional<JudgedOutput>& o) {
  if (!o || o->judgement.operand.empty()) return {};
  const Judgement& j = o->judgement;
  return {{"label", o->label},
          {"op", o->op},
          {"kernel", o->kernel},
          {"operand", j.operand},
          {"at", j.at},
          {"value", number(j.value)},
          {"wanted", number(j.wanted)},
          {"bound", number(j.bound)},
          {"ratio", number(j.ratio)}};
}

Json side_json(const JudgedSide& s) {
  return {{"calls", s.calls},
          {"unjudged", s.unjudged},
          {"first", output_json(s.first)},
          {"worst", output_json(s.worst)}};
}

Json difference_json(const Difference& d) {
  return {{"label", d.label},       {"op", d.op},
          {"operand", d.operand},   {"kernel_a", d.kernel_a},
          {"kernel_b", d.kernel_b}, {"error", number(d.error)}};
}

/// "layer 1 gate, linear y [2, 17] is 0.31, wanted 0.3, bound 4e-07 (linear_tiles)".
std::string output_text(const JudgedOutput& o) {
  const Judgement& j = o.judgement;
  return text(o.label, ", ", o.op, " ", j.operand, " ", index_text(j.at), " is ", j.value, ", wanted ",
              j.wanted, ", bound ", j.bound, " (", o.kernel, ")");
}

void print_side(char name, const std::string& changes, const JudgedSide& s) {
  std::printf("%c (%s): ", name, printable(changes).c_str());
  if (s.first)
    std::printf("beyond its bound first: %s\n", output_text(*s.first).c_str());
  else if (s.worst && !s.worst->judgement.operand.empty())
    std::printf("%lld calls within their operators' bounds; nearest, at %.2f of it: %s\n",
                static_cast<long long>(s.calls), s.worst->judgement.ratio, output_text(*s.worst).c_str());
  else
    std::printf("%lld calls equal their references\n", static_cast<long long>(s.calls));
  for (const std::string& op : s.unjudged) std::printf("  %s has no reference here\n", op.c_str());
}

void print(const Comparison& c, const std::vector<std::string>& sides, std::optional<double> bound) {
  print_side('A', sides[0], c.a), print_side('B', sides[1], c.b);
  std::printf("Of the prompt's %lld outputs, furthest apart (norm of the difference over norm):\n",
              static_cast<long long>(c.outputs));
  for (const Difference& d : c.apart)
    std::printf("%.3e  %-28s %-18s %-8s (%s | %s)\n", d.error, d.label.c_str(), d.op.c_str(),
                d.operand.c_str(), d.kernel_a.c_str(), d.kernel_b.c_str());
  if (c.too_far)
    std::printf("first beyond %.1e: %s, %s %s: %.3e\n", *bound, c.too_far->label.c_str(),
                c.too_far->op.c_str(), c.too_far->operand.c_str(), c.too_far->error);
}

Json comparison_json(const Comparison& c, const std::vector<std::string>& sides, std::optional<double> bound,
                     size_t tokens) {
  Json apart = Json::array();
  for (const Difference& d : c.apart) apart.push_back(difference_json(d));
  return {{"a", sides[0]},
          {"b", sides[1]},
          {"prompt_tokens", tokens},
          {"sides", {{"a", side_json(c.a)}, {"b", side_json(c.b)}}},
          {"outputs", c.outputs},
          {"apart", apart},
          {"bound", bound ? Json(*bound) : Json()},
          {"too_far", c.too_far ? difference_json(*c.too_far) : Json()}};
}

}  // namespace

Status compare_runs(const CommonOptions& common, const std::vector<std::string>& sides,
                    std::optional<double> bound,
                    const std::function<Result<std::vector<int32_t>>(const Session&)>& encode) {
  if (bound && !(*bound >= 0)) return invalid_argument("--bound is ", *bound, ": use 0 or more");
  RIDGE_ASSIGN(const SessionOptions a_options, side(common, sides[0]));
  RIDGE_ASSIGN(const SessionOptions b_options, side(common, sides[1]));
  RIDGE_ASSIGN(const auto a, Session::open(common.model, a_options));
  RIDGE_TRY(check_stop());
  RIDGE_ASSIGN(const auto b, Session::open(common.model, b_options));
  RIDGE_ASSIGN(const auto prompt, encode(*a));
  RIDGE_ASSIGN(const Comparison c, compare_sessions(*a, *b, prompt, bound));
  if (common.json)
    std::printf("%s\n", comparison_json(c, sides, bound, prompt.size())
                            .dump(-1, ' ', false, Json::error_handler_t::replace)
                            .c_str());
  else
    print(c, sides, bound);
  for (const auto* s : {&c.a, &c.b})
    if (s->first) return declined(s == &c.a ? "A: " : "B: ", output_text(*s->first), ": beyond its bound");
  if (c.too_far)
    return declined(c.too_far->label, ", ", c.too_far->op, " ", c.too_far->operand, " differs by ",
                    c.too_far->error, ", beyond --bound ", *bound);
  return {};
}

}  // namespace ridge::app
