// Expressions.
#include <algorithm>
#include <cstdlib>

#include "formats/template/python_text.h"
#include "formats/template/render.h"

namespace ridge::jinja {

Value Renderer::eval(const Expr& e, Scope* scope) {
  const Guard guard(this);
  burn(1);
  line_ = e.line;
  switch (e.kind) {
    case ExprKind::kConstant:
      return e.constant;
    case ExprKind::kName:
      return variable(e.id, scope);
    case ExprKind::kList:
      return make_list(eval_all(e.children, scope));
    case ExprKind::kTuple:
      return make_tuple(eval_all(e.children, scope));
    case ExprKind::kDict:
      return dict_literal(e, scope);
    case ExprKind::kAttribute:
      return attribute(eval(*e.children[0], scope), e.text);
    case ExprKind::kItem:
      return subscript(e, scope);
    case ExprKind::kCall:
      return call_expression(e, scope, nullptr);
    case ExprKind::kFilter:
    case ExprKind::kTest:
      return filter_or_test(e, scope);
    case ExprKind::kNot:
      return Value::boolean(!truth(eval(*e.children[0], scope)));
    case ExprKind::kNegate:
      return negate(eval(*e.children[0], scope));
    case ExprKind::kPlus:
      return binary(Op::kAdd, Value::integer(0), eval(*e.children[0], scope));
    case ExprKind::kBinary: {
      const Value left = eval(*e.children[0], scope), right = eval(*e.children[1], scope);
      return binary(e.op, left, right);
    }
    case ExprKind::kConcat:
      return concat(e, scope);
    case ExprKind::kCompare:
      return compare_chain(e, scope);
    case ExprKind::kAnd:
    case ExprKind::kOr: {
      const Value left = eval(*e.children[0], scope);
      return truth(left) == (e.kind == ExprKind::kOr) ? left : eval(*e.children[1], scope);
    }
    case ExprKind::kConditional:
      return conditional(e, scope);
    case ExprKind::kBody:
      return *body_;
    case ExprKind::kSlice:
      break;  // only below kItem
  }
  fail("a slice without a value");
}

Value Renderer::filter_or_test(const Expr& e, Scope* scope) {
  const Value input = eval(*e.children[0], scope);
  const Arguments arguments = eval_arguments(e.call, scope);
  line_ = e.line;
  if (e.kind == ExprKind::kFilter) return filter_at(e.id).run(*this, input, arguments);
  return Value::boolean(test_at(e.id).run(*this, input, arguments));
}

Value Renderer::conditional(const Expr& e, Scope* scope) {
  if (truth(eval(*e.children[1], scope))) return eval(*e.children[0], scope);
  if (e.children[2] != nullptr) return eval(*e.children[2], scope);
  return Value::undefined(text("the inline if-expression on line ", e.line,
                               " evaluated to false and no else section was defined"));
}

Value Renderer::compare_chain(const Expr& e, Scope* scope) {
  Value left = eval(*e.children[0], scope);
  for (size_t i = 0; i < e.ops.size(); ++i) {
    Value right = eval(*e.children[i + 1], scope);
    if (!compare(e.ops[i], left, right)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Renderer::concat(const Expr& e, Scope* scope) {
  Values parts = eval_all(e.children, scope);
  size_t bytes = 0;
  for (Value& part : parts) {
    if (!part.is_string()) part = make_text(str(part));
    bytes += part.text().size();
  }
  check_text_bytes(bytes);
  std::string out;
  out.reserve(bytes);
  for (const Value& part : parts) out += part.text();
  return make_text(std::move(out));
}

Value Renderer::dict_literal(const Expr& e, Scope* scope) {
  Pairs pairs;
  for (size_t i = 0; i < e.children.size(); i += 2) {
    const Value key = eval(*e.children[i], scope);
    const Value value = eval(*e.children[i + 1], scope);
    assign_key(pairs, key, value);
  }
  return make_dict(std::move(pairs));
}

Values Renderer::eval_all(const std::vector<const Expr*>& list, Scope* scope) {
  Values out;
  out.reserve(list.size());
  for (const Expr* e : list) out.push_back(eval(*e, scope));
  return out;
}

Arguments Renderer::eval_arguments(const CallSyntax& syntax, Scope* scope) {
  Arguments out;
  out.positional = eval_all(syntax.positional, scope);
  for (const auto& [name, e] : syntax.named) out.named.emplace_back(name, eval(*e, scope));
  if (syntax.star != nullptr)
    for (Value& v : to_values(eval(*syntax.star, scope))) out.positional.push_back(std::move(v));
  if (syntax.star_star != nullptr) {
    const Value named = eval(*syntax.star_star, scope);
    if (!named.is(Kind::kDict)) fail(text("the value after ** is no dict but ", type_text(named)));
    for (const auto& [key, value] : named.dict().items) {
      burn(1);
      if (!key.is_string()) fail("the names after ** must be strings");
      for (const auto& [other, unused] : out.named)
        if (other == key.text()) fail(text("argument '", other, "' is given twice"));
      burn_items(out.named.size());
      out.named.emplace_back(key.text(), value);
    }
  }
  return out;
}

// ---- subscripts

Value Renderer::subscript(const Expr& e, Scope* scope) {
  const Value object = eval(*e.children[0], scope);
  if (e.children[1]->kind == ExprKind::kSlice) return slice(object, *e.children[1], scope);
  const Value key = eval(*e.children[1], scope);
  line_ = e.line;
  return item(object, key);
}

Value Renderer::sequence_item(const Value& object, int64_t index) {
  const int64_t length = iterate(object).length();
  if (index < 0) index += length;
  if (index < 0 || index >= length) return Value::unset();
  if (object.is_sequence()) return object.items()[static_cast<size_t>(index)];
  if (object.is(Kind::kRange))
    return Value::integer(object.as<Range>().start + object.as<Range>().step * index);
  const Text& t = object.text_object();
  if (t.ascii()) return Value::string(t.bytes.substr(static_cast<size_t>(index), 1));
  burn_bytes(t.bytes.size());
  const size_t at = byte_offset(t.bytes, index);
  return Value::string(t.bytes.substr(at, character_bytes(std::string_view(t.bytes).substr(at))));
}

Value Renderer::item(const Value& object, const Value& key) {
  if (object.is_undefined()) fail_undefined(object);
  Value found = Value::unset();
  if (object.is(Kind::kDict)) {
    if (is_hashable(key)) {
      const Value* value = lookup(object.dict().items, key);
      if (value != nullptr) return *value;
    }
  } else if (key.is_integral() && (object.is_sequence() || object.is_string() || object.is(Kind::kRange))) {
    found = sequence_item(object, key.as_int());
  }
  if (found.is(Kind::kUnset) && key.is_string()) found = bound_attribute(object, key.text());
  return found.is(Kind::kUnset) ? no_attribute(object, key) : found;
}

Value Renderer::no_attribute(const Value& object, const Value& name) const {
  if (name.is_string())
    return Value::undefined(text(type_text(object), " has no attribute ", printable(name.text())));
  return Value::undefined(text(type_text(object), " has no such element"));
}

namespace {
struct Cut {  // elements start, start + step, …: count of them
  int64_t start, step, count;
};

// What slice.indices() gives. A step longer than the sequence is as good as one of its length.
Cut cut_of(const Value (&bounds)[3], int64_t length) {
  const int64_t step =
      bounds[2].is(Kind::kNone) ? 1 : std::clamp(bounds[2].as_int(), -length - 1, length + 1);
  const int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? length : length - 1;
  const auto clamp = [&](const Value& b, int64_t otherwise) {
    if (b.is(Kind::kNone)) return otherwise;
    const int64_t i = b.as_int() < 0 ? b.as_int() + length : b.as_int();
    return std::clamp(i, lowest, std::max(lowest, highest));
  };
  const int64_t start = clamp(bounds[0], step > 0 ? lowest : highest);
  const int64_t stop = clamp(bounds[1], step > 0 ? highest : lowest);
  const int64_t span = step > 0 ? stop - start : start - stop;
  return {start, step, span <= 0 ? 0 : (span - 1) / std::abs(step) + 1};
}
}  // namespace

Value Renderer::slice(const Value& object, const Expr& e, Scope* scope) {
  Value bounds[3];
  for (size_t i = 0; i < 3; ++i)
    bounds[i] = e.children[i] == nullptr ? Value::none() : eval(*e.children[i], scope);
  if (object.is_undefined()) fail_undefined(object);
  if (!object.is_sequence() && !object.is_string() && !object.is(Kind::kRange))
    fail(text(type_text(object), " cannot be sliced"));
  for (const Value& b : bounds)
    if (!b.is(Kind::kNone) && !b.is_integral())
      fail(text("a slice bound must be an integer, found ", type_text(b)));
  if (bounds[2].is_integral() && bounds[2].as_int() == 0) fail("slice step cannot be zero");
  const Cut cut = cut_of(bounds, iterate(object).length());
  if (object.is_string()) return slice_text(object.text_object(), cut.start, cut.step, cut.count);
  if (object.is(Kind::kRange)) {
    const Range& from = object.as<Range>();
    const auto out = std::make_shared<Range>();
    out->start = from.start + from.step * cut.start;
    out->step = from.step * cut.step;
    out->stop = out->start + out->step * cut.count;
    out->length = cut.count;
    return {Kind::kRange, out};
  }
  burn_items(static_cast<size_t>(cut.count));
  Values picked;
  picked.reserve(static_cast<size_t>(cut.count));
  for (int64_t i = 0; i < cut.count; ++i)
    picked.push_back(object.items()[static_cast<size_t>(cut.start + i * cut.step)]);
  return object.is(Kind::kTuple) ? make_tuple(std::move(picked)) : make_list(std::move(picked));
}

Value Renderer::slice_text(const Text& t, int64_t start, int64_t step, int64_t count) {
  const std::string_view s = t.bytes;
  if (count == 0) return Value::string("");
  if (step == 1) {
    if (t.ascii()) return make_text(s.substr(static_cast<size_t>(start), static_cast<size_t>(count)));
    burn_bytes(s.size());
    const size_t begin = byte_offset(s, start);
    return make_text(s.substr(begin, byte_offset(s.substr(begin), count)));
  }
  burn_bytes(8 * s.size());
  std::vector<size_t> offsets;  // of every character
  offsets.reserve(static_cast<size_t>(t.characters));
  for (size_t at = 0; at < s.size(); at += character_bytes(s.substr(at))) offsets.push_back(at);
  std::string out;
  for (int64_t i = 0; i < count; ++i) {
    const size_t at = offsets[static_cast<size_t>(start + i * step)];
    out += s.substr(at, character_bytes(s.substr(at)));
  }
  return make_text(std::move(out));
}

// ---- attributes

// What Python's getattr finds; kUnset if there is nothing.
Value Renderer::bound_attribute(const Value& object, const std::string& name) {
  if (object.is(Kind::kNamespace)) {
    burn(static_cast<int64_t>(object.as<Namespace>().attributes.size()) / 16);
    for (const auto& [key, value] : object.as<Namespace>().attributes)
      if (key.text() == name) return value;
    return Value::unset();
  }
  if (object.is(Kind::kLoop)) {
    const Value v = loop_attribute(object.as<Loop>(), name);
    if (!v.is(Kind::kUnset)) return v;
  }
  if (object.is(Kind::kCycler) && name == "current")
    return object.as<Cycler>().items[object.as<Cycler>().position];
  if (object.is(Kind::kTuple) && object.as<List>().is_group && (name == "grouper" || name == "list"))
    return object.items()[name == "list"];
  if (object.is(Kind::kMacro) && name == "name") return make_text(object.as<Macro>().name);
  if (name.size() > 4 && name.compare(0, 2, "__") == 0 && name.compare(name.size() - 2, 2, "__") == 0)
    return Value::undefined(
        text("access to attribute ", printable(name), " of ", type_text(object), " is unsafe"));
  const int method = find_method(object.kind(), name);
  if (method < 0) return Value::unset();
  if (method_at(method).run == nullptr)
    return Value::undefined(text("access to attribute '", name, "' of ", type_text(object),
                                 " is unsafe: values cannot be changed"));
  check_depth(object.depth() + 1);
  return {Kind::kMethod, std::make_shared<Method>(object, method)};
}

Value Renderer::attribute(const Value& object, const std::string& name) {
  if (object.is_undefined() && name == "__class__")
    return Value::undefined("access to attribute '__class__' is unsafe");
  if (object.is_undefined()) fail_undefined(object);
  const bool internal = name.compare(0, 2, "__") == 0;
  Value found = object.is(Kind::kDict) && internal ? Value::unset() : bound_attribute(object, name);
  if (found.is(Kind::kUnset) && object.is(Kind::kDict)) {
    burn(static_cast<int64_t>(object.dict().items.size()) / 16);
    for (const auto& [key, value] : object.dict().items)
      if (key.is_string() && key.text() == name) return value;
  }
  return found.is(Kind::kUnset) ? no_attribute(object, Value::string(name)) : found;
}

}  // namespace ridge::jinja
