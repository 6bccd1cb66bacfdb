// The functions that a template can call, and the tables of filters.
#include <algorithm>
#include <ctime>

#include "formats/template/python_text.h"
#include "formats/template/render.h"

namespace ridge::jinja {

namespace {

Value range(Renderer& r, const Arguments& arguments) {
  const Values a = bind_arguments(r, "range", arguments, {"start", "stop", "step"}, 1);
  const bool one = a[1].is(Kind::kUnset);
  const auto out = std::make_shared<Range>();
  out->start = one ? 0 : r.to_index(a[0], "start of range()");
  out->stop = r.to_index(one ? a[0] : a[1], "stop of range()");
  out->step = a[2].is(Kind::kUnset) ? 1 : r.to_index(a[2], "step of range()");
  if (out->step == 0) r.fail("range() with a step of 0");
  const auto start = static_cast<__int128>(out->start), stop = static_cast<__int128>(out->stop),
             step = static_cast<__int128>(out->step);
  const __int128 span = step > 0 ? stop - start : start - stop, stride = step > 0 ? step : -step;
  const __int128 length = span <= 0 ? 0 : (span + stride - 1) / stride;
  if (length > limits::kTemplateRange)
    r.exhausted(text("a range() of more than ", limits::kTemplateRange, " elements"));
  out->length = static_cast<int64_t>(length);
  return {Kind::kRange, out};
}

Pairs dict_pairs(Renderer& r, const Arguments& arguments, const char* callee) {
  if (arguments.positional.size() > 1) r.fail(text("'", callee, "' takes at most one mapping"));
  Pairs pairs;
  if (!arguments.positional.empty()) {
    const Value& from = arguments.positional[0];
    if (from.is_undefined()) r.fail_undefined(from);
    if (from.is(Kind::kDict)) {
      pairs = from.dict().items;
      r.burn_items(2 * pairs.size());
    } else {
      for (const Value& item : r.to_values(from)) {
        const Values pair = r.to_values(item);
        if (pair.size() != 2) r.fail(text("'", callee, "' needs pairs, found ", pair.size(), " values"));
        r.assign_key(pairs, pair[0], pair[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.named) r.assign_key(pairs, r.make_text(name), value);
  return pairs;
}

Value dict(Renderer& r, const Arguments& arguments) {
  return r.make_dict(dict_pairs(r, arguments, "dict"));
}

Value name_space(Renderer& r, const Arguments& arguments) {
  Pairs pairs = dict_pairs(r, arguments, "namespace");
  for (const auto& [key, value] : pairs)
    if (!key.is_string() || (!key.text().empty() && key.text()[0] == '_'))
      r.fail(text("namespace attribute ", printable(r.str(key)), " begins with an underscore: rename it"));
  return r.make_namespace(std::move(pairs));
}

Value cycler(Renderer& r, const Arguments& arguments) {
  if (arguments.positional.empty() || !arguments.named.empty()) r.fail("cycler() needs items");
  r.burn_items(arguments.positional.size());
  if (deepest(arguments.positional) + 1 > limits::kTemplateValueDepth)
    r.exhausted("values are nested too deep");
  return {Kind::kCycler, std::make_shared<Cycler>(arguments.positional)};
}

Value joiner(Renderer& r, const Arguments& arguments) {
  const Values a = bind_arguments(r, "joiner", arguments, {"sep"});
  if (a[0].depth() + 1 > limits::kTemplateValueDepth) r.exhausted("values are nested too deep");
  return {Kind::kJoiner, std::make_shared<Joiner>(a[0].is(Kind::kUnset) ? Value::string(", ") : a[0])};
}

Value raise_exception(Renderer& r, const Arguments& arguments) {
  const Values a = bind_arguments(r, "raise_exception", arguments, {"message"}, 1);
  r.refuse(r.str(a[0]));
}

// datetime.now().strftime(format), in local time. A naive time has no zone, and whole seconds no fraction.
Value strftime_now(Renderer& r, const Arguments& arguments) {
  const Values a = bind_arguments(r, "strftime_now", arguments, {"format"}, 1);
  const std::string_view given = r.to_text(a[0], "format of strftime_now()");
  if (given.size() > 1000) r.fail("format of strftime_now() is longer than 1000 bytes");
  std::string format;
  for (size_t i = 0; i < given.size(); ++i) {
    const char next = given[i] == '%' && i + 1 < given.size() ? given[i + 1] : '\0';
    if (next == 'f') format += "000000";
    if (next == 'f' || next == 'z' || next == 'Z') {
      ++i;
      continue;
    }
    format += given[i];
    if (next == '%') format += given[++i];
  }
  const std::time_t now = r.now_unix() >= 0 ? static_cast<std::time_t>(r.now_unix()) : std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::string out(64 * format.size() + 64, '\0');
  format += ' ';  // so that an empty result differs from one that does not fit
  out.resize(std::strftime(out.data(), out.size(), format.c_str(), &local));
  if (out.empty()) r.fail("strftime_now() makes too long a text");
  out.pop_back();
  return r.make_text(std::move(out));
}

const std::vector<Named<Function>>& functions() {
  static const std::vector<Named<Function>> kFunctions = {{"range", range},
                                                          {"dict", dict},
                                                          {"namespace", name_space},
                                                          {"cycler", cycler},
                                                          {"joiner", joiner},
                                                          {"raise_exception", raise_exception},
                                                          {"strftime_now", strftime_now}};
  return kFunctions;
}

const FilterTable& filters() {
  static const FilterTable kAll = [] {
    FilterTable all;
    for (const auto& table : {text_filters(), number_filters(), sequence_filters(), selection_filters()})
      all.insert(all.end(), table.begin(), table.end());
    return all;
  }();
  return kAll;
}

template <class Table>
int find_in(const Table& table, std::string_view name) {
  for (size_t i = 0; i < table.size(); ++i)
    if (name == table[i].name) return static_cast<int>(i);
  return -1;
}

}  // namespace

int find_function(std::string_view name) {
  return find_in(functions(), name);
}
const Named<Function>& function_at(int id) {
  return functions()[static_cast<size_t>(id)];
}
int find_filter(std::string_view name) {
  return find_in(filters(), name);
}
const Named<Filter>& filter_at(int id) {
  return filters()[static_cast<size_t>(id)];
}

}  // namespace ridge::jinja
