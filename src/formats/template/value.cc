#include "formats/template/value.h"

#include <algorithm>

namespace ridge::jinja {

namespace {
int64_t count_characters(const std::string& s) {
  int64_t n = 0;
  for (const char c : s) n += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return n;
}
int deepest_pair(const Pairs& pairs) {
  int depth = 0;
  for (const auto& [key, value] : pairs) depth = std::max({depth, key.depth(), value.depth()});
  return depth;
}
}  // namespace

int deepest(const Values& values) {
  int depth = 0;
  for (const Value& v : values) depth = std::max(depth, v.depth());
  return depth;
}

Text::Text(std::string v) : Object(0), bytes(std::move(v)), characters(count_characters(bytes)) {}
List::List(Values v) : Object(deepest(v) + 1), items(std::move(v)) {}
Dict::Dict(Pairs v) : Object(deepest_pair(v) + 1), items(std::move(v)) {}
Iterator::Iterator(Values v, const char* t) : Object(deepest(v) + 1), items(std::move(v)), type(t) {}
Cycler::Cycler(Values v) : Object(deepest(v) + 1), items(std::move(v)) {}

Value Value::boolean(bool v) {
  Value out(Kind::kBool);
  out.integer_ = v;
  return out;
}
Value Value::integer(int64_t v) {
  Value out(Kind::kInt);
  out.integer_ = v;
  return out;
}
Value Value::number(double v) {
  Value out(Kind::kFloat);
  out.float_ = v;
  return out;
}
Value Value::string(std::string v) {
  return {Kind::kString, std::make_shared<Text>(std::move(v))};
}
Value Value::list(Values items) {
  return {Kind::kList, std::make_shared<List>(std::move(items))};
}
Value Value::tuple(Values items) {
  return {Kind::kTuple, std::make_shared<List>(std::move(items))};
}
Value Value::dict(std::vector<std::pair<std::string, Value>> items) {
  // Sorting indices finds repeated keys in n log n.
  std::vector<size_t> order(items.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return items[a].first < items[b].first; });
  std::vector<char> repeated(items.size());
  for (size_t i = 0; i < order.size();) {
    size_t end = i + 1;
    while (end < order.size() && items[order[end]].first == items[order[i]].first) ++end;
    if (end - i > 1) items[order[i]].second = items[order[end - 1]].second;
    for (size_t j = i + 1; j < end; ++j) repeated[order[j]] = 1;
    i = end;
  }
  Pairs pairs;
  pairs.reserve(items.size());
  for (size_t i = 0; i < items.size(); ++i)
    if (!repeated[i]) pairs.emplace_back(string(std::move(items[i].first)), std::move(items[i].second));
  return dict(std::move(pairs));
}
Value Value::dict(Pairs items) {
  return {Kind::kDict, std::make_shared<Dict>(std::move(items))};
}
Value Value::undefined(std::string why) {
  return {Kind::kUndefined, std::make_shared<Why>(std::move(why))};
}
Value Value::function(int id) {
  Value out(Kind::kFunction);
  out.integer_ = id;
  return out;
}

}  // namespace ridge::jinja
