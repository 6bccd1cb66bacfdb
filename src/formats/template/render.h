#pragma once
// One rendering: the walk over the tree, its variables and its budget. Errors are thrown as Failure and
// become a Status in ChatTemplate::render.

#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "base/text.h"
#include "formats/template/ast.h"
#include "formats/template/functions.h"
#include "formats/template/lexer.h"
#include "formats/template/value.h"

namespace ridge::jinja {

struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<int, Value>> variables;
  bool captured = false;  // a macro or loop object may look into it later: not reused
};

struct Macro : Object {
  const Statement* node = nullptr;
  Scope* closure = nullptr;
  std::string name;  // empty: the body of a call block
};

// Steps through anything that Python can iterate.
struct Cursor {
  Value source;
  size_t position = 0;
  bool next(Value* out);
  int64_t length() const;  // -1: an iterator, which has none
};

struct Loop : Object {
  explicit Loop(Value s) : Object(s.depth() + 1), cursor{std::move(s)} {}
  Cursor cursor;
  const Statement* node = nullptr;
  Scope* scope = nullptr;  // the one around the loop
  int64_t index0 = -1, length = -1;
  Value current, before, after;
  bool has_after = false;
  Values rest;  // what asking for the length of an iterator has read ahead
  size_t rest_at = 0;
  bool reads_rest = false;
  Values last_changed;
  bool has_changed = false;
};

enum class Flow : uint8_t { kNormal, kBreak, kContinue };

class Renderer {
 public:
  Renderer(const Program& program, const Value& context, int64_t now_unix);
  ~Renderer();
  std::string run();

  // For filters, tests, functions and methods
  [[noreturn]] void fail(const std::string& message) const;  // what is wrong with the template itself
  [[noreturn]] void refuse(
      const std::string& message) const;  // what the template says is wrong with the chat
  [[noreturn]] void fail_undefined(const Value& v) const;
  [[noreturn]] void exhausted(const std::string& message) const;
  void burn(int64_t steps) {
    if ((fuel_ -= steps) < 0) out_of_fuel();
  }
  void burn_bytes(size_t bytes) { burn(static_cast<int64_t>(bytes) / limits::kTemplateBytesPerStep); }
  void burn_items(size_t items) { burn(static_cast<int64_t>(items) / 4); }
  void check_text_bytes(size_t bytes) const;                     // before such a text is made
  void burn_matches(std::string_view s, std::string_view what);  // before all of `what` are looked for
  Value make_text(std::string v);                                // pays for it
  Value make_text(std::string_view v) { return make_text(std::string(v)); }
  Value make_list(Values v);
  Value make_tuple(Values v);
  Value make_dict(Pairs v);
  Value make_iterator(Values v, const char* type = "generator");
  Value make_namespace(Pairs attributes);
  int64_t now_unix() const { return now_unix_; }

  Cursor iterate(const Value& v);    // throws where Python's iter() does
  Values to_values(const Value& v);  // list(v)
  Value attribute(const Value& object, const std::string& name);
  Value item(const Value& object, const Value& key);
  Value call(const Value& callee, Arguments arguments);
  Value call_filter(int id, const Value& input, const Arguments& arguments);
  bool call_test(int id, const Value& input, const Arguments& arguments);
  bool truth(const Value& v) const;
  bool equal(const Value& a, const Value& b);
  bool less(const Value& a, const Value& b, Op op = Op::kLess);  // op: the comparison asked for
  bool contains(const Value& container, const Value& member);
  Value binary(Op op, const Value& a, const Value& b);
  Value negate(const Value& v);
  bool compare(Op op, const Value& a, const Value& b);
  const Value* lookup(const Pairs& pairs, const Value& key);
  void assign_key(Pairs& pairs, const Value& key, const Value& value);
  bool is_hashable(const Value& key);
  void check_hashable(const Value& key);
  std::string str(const Value& v);
  void append_str(std::string& out, const Value& v);
  void append_repr(std::string& out, const Value& v);
  int64_t to_index(const Value& v, const char* what) const;  // an int (or bool), else throws
  std::string_view to_text(const Value& v, const char* what) const;

  struct Guard {  // one level of evaluation
    explicit Guard(Renderer* r) : renderer(r) {
      if (++r->depth_ > limits::kTemplateRecursion) r->too_deep();
    }
    ~Guard() { --renderer->depth_; }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    Renderer* renderer;
  };

