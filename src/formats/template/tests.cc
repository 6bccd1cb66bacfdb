// What can follow "is".
#include "formats/template/python_text.h"
#include "formats/template/render.h"

namespace ridge::jinja {

namespace {

template <bool (*holds)(const Value&)>
bool simple(Renderer& r, const Value& input, const Arguments& arguments) {
  bind_arguments(r, "test", arguments, {});
  return holds(input);
}
bool is_defined(const Value& v) {
  return !v.is_undefined();
}
bool is_undefined(const Value& v) {
  return v.is_undefined();
}
bool is_none(const Value& v) {
  return v.is(Kind::kNone);
}
bool is_boolean(const Value& v) {
  return v.is(Kind::kBool);
}
bool is_true(const Value& v) {
  return v.is(Kind::kBool) && v.as_bool();
}
bool is_false(const Value& v) {
  return v.is(Kind::kBool) && !v.as_bool();
}
bool is_integer(const Value& v) {
  return v.is(Kind::kInt);
}
bool is_float(const Value& v) {
  return v.is(Kind::kFloat);
}
bool is_number(const Value& v) {
  return v.is_number();
}
bool is_string(const Value& v) {
  return v.is_string();
}
bool is_mapping(const Value& v) {
  return v.is(Kind::kDict);
}
bool is_sequence(const Value& v) {
  return v.is_sequence() || v.is_string() || v.is(Kind::kDict) || v.is(Kind::kRange) || v.is_undefined();
}
bool is_iterable(const Value& v) {
  return is_sequence(v) || v.is(Kind::kView) || v.is(Kind::kIterator) || v.is(Kind::kLoop);
}
bool is_callable(const Value& v) {  // Jinja's undefined can be called: the call is the error
  return v.is(Kind::kMacro) || v.is(Kind::kMethod) || v.is(Kind::kFunction) || v.is(Kind::kJoiner) ||
         v.is(Kind::kLoop) || v.is_undefined();
}
bool is_escaped(const Value&) {
  return false;
}

template <int64_t divisor, int64_t rest>
bool leaves(Renderer& r, const Value& input, const Arguments& arguments) {
  bind_arguments(r, divisor == 2 && rest == 1 ? "odd" : "even", arguments, {});
  return r.equal(r.binary(Op::kModulo, input, Value::integer(divisor)), Value::integer(rest));
}
bool divisible_by(Renderer& r, const Value& input, const Arguments& arguments) {
  const Values a = bind_arguments(r, "divisibleby", arguments, {"num"}, 1);
  return r.equal(r.binary(Op::kModulo, input, a[0]), Value::integer(0));
}

template <Op op>
bool compares(Renderer& r, const Value& input, const Arguments& arguments) {
  const Values a = bind_arguments(r, op_text(op), arguments, {"other"}, 1);
  return r.compare(op, input, a[0]);
}

bool same_as(Renderer& r, const Value& input, const Arguments& arguments) {
  const Values a = bind_arguments(r, "sameas", arguments, {"other"}, 1);
  if (input.kind() != a[0].kind()) return false;
  if (input.object() == nullptr || input.is_undefined()) return r.equal(input, a[0]);
  return input.object() == a[0].object();
}

template <bool (*of_case)(std::string_view)>
bool has_case(Renderer& r, const Value& input, const Arguments& arguments) {
  bind_arguments(r, "test", arguments, {});
  const std::string s = r.str(input);
  r.burn_bytes(8 * s.size());
  return of_case(s);
}

template <int (*find)(std::string_view)>
bool exists(Renderer& r, const Value& input, const Arguments& arguments) {
  bind_arguments(r, "test", arguments, {});
  r.check_hashable(input);
  return input.is_string() && find(input.text()) >= 0;
}

const std::vector<Named<Test>>& tests() {
  static const std::vector<Named<Test>> kTests = {
      {"defined", simple<is_defined>},
      {"undefined", simple<is_undefined>},
      {"none", simple<is_none>},
      {"boolean", simple<is_boolean>},
      {"true", simple<is_true>},
      {"false", simple<is_false>},
      {"integer", simple<is_integer>},
      {"float", simple<is_float>},
      {"number", simple<is_number>},
      {"string", simple<is_string>},
      {"mapping", simple<is_mapping>},
      {"sequence", simple<is_sequence>},
      {"iterable", simple<is_iterable>},
      {"callable", simple<is_callable>},
      {"escaped", simple<is_escaped>},
      {"odd", leaves<2, 1>},
      {"even", leaves<2, 0>},
      {"divisibleby", divisible_by},
      {"sameas", same_as},
      {"lower", has_case<jinja::is_lower>},
      {"upper", has_case<jinja::is_upper>},
      {"filter", exists<find_filter>},
      {"test", exists<find_test>},
      {"in", compares<Op::kIn>},
      {"==", compares<Op::kEqual>},
      {"eq", compares<Op::kEqual>},
      {"equalto", compares<Op::kEqual>},
      {"!=", compares<Op::kNotEqual>},
      {"ne", compares<Op::kNotEqual>},
      {">", compares<Op::kGreater>},
      {"gt", compares<Op::kGreater>},
      {"greaterthan", compares<Op::kGreater>},
      {">=", compares<Op::kGreaterEqual>},
      {"ge", compares<Op::kGreaterEqual>},
      {"<", compares<Op::kLess>},
      {"lt", compares<Op::kLess>},
      {"lessthan", compares<Op::kLess>},
      {"<=", compares<Op::kLessEqual>},
      {"le", compares<Op::kLessEqual>},
  };
  return kTests;
}

}  // namespace

int find_test(std::string_view name) {
  for (size_t i = 0; i < tests().size(); ++i)
    if (name == tests()[i].name) return static_cast<int>(i);
  return -1;
}
const Named<Test>& test_at(int id) {
  return tests()[static_cast<size_t>(id)];
}

}  // namespace ridge::jinja
