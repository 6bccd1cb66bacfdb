// Filters on sequences and mappings.
#include <algorithm>

#include "formats/template/filter_parts.h"

namespace ridge::jinja {

namespace {

bool given(const Value& v) {
  return !v.is(Kind::kUnset) && !v.is(Kind::kNone);
}

Value length(Renderer& r, const Value& input, const Arguments& arguments) {
  bind_arguments(r, "length", arguments, {});
  if (input.is(Kind::kLoop)) return r.attribute(input, "length");
  const int64_t n = input.is(Kind::kIterator) ? -1 : r.iterate(input).length();
  if (n < 0) r.fail(text(type_text(input), " has no length: use '| list' first"));
  return Value::integer(n);
}

Value join(Renderer& r, const Value& input, const Arguments& arguments) {
  const Values a = bind_arguments(r, "join", arguments, {"d", "attribute"});
  const std::string separator = a[0].is(Kind::kUnset) ? "" : r.str(a[0]);
  const AttributePath path(r, a[1]);
  std::string out;
  Cursor cursor = r.iterate(input);
  bool first = true;
  for (Value v; cursor.next(&v);) {
    r.burn(1);
    if (!first) out += separator;
    first = false;
    r.append_str(out, path.get(r, v));
    if (static_cast<int64_t>(out.size()) > limits::kTemplateOutputBytes) break;  // make_text refuses it
  }
  return r.make_text(std::move(out));
}

Value defaulted(Renderer& r, const Value& input, const Arguments& arguments) {
  const Values a = bind_arguments(r, "default", arguments, {"default_value", "boolean"});
  const bool use = input.is_undefined() || (r.truth(a[1]) && !r.truth(input));
  if (!use) return input;
  return a[0].is(Kind::kUnset) ? Value::string("") : a[0];
}

Value first(Renderer& r, const Value& input, const Arguments& arguments) {
  bind_arguments(r, "first", arguments, {});
  Value v;
  return r.iterate(input).next(&v) ? v : Value::undefined("No first item, sequence was empty.");
}

Values reversed(Renderer& r, const Value& input) {  // Python's reversed()
  if (input.is(Kind::kIterator)) r.fail(text(type_text(input), " cannot be reversed: use '| list' first"));
  Values all = r.to_values(input);
  std::reverse(all.begin(), all.end());
  return all;
}

Value last(Renderer& r, const Value& input, const Arguments& arguments) {
  bind_arguments(r, "last", arguments, {});
  if (input.is_sequence() && !input.items().empty()) return input.items().back();
  const Values all = reversed(r, input);
  return all.empty() ? Value::undefined("No last item, sequence was empty.") : all[0];
}

Value list(Renderer& r, const Value& input, const Arguments& arguments) {
  bind_arguments(r, "list", arguments, {});
  return r.make_list(r.to_values(input));
}

Value items(Renderer& r, const Value& input, const Arguments& arguments) {
  bind_arguments(r, "items", arguments, {});
  return generate(r, [&](Values& out) {
    if (input.is_undefined()) return;
    if (!input.is(Kind::kDict)) r.fail(text("'items' needs a mapping, found ", type_text(input)));
    for (const auto& [key, value] : input.dict().items) out.push_back(r.make_tuple({key, value}));
  });
}

Value reverse(Renderer& r, const Value& input, const Arguments& arguments) {
  bind_arguments(r, "reverse", arguments, {});
  if (input.is(Kind::kIterator)) {  // has no reversed(): read into a list, which is reversed in place
    Values all = r.to_values(input);
    std::reverse(all.begin(), all.end());
    return r.make_list(std::move(all));
  }
  Values all = reversed(r, input);
  if (!input.is_string()) return r.make_iterator(std::move(all), "list_reverseiterator");
  std::string out;
  for (const Value& c : all) out += c.text();
  return r.make_text(std::move(out));
}

Value unique(Renderer& r, const Value& input, const Arguments& arguments) {
  const Values a = bind_arguments(r, "unique", arguments, {"case_sensitive", "attribute"});
  const AttributePath path(r, a[1]);
  const bool case_sensitive = r.truth(a[0]);
  return generate(r, [&](Values& out) {
    Pairs seen;
    for (const Value& v : r.to_values(input)) {
      const Value found = path.get(r, v);
      const Value key = case_sensitive ? found : ignore_case(r, found);
      if (r.lookup(seen, key) != nullptr) continue;
      r.burn(static_cast<int64_t>(seen.size()) / 4);
      seen.emplace_back(key, Value());
      out.push_back(v);
    }
  });
}

// Sorts `values` by `key_of`, stable; reverse keeps equal ones in order too, as Python's does.
template <class KeyOf>
Values sorted(Renderer& r, const Values& values, bool reverse, KeyOf key_of) {
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& v : values) keyed.emplace_back(key_of(v), v);
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    r.burn(1);
    return reverse ? r.less(b.first, a.first) : r.less(a.first, b.first);
  });
  Values out;
  for (auto& [key, v] : keyed) out.push_back(std::move(v));
  return out;
}

