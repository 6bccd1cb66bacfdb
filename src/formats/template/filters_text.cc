// Filters on text.
#include "formats/template/characters.h"
#include "formats/template/python_text.h"
#include "formats/template/render.h"

namespace ridge::jinja {

namespace {

std::string_view as_text(Renderer& r, const Value& v, std::string* holder) {  // Jinja's soft_str
  if (v.is_string()) return v.text();
  r.append_str(*holder, v);
  return *holder;
}

template <std::string (*transform)(std::string_view)>
Value transformed(Renderer& r, const Value& input, const Arguments& arguments) {
  bind_arguments(r, "filter", arguments, {});
  std::string holder;
  const std::string_view s = as_text(r, input, &holder);
  r.burn_bytes(8 * s.size());  // character by character
  return r.make_text(transform(s));
}

// Jinja's own: words also begin after "-", "(", "{", "[" and "<".
std::string title_words(std::string_view s) {
  std::string out;
  for (size_t i = 0; i < s.size();) {
    const auto begins = [&](size_t at) {
      const char32_t c = character_at(s, at);
      return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    };
    size_t end = i;
    if (begins(i)) {
      while (end < s.size() && begins(end)) end += character_bytes(s.substr(end));
      out += s.substr(i, end - i);
    } else {
      while (end < s.size() && !begins(end)) end += character_bytes(s.substr(end));
      const size_t first = character_bytes(s.substr(i));
      out += upper(s.substr(i, first));
      out += lower(s.substr(i + first, end - i - first));
    }
    i = end;
  }
  return out;
}

std::string escape_html(std::string_view s) {
  std::string out;
  for (const char c : s) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string same(std::string_view s) {
  return std::string(s);
}

Value trim(Renderer& r, const Value& input, const Arguments& arguments) {
  const Values a = bind_arguments(r, "trim", arguments, {"chars"});
  std::string holder;
  const std::string_view s = as_text(r, input, &holder);
  if (a[0].is(Kind::kUnset) || a[0].is(Kind::kNone)) return r.make_text(strip_space(s));
  const std::string_view characters = r.to_text(a[0], "chars of 'trim'");
  r.burn_bytes(8 * (s.size() + characters.size()));
  return r.make_text(strip(s, characters, true, true));
}

Value replace(Renderer& r, const Value& input, const Arguments& arguments) {
  const Values a = bind_arguments(r, "replace", arguments, {"old", "new", "count"}, 2);
  const int64_t count =
      a[2].is(Kind::kUnset) || a[2].is(Kind::kNone) ? -1 : r.to_index(a[2], "count of 'replace'");
  std::string holders[3];
  const std::string_view from = as_text(r, input, &holders[0]), old = as_text(r, a[0], &holders[1]);
  r.burn_matches(from, old);
  auto out = replace_text(from, old, as_text(r, a[1], &holders[2]), count,
                          static_cast<size_t>(limits::kTemplateOutputBytes));
  if (!out) r.exhausted(text("'replace' makes a text of more than ", limits::kTemplateOutputBytes, " bytes"));
  return r.make_text(std::move(*out));
}

Value indent(Renderer& r, const Value& input, const Arguments& arguments) {
  const Values a = bind_arguments(r, "indent", arguments, {"width", "first", "blank"});
  std::string by(4, ' ');
  if (a[0].is_string()) {
    by = a[0].text();
  } else if (!a[0].is(Kind::kUnset)) {
    const int64_t width = r.to_index(a[0], "width of 'indent'");
    if (width > limits::kTemplateOutputBytes) r.exhausted(text("indent(", width, ")"));
    by = std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
  }
  const bool first = r.truth(a[1]), blank = r.truth(a[2]);
  const std::string s = std::string(r.to_text(input, "the text of 'indent'")) + "\n";
  r.burn_bytes(4 * s.size());
  std::string out = first ? by : "";
  bool is_first = true;
  for (const std::string_view line : split_lines(s, false)) {
    if (!is_first) out += '\n';
    if (!is_first && (blank || !line.empty())) out += by;
    out += line;
    is_first = false;
    if (static_cast<int64_t>(out.size()) > limits::kTemplateOutputBytes) break;  // make_text refuses it
  }
  return r.make_text(std::move(out));
}

Value word_count(Renderer& r, const Value& input, const Arguments& arguments) {
  bind_arguments(r, "wordcount", arguments, {});
  std::string holder;
  const std::string_view s = as_text(r, input, &holder);
  r.burn_bytes(8 * s.size());
  int64_t words = 0;
  bool in_word = false;
  for (size_t i = 0; i < s.size(); i += character_bytes(s.substr(i))) {
    const bool is_word = is_word_character(character_at(s, i));
    words += is_word && !in_word;
    in_word = is_word;
  }
  return Value::integer(words);
}

Value to_json_filter(Renderer& r, const Value& input, const Arguments& arguments) {
  const Values a =
      bind_arguments(r, "tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = r.truth(a[0]);
  style.sort_keys = r.truth(a[3]);
  if (!a[1].is(Kind::kUnset) && !a[1].is(Kind::kNone)) {
    style.indented = true;
    style.item_separator = ",";
    if (a[1].is_string()) {
      style.indent = a[1].text();
    } else {
      const int64_t width = r.to_index(a[1], "indent of 'tojson'");
      if (width > limits::kTemplateOutputBytes) r.exhausted(text("tojson(indent=", width, ")"));
      style.indent = std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
    }
  }
  if (!a[2].is(Kind::kUnset) && !a[2].is(Kind::kNone)) {
    const Values pair = r.to_values(a[2]);
    if (pair.size() != 2) r.fail("separators of 'tojson' must be two strings");
    style.item_separator = r.to_text(pair[0], "a separator of 'tojson'");
    style.key_separator = r.to_text(pair[1], "a separator of 'tojson'");
  }
  return r.make_text(to_json(r, input, style));
}

Value format(Renderer& r, const Value& input, const Arguments& arguments) {
  std::string holder;
  const std::string_view s = as_text(r, input, &holder);
  if (arguments.named.empty()) return r.make_text(percent_format(r, s, r.make_tuple(arguments.positional)));
  if (!arguments.positional.empty()) r.fail("'format' takes positional or named arguments, not both");
  Pairs pairs;
  for (const auto& [name, value] : arguments.named) pairs.emplace_back(Value::string(name), value);
  return r.make_text(percent_format(r, s, r.make_dict(std::move(pairs))));
}

Value center(Renderer& r, const Value& input, const Arguments& arguments) {
  const Values a = bind_arguments(r, "center", arguments, {"width"});
  Arguments width;
  width.positional.push_back(a[0].is(Kind::kUnset) ? Value::integer(80) : a[0]);
  const Value s = input.is_string() ? input : r.make_text(r.str(input));
  return method_at(find_method(Kind::kString, "center")).run(r, s, width);
}

Value truncate(Renderer& r, const Value& input, const Arguments& arguments) {
  const Values a = bind_arguments(r, "truncate", arguments, {"length", "killwords", "end", "leeway"});
  const int64_t length = a[0].is(Kind::kUnset) ? 255 : r.to_index(a[0], "length of 'truncate'");
  const std::string_view end = a[2].is(Kind::kUnset) ? "..." : r.to_text(a[2], "end of 'truncate'");
  const int64_t leeway =
      a[3].is(Kind::kUnset) || a[3].is(Kind::kNone) ? 5 : r.to_index(a[3], "leeway of 'truncate'");
  const int64_t end_length = count_characters(end);
  if (length < end_length || leeway < 0)
    r.fail(text("'truncate' needs length >= ", end_length, " and leeway >= 0"));
  if (!input.is_string() && r.iterate(input).length() >= 0 && r.iterate(input).length() - leeway <= length)
    return input;
  const std::string_view s = r.to_text(input, "the text of 'truncate'");
  if (input.text_object().characters - leeway <= length) return input;
  r.burn_bytes(s.size());
  std::string_view cut = s.substr(0, byte_offset(s, length - end_length));
  if (!r.truth(a[1])) cut = cut.substr(0, cut.rfind(' '));
  return r.make_text(std::string(cut) + std::string(end));
}

}  // namespace

FilterTable text_filters() {
  return {{"trim", trim},
          {"upper", transformed<upper>},
          {"lower", transformed<lower>},
          {"capitalize", transformed<capitalize>},
          {"title", transformed<title_words>},
          {"string", transformed<same>},
          {"safe", transformed<same>},
          {"escape", transformed<escape_html>},
          {"e", transformed<escape_html>},
          {"forceescape", transformed<escape_html>},
          {"replace", replace},
          {"indent", indent},
          {"wordcount", word_count},
          {"tojson", to_json_filter},
          {"format", format},
          {"center", center},
          {"truncate", truncate}};
}

}  // namespace ridge::jinja
