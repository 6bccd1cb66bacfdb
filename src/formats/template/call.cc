// Calls: functions, methods and macros.
#include <algorithm>

#include "formats/template/render.h"

namespace ridge::jinja {

Values bind_arguments(Renderer& r, std::string_view callee, const Arguments& arguments,
                      std::initializer_list<const char*> names, size_t required) {
  Values out(names.size(), Value::unset());
  if (arguments.positional.size() > names.size())
    r.fail(text("'", callee, "' takes at most ", names.size(), " argument(s), got ",
                arguments.positional.size()));
  std::copy(arguments.positional.begin(), arguments.positional.end(), out.begin());
  for (const auto& [name, value] : arguments.named) {
    const auto at = std::find(names.begin(), names.end(), std::string_view(name));
    if (at == names.end()) r.fail(text("'", callee, "' has no argument ", printable(name)));
    Value& slot = out[static_cast<size_t>(at - names.begin())];
    if (!slot.is(Kind::kUnset)) r.fail(text("'", callee, "' got argument '", name, "' twice"));
    slot = value;
  }
  for (size_t i = 0; i < required; ++i)
    if (out[i].is(Kind::kUnset)) r.fail(text("'", callee, "' needs its argument '", names.begin()[i], "'"));
  return out;
}

Value Renderer::call_filter(int id, const Value& input, const Arguments& arguments) {
  const Guard guard(this);
  burn(1);
  return filter_at(id).run(*this, input, arguments);
}
bool Renderer::call_test(int id, const Value& input, const Arguments& arguments) {
  const Guard guard(this);
  burn(1);
  return test_at(id).run(*this, input, arguments);
}

Value Renderer::call_expression(const Expr& e, Scope* scope, const Value* caller) {
  const Expr& callee = *e.children[0];
  if (callee.kind == ExprKind::kAttribute) {  // a method, without an object for the bound method
    const Value object = eval(*callee.children[0], scope);
    const bool is_loop_function =
        object.is(Kind::kLoop) && (callee.text == "cycle" || callee.text == "changed");
    const int method = object.is(Kind::kNamespace) ? -1 : find_method(object.kind(), callee.text);
    if (is_loop_function || (method >= 0 && method_at(method).run != nullptr)) {
      Arguments arguments = eval_arguments(e.call, scope);
      line_ = e.line;
      if (caller != nullptr) arguments.named.emplace_back("caller", *caller);
      return is_loop_function ? loop_call(object, callee.text, arguments)
                              : method_at(method).run(*this, object, arguments);
    }
    line_ = callee.line;
    const Value function = attribute(object, callee.text);
    Arguments arguments = eval_arguments(e.call, scope);
    line_ = e.line;
    if (caller != nullptr) arguments.named.emplace_back("caller", *caller);
    return call(function, std::move(arguments));
  }
  const Value function = eval(callee, scope);
  Arguments arguments = eval_arguments(e.call, scope);
  line_ = e.line;
  if (caller != nullptr) arguments.named.emplace_back("caller", *caller);
  return call(function, std::move(arguments));
}

Value Renderer::call(const Value& callee, Arguments arguments) {
  const Guard guard(this);
  switch (callee.kind()) {
    case Kind::kUndefined:
      fail_undefined(callee);
    case Kind::kFunction:
      return function_at(static_cast<int>(callee.as_int())).run(*this, arguments);
    case Kind::kMethod:
      return method_at(callee.as<Method>().id).run(*this, callee.as<Method>().receiver, arguments);
    case Kind::kMacro:
      return call_macro(callee.as<Macro>(), std::move(arguments));
    case Kind::kJoiner: {
      auto& joiner = callee.as<Joiner>();
      return std::exchange(joiner.used, true) ? joiner.separator : Value::string("");
    }
    default:
      fail(text(type_text(callee), " cannot be called"));
  }
}

Value Renderer::make_macro(const Statement& s, Scope* scope, std::string name) {
  auto macro = std::make_shared<Macro>();
  macro->node = &s;
  macro->closure = scope;
  macro->name = std::move(name);
  capture_scopes(scope);
  return {Kind::kMacro, std::move(macro)};
}

// Arguments to variables of the macro's scope, as Jinja binds them.
void Renderer::bind_macro(const Macro& macro, Arguments& arguments, Scope* scope) {
  const Signature& signature = macro.node->signature;
  const size_t count = signature.parameters.size();
  const std::string called = macro.name.empty() ? "the call block" : text("macro '", macro.name, "'");
  const auto take = [&](const std::string& name) {
    for (auto at = arguments.named.begin(); at != arguments.named.end(); ++at)
      if (at->first == name) {
        Value v = std::move(at->second);
        arguments.named.erase(at);
        return v;
      }
    return Value::unset();
  };
  bool has_caller = false;
  for (size_t i = 0; i < count; ++i) {
    const int id = signature.parameters[i];
    const std::string& name = program_.names[static_cast<size_t>(id)];
    has_caller |= name == "caller";
    Value v = i < arguments.positional.size() ? arguments.positional[i] : take(name);
    if (v.is(Kind::kUnset)) {
      const size_t from_end = count - i;
      v = from_end <= signature.defaults.size()
              ? eval(*signature.defaults[signature.defaults.size() - from_end], scope)
              : Value::undefined(text("parameter '", name, "' was not provided"));
    }
    set_variable(scope, id, std::move(v));
  }
  if (signature.uses_caller && !has_caller && caller_id_ >= 0) {
    const Value v = take("caller");
    set_variable(scope, caller_id_,
                 v.is(Kind::kUnset) || v.is(Kind::kNone) ? Value::undefined("No caller defined") : v);
  }
  if (signature.uses_kwargs) {
    Pairs rest;
    for (const auto& [name, value] : arguments.named) rest.emplace_back(make_text(name), value);
    if (kwargs_id_ >= 0) set_variable(scope, kwargs_id_, make_dict(std::move(rest)));
  } else if (!arguments.named.empty()) {
    fail(text(called, " takes no argument ", printable(arguments.named[0].first)));
  }
  if (signature.uses_varargs) {
    Values rest(
        arguments.positional.begin() + static_cast<int64_t>(std::min(count, arguments.positional.size())),
        arguments.positional.end());
    if (varargs_id_ >= 0) set_variable(scope, varargs_id_, make_tuple(std::move(rest)));
  } else if (arguments.positional.size() > count) {
    fail(text(called, " takes not more than ", count, " argument(s), got ", arguments.positional.size()));
  }
}

Value Renderer::call_macro(const Macro& macro, Arguments arguments) {
  const Guard guard(this);
  burn(1);
  Scope* scope = new_scope(macro.closure);
  bind_macro(macro, arguments, scope);
  std::string out;
  std::string* const outer = std::exchange(out_, &out);
  block(macro.node->blocks[0], scope);
  out_ = outer;
  release(scope);
  return make_text(std::move(out));
}

}  // namespace ridge::jinja
