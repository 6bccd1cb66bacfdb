#include <algorithm>

#include "base/limits.h"
#include "base/text.h"
#include "formats/template/functions.h"
#include "formats/template/parser.h"

namespace ridge::jinja {

bool Parser::skip_operator(std::string_view v) {
  if (!now().is_operator(v)) return false;
  next();
  return true;
}
bool Parser::skip_name(std::string_view v) {
  if (!now().is_name(v)) return false;
  next();
  return true;
}
void Parser::expect_operator(std::string_view v) {
  if (!skip_operator(v)) fail(text("expected '", v, "', found ", describe(now())));
}
void Parser::expect(TokenKind kind, const char* what) {
  if (!now().is(kind)) fail(text("expected ", what, ", found ", describe(now())));
  next();
}
std::string Parser::expect_name() {
  if (!now().is(TokenKind::kName)) fail(text("expected a name, found ", describe(now())));
  std::string name = now().text;
  next();
  return name;
}
int Parser::variable(const std::string& name) {
  const auto [at, added] = ids_.emplace(name, static_cast<int>(program_->names.size()));
  if (added) {
    program_->names.push_back(name);
    bound_.push_back(0);
  }
  return at->second;
}
void Parser::bind(int id) {
  bound_[static_cast<size_t>(id)] = 1;
}

Parser::Nesting::Nesting(Parser* p) : parser(p) {
  if (++p->nesting_ > limits::kTemplateDepth)
    p->fail(text("expressions are nested deeper than ", limits::kTemplateDepth));
}

void Parser::run() {
  program_->body = subparse({});
  check_calls();
}

Block Parser::statements(Ends ends) {
  skip_operator(":");
  expect(TokenKind::kBlockEnd, "'%}'");
  return subparse(ends);
}

// Leaves the parser at the name of the end tag (for the template itself: at its end).
Block Parser::subparse(Ends ends) {
  if (++block_depth_ > limits::kTemplateDepth)
    fail(text("blocks are nested deeper than ", limits::kTemplateDepth));
  Block block;
  const int opened = now().line;
  while (!now().is(TokenKind::kEnd)) {
    if (now().is(TokenKind::kData)) {
      Statement* s = new_statement(StatementKind::kText);
      s->text = now().text;
      next();
      block.push_back(s);
    } else if (now().is(TokenKind::kVariableBegin)) {
      next();
      Statement* s = new_statement(StatementKind::kPrint);
      s->expressions.push_back(tuple(true, false));
      expect(TokenKind::kVariableEnd, "'}}'");
      block.push_back(s);
    } else {
      expect(TokenKind::kBlockBegin, "a tag");
      if (now().is(TokenKind::kName) && std::find(ends.begin(), ends.end(), now().text) != ends.end()) {
        --block_depth_;
        return block;
      }
      block.push_back(statement());
      expect(TokenKind::kBlockEnd, "'%}'");
    }
  }
  if (ends.size() > 0)
    fail_at(opened, text("the block opened here is not closed: no '", *(ends.end() - 1), "' follows"));
  --block_depth_;
  return block;
}

Statement* Parser::new_statement(StatementKind kind) {
  Statement s;
  s.kind = kind;
  s.line = now().line;
  program_->statements.push_back(std::move(s));
  return &program_->statements.back();
}

void Parser::unknown_tag(const std::string& name) const {
  if (name == "include" || name == "import" || name == "from" || name == "extends")
    fail(text("tag '", name, "' is refused: a chat template reads no other template"));
  fail(text("unknown tag ", printable(name),
            ": this interpreter has if, for, set, macro, call, filter, with, print, "
            "generation, raw, break and continue"));
}

const Statement* Parser::statement() {
  if (!now().is(TokenKind::kName)) fail(text("expected the name of a tag, found ", describe(now())));
  const std::string tag = now().text;
  static const std::unordered_map<std::string, StatementKind> kTags = {
      {"if", StatementKind::kIf},
      {"for", StatementKind::kFor},
      {"set", StatementKind::kSet},
      {"macro", StatementKind::kMacro},
      {"call", StatementKind::kCall},
      {"filter", StatementKind::kFilterBlock},
      {"with", StatementKind::kWith},
      {"print", StatementKind::kPrint},
      {"generation", StatementKind::kGeneration},
      {"break", StatementKind::kBreak},
      {"continue", StatementKind::kContinue}};
  const auto kind = kTags.find(tag);
  if (kind == kTags.end()) unknown_tag(tag);
  Statement* s = new_statement(kind->second);
  next();
  switch (kind->second) {
    case StatementKind::kIf:
      parse_if(s);
      break;
    case StatementKind::kFor:
      parse_for(s);
      break;
    case StatementKind::kSet:
      parse_set(s);
      break;
    case StatementKind::kMacro:
      parse_macro(s);
      break;
    case StatementKind::kCall:
      parse_call_block(s);
      break;
    case StatementKind::kWith:
      parse_with(s);
      break;
    case StatementKind::kPrint:
      parse_print(s);
      break;
    case StatementKind::kFilterBlock:
      s->expressions.push_back(filter_chain(filter(new_expr(ExprKind::kBody, s->line))));
      s->blocks.push_back(statements({"endfilter"}));
      next();
      break;
    case StatementKind::kGeneration:
      s->blocks.push_back(macro_body("endgeneration", &s->signature));
      break;
    default:
      parse_loop_control(s, tag);
      break;
  }
  return s;
}

void Parser::parse_loop_control(Statement* s, const std::string& tag) {
  if (loop_depth_ == 0) fail_at(s->line, text("'", tag, "' is outside of a loop"));
}

void Parser::parse_if(Statement* s) {
  while (true) {
    s->expressions.push_back(tuple(false, false));
    s->blocks.push_back(statements({"elif", "else", "endif"}));
    const std::string tag = expect_name();
    if (tag == "elif") continue;
    if (tag == "else") {
      s->blocks.push_back(statements({"endif"}));
      next();
    }
    return;
  }
}

// The loop variable belongs to the statement.
void Parser::refuse_loop(const Target& t) const {
  if (t.kind == Target::kVariable && program_->names[static_cast<size_t>(t.id)] == "loop")
    fail("'loop' cannot be the target of a for loop");
  for (const Target& part : t.targets) refuse_loop(part);
}

void Parser::parse_for(Statement* s) {
  s->target = target(false);
  refuse_loop(s->target);
  if (!skip_name("in")) fail(text("expected 'in', found ", describe(now())));
  s->expressions.push_back(tuple(false, false, "recursive"));
  if (skip_name("if")) s->expressions.push_back(expression());
  if (now().is_name("recursive")) fail("'recursive' loops are not supported: use a macro that calls itself");
  const size_t body = at_;
  ++loop_depth_;
  s->blocks.push_back(statements({"else", "endfor"}));
  --loop_depth_;
  for (size_t i = body; i < at_ && !s->uses_loop; ++i) s->uses_loop = tokens_[i].is_name("loop");
  if (expect_name() == "else") {
    s->blocks.push_back(statements({"endfor"}));
    next();
  }
}

void Parser::parse_set(Statement* s) {
  s->target = target(true);
  if (skip_operator("=")) {
    s->expressions.push_back(tuple(true, false));
    return;
  }
  s->kind = StatementKind::kSetBlock;
  s->expressions.push_back(now().is_operator("|") ? filter_chain(new_expr(ExprKind::kBody, s->line))
                                                  : nullptr);
  s->blocks.push_back(statements({"endset"}));
  next();
}

void Parser::signature(Signature* out) {
  expect_operator("(");
  while (!now().is_operator(")")) {
    if (!out->parameters.empty()) expect_operator(",");
    const Target parameter = primary_target(false);
    if (parameter.kind != Target::kVariable) fail("a parameter must be a name");
    if (std::find(out->parameters.begin(), out->parameters.end(), parameter.id) != out->parameters.end())
      fail(text("parameter '", program_->names[static_cast<size_t>(parameter.id)], "' occurs twice"));
    out->parameters.push_back(parameter.id);
    if (skip_operator("="))
      out->defaults.push_back(expression());
    else if (!out->defaults.empty())
      fail("a parameter without default follows one with a default");
  }
  next();
}

// What is a function to Jinja: loop controls do not reach out of it; caller, kwargs and varargs appear in it.
Block Parser::macro_body(std::string_view end, Signature* s) {
  const int outer_loops = std::exchange(loop_depth_, 0);
  const size_t begin = at_;
  Block body = statements({end});
  for (size_t i = begin; i < at_; ++i) {
    if (!tokens_[i].is(TokenKind::kName)) continue;
    s->uses_caller |= tokens_[i].text == "caller";
    s->uses_kwargs |= tokens_[i].text == "kwargs";
    s->uses_varargs |= tokens_[i].text == "varargs";
  }
  loop_depth_ = outer_loops;
  next();
  return body;
}

void Parser::parse_macro(Statement* s) {
  s->target = primary_target(false);
  if (s->target.kind != Target::kVariable) fail("expected the macro's name");
  signature(&s->signature);
  bind(variable("caller"));
  s->blocks.push_back(macro_body("endmacro", &s->signature));
}

void Parser::parse_call_block(Statement* s) {
  if (now().is_operator("(")) signature(&s->signature);
  const Expr* e = expression();
  if (e->kind != ExprKind::kCall) fail_at(s->line, "expected a call after 'call'");
  s->expressions.push_back(e);
  s->blocks.push_back(macro_body("endcall", &s->signature));
}

void Parser::parse_with(Statement* s) {
  while (!now().is(TokenKind::kBlockEnd) && !now().is_operator(":")) {
    if (!s->targets.empty()) expect_operator(",");
    s->targets.push_back(target(false));
    expect_operator("=");
    s->expressions.push_back(expression());
  }
  s->blocks.push_back(statements({"endwith"}));
  next();
}

void Parser::parse_print(Statement* s) {
  while (!now().is(TokenKind::kBlockEnd)) {
    if (!s->expressions.empty()) expect_operator(",");
    s->expressions.push_back(expression());
  }
}

Target Parser::primary_target(bool with_namespace) {
  const Nesting nesting(this);
  if (skip_operator("(")) {
    Target t = target(with_namespace);
    expect_operator(")");
    return t;
  }
  const std::string name = expect_name();
  for (const std::string_view word : {"true", "false", "none", "True", "False", "None"})
    if (name == word) fail(text("cannot assign to '", name, "'"));
  Target t;
  t.id = variable(name);
  if (with_namespace && skip_operator(".")) {
    t.kind = Target::kNamespace;
    t.attribute = expect_name();
    if (t.attribute[0] == '_')
      fail(text("namespace attribute '", t.attribute, "' begins with an underscore: rename it"));
  } else {
    bind(t.id);
  }
  return t;
}

Target Parser::target(bool with_namespace) {
  Target first = primary_target(with_namespace);
  if (!now().is_operator(",")) return first;
  Target t;
  t.kind = Target::kTuple;
  t.targets.push_back(std::move(first));
  while (skip_operator(",")) {
    if (now().is_name("in") || now().is_operator("=") || now().is_operator(")") ||
        now().is(TokenKind::kBlockEnd))
      break;
    t.targets.push_back(primary_target(with_namespace));
  }
  return t;
}

}  // namespace ridge::jinja
