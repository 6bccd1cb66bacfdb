// Methods of lists, dicts and cyclers; the table of all methods.
#include <algorithm>
#include <iterator>

#include "formats/template/render.h"

namespace ridge::jinja {

namespace {

Value get(Renderer& r, const Value& self, const Arguments& arguments) {
  const Values a = bind_arguments(r, "get", arguments, {"key", "default"}, 1);
  const Value* found = r.lookup(self.dict().items, a[0]);
  return found != nullptr ? *found : a[1].is(Kind::kUnset) ? Value::none() : a[1];
}

template <ViewOf what>
Value view(Renderer& r, const Value& self, const Arguments& arguments) {
  bind_arguments(r, "method", arguments, {});
  return {Kind::kView, std::make_shared<View>(self, what)};
}

Value copy(Renderer& r, const Value& self, const Arguments& arguments) {
  bind_arguments(r, "copy", arguments, {});
  if (self.is(Kind::kDict)) return r.make_dict(self.dict().items);
  return r.make_list(self.items());
}

Value count(Renderer& r, const Value& self, const Arguments& arguments) {
  const Values a = bind_arguments(r, "count", arguments, {"value"}, 1);
  int64_t n = 0;
  Cursor cursor = r.iterate(self);
  for (Value v; cursor.next(&v);) {
    r.burn(1);
    n += r.equal(v, a[0]);
  }
  return Value::integer(n);
}

Value index(Renderer& r, const Value& self, const Arguments& arguments) {
  const Values a = bind_arguments(r, "index", arguments, {"value", "start", "stop"}, 1);
  const int64_t length = r.iterate(self).length();
  const auto bound = [&](const Value& v, int64_t otherwise) {
    if (v.is(Kind::kUnset)) return otherwise;
    const int64_t i = r.to_index(v, "a position");
    return std::max<int64_t>(i < 0 ? i + length : i, 0);
  };
  const int64_t start = bound(a[1], 0), stop = bound(a[2], length);
  Cursor cursor = r.iterate(self);
  int64_t at = 0;
  for (Value v; at < stop && cursor.next(&v); ++at) {
    r.burn(1);
    if (at >= start && r.equal(v, a[0])) return Value::integer(at);
  }
  r.fail(text("the value is not in ", type_text(self)));
}

Value next(Renderer& r, const Value& self, const Arguments& arguments) {
  bind_arguments(r, "next", arguments, {});
  auto& cycler = self.as<Cycler>();
  const size_t at = cycler.position;
  cycler.position = (at + 1) % cycler.items.size();
  return cycler.items[at];
}

Value reset(Renderer& r, const Value& self, const Arguments& arguments) {
  bind_arguments(r, "reset", arguments, {});
  self.as<Cycler>().position = 0;
  return Value::none();
}

const MethodTable& methods() {
  static const MethodTable kAll = [] {
    MethodTable all = text_methods();
    const MethodTable others = container_methods();
    all.insert(all.end(), others.begin(), others.end());
    return all;
  }();
  return kAll;
}

}  // namespace

MethodTable container_methods() {
  MethodTable all = {{Kind::kDict, "get", get},
                     {Kind::kDict, "items", view<ViewOf::kItems>},
                     {Kind::kDict, "keys", view<ViewOf::kKeys>},
                     {Kind::kDict, "values", view<ViewOf::kValues>},
                     {Kind::kDict, "copy", copy},
                     {Kind::kList, "copy", copy},
                     {Kind::kList, "count", count},
                     {Kind::kList, "index", index},
                     {Kind::kTuple, "count", count},
                     {Kind::kTuple, "index", index},
                     {Kind::kRange, "count", count},
                     {Kind::kRange, "index", index},
                     {Kind::kCycler, "next", next},
                     {Kind::kCycler, "reset", reset}};
  for (const char* name : {"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"})
    all.push_back({Kind::kList, name, nullptr});
  for (const char* name : {"clear", "pop", "popitem", "setdefault", "update"})
    all.push_back({Kind::kDict, name, nullptr});
  return all;
}

int find_method(Kind of, std::string_view name) {
  const MethodTable& all = methods();
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].of == of && name == all[i].name) return static_cast<int>(i);
  return -1;
}

const MethodEntry& method_at(int id) {
  return methods()[static_cast<size_t>(id)];
}

MethodName find_method_name(std::string_view name) {
  static constexpr std::string_view kUnsupported[] = {"encode",    "expandtabs", "format_map", "isdecimal",
                                                      "isnumeric", "maketrans",  "translate",  "isidentifier",
                                                      "fromkeys",  "decode"};
  for (const MethodEntry& entry : methods())
    if (name == entry.name) return MethodName::kSome;
  const bool unsupported =
      std::find(std::begin(kUnsupported), std::end(kUnsupported), name) != std::end(kUnsupported);
  return unsupported ? MethodName::kUnsupported : MethodName::kNone;
}

}  // namespace ridge::jinja
