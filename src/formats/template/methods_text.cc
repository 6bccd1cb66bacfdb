// Methods of strings.
#include <algorithm>

#include "formats/template/python_text.h"
#include "formats/template/render.h"

namespace ridge::jinja {

namespace {

bool left_out(const Value& v) {
  return v.is(Kind::kUnset) || v.is(Kind::kNone);
}

template <std::string (*transform)(std::string_view)>
Value changed(Renderer& r, const Value& self, const Arguments& arguments) {
  bind_arguments(r, "method", arguments, {});
  r.burn_bytes(8 * self.text().size());  // character by character
  return r.make_text(transform(self.text()));
}

template <bool (*holds)(std::string_view)>
Value question(Renderer& r, const Value& self, const Arguments& arguments) {
  bind_arguments(r, "method", arguments, {});
  r.burn_bytes(8 * self.text().size());
  return Value::boolean(holds(self.text()));
}
template <Class c>
bool of_class(std::string_view s) {
  return all_of_class(s, c);
}
bool printable_or_empty(std::string_view s) {
  return s.empty() || all_of_class(s, Class::kPrintable);
}
bool is_ascii(std::string_view s) {
  return std::all_of(s.begin(), s.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}
bool is_title(std::string_view s) {
  return title(s) == s && lower(s) != upper(s);
}

template <bool left, bool right>
Value stripped(Renderer& r, const Value& self, const Arguments& arguments) {
  const Values a = bind_arguments(r, "strip", arguments, {"chars"});
  const std::string& s = self.text();
  if (left_out(a[0])) {
    const size_t begin = left ? space_prefix(s) : 0;
    const std::string_view rest = std::string_view(s).substr(begin);
    return r.make_text(rest.substr(0, rest.size() - (right ? space_suffix(rest) : 0)));
  }
  const std::string_view characters = r.to_text(a[0], "the characters of strip()");
  r.burn_bytes(8 * (s.size() + characters.size()));
  return r.make_text(strip(s, characters, left, right));
}

Value pieces(Renderer& r, const Pieces& list) {
  Values out;
  for (const std::string_view piece : list) {
    r.burn(1);
    out.push_back(r.make_text(piece));
  }
  return r.make_list(std::move(out));
}

template <bool from_right>
Value split(Renderer& r, const Value& self, const Arguments& arguments) {
  const Values a = bind_arguments(r, "split", arguments, {"sep", "maxsplit"});
  const int64_t most = a[1].is(Kind::kUnset) ? -1 : r.to_index(a[1], "maxsplit of split()");
  const std::string& s = self.text();
  r.burn_bytes(8 * s.size());
  if (left_out(a[0])) return pieces(r, from_right ? split_space_backwards(s, most) : split_space(s, most));
  const std::string_view separator = r.to_text(a[0], "the separator of split()");
  if (separator.empty()) r.fail("split() with an empty separator");
  r.burn_matches(s, separator);
  return pieces(r, from_right ? split_text_backwards(s, separator, most) : split_text(s, separator, most));
}

Value splitlines(Renderer& r, const Value& self, const Arguments& arguments) {
  const Values a = bind_arguments(r, "splitlines", arguments, {"keepends"});
  r.burn_bytes(8 * self.text().size());
  return pieces(r, split_lines(self.text(), r.truth(a[0])));
}

template <bool from_right>
Value partition(Renderer& r, const Value& self, const Arguments& arguments) {
  const Values a = bind_arguments(r, "partition", arguments, {"sep"}, 1);
  const std::string_view s = self.text(), separator = r.to_text(a[0], "the separator of partition()");
  if (separator.empty()) r.fail("partition() with an empty separator");
  const size_t at = from_right ? find_text_backwards(s, separator) : find_text(s, separator);
  if (at == s.npos) {
    const Value empty = Value::string("");
    return from_right ? r.make_tuple({empty, empty, self}) : r.make_tuple({self, empty, empty});
  }
  return r.make_tuple({r.make_text(s.substr(0, at)), a[0], r.make_text(s.substr(at + separator.size()))});
}

// The part of `s` that s[start:stop] names, and where it begins in bytes.
std::string_view window(Renderer& r, const Value& self, const Value& start, const Value& stop,
                        size_t* begin) {
  const Text& t = self.text_object();
  const auto bound = [&](const Value& v, int64_t otherwise) {
    if (left_out(v)) return otherwise;
    const int64_t i = r.to_index(v, "a position in a string");
    return std::max<int64_t>(i < 0 ? i + t.characters : i, 0);
  };
  const int64_t from = bound(start, 0), to = std::min(bound(stop, t.characters), t.characters);
  *begin = t.bytes.size() + 1;  // beyond the end: nothing is found there, not even ""
  if (from > t.characters || from > to) return {};
  r.burn_bytes(t.bytes.size());
  *begin = t.ascii() ? static_cast<size_t>(from) : byte_offset(t.bytes, from);
  const size_t end = t.ascii() ? static_cast<size_t>(to) : byte_offset(t.bytes, to);
  return std::string_view(t.bytes).substr(*begin, end - *begin);
}

template <bool at_start>
Value starts_or_ends(Renderer& r, const Value& self, const Arguments& arguments) {
  const Values a =
      bind_arguments(r, at_start ? "startswith" : "endswith", arguments, {"prefix", "start", "end"}, 1);
  size_t begin = 0;
  const std::string_view s = window(r, self, a[1], a[2], &begin);
  const auto matches = [&](const Value& v) {
    const std::string_view part = r.to_text(v, at_start ? "the prefix" : "the suffix");
    r.burn_bytes(part.size());
    if (part.size() > s.size() || begin > self.text().size()) return false;
    return (at_start ? s.substr(0, part.size()) : s.substr(s.size() - part.size())) == part;
  };
  if (!a[0].is(Kind::kTuple)) return Value::boolean(matches(a[0]));
  r.burn_items(a[0].items().size());
  return Value::boolean(std::any_of(a[0].items().begin(), a[0].items().end(), matches));
}

template <bool from_right, bool must_exist>
Value find(Renderer& r, const Value& self, const Arguments& arguments) {
  const Values a = bind_arguments(r, must_exist ? "index" : "find", arguments, {"sub", "start", "end"}, 1);
  const std::string_view what = r.to_text(a[0], "the text to find");
  size_t begin = 0;
  const std::string_view s = window(r, self, a[1], a[2], &begin);
  r.burn_bytes(4 * (s.size() + what.size()));
  const size_t at = begin > self.text().size() ? s.npos
                    : from_right               ? find_text_backwards(s, what)
                                               : find_text(s, what);
  if (at != s.npos)
    return Value::integer(count_characters(std::string_view(self.text()).substr(0, begin + at)));
  if (must_exist) r.fail(text("substring ", printable(what), " not found"));
  return Value::integer(-1);
}

Value counted(Renderer& r, const Value& self, const Arguments& arguments) {
  const Values a = bind_arguments(r, "count", arguments, {"sub", "start", "end"}, 1);
  const std::string_view what = r.to_text(a[0], "the text to count");
  size_t begin = 0;
  const std::string_view s = window(r, self, a[1], a[2], &begin);
  r.burn_bytes(4 * what.size());
  r.burn_matches(s, what);
  return Value::integer(begin > self.text().size() ? 0 : count_text(s, what));
}

Value replaced(Renderer& r, const Value& self, const Arguments& arguments) {
  const Values a = bind_arguments(r, "replace", arguments, {"old", "new", "count"}, 2);
  const int64_t most = a[2].is(Kind::kUnset) ? -1 : r.to_index(a[2], "count of replace()");
  r.burn_matches(self.text(), r.to_text(a[0], "what replace() looks for"));
  auto out = replace_text(self.text(), r.to_text(a[0], "what replace() looks for"),
                          r.to_text(a[1], "what replace() puts"), most,
                          static_cast<size_t>(limits::kTemplateOutputBytes));
  if (!out) r.exhausted(text("replace() makes a text of more than ", limits::kTemplateOutputBytes, " bytes"));
  return r.make_text(std::move(*out));
}

Value joined(Renderer& r, const Value& self, const Arguments& arguments) {
  const Values a = bind_arguments(r, "join", arguments, {"iterable"}, 1);
  std::string out;
  bool first = true;
  Cursor cursor = r.iterate(a[0]);
  for (Value v; cursor.next(&v);) {
    r.burn(1);
    if (!first) out += self.text();
    first = false;
    out += r.to_text(v, "an item of join()");
    if (static_cast<int64_t>(out.size()) > limits::kTemplateOutputBytes) break;  // make_text refuses it
  }
  return r.make_text(std::move(out));
}

template <bool suffix>
Value remove_affix(Renderer& r, const Value& self, const Arguments& arguments) {
  const Values a = bind_arguments(r, suffix ? "removesuffix" : "removeprefix", arguments, {"affix"}, 1);
  const std::string_view s = self.text(), affix = r.to_text(a[0], "the text to remove");
  if (affix.size() > s.size()) return self;
  if ((suffix ? s.substr(s.size() - affix.size()) : s.substr(0, affix.size())) != affix) return self;
  return r.make_text(suffix ? s.substr(0, s.size() - affix.size()) : s.substr(affix.size()));
}

enum class Justify { kLeft, kRight, kCenter };
template <Justify where>
Value justified(Renderer& r, const Value& self, const Arguments& arguments) {
  const Values a = bind_arguments(r, "justify", arguments, {"width", "fillchar"}, 1);
  const int64_t width = r.to_index(a[0], "the width");
  const std::string fill = a[1].is(Kind::kUnset) ? " " : std::string(r.to_text(a[1], "the fill character"));
  if (count_characters(fill) != 1) r.fail("the fill character must be one character");
  const int64_t missing = width - self.text_object().characters;
  if (missing <= 0) return self;
  if (missing > limits::kTemplateOutputBytes / 4) r.exhausted(text("a text of ", width, " characters"));
  r.burn_bytes(static_cast<size_t>(missing));
  const int64_t middle = missing / 2 + (missing & width & 1);  // Python's choice of the longer side
  const int64_t before = where == Justify::kLeft ? 0 : where == Justify::kRight ? missing : middle;
  std::string out;
  for (int64_t i = 0; i < before; ++i) out += fill;
  out += self.text();
  for (int64_t i = before; i < missing; ++i) out += fill;
  return r.make_text(std::move(out));
}

Value zfill(Renderer& r, const Value& self, const Arguments& arguments) {
  const Values a = bind_arguments(r, "zfill", arguments, {"width"}, 1);
  const int64_t missing = r.to_index(a[0], "the width") - self.text_object().characters;
  if (missing <= 0) return self;
  if (missing > limits::kTemplateOutputBytes) r.exhausted(text("zfill() to ", missing, " more characters"));
  std::string out = self.text();
  const bool sign = !out.empty() && (out[0] == '-' || out[0] == '+');
  out.insert(sign ? 1 : 0, static_cast<size_t>(missing), '0');
  return r.make_text(std::move(out));
}

Value formatted(Renderer& r, const Value& self, const Arguments& arguments) {
  return r.make_text(brace_format(r, self.text(), arguments));
}

}  // namespace

MethodTable text_methods() {
  static constexpr Kind S = Kind::kString;
  return {{S, "upper", changed<upper>},
          {S, "lower", changed<lower>},
          {S, "casefold", changed<lower>},
          {S, "title", changed<title>},
          {S, "capitalize", changed<capitalize>},
          {S, "swapcase", changed<swap_case>},
          {S, "strip", stripped<true, true>},
          {S, "lstrip", stripped<true, false>},
          {S, "rstrip", stripped<false, true>},
          {S, "split", split<false>},
          {S, "rsplit", split<true>},
          {S, "splitlines", splitlines},
          {S, "partition", partition<false>},
          {S, "rpartition", partition<true>},
          {S, "startswith", starts_or_ends<true>},
          {S, "endswith", starts_or_ends<false>},
          {S, "find", find<false, false>},
          {S, "rfind", find<true, false>},
          {S, "index", find<false, true>},
          {S, "rindex", find<true, true>},
          {S, "count", counted},
          {S, "replace", replaced},
          {S, "join", joined},
          {S, "removeprefix", remove_affix<false>},
          {S, "removesuffix", remove_affix<true>},
          {S, "ljust", justified<Justify::kLeft>},
          {S, "rjust", justified<Justify::kRight>},
          {S, "center", justified<Justify::kCenter>},
          {S, "zfill", zfill},
          {S, "format", formatted},
          {S, "isalpha", question<of_class<Class::kAlpha>>},
          {S, "isalnum", question<of_class<Class::kAlphanumeric>>},
          {S, "isdigit", question<of_class<Class::kDigit>>},
          {S, "isspace", question<of_class<Class::kSpace>>},
          {S, "isprintable", question<printable_or_empty>},
          {S, "isascii", question<is_ascii>},
          {S, "istitle", question<is_title>},
          {S, "isupper", question<is_upper>},
          {S, "islower", question<is_lower>}};
}

}  // namespace ridge::jinja
