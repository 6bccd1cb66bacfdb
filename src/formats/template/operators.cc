// Python's operators on values.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "formats/template/python_text.h"
#include "formats/template/render.h"

namespace ridge::jinja {

bool Renderer::truth(const Value& v) const {
  switch (v.kind()) {
    case Kind::kUndefined:
    case Kind::kUnset:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return v.as_int() != 0;
    case Kind::kFloat:
      return v.as_double() != 0;
    case Kind::kString:
      return !v.text().empty();
    case Kind::kList:
    case Kind::kTuple:
      return !v.items().empty();
    case Kind::kDict:
      return !v.dict().items.empty();
    case Kind::kRange:
      return v.as<Range>().length != 0;
    case Kind::kView:
      return !v.as<View>().dict.dict().items.empty();
    default:
      return true;
  }
}

namespace {
// Exact, also where a 64-bit integer has no double: -1, 0, 1; 2 with a NaN.
int compare_numbers(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return (a.as_int() > b.as_int()) - (a.as_int() < b.as_int());
  if (!a.is_integral() && b.is_integral()) {
    const int reversed = compare_numbers(b, a);
    return reversed == 2 ? 2 : -reversed;
  }
  const double y = b.as_double();
  if (a.is_integral()) {
    if (std::isnan(y)) return 2;
    if (y >= 0x1p63) return -1;
    if (y < -0x1p63) return 1;
    const double whole = std::floor(y);
    const auto n = static_cast<int64_t>(whole);
    if (a.as_int() != n) return a.as_int() < n ? -1 : 1;
    return whole < y ? -1 : 0;
  }
  const double x = a.as_double();
  return std::isnan(x) || std::isnan(y) ? 2 : (x > y) - (x < y);
}
}  // namespace

bool Renderer::equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kString:
      burn_bytes(a.text().size());
      return a.text() == b.text();
    case Kind::kList:
    case Kind::kTuple: {
      const Guard guard(this);
      if (a.items().size() != b.items().size()) return false;
      for (size_t i = 0; i < a.items().size(); ++i) {
        burn(1);
        if (!equal(a.items()[i], b.items()[i])) return false;
      }
      return true;
    }
    case Kind::kDict: {
      const Guard guard(this);
      if (a.dict().items.size() != b.dict().items.size()) return false;
      for (const auto& [key, value] : a.dict().items) {
        burn(1);
        const Value* other = lookup(b.dict().items, key);
        if (other == nullptr || !equal(value, *other)) return false;
      }
      return true;
    }
    case Kind::kRange: {
      const Range &x = a.as<Range>(), &y = b.as<Range>();
      return x.length == y.length &&
             (x.length == 0 || (x.start == y.start && (x.length == 1 || x.step == y.step)));
    }
    case Kind::kFunction:
      return a.as_int() == b.as_int();
    default:
      return a.object() == b.object();
  }
}

bool Renderer::less(const Value& a, const Value& b, Op op) {
  const bool or_equal = op == Op::kLessEqual || op == Op::kGreaterEqual;
  const bool swapped = op == Op::kGreater || op == Op::kGreaterEqual;
  if (a.is_undefined()) fail_undefined(a);
  if (b.is_undefined()) fail_undefined(b);
  const Value &x = swapped ? b : a, &y = swapped ? a : b;
  if (x.is_number() && y.is_number()) {
    const int order = compare_numbers(x, y);
    return order == -1 || (or_equal && order == 0);
  }
  if (x.is_string() && y.is_string()) {  // UTF-8 sorts as code points do
    burn_bytes(std::min(x.text().size(), y.text().size()));
    const int order = x.text().compare(y.text());
    return order < 0 || (or_equal && order == 0);
  }
  if (x.is_sequence() && x.kind() == y.kind()) {
    const Guard guard(this);
    const size_t shared = std::min(x.items().size(), y.items().size());
    for (size_t i = 0; i < shared; ++i) {
      burn(1);
      if (!equal(x.items()[i], y.items()[i]))
        return less(x.items()[i], y.items()[i], or_equal ? Op::kLessEqual : Op::kLess);
    }
    return or_equal ? x.items().size() <= y.items().size() : x.items().size() < y.items().size();
  }
  unsupported(op, a, b);
}

