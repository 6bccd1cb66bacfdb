// Statements and variables.
#include "formats/template/render.h"

#include <algorithm>

namespace ridge::jinja {

Renderer::Renderer(const Program& program, const Value& context, int64_t now_unix)
    : program_(program),
      now_unix_(now_unix),
      loop_id_(program.find_name("loop")),
      caller_id_(program.find_name("caller")),
      kwargs_id_(program.find_name("kwargs")),
      varargs_id_(program.find_name("varargs")),
      root_(program.names.size(), Value::unset()) {
  for (size_t id = 0; id < program.names.size(); ++id) {
    for (const auto& [key, value] : context.dict().items)
      if (key.is_string() && key.text() == program.names[id]) root_[id] = value;
    if (const int function = find_function(program.names[id]); root_[id].is(Kind::kUnset) && function >= 0)
      root_[id] = Value::function(function);
  }
}

// Namespaces can hold each other, and scopes macros that look into them: emptied one by one, nothing leaks
// and no destructor recurses along a chain.
Renderer::~Renderer() {
  for (Scope& scope : scopes_) scope.variables.clear();
  root_.clear();
  for (const auto& object : namespaces_) {
    const Pairs dropped = std::move(static_cast<Namespace&>(*object).attributes);
    static_cast<Namespace&>(*object).attributes.clear();
  }
}

std::string Renderer::run() {
  std::string out;
  out_ = &out;
  block(program_.body, nullptr);
  return out;
}

void Renderer::fail(const std::string& message) const {
  throw Failure{corrupt("chat template, line ", line_, ": ", message)};
}
void Renderer::refuse(const std::string& message) const {
  throw Failure{invalid_argument("chat template, line ", line_, ": ", message)};
}
void Renderer::fail_undefined(const Value& v) const {
  fail(v.object() == nullptr ? "an undefined value is used" : v.as<Why>().message);
}
void Renderer::exhausted(const std::string& message) const {
  throw Failure{resource_exhausted("chat template, line ", line_, ": budget exceeded: ", message)};
}
void Renderer::out_of_fuel() const {
  exhausted(text("more than ", limits::kTemplateSteps, " steps"));
}
void Renderer::too_deep() const {
  exhausted(text("more than ", limits::kTemplateRecursion, " evaluations within each other"));
}
void Renderer::check_depth(int depth) const {
  if (depth > limits::kTemplateValueDepth)
    exhausted(text("values are nested deeper than ", limits::kTemplateValueDepth));
}

void Renderer::check_text_bytes(size_t bytes) const {
  if (static_cast<int64_t>(bytes) > limits::kTemplateOutputBytes)
    exhausted(text("a text of ", bytes, " bytes, the limit is ", limits::kTemplateOutputBytes));
}

// The rarest byte of `what` bounds how often it occurs; counting a byte is much faster than finding a text.
void Renderer::burn_matches(std::string_view s, std::string_view what) {
  burn_bytes(4 * s.size());
  auto most = static_cast<int64_t>(s.size());
  for (const char c : what.substr(0, 8)) most = std::min<int64_t>(most, std::count(s.begin(), s.end(), c));
  burn(most / (what.empty() ? 16 : 2));
}

Value Renderer::make_text(std::string v) {
  check_text_bytes(v.size());
  burn_bytes(v.size());
  return Value::string(std::move(v));
}
Value Renderer::make_list(Values v) {
  burn_items(v.size());
  check_depth(deepest(v) + 1);
  return Value::list(std::move(v));
}
Value Renderer::make_tuple(Values v) {
  burn_items(v.size());
  check_depth(deepest(v) + 1);
  return Value::tuple(std::move(v));
}
Value Renderer::make_dict(Pairs v) {
  burn_items(2 * v.size());
  Value out = Value::dict(std::move(v));
  check_depth(out.depth());
  return out;
}
Value Renderer::make_iterator(Values v, const char* type) {
  burn_items(v.size());
  check_depth(deepest(v) + 1);
  return {Kind::kIterator, std::make_shared<Iterator>(std::move(v), type)};
}
Value Renderer::make_namespace(Pairs attributes) {
  auto object = std::make_shared<Namespace>();
  object->attributes = std::move(attributes);
  namespaces_.push_back(object);
  return {Kind::kNamespace, std::move(object)};
}

void Renderer::write(std::string_view v) {
  if (static_cast<int64_t>(out_->size() + v.size()) > limits::kTemplateOutputBytes)
    exhausted(text("more than ", limits::kTemplateOutputBytes, " bytes of output"));
  burn_bytes(v.size());
  out_->append(v);
}

// ---- variables

Scope* Renderer::new_scope(Scope* parent) {
  Scope* scope;
  if (free_scopes_.empty()) {
    scopes_.emplace_back();
    scope = &scopes_.back();
  } else {
    scope = free_scopes_.back();
    free_scopes_.pop_back();
  }
  scope->parent = parent;
  return scope;
}
void Renderer::release(Scope* scope) {
  if (scope->captured) return;
  scope->variables.clear();
  free_scopes_.push_back(scope);
}
void Renderer::capture_scopes(Scope* scope) {
  for (; scope != nullptr && !scope->captured; scope = scope->parent) scope->captured = true;
}

Value Renderer::variable(int id, Scope* scope) {
  for (const Scope* s = scope; s != nullptr; s = s->parent) {
    burn_items(s->variables.size());
    for (const auto& [variable_id, value] : s->variables)
      if (variable_id == id) return value;
  }
  const Value& v = root_[static_cast<size_t>(id)];
  if (!v.is(Kind::kUnset)) return v;
  return Value::undefined(text("'", program_.names[static_cast<size_t>(id)], "' is undefined"));
}

void Renderer::set_variable(Scope* scope, int id, Value v) {
  if (scope == nullptr) {
    root_[static_cast<size_t>(id)] = std::move(v);
    return;
  }
  burn_items(scope->variables.size());
  for (auto& [variable_id, value] : scope->variables)
    if (variable_id == id) {
      value = std::move(v);
      return;
    }
  scope->variables.emplace_back(id, std::move(v));
}

void Renderer::assign_attribute(const Target& t, const Value& v, Scope* scope) {
  const Value object = variable(t.id, scope);
  if (!object.is(Kind::kNamespace))
    fail(text("cannot assign attribute '", t.attribute, "': '", program_.names[static_cast<size_t>(t.id)],
              "' is no namespace but ", type_text(object)));
  assign_key(object.as<Namespace>().attributes, make_text(t.attribute), v);
}

void Renderer::assign(const Target& t, const Value& v, Scope* scope) {
  if (t.kind == Target::kVariable) return set_variable(scope, t.id, v);
  if (t.kind == Target::kNamespace) return assign_attribute(t, v, scope);
  const Guard guard(this);
  const Values parts = to_values(v);
  if (parts.size() != t.targets.size())
    fail(text("cannot unpack ", parts.size(), " values into ", t.targets.size(), " names"));
  for (size_t i = 0; i < parts.size(); ++i) assign(t.targets[i], parts[i], scope);
}

// ---- statements

Flow Renderer::block(const Block& b, Scope* scope) {
  for (const Statement* s : b)
    if (const Flow flow = statement(*s, scope); flow != Flow::kNormal) return flow;
  return Flow::kNormal;
}

Flow Renderer::statement(const Statement& s, Scope* scope) {
  const Guard guard(this);
  burn(1);
  line_ = s.line;
  switch (s.kind) {
    case StatementKind::kText:
      write(s.text);
      break;
    case StatementKind::kPrint:
      for (const Expr* e : s.expressions) {
        const Value v = eval(*e, scope);
        v.is_string() ? write(v.text()) : write(str(v));
      }
      break;
    case StatementKind::kIf:
      return if_statement(s, scope);
    case StatementKind::kFor:
      return for_statement(s, scope);
    case StatementKind::kSet:
      assign(s.target, eval(*s.expressions[0], scope), scope);
      break;
    case StatementKind::kSetBlock:
      return set_block(s, scope);
    case StatementKind::kMacro:
      set_variable(scope, s.target.id,
                   make_macro(s, scope, program_.names[static_cast<size_t>(s.target.id)]));
      break;
    case StatementKind::kCall:
      call_statement(s, scope);
      break;
    case StatementKind::kFilterBlock:
      return filter_block(s, scope);
    case StatementKind::kWith:
      return with_statement(s, scope);
    case StatementKind::kGeneration: {
      Scope* inner = new_scope(scope);
      block(s.blocks[0], inner);
      release(inner);
      break;
    }
    case StatementKind::kBreak:
      return Flow::kBreak;
    case StatementKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNormal;
}

Flow Renderer::if_statement(const Statement& s, Scope* scope) {
  for (size_t i = 0; i < s.expressions.size(); ++i)
    if (truth(eval(*s.expressions[i], scope))) return block(s.blocks[i], scope);
  return s.blocks.size() > s.expressions.size() ? block(s.blocks.back(), scope) : Flow::kNormal;
}

// Renders `b` apart from the output. The text is dropped where a loop control leaves it.
Flow Renderer::capture(const Block& b, Scope* scope, std::string* out) {
  std::string* const outer = std::exchange(out_, out);
  Scope* inner = new_scope(scope);
  const Flow flow = block(b, inner);
  release(inner);
  out_ = outer;
  return flow;
}

Flow Renderer::set_block(const Statement& s, Scope* scope) {
  std::string captured;
  const Flow flow = capture(s.blocks[0], scope, &captured);
  if (flow != Flow::kNormal) return flow;
  Value v = make_text(std::move(captured));
  if (s.expressions[0] != nullptr) {
    const Value* const outer = std::exchange(body_, &v);
    Value filtered = eval(*s.expressions[0], scope);
    body_ = outer;
    v = std::move(filtered);
  }
  assign(s.target, v, scope);
  return Flow::kNormal;
}

Flow Renderer::filter_block(const Statement& s, Scope* scope) {
  std::string captured;
  const Flow flow = capture(s.blocks[0], scope, &captured);
  if (flow != Flow::kNormal) return flow;
  const Value v = make_text(std::move(captured));
  const Value* const outer = std::exchange(body_, &v);
  const Value filtered = eval(*s.expressions[0], scope);
  body_ = outer;
  write(to_text(filtered, "what a filter block makes"));
  return Flow::kNormal;
}

Flow Renderer::with_statement(const Statement& s, Scope* scope) {
  Scope* inner = new_scope(scope);
  for (size_t i = 0; i < s.targets.size(); ++i) assign(s.targets[i], eval(*s.expressions[i], scope), inner);
  const Flow flow = block(s.blocks[0], inner);
  release(inner);
  return flow;
}

void Renderer::call_statement(const Statement& s, Scope* scope) {
  const Value caller = make_macro(s, scope, "");
  write(str(call_expression(*s.expressions[0], scope, &caller)));
}

}  // namespace ridge::jinja