 private:
  friend struct ScopeHolder;
  [[noreturn]] void out_of_fuel() const;
  [[noreturn]] void too_deep() const;
  void check_depth(int depth) const;
  void write(std::string_view v);

  // Statements
  Flow block(const Block& b, Scope* scope);
  Flow statement(const Statement& s, Scope* scope);
  Flow if_statement(const Statement& s, Scope* scope);
  Flow for_statement(const Statement& s, Scope* scope);
  Flow set_block(const Statement& s, Scope* scope);
  Flow filter_block(const Statement& s, Scope* scope);
  Flow with_statement(const Statement& s, Scope* scope);
  void call_statement(const Statement& s, Scope* scope);
  Flow capture(const Block& b, Scope* scope, std::string* out);
  void assign(const Target& t, const Value& v, Scope* scope);
  void assign_attribute(const Target& t, const Value& v, Scope* scope);
  bool advance(Loop& loop, Value* out);
  bool advance_source(Loop& loop, Value* out);
  Value loop_attribute(Loop& loop, const std::string& name);
  int64_t loop_length(Loop& loop);
  Value loop_call(const Value& loop, const std::string& name, const Arguments& arguments);
  Value call_macro(const Macro& macro, Arguments arguments);
  void bind_macro(const Macro& macro, Arguments& arguments, Scope* scope);
  Value make_macro(const Statement& s, Scope* scope, std::string name);

  // Expressions
  Value eval(const Expr& e, Scope* scope);
  Value variable(int id, Scope* scope);
  Value filter_or_test(const Expr& e, Scope* scope);
  Value conditional(const Expr& e, Scope* scope);
  Value compare_chain(const Expr& e, Scope* scope);
  Value concat(const Expr& e, Scope* scope);
  Value dict_literal(const Expr& e, Scope* scope);
  Value subscript(const Expr& e, Scope* scope);
  Value slice(const Value& object, const Expr& e, Scope* scope);
  Value slice_text(const Text& t, int64_t start, int64_t step, int64_t count);
  Value call_expression(const Expr& e, Scope* scope, const Value* caller);
  Values eval_all(const std::vector<const Expr*>& list, Scope* scope);
  Arguments eval_arguments(const CallSyntax& call, Scope* scope);
  Value bound_attribute(const Value& object, const std::string& name);
  Value sequence_item(const Value& object, int64_t index);
  Value no_attribute(const Value& object, const Value& name) const;
  Value arithmetic(Op op, const Value& a, const Value& b);
  Value integer_arithmetic(Op op, int64_t a, int64_t b);
  Value float_arithmetic(Op op, double a, double b) const;
  Value repeat(const Value& sequence, const Value& times);
  Value add_sequences(const Value& a, const Value& b);
  [[noreturn]] void unsupported(Op op, const Value& a, const Value& b) const;

  void set_variable(Scope* scope, int id, Value v);
  Scope* new_scope(Scope* parent);
  void release(Scope* scope);
  static void capture_scopes(Scope* scope);

  const Program& program_;
  const int64_t now_unix_;
  const int loop_id_, caller_id_, kwargs_id_,
      varargs_id_;  // variables with a meaning; -1: not in this template
  int64_t fuel_ = limits::kTemplateSteps;
  int64_t depth_ = 0;
  int line_ = 1;
  std::string* out_ = nullptr;
  const Value* body_ = nullptr;  // of the filter or set block being applied
  std::vector<Value> root_;      // variables of the template itself, by id
  std::deque<Scope> scopes_;
  std::vector<Scope*> free_scopes_;
  std::vector<std::shared_ptr<Object>> namespaces_;
};

const char* type_name(const Value& v);  // Python's
std::string type_text(const Value& v);  // "'dict object'" as Jinja's messages have it

/// json.dumps. Throws on what JSON cannot hold.
struct JsonStyle {
  bool ensure_ascii = false, sort_keys = false, indented = false;
  std::string indent, item_separator = ", ", key_separator = ": ";
};
std::string to_json(Renderer& r, const Value& v, const JsonStyle& style);
/// text % arguments, and text.format(…).
std::string percent_format(Renderer& r, std::string_view format, const Value& arguments);
std::string brace_format(Renderer& r, std::string_view format, const Arguments& arguments);

}  // namespace ridge::jinja
