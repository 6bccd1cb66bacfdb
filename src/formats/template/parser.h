#pragma once
// Recursive descent over the tokens, in the grammar of Jinja 3.1. Whatever the interpreter does not know
// (tags, filters, tests, functions) is refused here, with its name and line, so that no request meets it
// first.

#include <string>
#include <unordered_map>
#include <vector>

#include "formats/template/ast.h"
#include "formats/template/lexer.h"

namespace ridge::jinja {

class Parser {
 public:
  Parser(std::vector<Token> tokens, Program* program) : tokens_(std::move(tokens)), program_(program) {}
  void run();  // throws Failure

 private:
  // Tokens
  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  void next() { at_ += at_ + 1 < tokens_.size(); }
  bool skip_operator(std::string_view v);
  bool skip_name(std::string_view v);
  void expect_operator(std::string_view v);
  void expect(TokenKind kind, const char* what);
  std::string expect_name();
  [[noreturn]] void fail(const std::string& message) const { fail_at(now().line, message); }
  int variable(const std::string& name);
  void bind(int id);

  // Statements
  using Ends = std::initializer_list<std::string_view>;
  Block statements(Ends ends);  // from the end of a tag to the name of one of `ends`
  Block subparse(Ends ends);
  const Statement* statement();
  Statement* new_statement(StatementKind kind);
  void close_statement(const std::string& tag, Statement* s);
  void parse_if(Statement* s);
  void parse_for(Statement* s);
  void refuse_loop(const Target& t) const;
  void parse_set(Statement* s);
  void parse_macro(Statement* s);
  void parse_call_block(Statement* s);
  void parse_with(Statement* s);
  void parse_print(Statement* s);
  void parse_loop_control(Statement* s, const std::string& tag);
  Block macro_body(std::string_view end, Signature* signature);
  void signature(Signature* out);
  Target target(bool with_namespace);
  Target primary_target(bool with_namespace);
  [[noreturn]] void unknown_tag(const std::string& name) const;

  // Expressions
  Expr* new_expr(ExprKind kind, int line, std::vector<const Expr*> children = {});
  Expr* constant(Value v, int line);
  const Expr* expression();
  const Expr* or_expression();
  const Expr* and_expression();
  const Expr* not_expression();
  const Expr* comparison();
  const Expr* sum();
  const Expr* concat();
  const Expr* product();
  const Expr* power();
  const Expr* unary(bool with_filter);
  const Expr* primary();
  const Expr* name_or_constant();
  const Expr* list_literal();
  const Expr* dict_literal();
  const Expr* tuple(bool with_conditional, bool in_parentheses, std::string_view extra_end = {});
  bool at_tuple_end(std::string_view extra_end) const;
  const Expr* postfix(const Expr* e);
  const Expr* filters_and_tests(const Expr* e);
  const Expr* subscript(const Expr* e);
  const Expr* subscripted();
  const Expr* call(const Expr* callee);
  void call_arguments(Expr* e);
  const Expr* filter(const Expr* input);  // from the filter's name on
  const Expr* filter_chain(const Expr* input);
  const Expr* test(const Expr* e);
  std::string dotted_name();
  void check_inner_name(const Expr* e, size_t argument, bool is_test) const;
  void check_calls() const;

  struct Nesting {  // counts how deep the parser itself is
    explicit Nesting(Parser* p);
    ~Nesting() { --parser->nesting_; }
    Parser* parser;
  };

  std::vector<Token> tokens_;
  size_t at_ = 0;
  Program* program_;
  std::unordered_map<std::string, int> ids_;
  std::vector<char> bound_;         // by variable id: something in the template assigns it
  std::vector<const Expr*> calls_;  // calls of plain names, checked at the end
  int nesting_ = 0, block_depth_ = 0, loop_depth_ = 0;
};

}  // namespace ridge::jinja
