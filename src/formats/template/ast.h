#pragma once
// A parsed template. Nodes live in the Program's deques, so that a deep tree is destroyed without recursion.

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "formats/template/value.h"

namespace ridge::jinja {

struct Expr;

struct CallSyntax {
  std::vector<const Expr*> positional;
  std::vector<std::pair<std::string, const Expr*>> named;
  const Expr* star = nullptr;       // *args
  const Expr* star_star = nullptr;  // **kwargs
};

enum class ExprKind : uint8_t {
  kConstant,  // constant
  kName,      // id: variable
  kList,
  kTuple,      // children
  kDict,       // children: key, value, key, value, …
  kAttribute,  // children[0].text
  kItem,       // children[0][children[1]]
  kSlice,      // children: start, stop, step; null where left out. Only below kItem.
  kCall,       // children[0](call)
  kFilter,     // children[0] | filter id (call)
  kTest,       // children[0] is test id (call)
  kNot,
  kNegate,
  kPlus,
  kBinary,   // op
  kConcat,   // children ~ children ~ …
  kCompare,  // children[0] ops[0] children[1] ops[1] …
  kAnd,
  kOr,
  kConditional,  // children[0] if children[1] else children[2]; the last may be null
  kBody,         // what a filter or set block has captured
};
enum class Op : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn
};
const char* op_text(Op op);

struct Expr {
  ExprKind kind;
  int line;
  int depth = 1;  // of the tree below
  int id = -1;
  Op op = Op::kAdd;
  std::string text;
  Value constant;
  std::vector<const Expr*> children;
  std::vector<Op> ops;
  CallSyntax call;
};

struct Target {  // of an assignment
  enum Kind : uint8_t { kVariable, kNamespace, kTuple } kind = kVariable;
  int id = -1;
  std::string attribute;        // kNamespace: of variable id
  std::vector<Target> targets;  // kTuple
};

struct Statement;
using Block = std::vector<const Statement*>;

struct Signature {  // of a macro or a call block
  std::vector<int> parameters;
  std::vector<const Expr*> defaults;  // of the last parameters
  bool uses_caller = false, uses_kwargs = false, uses_varargs = false;
};

enum class StatementKind : uint8_t {
  kText,         // text
  kPrint,        // expressions
  kIf,           // expressions[i]: condition of blocks[i]; a last block more is the else
  kFor,          // for target in expressions[0] [if expressions[1]]: blocks[0] else blocks[1]
  kSet,          // target = expressions[0]
  kSetBlock,     // target = expressions[0] (a filter over kBody, or null) of blocks[0]
  kMacro,        // target.id, signature, blocks[0]
  kCall,         // expressions[0] is the call, signature, blocks[0]
  kFilterBlock,  // expressions[0] over blocks[0]
  kWith,         // targets = expressions, blocks[0]
  kGeneration,   // blocks[0]
  kBreak,
  kContinue,
};

struct Statement {
  StatementKind kind;
  int line;
  std::string text;
  Target target;
  std::vector<Target> targets;
  std::vector<const Expr*> expressions;
  std::vector<Block> blocks;
  Signature signature;
  bool uses_loop = false;  // kFor: "loop" occurs in it
};

struct Program {
  std::deque<Expr> expressions;
  std::deque<Statement> statements;
  std::vector<std::string> names;  // of variables, by id
  Block body;
  int find_name(std::string_view name) const {
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i] == name) return static_cast<int>(i);
    return -1;
  }
};

}  // namespace ridge::jinja
