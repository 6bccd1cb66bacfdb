// json.dumps.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "formats/template/python_text.h"
#include "formats/template/render.h"

namespace ridge::jinja {

namespace {

class JsonWriter {
 public:
  JsonWriter(Renderer& r, const JsonStyle& style) : r_(r), style_(style) {}

  void value(const Value& v) {
    const Renderer::Guard guard(&r_);
    r_.burn(1);
    if (static_cast<int64_t>(out.size()) > limits::kTemplateOutputBytes)
      r_.exhausted(text("JSON of more than ", limits::kTemplateOutputBytes, " bytes"));
    switch (v.kind()) {
      case Kind::kString:
        return string(v.text());
      case Kind::kList:
      case Kind::kTuple:
        return list(v.items());
      case Kind::kDict:
        return dict(v.dict().items);
      default:
        out += scalar(v);
    }
  }

  std::string out;

 private:
  std::string scalar(const Value& v) {
    std::string s;
    switch (v.kind()) {
      case Kind::kNone:
        return "null";
      case Kind::kBool:
        return v.as_bool() ? "true" : "false";
      case Kind::kInt:
        append_text(s, v.as_int());
        return s;
      case Kind::kFloat: {
        const double d = v.as_double();
        if (std::isnan(d)) return "NaN";
        if (std::isinf(d)) return d < 0 ? "-Infinity" : "Infinity";
        append_float_repr(s, d);
        return s;
      }
      default:
        r_.fail(text(type_text(v), " cannot be written as JSON"));
    }
  }

  void escape(char32_t c) {
    char hex[16];
    if (c >= 0x10000) {
      std::snprintf(hex, sizeof hex, "\\u%04x\\u%04x", static_cast<unsigned>(0xD800 + ((c - 0x10000) >> 10)),
                    static_cast<unsigned>(0xDC00 + ((c - 0x10000) & 0x3FF)));
    } else {
      std::snprintf(hex, sizeof hex, "\\u%04x", static_cast<unsigned>(c));
    }
    out += hex;
  }

  void string(std::string_view s) {
    r_.burn_bytes(s.size());
    out += '"';
    for (size_t i = 0; i < s.size(); i += character_bytes(s.substr(i))) {
      const char32_t c = character_at(s, i);
      static constexpr std::string_view kFrom = "\"\\\n\r\t\f\b", kTo = "\"\\nrtfb";
      if (const size_t simple = c < 128 ? kFrom.find(static_cast<char>(c)) : kFrom.npos;
          simple != kFrom.npos) {
        out += '\\';
        out += kTo[simple];
      } else if (c < 0x20 || (style_.ensure_ascii && c >= 0x7F)) {
        escape(c);
      } else {
        out += s.substr(i, character_bytes(s.substr(i)));
      }
    }
    out += '"';
  }

  void new_line(int level) {
    const size_t bytes = style_.indent.size() * static_cast<size_t>(level);
    r_.burn_bytes(bytes);
    if (static_cast<int64_t>(out.size() + bytes) > limits::kTemplateOutputBytes)
      r_.exhausted(text("JSON of more than ", limits::kTemplateOutputBytes, " bytes"));
    out += '\n';
    for (int i = 0; i < level; ++i) out += style_.indent;
  }

  template <class Items, class Write>
  void container(char open, char close, const Items& items, Write write) {
    out += open;
    ++level_;
    bool first = true;
    for (const auto& item : items) {
      if (!first) out += style_.item_separator;
      first = false;
      if (style_.indented) new_line(level_);
      write(item);
    }
    --level_;
    if (style_.indented && !first) new_line(level_);
    out += close;
  }

  void list(const Values& items) {
    container('[', ']', items, [&](const Value& v) { value(v); });
  }

  void dict(Pairs items) {
    if (style_.sort_keys)
      std::stable_sort(items.begin(), items.end(),
                       [&](const auto& a, const auto& b) { return r_.less(a.first, b.first); });
    container('{', '}', items, [&](const std::pair<Value, Value>& item) {
      if (item.first.is_string())
        string(item.first.text());
      else
        string(scalar(item.first));
      out += style_.key_separator;
      value(item.second);
    });
  }

  Renderer& r_;
  const JsonStyle& style_;
  int level_ = 0;
};

}  // namespace

std::string to_json(Renderer& r, const Value& v, const JsonStyle& style) {
  JsonWriter writer(r, style);
  writer.value(v);
  return std::move(writer.out);
}

}  // namespace ridge::jinja