bool Renderer::compare(Op op, const Value& a, const Value& b) {
  switch (op) {
    case Op::kEqual:
      return equal(a, b);
    case Op::kNotEqual:
      return !equal(a, b);
    case Op::kIn:
      return contains(b, a);
    case Op::kNotIn:
      return !contains(b, a);
    default:
      return less(a, b, op);
  }
}

bool Renderer::contains(const Value& container, const Value& member) {
  if (container.is_string()) {
    if (!member.is_string()) fail(text("'in' on a string needs a string, found ", type_text(member)));
    burn_bytes(container.text().size() + member.text().size());
    return find_text(container.text(), member.text()) != std::string::npos;
  }
  if (container.is(Kind::kDict)) return lookup(container.dict().items, member) != nullptr;
  if (container.is(Kind::kView) && container.as<View>().what == ViewOf::kKeys)
    return lookup(container.as<View>().dict.dict().items, member) != nullptr;
  Cursor cursor = iterate(container);
  for (Value v; cursor.next(&v);) {
    burn(1);
    if (equal(v, member)) return true;
  }
  return false;
}

bool Renderer::is_hashable(const Value& key) {
  if (!key.is(Kind::kTuple)) return !key.is(Kind::kList) && !key.is(Kind::kDict);
  const Guard guard(this);
  burn_items(key.items().size());
  return std::all_of(key.items().begin(), key.items().end(),
                     [this](const Value& v) { return is_hashable(v); });
}

void Renderer::check_hashable(const Value& key) {
  if (!is_hashable(key)) fail(text(type_text(key), " cannot be the key of a dict"));
}

const Value* Renderer::lookup(const Pairs& pairs, const Value& key) {
  check_hashable(key);
  burn(static_cast<int64_t>(pairs.size()) / 16);
  for (const auto& [other, value] : pairs) {
    if (key.is_string() != other.is_string()) continue;
    if (key.is_string() ? key.text() == other.text() : equal(key, other)) return &value;
  }
  return nullptr;
}

void Renderer::assign_key(Pairs& pairs, const Value& key, const Value& value) {
  if (const Value* found = lookup(pairs, key); found != nullptr)
    *const_cast<Value*>(found) = value;  // found in `pairs`, which is not const
  else
    pairs.emplace_back(key, value);
}

// ---- arithmetic

void Renderer::unsupported(Op op, const Value& a, const Value& b) const {
  fail(text("'", op_text(op), "' is not defined between ", type_text(a), " and ", type_text(b)));
}

Value Renderer::negate(const Value& v) {
  if (v.is_undefined()) fail_undefined(v);
  if (v.is(Kind::kFloat)) return Value::number(-v.as_double());
  if (!v.is_integral()) fail(text("'-' is not defined for ", type_text(v)));
  return integer_arithmetic(Op::kSubtract, 0, v.as_int());
}

Value Renderer::binary(Op op, const Value& a, const Value& b) {
  if (op == Op::kModulo && a.is_string()) return make_text(percent_format(*this, a.text(), b));
  if (a.is_undefined()) fail_undefined(a);
  if (b.is_undefined()) fail_undefined(b);
  if (a.is_number() && b.is_number()) return arithmetic(op, a, b);
  if (op == Op::kAdd) return add_sequences(a, b);
  if (op == Op::kMultiply) {
    if ((a.is_string() || a.is_sequence()) && b.is_integral()) return repeat(a, b);
    if ((b.is_string() || b.is_sequence()) && a.is_integral()) return repeat(b, a);
  }
  unsupported(op, a, b);
}

Value Renderer::add_sequences(const Value& a, const Value& b) {
  if (a.is_string() && b.is_string()) {
    check_text_bytes(a.text().size() + b.text().size());
    return make_text(a.text() + b.text());
  }
  if (!a.is_sequence() || a.kind() != b.kind()) unsupported(Op::kAdd, a, b);
  burn_items(a.items().size() + b.items().size());
  Values both = a.items();
  both.insert(both.end(), b.items().begin(), b.items().end());
  return a.is(Kind::kList) ? make_list(std::move(both)) : make_tuple(std::move(both));
}

