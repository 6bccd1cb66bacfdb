#include "shape.h"

#include <map>
#include <optional>
#include <sstream>

#include "base/checked.h"

namespace ridge::app {

namespace {

using Values = std::map<std::string, int64_t>;

std::optional<int64_t> columns(const Values& v) {
  for (const char* name : {"in", "columns"})
    if (const auto found = v.find(name); found != v.end()) return found->second;
  return std::nullopt;
}

/// What `name` is when it follows from other dims; nothing when it has to be given.
std::optional<int64_t> follows(const std::string& name, const Values& v) {
  const auto has = [&](const char* other) { return v.count(other) != 0; };
  if (name == "history_length" || name == "biases") return 0;
  if (name == "sequences_plus_1" && has("sequences")) return v.at("sequences") + 1;
  if (name == "pairs" && has("head_dim")) return v.at("head_dim") / 2;
  if (name == "pages" && has("sequences") && has("max_pages")) {
    int64_t pages = 0;
    return checked_mul(v.at("sequences"), v.at("max_pages"), &pages) ? pages : 0;
  }
  if (const auto c = columns(v); c && name == "padded") return ceil_div(*c, int64_t{32}) * 32;
  if (const auto c = columns(v); c && name == "blocks")
    return has("padded") ? ceil_div(*c, int64_t{32}) : *c / 32;
  return std::nullopt;
}

std::vector<std::string> names_of(const std::string& case_dims) {
  std::vector<std::string> names;
  std::istringstream words(case_dims);
  for (std::string word; words >> word;) names.push_back(word);
  return names;
}

/// Of `names`, in the same order, those that have to be given.
std::vector<std::string> asked_of(const std::vector<std::string>& names) {
  Values values;
  for (const std::string& name : names) values[name] = 0;
  std::vector<std::string> asked;
  for (const std::string& name : names)
    if (!follows(name, values)) asked.push_back(name);
  return asked;
}

}  // namespace

Result<std::vector<int64_t>> complete_shape(const std::string& op, const std::string& case_dims,
                                            const std::vector<int64_t>& given) {
  const std::vector<std::string> names = names_of(case_dims), asked = asked_of(names);
  for (const int64_t value : given)
    if (value < 0 || value > int64_t{1} << 40)
      return invalid_argument("--shape has ", value, ": use 0 to 2^40");
  if (given.size() == names.size()) return given;
  if (given.size() != asked.size()) {
    std::string list;
    for (const std::string& name : asked) list += text(list.empty() ? "" : ",", name);
    return invalid_argument("--shape has ", given.size(), " numbers, ", op, " takes ", list);
  }
  Values values;
  for (const std::string& name : names) values[name] = 0;
  for (size_t i = 0; i < asked.size(); ++i) values[asked[i]] = given[i];
  std::vector<int64_t> all;
  for (const std::string& name : names) {
    if (const auto value = follows(name, values)) values[name] = *value;
    all.push_back(values[name]);
  }
  return all;
}

std::string shape_text(const std::string& op, const std::string& case_dims,
                       const std::vector<int64_t>& shape) {
  const std::vector<std::string> names = names_of(case_dims), asked = asked_of(names);
  std::vector<int64_t> given;
  for (size_t i = 0, next = 0; i < names.size() && next < asked.size(); ++i)
    if (names[i] == asked[next]) given.push_back(shape[i]), ++next;
  const auto completed = complete_shape(op, case_dims, given);
  std::string out;
  for (const int64_t value : completed.ok() && *completed == shape ? given : shape)
    out += text(out.empty() ? "" : ",", value);
  return out;
}

}  // namespace ridge::app