bool is_reverse(Renderer& r, const Value& v) {
  return !v.is(Kind::kUnset) && r.to_index(v, "reverse of a sort") != 0;
}

Value dictsort(Renderer& r, const Value& input, const Arguments& arguments) {
  const Values a = bind_arguments(r, "dictsort", arguments, {"case_sensitive", "by", "reverse"});
  const std::string_view by = a[1].is(Kind::kUnset) ? "key" : r.to_text(a[1], "by of 'dictsort'");
  if (by != "key" && by != "value") r.fail("'dictsort' sorts by 'key' or by 'value'");
  if (!input.is(Kind::kDict)) r.fail(text("'dictsort' needs a mapping, found ", type_text(input)));
  Values pairs;
  for (const auto& [key, value] : input.dict().items) pairs.push_back(r.make_tuple({key, value}));
  return r.make_list(sorted(r, pairs, is_reverse(r, a[2]), [&](const Value& pair) {
    const Value& key = pair.items()[by == "value"];
    return r.truth(a[0]) ? key : ignore_case(r, key);
  }));
}

Value sort(Renderer& r, const Value& input, const Arguments& arguments) {
  const Values a = bind_arguments(r, "sort", arguments, {"reverse", "case_sensitive", "attribute"});
  const bool case_sensitive = r.truth(a[1]);
  std::vector<AttributePath> paths;  // "a,b" sorts by a, then b
  if (a[2].is_string()) {
    r.burn_bytes(a[2].text().size());
    for (const std::string& part : split_attributes(a[2].text())) paths.emplace_back(r, Value::string(part));
  } else {
    paths.emplace_back(r, a[2]);
  }
  return r.make_list(sorted(r, r.to_values(input), is_reverse(r, a[0]), [&](const Value& v) {
    Values keys;
    for (const AttributePath& path : paths) {
      const Value key = path.get(r, v);
      keys.push_back(case_sensitive ? key : ignore_case(r, key));
    }
    return r.make_list(std::move(keys));
  }));
}

Value sum(Renderer& r, const Value& input, const Arguments& arguments) {
  const Values a = bind_arguments(r, "sum", arguments, {"attribute", "start"});
  const AttributePath path(r, a[0]);
  Value total = a[1].is(Kind::kUnset) ? Value::integer(0) : a[1];
  if (total.is_string()) r.fail("'sum' cannot add strings: use 'join'");
  Cursor cursor = r.iterate(input);
  for (Value v; cursor.next(&v);) {
    r.burn(1);
    total = r.binary(Op::kAdd, total, path.get(r, v));
  }
  return total;
}

template <bool largest>
Value extreme(Renderer& r, const Value& input, const Arguments& arguments) {
  const Values a = bind_arguments(r, largest ? "max" : "min", arguments, {"case_sensitive", "attribute"});
  const AttributePath path(r, a[1]);
  const auto key_of = [&](const Value& v) {
    const Value key = path.get(r, v);
    return r.truth(a[0]) ? key : ignore_case(r, key);
  };
  Cursor cursor = r.iterate(input);
  Value best, best_key;
  if (!cursor.next(&best)) return Value::undefined("No aggregated item, sequence was empty.");
  best_key = key_of(best);
  for (Value v; cursor.next(&v);) {
    r.burn(1);
    const Value key = key_of(v);
    if (largest ? r.less(key, best_key, Op::kGreater) : r.less(key, best_key)) best = v, best_key = key;
  }
  return best;
}