Value Renderer::repeat(const Value& sequence, const Value& times) {
  const int64_t n = std::max<int64_t>(times.as_int(), 0);
  const auto length =
      static_cast<int64_t>(sequence.is_string() ? sequence.text().size() : sequence.items().size());
  const int64_t limit = sequence.is_string() ? limits::kTemplateOutputBytes : limits::kTemplateSteps;
  int64_t total = 0;
  if (!checked_mul(n, length, &total) || total > limit)
    exhausted(text("a sequence of ", length, " repeated ", n, " times, the limit is ", limit));
  if (sequence.is_string()) {
    std::string out;
    out.reserve(static_cast<size_t>(total));
    for (int64_t i = 0; i < n && length > 0; ++i) out += sequence.text();
    return make_text(std::move(out));
  }
  burn_items(static_cast<size_t>(total));
  Values out;
  for (int64_t i = 0; i < n && length > 0; ++i)
    out.insert(out.end(), sequence.items().begin(), sequence.items().end());
  return sequence.is(Kind::kList) ? make_list(std::move(out)) : make_tuple(std::move(out));
}

Value Renderer::arithmetic(Op op, const Value& a, const Value& b) {
  if (!a.is_integral() || !b.is_integral()) return float_arithmetic(op, a.as_double(), b.as_double());
  return integer_arithmetic(op, a.as_int(), b.as_int());
}

Value Renderer::float_arithmetic(Op op, double a, double b) const {
  if (b == 0 && (op == Op::kDivide || op == Op::kFloorDivide || op == Op::kModulo)) fail("division by zero");
  switch (op) {
    case Op::kAdd:
      return Value::number(a + b);
    case Op::kSubtract:
      return Value::number(a - b);
    case Op::kMultiply:
      return Value::number(a * b);
    case Op::kDivide:
      return Value::number(a / b);
    case Op::kPower: {
      if (a == 0 && b < 0) fail("0 to a negative power");
      if (a < 0 && b != std::floor(b) && std::isfinite(a) && std::isfinite(b))
        fail("a negative number to a fractional power is complex");
      const double v = std::pow(a, b);
      if (std::isinf(v) && std::isfinite(a) && std::isfinite(b)) fail("the power is too large for a float");
      return Value::number(v);
    }
    default:
      break;
  }
  double remainder = std::fmod(a, b);  // Python's has the sign of b
  double quotient = (a - remainder) / b;
  if (remainder != 0) {
    if ((b < 0) != (remainder < 0)) remainder += b, quotient -= 1;
  } else {
    remainder = std::copysign(0.0, b);
  }
  if (op == Op::kModulo) return Value::number(remainder);
  if (quotient == 0) return Value::number(std::copysign(0.0, a / b));
  const double down = std::floor(quotient);
  return Value::number(quotient - down > 0.5 ? down + 1 : down);
}

Value Renderer::integer_arithmetic(Op op, int64_t a, int64_t b) {
  int64_t v = 0;
  bool fits = true;
  if (b == 0 && (op == Op::kDivide || op == Op::kFloorDivide || op == Op::kModulo)) fail("division by zero");
  switch (op) {
    case Op::kAdd:
      fits = checked_add(a, b, &v);
      break;
    case Op::kSubtract:
      fits = !__builtin_sub_overflow(a, b, &v);
      break;
    case Op::kMultiply:
      fits = checked_mul(a, b, &v);
      break;
    case Op::kDivide:
      return Value::number(static_cast<double>(a) / static_cast<double>(b));
    case Op::kFloorDivide:
      fits = !(a == INT64_MIN && b == -1);
      if (fits) v = a / b - (a % b != 0 && (a % b < 0) != (b < 0));
      break;
    case Op::kModulo:
      v = b == -1 ? 0 : a % b;
      if (v != 0 && (v < 0) != (b < 0)) v += b;
      break;
    default: {  // power
      if (b < 0) return float_arithmetic(op, static_cast<double>(a), static_cast<double>(b));
      v = 1;
      for (int64_t base = a, left = b; left > 0 && fits; left >>= 1) {
        if (left & 1) fits = checked_mul(v, base, &v);
        if (left > 1 && fits) fits = checked_mul(base, base, &base);
      }
      break;
    }
  }
  if (!fits) fail(text("the integer result of ", a, " ", op_text(op), " ", b, " does not fit 64 bits"));
  return Value::integer(v);
}

}  // namespace ridge::jinja
