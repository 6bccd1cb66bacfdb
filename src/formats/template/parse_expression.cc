#include <algorithm>

#include "base/limits.h"
#include "base/text.h"
#include "formats/template/functions.h"
#include "formats/template/parser.h"

namespace ridge::jinja {

const char* op_text(Op op) {
  static const char* const kText[] = {
      "+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in", "not in"};
  return kText[static_cast<size_t>(op)];
}

Expr* Parser::new_expr(ExprKind kind, int line, std::vector<const Expr*> children) {
  program_->expressions.emplace_back();
  Expr* e = &program_->expressions.back();
  e->kind = kind;
  e->line = line;
  for (const Expr* child : children)
    if (child != nullptr) e->depth = std::max(e->depth, child->depth + 1);
  if (e->depth > limits::kTemplateTreeDepth)
    fail_at(line, text("an expression has more than ", limits::kTemplateTreeDepth, " operators in a row"));
  e->children = std::move(children);
  return e;
}

Expr* Parser::constant(Value v, int line) {
  Expr* e = new_expr(ExprKind::kConstant, line);
  e->constant = std::move(v);
  return e;
}

const Expr* Parser::expression() {
  const Nesting nesting(this);
  const Expr* e = or_expression();
  while (now().is_name("if")) {
    const int line = now().line;
    next();
    const Expr* condition = or_expression();
    e = new_expr(ExprKind::kConditional, line, {e, condition, skip_name("else") ? expression() : nullptr});
  }
  return e;
}

const Expr* Parser::or_expression() {
  const Expr* e = and_expression();
  while (now().is_name("or")) {
    const int line = now().line;
    next();
    e = new_expr(ExprKind::kOr, line, {e, and_expression()});
  }
  return e;
}

const Expr* Parser::and_expression() {
  const Expr* e = not_expression();
  while (now().is_name("and")) {
    const int line = now().line;
    next();
    e = new_expr(ExprKind::kAnd, line, {e, not_expression()});
  }
  return e;
}

const Expr* Parser::not_expression() {
  if (!now().is_name("not")) return comparison();
  const Nesting nesting(this);
  const int line = now().line;
  next();
  return new_expr(ExprKind::kNot, line, {not_expression()});
}

const Expr* Parser::comparison() {
  static constexpr Op kOps[] = {Op::kEqual,     Op::kNotEqual, Op::kLess,
                                Op::kLessEqual, Op::kGreater,  Op::kGreaterEqual};
  const int line = now().line;
  std::vector<const Expr*> operands = {sum()};
  std::vector<Op> ops;
  while (true) {
    const auto symbol =
        std::find_if(std::begin(kOps), std::end(kOps), [&](Op op) { return now().is_operator(op_text(op)); });
    if (symbol != std::end(kOps)) {
      next();
      ops.push_back(*symbol);
    } else if (skip_name("in")) {
      ops.push_back(Op::kIn);
    } else if (now().is_name("not") && ahead().is_name("in")) {
      next();
      next();
      ops.push_back(Op::kNotIn);
    } else {
      break;
    }
    operands.push_back(sum());
  }
  if (ops.empty()) return operands[0];
  Expr* e = new_expr(ExprKind::kCompare, line, std::move(operands));
  e->ops = std::move(ops);
  return e;
}

const Expr* Parser::sum() {
  const Expr* e = concat();
  while (now().is_operator("+") || now().is_operator("-")) {
    const Op op = now().text == "+" ? Op::kAdd : Op::kSubtract;
    const int line = now().line;
    next();
    Expr* node = new_expr(ExprKind::kBinary, line, {e, concat()});
    node->op = op;
    e = node;
  }
  return e;
}

const Expr* Parser::concat() {
  const int line = now().line;
  std::vector<const Expr*> parts = {product()};
  while (skip_operator("~")) parts.push_back(product());
  return parts.size() == 1 ? parts[0] : new_expr(ExprKind::kConcat, line, std::move(parts));
}

const Expr* Parser::product() {
  static constexpr Op kOps[] = {Op::kMultiply, Op::kDivide, Op::kFloorDivide, Op::kModulo};
  const Expr* e = power();
  while (true) {
    const auto op =
        std::find_if(std::begin(kOps), std::end(kOps), [&](Op o) { return now().is_operator(op_text(o)); });
    if (op == std::end(kOps)) return e;
    const int line = now().line;
    next();
    Expr* node = new_expr(ExprKind::kBinary, line, {e, power()});
    node->op = *op;
    e = node;
  }
}

const Expr* Parser::power() {
  const Expr* e = unary(true);
  while (now().is_operator("**")) {
    const int line = now().line;
    next();
    Expr* node = new_expr(ExprKind::kBinary, line, {e, unary(true)});
    node->op = Op::kPower;
    e = node;
  }
  return e;
}

const Expr* Parser::unary(bool with_filter) {
  const Nesting nesting(this);
  const int line = now().line;
  const Expr* e = nullptr;
  if (skip_operator("-"))
    e = new_expr(ExprKind::kNegate, line, {unary(false)});
  else if (skip_operator("+"))
    e = new_expr(ExprKind::kPlus, line, {unary(false)});
  else
    e = primary();
  e = postfix(e);
  return with_filter ? filters_and_tests(e) : e;
}

const Expr* Parser::name_or_constant() {
  const int line = now().line;
  const std::string name = expect_name();
  if (name == "true" || name == "True") return constant(Value::boolean(true), line);
  if (name == "false" || name == "False") return constant(Value::boolean(false), line);
  if (name == "none" || name == "None") return constant(Value::none(), line);
  Expr* e = new_expr(ExprKind::kName, line);
  e->id = variable(name);
  return e;
}

const Expr* Parser::primary() {
  const Token& token = now();
  const int line = token.line;
  switch (token.kind) {
    case TokenKind::kName:
      return name_or_constant();
    case TokenKind::kString: {
      std::string all;
      for (; now().is(TokenKind::kString); next()) all += now().text;
      return constant(Value::string(std::move(all)), line);
    }
    case TokenKind::kInteger:
      next();
      return constant(Value::integer(token.integer), line);
    case TokenKind::kFloat:
      next();
      return constant(Value::number(token.number), line);
    case TokenKind::kOperator:
      if (skip_operator("(")) {
        const Expr* e = tuple(true, true);
        expect_operator(")");
        return e;
      }
      if (token.text == "[") return list_literal();
      if (token.text == "{") return dict_literal();
      break;
    default:
      break;
  }
  fail(text("expected an expression, found ", describe(token)));
}

const Expr* Parser::list_literal() {
  const int line = now().line;
  next();
  std::vector<const Expr*> items;
  while (!now().is_operator("]")) {
    if (!items.empty()) expect_operator(",");
    if (now().is_operator("]")) break;
    items.push_back(expression());
  }
  next();
  return new_expr(ExprKind::kList, line, std::move(items));
}

const Expr* Parser::dict_literal() {
  const int line = now().line;
  next();
  std::vector<const Expr*> items;
  while (!now().is_operator("}")) {
    if (!items.empty()) expect_operator(",");
    if (now().is_operator("}")) break;
    items.push_back(expression());
    expect_operator(":");
    items.push_back(expression());
  }
  next();
  return new_expr(ExprKind::kDict, line, std::move(items));
}

bool Parser::at_tuple_end(std::string_view extra_end) const {
  return now().is(TokenKind::kVariableEnd) || now().is(TokenKind::kBlockEnd) || now().is_operator(")") ||
         (!extra_end.empty() && now().is_name(extra_end));
}

const Expr* Parser::tuple(bool with_conditional, bool in_parentheses, std::string_view extra_end) {
  const int line = now().line;
  std::vector<const Expr*> items;
  bool is_tuple = false;
  while (true) {
    if (!items.empty()) expect_operator(",");
    if (at_tuple_end(extra_end)) break;
    if (with_conditional) {
      items.push_back(expression());
    } else {
      const Nesting nesting(this);
      items.push_back(or_expression());
    }
    if (!now().is_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!items.empty()) return items[0];
    if (!in_parentheses) fail(text("expected an expression, found ", describe(now())));
  }
  return new_expr(ExprKind::kTuple, line, std::move(items));
}

}  // namespace ridge::jinja
