// Filters on numbers.
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "formats/template/python_text.h"
#include "formats/template/render.h"

namespace ridge::jinja {

namespace {

Value truncated(Renderer& r, double v) {
  if (v >= 0x1p63 || v < -0x1p63) r.fail("an integer beyond 64 bits is not supported");
  return Value::integer(static_cast<int64_t>(v));
}

Value to_int(Renderer& r, const Value& input, const Arguments& arguments) {
  const Values a = bind_arguments(r, "int", arguments, {"default", "base"});
  const Value otherwise = a[0].is(Kind::kUnset) ? Value::integer(0) : a[0];
  const int64_t base = a[1].is(Kind::kUnset) ? 10 : r.to_index(a[1], "base of 'int'");
  if (input.is_undefined()) r.fail_undefined(input);
  if (input.is_integral()) return Value::integer(input.as_int());
  double v = 0;
  if (input.is_string()) {
    r.burn_bytes(input.text().size());
    if (const auto exact = python_int(input.text(), base)) return Value::integer(*exact);
    const auto number = python_float(input.text());  // "42.9" gives 42
    if (!number) return otherwise;
    v = *number;
  } else if (input.is(Kind::kFloat)) {
    v = input.as_double();
    if (std::isinf(v)) r.fail("infinity has no integer");
  } else {
    return otherwise;
  }
  return std::isfinite(v) ? truncated(r, v) : otherwise;
}

Value to_float(Renderer& r, const Value& input, const Arguments& arguments) {
  const Values a = bind_arguments(r, "float", arguments, {"default"});
  if (input.is_undefined()) r.fail_undefined(input);
  if (input.is_number()) return Value::number(input.as_double());
  if (input.is_string()) {
    r.burn_bytes(input.text().size());
    if (const auto number = python_float(input.text())) return Value::number(*number);
  }
  return a[0].is(Kind::kUnset) ? Value::number(0) : a[0];
}

Value absolute(Renderer& r, const Value& input, const Arguments& arguments) {
  bind_arguments(r, "abs", arguments, {});
  if (input.is(Kind::kFloat)) return Value::number(std::fabs(input.as_double()));
  if (!input.is_integral()) r.fail(text("'abs' needs a number, found ", type_text(input)));
  return input.as_int() < 0 ? r.negate(input) : Value::integer(input.as_int());
}

int64_t round_integer(int64_t v, int64_t digits) {  // digits < 0, half to even
  if (digits < -18) return 0;
  int64_t unit = 1;
  for (int64_t i = digits; i < 0; ++i) unit *= 10;
  int64_t rest = v % unit;
  if (rest < 0) rest += unit;
  const int64_t down = v - rest;
  const bool up = 2 * rest > unit || (2 * rest == unit && (down / unit) % 2 != 0);
  return up ? down + unit : down;
}

// Decimal rounding of the exact binary value, half to even: what printf does.
double round_decimal(double v, int64_t digits) {
  if (!std::isfinite(v) || digits > 340) return v;
  if (digits < 0) {
    if (digits < -310) return std::copysign(0.0, v);
    const double unit = std::pow(10.0, static_cast<double>(-digits));
    return std::nearbyint(v / unit) * unit;
  }
  char plain[700];
  std::snprintf(plain, sizeof plain, "%.*f", static_cast<int>(digits), v);
  return std::strtod(plain, nullptr);
}

Value round(Renderer& r, const Value& input, const Arguments& arguments) {
  const Values a = bind_arguments(r, "round", arguments, {"precision", "method"});
  const int64_t digits = a[0].is(Kind::kUnset) ? 0 : r.to_index(a[0], "precision of 'round'");
  const std::string_view method = a[1].is(Kind::kUnset) ? "common" : r.to_text(a[1], "method of 'round'");
  if (input.is_undefined()) r.fail_undefined(input);
  if (!input.is_number()) r.fail(text("'round' needs a number, found ", type_text(input)));
  if (method == "common") {
    if (input.is(Kind::kFloat)) return Value::number(round_decimal(input.as_double(), digits));
    return Value::integer(digits >= 0 ? input.as_int() : round_integer(input.as_int(), digits));
  }
  if (method != "ceil" && method != "floor") r.fail("method of 'round' must be common, ceil or floor");
  const Value scale = r.binary(Op::kPower, Value::integer(10), Value::integer(digits));
  const Value scaled = r.binary(Op::kMultiply, input, scale);
  const double v = method == "ceil" ? std::ceil(scaled.as_double()) : std::floor(scaled.as_double());
  if (!std::isfinite(v)) r.fail("'round' of a number that is not finite");
  return r.binary(Op::kDivide, scaled.is(Kind::kFloat) ? Value::number(v) : scaled, scale);
}

}  // namespace

FilterTable number_filters() {
  return {{"int", to_int}, {"float", to_float}, {"abs", absolute}, {"round", round}};
}

}  // namespace ridge::jinja
