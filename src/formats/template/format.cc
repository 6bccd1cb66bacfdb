// text % arguments and text.format(…): the parts of Python's formatting that templates use.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "formats/template/python_text.h"
#include "formats/template/render.h"
#include "formats/unicode.h"

namespace ridge::jinja {

namespace {

struct Spec {
  std::string fill = " ";
  char align = '\0';  // < > ^ =
  char sign = '-';
  bool alternate = false;
  char group = '\0';  // , or _
  int64_t width = 0, precision = -1;
  char type = '\0';
};

std::string pad(Renderer& r, const std::string& body, const Spec& spec, char default_align) {
  const int64_t missing = spec.width - count_characters(body);
  if (missing <= 0) return body;
  if (missing > limits::kTemplateOutputBytes / 4) r.exhausted(text("a format width of ", spec.width));
  r.burn_bytes(static_cast<size_t>(missing));
  const char align = spec.align == '\0' ? default_align : spec.align;
  const int64_t before = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  std::string left, right;
  for (int64_t i = 0; i < before; ++i) left += spec.fill;
  for (int64_t i = before; i < missing; ++i) right += spec.fill;
  const size_t sign =
      align == '=' && !body.empty() && (body[0] == '-' || body[0] == '+' || body[0] == ' ') ? 1 : 0;
  return body.substr(0, sign) + left + body.substr(sign) + right;
}

std::string grouped(const std::string& digits, char separator) {
  if (separator == '\0') return digits;
  const size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
  std::string out;
  for (size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % 3 == 0) out += separator;
    out += digits[i];
  }
  return out + digits.substr(whole);
}

std::string signed_text(bool negative, const Spec& spec, const std::string& magnitude) {
  return (negative ? "-" : spec.sign == '+' ? "+" : spec.sign == ' ' ? " " : "") + magnitude;
}

std::string format_integer(Renderer& r, int64_t v, const Spec& spec) {
  const uint64_t magnitude = v < 0 ? 0 - static_cast<uint64_t>(v) : static_cast<uint64_t>(v);
  const int base = spec.type == 'x' || spec.type == 'X' ? 16
                   : spec.type == 'o'                   ? 8
                   : spec.type == 'b'                   ? 2
                                                        : 10;
  std::string digits;
  for (uint64_t left = magnitude; left > 0 || digits.empty(); left /= static_cast<uint64_t>(base))
    digits +=
        (spec.type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef")[left % static_cast<uint64_t>(base)];
  std::reverse(digits.begin(), digits.end());
  digits = grouped(digits, spec.group);
  if (spec.alternate && base != 10) digits = std::string("0") + spec.type + digits;
  return pad(r, signed_text(v < 0, spec, digits), spec, '>');
}

std::string format_float(Renderer& r, double v, const Spec& spec) {
  if (spec.precision > 1000) r.fail(text("a format precision of ", spec.precision, ", the limit is 1000"));
  std::string digits;
  const double magnitude = std::fabs(v);
  if (spec.type == '\0' && spec.precision < 0) {
    append_float_repr(digits, magnitude);
  } else if (!std::isfinite(v)) {
    digits = std::isnan(v) ? "nan" : "inf";
  } else {
    const char type = spec.type == '%' ? 'f' : spec.type == '\0' ? 'g' : spec.type == 'n' ? 'g' : spec.type;
    const char pattern[] = {'%', '.', '*', type, '\0'};
    char plain[1400];
    std::snprintf(plain, sizeof plain, pattern, spec.precision < 0 ? 6 : static_cast<int>(spec.precision),
                  spec.type == '%' ? magnitude * 100 : magnitude);
    digits = plain;
    if (spec.type == '\0' && digits.find_first_of(".e") == digits.npos) digits += ".0";
  }
  digits = grouped(digits, spec.group);
  if (spec.type == '%') digits += '%';
  return pad(r, signed_text(std::signbit(v) && !std::isnan(v), spec, digits), spec, '>');
}

std::string format_text(Renderer& r, std::string_view s, const Spec& spec) {
  if (spec.precision >= 0) s = s.substr(0, byte_offset(s, spec.precision));
  return pad(r, std::string(s), spec, '<');
}

// A number below `limit` at s[*at]; false if there is none.
bool parse_number(Renderer& r, std::string_view s, size_t* at, int64_t* out) {
  if (*at >= s.size() || s[*at] < '0' || s[*at] > '9') return false;
  *out = 0;
  for (; *at < s.size() && s[*at] >= '0' && s[*at] <= '9'; ++*at) {
    *out = *out * 10 + (s[*at] - '0');
    if (*out > limits::kTemplateOutputBytes) r.exhausted("a width or precision in a format");
  }
  return true;
}

std::string format_value(Renderer& r, const Value& v, const Spec& spec) {
  const char type = spec.type;
  const bool float_type = type != '\0' && std::string_view("eEfFgG%").find(type) != std::string_view::npos;
  if (v.is_number() && (float_type || (v.is(Kind::kFloat) && type == '\0')))
    return format_float(r, v.as_double(), spec);
  if (v.is_integral() && !(v.is(Kind::kBool) && type == '\0') &&
      (type == '\0' || std::string_view("dxXobn").find(type) != std::string_view::npos))
    return format_integer(r, v.as_int(), spec);
  if (type == 'c' && v.is_integral() && v.as_int() >= 0 && v.as_int() < 0xD800) {
    std::string one;
    append_utf8(one, static_cast<char32_t>(v.as_int()));
    return pad(r, one, spec, '<');
  }
  if (v.is_string() && (type == '\0' || type == 's')) return format_text(r, v.text(), spec);
  r.fail(text("format type '", type, "' does not fit ", type_text(v)));
}

Spec parse_spec(Renderer& r, std::string_view s) {
  Spec spec;
  size_t at = 0;
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  if (!s.empty()) {
    const size_t first = character_bytes(s);
    if (first < s.size() && is_align(s[first])) {
      spec.fill = std::string(s.substr(0, first));
      spec.align = s[first];
      at = first + 1;
    } else if (is_align(s[0])) {
      spec.align = s[at++];
    }
  }
  const auto take = [&](std::string_view any) {
    return at < s.size() && any.find(s[at]) != any.npos ? s[at++] : '\0';
  };
  if (const char sign = take("+- ")) spec.sign = sign;
  spec.alternate = take("#") != '\0';
  if (take("0") != '\0' && spec.align == '\0') spec.fill = "0", spec.align = '=';
  parse_number(r, s, &at, &spec.width);
  spec.group = take(",_");
  if (take(".") != '\0' && !parse_number(r, s, &at, &spec.precision))
    r.fail("a format has a '.' without a precision");
  if (at < s.size()) spec.type = s[at++];
  if (at != s.size()) r.fail(text("invalid format ", printable(s)));
  return spec;
}

// printf-like: %(name)-05.2f
class PercentFormat {
 public:
  PercentFormat(Renderer& r, std::string_view format, const Value& arguments)
      : r_(r),
        format_(format),
        arguments_(arguments),
        list_(arguments.is(Kind::kTuple) ? arguments.items() : Values{arguments}) {}

  std::string run() {
    while (at_ < format_.size()) {
      const size_t end = std::min(format_.find('%', at_), format_.size());
      out_ += format_.substr(at_, end - at_);
      at_ = end;
      if (at_ < format_.size()) directive();
    }
    // One argument that could be a mapping need not be used.
    const bool may_be_mapping = arguments_.is(Kind::kDict) || arguments_.is(Kind::kList) ||
                                arguments_.is(Kind::kRange) || arguments_.is_undefined();
    if (used_ < list_.size() && !by_name_ && !may_be_mapping)
      r_.fail("not all arguments are used by the format");
    return std::move(out_);
  }

 private:
  bool at(std::string_view any) const { return at_ < format_.size() && any.find(format_[at_]) != any.npos; }

  void directive() {
    r_.burn(1);
    if (static_cast<int64_t>(out_.size()) > limits::kTemplateOutputBytes)
      r_.exhausted("a formatted text beyond the limit");
    ++at_;
    if (at("%")) {
      out_ += format_[at_++];
      return;
    }
    const Value named = at("(") ? by_name() : Value::unset();
    const Spec spec = this->spec();
    if (named.is(Kind::kUnset) && used_ >= list_.size()) r_.fail("not enough arguments for the format");
    append(named.is(Kind::kUnset) ? list_[used_++] : named, spec);
  }

  Value by_name() {
    const size_t close = format_.find(')', at_);
    if (close == format_.npos || !arguments_.is(Kind::kDict)) r_.fail("a format with names needs a mapping");
    const std::string_view name = format_.substr(at_ + 1, close - at_ - 1);
    const Value* found = r_.lookup(arguments_.dict().items, r_.make_text(name));
    if (found == nullptr) r_.fail(text("the format names ", printable(name), ", which is not given"));
    by_name_ = true;
    at_ = close + 1;
    return *found;
  }

  Spec spec() {
    Spec spec;
    bool zero = false;
    for (; at("-+ #0"); ++at_) {
      if (at("-")) spec.align = '<';
      if (at("+") || (at(" ") && spec.sign != '+')) spec.sign = format_[at_];
      spec.alternate |= at("#");
      zero |= at("0");
    }
    if (at("*")) r_.fail("'*' in a format is not supported");
    parse_number(r_, format_, &at_, &spec.width);
    if (at(".")) {
      spec.precision = 0;
      parse_number(r_, format_, &++at_, &spec.precision);
    }
    if (at_ >= format_.size()) r_.fail("incomplete format");
    spec.type = format_[at_++];
    if (spec.type == 'i' || spec.type == 'u') spec.type = 'd';
    if (zero && spec.align == '\0' && spec.type != 's' && spec.type != 'r') spec.fill = "0", spec.align = '=';
    if (spec.align == '\0') spec.align = '>';
    return spec;
  }

  void append(Value v, const Spec& spec) {
    if (spec.type == 's' || spec.type == 'r') {
      std::string s;
      spec.type == 's' ? r_.append_str(s, v) : r_.append_repr(s, v);
      out_ += format_text(r_, s, spec);
      return;
    }
    if (spec.type == 'c' && v.is_string()) {
      if (v.text_object().characters != 1) r_.fail("%c needs one character");
      out_ += format_text(r_, v.text(), spec);
      return;
    }
    if (!v.is_number() || std::string_view("dcxXoeEfFgG").find(spec.type) == std::string_view::npos)
      r_.fail(text("%", spec.type, " does not fit ", type_text(v)));
    if (spec.type == 'd' && v.is(Kind::kFloat)) {
      if (!(std::fabs(v.as_double()) < 0x1p63)) r_.fail("%d of a float beyond 64 bits");
      v = Value::integer(static_cast<int64_t>(v.as_double()));
    }
    if (spec.type == 'd' && spec.precision > 0) r_.fail("a precision for %d is not supported");
    out_ += format_value(r_, v, spec);
  }

  Renderer& r_;
  const std::string_view format_;
  const Value& arguments_;
  const Values list_;
  std::string out_;
  size_t at_ = 0, used_ = 0;
  bool by_name_ = false;
};

}  // namespace

std::string percent_format(Renderer& r, std::string_view format, const Value& arguments) {
  return PercentFormat(r, format, arguments).run();
}

namespace {

// {field!conversion:spec}
struct Field {
  std::string_view name, spec;
  char conversion = '\0';
};

Value field_value(Renderer& r, std::string_view name, const Arguments& arguments, int64_t* automatic) {
  const size_t end = std::min(name.find_first_of(".["), name.size());
  const std::string_view first = name.substr(0, end);
  Value v = Value::unset();
  if (first.empty() || all_of_class(first, Class::kDigit)) {
    const auto index = first.empty() ? std::optional<int64_t>((*automatic)++) : python_int(first, 10);
    if (!index || *index >= static_cast<int64_t>(arguments.positional.size()))
      r.fail("a format names an argument that is not given");
    v = arguments.positional[static_cast<size_t>(*index)];
  } else {
    for (const auto& [key, value] : arguments.named)
      if (key == first) v = value;
    if (v.is(Kind::kUnset)) r.fail(text("the format names ", printable(first), ", which is not given"));
  }
  for (size_t i = end; i < name.size();) {
    r.burn(1);
    if (name[i] == '.') {
      const size_t stop = std::min(name.find_first_of(".[", i + 1), name.size());
      v = r.attribute(v, std::string(name.substr(i + 1, stop - i - 1)));
      i = stop;
    } else {
      const size_t close = name.find(']', i);
      if (name[i] != '[' || close == name.npos) r.fail("a format field is not closed with ']'");
      const std::string_view key = name.substr(i + 1, close - i - 1);
      const auto index = all_of_class(key, Class::kDigit) ? python_int(key, 10) : std::nullopt;
      v = r.item(v, index ? Value::integer(*index) : Value::string(std::string(key)));
      i = close + 1;
    }
  }
  return v;
}

}  // namespace

std::string brace_format(Renderer& r, std::string_view format, const Arguments& arguments) {
  std::string out;
  int64_t automatic = 0;
  for (size_t i = 0; i < format.size();) {
    const char c = format[i];
    if (c != '{' && c != '}') {
      const size_t end = std::min(format.find_first_of("{}", i), format.size());
      out += format.substr(i, end - i);
      i = end;
      continue;
    }
    r.burn(1);
    if (static_cast<int64_t>(out.size()) > limits::kTemplateOutputBytes)
      r.exhausted("a formatted text beyond the limit");
    if (i + 1 < format.size() && format[i + 1] == c) {
      out += c;
      i += 2;
      continue;
    }
    const size_t close = c == '{' ? format.find('}', i) : format.npos;
    if (close == format.npos) r.fail(text("a single '", c, "' in a format"));
    Field field;
    field.name = format.substr(i + 1, close - i - 1);
    if (field.name.find('{') != field.name.npos) r.fail("a format within a format is not supported");
    if (const size_t colon = field.name.find(':'); colon != field.name.npos) {
      field.spec = field.name.substr(colon + 1);
      field.name = field.name.substr(0, colon);
    }
    if (const size_t mark = field.name.find('!'); mark != field.name.npos) {
      if (mark + 2 != field.name.size()) r.fail("a format conversion must be one letter");
      field.conversion = field.name[mark + 1];
      field.name = field.name.substr(0, mark);
    }
    i = close + 1;
    Value v = field_value(r, field.name, arguments, &automatic);
    if (field.conversion == 's') v = r.make_text(r.str(v));
    if (field.conversion == 'r') {
      std::string s;
      r.append_repr(s, v);
      v = r.make_text(std::move(s));
    }
    if (field.spec.empty())
      r.append_str(out, v);
    else
      out += format_value(r, v, parse_spec(r, field.spec));
  }
  return out;
}

}  // namespace ridge::jinja