Value batch(Renderer& r, const Value& input, const Arguments& arguments) {
  const Values a = bind_arguments(r, "batch", arguments, {"linecount", "fill_with"}, 1);
  return generate(r, [&](Values& out) {
    const Value& size = a[0];
    if (size.is_number() && size.as_double() > static_cast<double>(limits::kTemplateRange))
      r.exhausted(text("batch(", size.as_double(), "), the limit is ", limits::kTemplateRange));
    Values line;
    const auto length = [&] { return Value::integer(static_cast<int64_t>(line.size())); };
    for (const Value& v : r.to_values(input)) {
      if (r.equal(length(), size)) out.push_back(r.make_list(std::exchange(line, {})));
      line.push_back(v);
    }
    if (line.empty()) return;
    if (given(a[1]) && r.less(length(), size))
      line.resize(static_cast<size_t>(r.to_index(size, "linecount of 'batch'")), a[1]);
    out.push_back(r.make_list(std::move(line)));
  });
}

Value slice(Renderer& r, const Value& input, const Arguments& arguments) {
  const Values a = bind_arguments(r, "slice", arguments, {"slices", "fill_with"}, 1);
  return generate(r, [&](Values& out) {
    const int64_t slices = r.to_index(a[0], "slices of 'slice'");
    if (slices == 0) r.fail("'slice' into 0 slices");
    if (slices > limits::kTemplateRange)
      r.exhausted(text("slice(", slices, "), the limit is ", limits::kTemplateRange));
    const Values all = r.to_values(input);
    const auto count = static_cast<int64_t>(all.size());
    for (int64_t i = 0, begin = 0; i < slices; ++i) {
      const bool longer = i < count % slices;
      const int64_t end = begin + count / slices + (longer ? 1 : 0);
      Values part(all.begin() + begin, all.begin() + end);
      if (given(a[1]) && !longer) part.push_back(a[1]);
      out.push_back(r.make_list(std::move(part)));
      begin = end;
    }
  });
}

Value groupby(Renderer& r, const Value& input, const Arguments& arguments) {
  const Values a = bind_arguments(r, "groupby", arguments, {"attribute", "default", "case_sensitive"}, 1);
  const AttributePath path(r, a[0], a[1]);
  const bool case_sensitive = r.truth(a[2]);
  const auto key_of = [&](const Value& v) {
    const Value key = path.get(r, v);
    return case_sensitive ? key : ignore_case(r, key);
  };
  const Values all = sorted(r, r.to_values(input), false, key_of);
  Values out;
  for (size_t begin = 0; begin < all.size();) {
    size_t end = begin + 1;
    const Value key = key_of(all[begin]);
    while (end < all.size() && r.equal(key, key_of(all[end]))) ++end;
    Values members(all.begin() + static_cast<int64_t>(begin), all.begin() + static_cast<int64_t>(end));
    const Value group = r.make_tuple({path.get(r, all[begin]), r.make_list(std::move(members))});
    group.as<List>().is_group = true;
    out.push_back(group);
    begin = end;
  }
  return r.make_list(std::move(out));
}

Value attr(Renderer& r, const Value& input, const Arguments& arguments) {
  const Values a = bind_arguments(r, "attr", arguments, {"name"}, 1);
  const std::string name(r.to_text(a[0], "name of 'attr'"));
  if (input.is(Kind::kDict) && find_method(Kind::kDict, name) < 0)
    return Value::undefined(text(type_text(input), " has no attribute ", printable(name)));
  return r.attribute(input, name);
}

}  // namespace

FilterTable sequence_filters() {
  return {{"length", length}, {"count", length},    {"join", join},          {"default", defaulted},
          {"d", defaulted},   {"first", first},     {"last", last},          {"list", list},
          {"items", items},   {"reverse", reverse}, {"unique", unique},      {"dictsort", dictsort},
          {"sort", sort},     {"sum", sum},         {"min", extreme<false>}, {"max", extreme<true>},
          {"batch", batch},   {"slice", slice},     {"groupby", groupby},    {"attr", attr}};
}

}  // namespace ridge::jinja
