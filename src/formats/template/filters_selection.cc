// map, select, reject and their kin: filters that take other filters and tests by name.
#include <algorithm>

#include "formats/template/filter_parts.h"
#include "formats/template/python_text.h"

namespace ridge::jinja {

AttributePath::AttributePath(Renderer& r, const Value& attribute, Value otherwise)
    : otherwise_(std::move(otherwise)) {
  if (otherwise_.is(Kind::kNone)) otherwise_ = Value::unset();
  if (attribute.is(Kind::kUnset) || attribute.is(Kind::kNone)) return;
  if (!attribute.is_string()) {
    parts_.push_back(attribute);
    return;
  }
  r.burn_bytes(attribute.text().size());
  for (const std::string_view part : split_text(attribute.text(), ".", -1)) {
    r.burn(1);
    const auto index = all_of_class(part, Class::kDigit) ? python_int(part, 10) : std::nullopt;
    parts_.push_back(index ? Value::integer(*index) : Value::string(std::string(part)));
  }
}

Value AttributePath::get(Renderer& r, Value v) const {
  for (const Value& part : parts_) {
    r.burn(1);
    v = r.item(v, part);
    if (!otherwise_.is(Kind::kUnset) && v.is_undefined()) v = otherwise_;
  }
  return v;
}

std::vector<std::string> split_attributes(const std::string& list) {
  std::vector<std::string> out;
  for (const std::string_view part : split_text(list, ",", -1)) out.emplace_back(part);
  return out;
}

Value ignore_case(Renderer& r, const Value& v) {
  if (!v.is_string()) return v;
  r.burn_bytes(8 * v.text().size());
  return r.make_text(lower(v.text()));
}

namespace {

void map_attribute(Renderer& r, const Value& input, const Arguments& arguments, Values& out) {
  const Values a = bind_arguments(r, "map", arguments, {"attribute", "default"});
  const AttributePath path(r, a[0], a[1]);
  Cursor cursor = r.iterate(input);
  for (Value v; cursor.next(&v);) out.push_back(path.get(r, v));
}

Value map(Renderer& r, const Value& input, const Arguments& arguments) {
  return generate(r, [&](Values& out) {
    if (!r.truth(input)) return;
    const bool by_attribute = std::any_of(arguments.named.begin(), arguments.named.end(),
                                          [](const auto& named) { return named.first == "attribute"; });
    if (arguments.positional.empty() && by_attribute) return map_attribute(r, input, arguments, out);
    if (arguments.positional.empty()) r.fail("'map' needs the name of a filter, or attribute=…");
    const std::string name(r.to_text(arguments.positional[0], "the filter of 'map'"));
    const int id = find_filter(name);
    if (id < 0) r.fail(text("unknown filter ", printable(name), " in 'map'"));
    Arguments rest = arguments;
    rest.positional.erase(rest.positional.begin());
    Cursor cursor = r.iterate(input);
    for (Value v; cursor.next(&v);) out.push_back(r.call_filter(id, v, rest));
  });
}

template <bool keep, bool by_attribute>
void select_into(Renderer& r, const Value& input, const Arguments& arguments, Values& out) {
  static constexpr size_t kName = by_attribute ? 1 : 0;  // position of the test's name
  if (!r.truth(input)) return;
  if (by_attribute && arguments.positional.empty())
    r.fail("'selectattr' and 'rejectattr' need the name of an attribute");
  const AttributePath path(r, by_attribute ? arguments.positional[0] : Value::unset());
  int id = -1;
  Arguments rest;
  if (arguments.positional.size() > kName) {
    const std::string name(r.to_text(arguments.positional[kName], "the test of a selection"));
    id = find_test(name);
    if (id < 0) r.fail(text("unknown test ", printable(name), " in a selection"));
    rest.positional.assign(arguments.positional.begin() + kName + 1, arguments.positional.end());
    rest.named = arguments.named;
  }
  Cursor cursor = r.iterate(input);
  for (Value v; cursor.next(&v);) {
    r.burn(1);
    const Value subject = path.get(r, v);
    if ((id < 0 ? r.truth(subject) : r.call_test(id, subject, rest)) == keep) out.push_back(v);
  }
}

template <bool keep, bool by_attribute>
Value select(Renderer& r, const Value& input, const Arguments& arguments) {
  return generate(r, [&](Values& out) { select_into<keep, by_attribute>(r, input, arguments, out); });
}

}  // namespace

FilterTable selection_filters() {
  return {{"map", map},
          {"select", select<true, false>},
          {"reject", select<false, false>},
          {"selectattr", select<true, true>},
          {"rejectattr", select<false, true>}};
}

}  // namespace ridge::jinja
