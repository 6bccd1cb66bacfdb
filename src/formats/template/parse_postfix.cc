// What follows a value: attributes, subscripts, calls, filters and tests; and what they may name.
#include <algorithm>

#include "base/text.h"
#include "formats/template/functions.h"
#include "formats/template/parser.h"

namespace ridge::jinja {

const Expr* Parser::postfix(const Expr* e) {
  while (true) {
    if (now().is_operator(".") || now().is_operator("["))
      e = subscript(e);
    else if (now().is_operator("("))
      e = call(e);
    else
      return e;
  }
}

const Expr* Parser::filters_and_tests(const Expr* e) {
  while (true) {
    if (now().is_operator("|")) {
      e = filter_chain(e);
    } else if (now().is_name("is")) {
      next();
      e = test(e);
    } else if (now().is_operator("(")) {
      e = call(e);
    } else {
      return e;
    }
  }
}

const Expr* Parser::subscript(const Expr* e) {
  const int line = now().line;
  if (skip_operator(".")) {
    if (now().is(TokenKind::kInteger)) {
      const Expr* index = constant(Value::integer(now().integer), line);
      next();
      return new_expr(ExprKind::kItem, line, {e, index});
    }
    Expr* attribute = new_expr(ExprKind::kAttribute, line, {e});
    attribute->text = expect_name();
    attribute->constant = Value::string(attribute->text);
    return attribute;
  }
  next();
  std::vector<const Expr*> parts;
  while (!now().is_operator("]")) {
    if (!parts.empty()) expect_operator(",");
    parts.push_back(subscripted());
    if (parts.size() > 1 && (parts.back()->kind == ExprKind::kSlice || parts[0]->kind == ExprKind::kSlice))
      fail("a slice cannot be one of several subscripts");
  }
  next();
  return new_expr(ExprKind::kItem, line,
                  {e, parts.size() == 1 ? parts[0] : new_expr(ExprKind::kTuple, line, parts)});
}

const Expr* Parser::subscripted() {
  const int line = now().line;
  const Expr* parts[3] = {};
  if (!now().is_operator(":")) {
    parts[0] = expression();
    if (!now().is_operator(":")) return parts[0];
  }
  next();
  const auto at_end = [&] {
    return now().is_operator("]") || now().is_operator(",") || now().is_operator(":");
  };
  if (!at_end()) parts[1] = expression();
  if (skip_operator(":") && !at_end()) parts[2] = expression();
  return new_expr(ExprKind::kSlice, line, {parts[0], parts[1], parts[2]});
}

const Expr* Parser::call(const Expr* callee) {
  const int line = now().line;
  Expr* e = new_expr(ExprKind::kCall, line, {callee});
  call_arguments(e);
  if (callee->kind == ExprKind::kName) calls_.push_back(e);
  if (callee->kind == ExprKind::kAttribute && find_method_name(callee->text) == MethodName::kUnsupported)
    fail_at(line, text("method '", callee->text, "' is not supported"));
  return e;
}

// (…) of a call, filter or test. A tree's depth counts its arguments.
void Parser::call_arguments(Expr* e) {
  CallSyntax& out = e->call;
  const auto argument = [&] {
    const Expr* value = expression();
    e->depth = std::max(e->depth, value->depth + 1);
    return value;
  };
  const auto ensure = [&](bool ok) {
    if (!ok) fail("arguments must come in the order: positional, named, *, **");
  };
  expect_operator("(");
  bool first = true;
  while (!now().is_operator(")")) {
    if (!first) expect_operator(",");
    if (now().is_operator(")")) break;
    first = false;
    if (skip_operator("*")) {
      ensure(out.star == nullptr && out.star_star == nullptr);
      out.star = argument();
    } else if (skip_operator("**")) {
      ensure(out.star_star == nullptr);
      out.star_star = argument();
    } else if (now().is(TokenKind::kName) && ahead().is_operator("=")) {
      ensure(out.star_star == nullptr);
      std::string name = expect_name();
      next();
      for (const auto& [other, value] : out.named)
        if (other == name) fail(text("argument '", name, "' is given twice"));
      const Expr* value = argument();
      out.named.emplace_back(std::move(name), value);
    } else {
      ensure(out.star == nullptr && out.star_star == nullptr && out.named.empty());
      out.positional.push_back(argument());
    }
  }
  next();
}

std::string Parser::dotted_name() {
  std::string name = expect_name();
  while (skip_operator(".")) name += "." + expect_name();
  return name;
}

// map('upper'), selectattr('role', 'equalto', 'user'): the name is data to Jinja; where it is a literal, it
// is checked.
void Parser::check_inner_name(const Expr* e, size_t argument, bool is_test) const {
  if (e->call.positional.size() <= argument) return;
  const Expr* name = e->call.positional[argument];
  if (name->kind != ExprKind::kConstant || !name->constant.is_string()) return;
  const std::string& inner = name->constant.text();
  if (is_test ? find_test(inner) < 0 : find_filter(inner) < 0)
    fail_at(name->line,
            text("unknown ", is_test ? "test " : "filter ", printable(inner), " in '", e->text, "'"));
}

const Expr* Parser::filter(const Expr* input) {
  const int line = now().line;
  const std::string name = dotted_name();
  Expr* e = new_expr(ExprKind::kFilter, line, {input});
  e->text = name;
  e->id = find_filter(name);
  if (e->id < 0) fail_at(line, text("unknown filter ", printable(name)));
  if (now().is_operator("(")) call_arguments(e);
  if (name == "map") check_inner_name(e, 0, false);
  if (name == "select" || name == "reject") check_inner_name(e, 0, true);
  if (name == "selectattr" || name == "rejectattr") check_inner_name(e, 1, true);
  return e;
}

const Expr* Parser::filter_chain(const Expr* input) {
  while (skip_operator("|")) input = filter(input);
  return input;
}

const Expr* Parser::test(const Expr* e) {
  const int line = now().line;
  const bool negated = skip_name("not");
  const std::string name = dotted_name();
  Expr* node = new_expr(ExprKind::kTest, line, {e});
  node->text = name;
  node->id = find_test(name);
  if (node->id < 0) fail_at(line, text("unknown test ", printable(name)));
  const Token& t = now();
  if (t.is_operator("(")) {
    call_arguments(node);
  } else if ((t.is(TokenKind::kName) && t.text != "else" && t.text != "or" && t.text != "and") ||
             t.is(TokenKind::kString) || t.is(TokenKind::kInteger) || t.is(TokenKind::kFloat) ||
             t.is_operator("[") || t.is_operator("{")) {
    if (t.is_name("is")) fail("tests with 'is' cannot be chained");
    const Nesting nesting(this);
    const Expr* argument = postfix(primary());
    node->depth = std::max(node->depth, argument->depth + 1);
    node->call.positional.push_back(argument);
  }
  return negated ? new_expr(ExprKind::kNot, line, {node}) : node;
}

// A plain name that is called must be a function of ours or something that the template assigns: no value of
// a context can be called.
void Parser::check_calls() const {
  for (const Expr* e : calls_) {
    const int id = e->children[0]->id;
    const std::string& name = program_->names[static_cast<size_t>(id)];
    if (!bound_[static_cast<size_t>(id)] && find_function(name) < 0)
      fail_at(e->line, text("unknown function ", printable(name)));
  }
}

}  // namespace ridge::jinja
