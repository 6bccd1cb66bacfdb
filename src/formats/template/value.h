#pragma once
// Values of the chat-template language: Python's, as far as templates can see them. Containers are immutable
// and shared; the kinds below the line exist only while a template renders.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ridge::jinja {

enum class Kind : uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kList,
  kDict,
  // ------ only within a rendering
  kTuple,
  kRange,
  kView,
  kIterator,
  kNamespace,
  kLoop,
  kMacro,
  kMethod,
  kFunction,
  kCycler,
  kJoiner,
  kUnset,  // a variable that no scope has set; never the value of an expression
};

/// What a value points to. `depth` is 1 + the deepest child, so that walks over values have a bound.
struct Object {
  explicit Object(int d = 1) : depth(d) {}
  virtual ~Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  int depth;
};

class Value;
using Values = std::vector<Value>;
using Pairs = std::vector<std::pair<Value, Value>>;

struct Text;
struct List;
struct Dict;

class Value {
 public:
  Value() = default;
  Value(Kind kind, std::shared_ptr<Object> object) : kind_(kind), object_(std::move(object)) {}

  static Value none() { return Value(Kind::kNone); }
  static Value unset() { return Value(Kind::kUnset); }
  static Value boolean(bool v);
  static Value integer(int64_t v);
  static Value number(double v);
  /// `v` must be UTF-8 (rendering refuses a context that is not).
  static Value string(std::string v);
  static Value list(Values items);
  static Value tuple(Values items);
  /// In the given order; of equal keys the last value counts, at the place of the first.
  static Value dict(std::vector<std::pair<std::string, Value>> items);
  static Value dict(Pairs items);  // keys are unique already
  static Value undefined(std::string why);
  static Value function(int id);

  Kind kind() const { return kind_; }
  bool is(Kind k) const { return kind_ == k; }
  bool is_undefined() const { return kind_ == Kind::kUndefined; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_sequence() const { return kind_ == Kind::kList || kind_ == Kind::kTuple; }
  bool is_integral() const { return kind_ == Kind::kInt || kind_ == Kind::kBool; }
  bool is_number() const { return is_integral() || kind_ == Kind::kFloat; }
  bool as_bool() const { return integer_ != 0; }  // kBool
  int64_t as_int() const { return integer_; }     // kInt, kBool (0 or 1), kFunction (its id)
  double as_double() const { return is_integral() ? static_cast<double>(integer_) : float_; }  // numbers
  const std::string& text() const;                                                             // kString
  const Text& text_object() const;                                                             // kString
  const Values& items() const;  // kList, kTuple
  const Dict& dict() const;     // kDict
  int depth() const { return object_ ? object_->depth : 0; }
  const std::shared_ptr<Object>& object() const { return object_; }
  template <class T>
  T& as() const {
    return static_cast<T&>(*object_);
  }

 private:
  explicit Value(Kind kind) : kind_(kind) {}
  Kind kind_ = Kind::kUndefined;
  union {
    int64_t integer_ = 0;
    double float_;
  };
  std::shared_ptr<Object> object_;
};

struct Text : Object {
  explicit Text(std::string v);
  std::string bytes;
  int64_t characters;  // code points
  bool ascii() const { return characters == static_cast<int64_t>(bytes.size()); }
};
struct List : Object {
  explicit List(Values v);
  Values items;
  bool is_group = false;  // of the groupby filter: .grouper and .list name its two items
};
struct Dict : Object {
  explicit Dict(Pairs v);
  Pairs items;  // insertion order
};
struct Why : Object {  // of an undefined value: the message when it is used
  explicit Why(std::string v) : message(std::move(v)) {}
  std::string message;
};
struct Range : Object {
  int64_t start = 0, stop = 0, step = 1, length = 0;
};
enum class ViewOf : uint8_t { kKeys, kValues, kItems };
struct View : Object {
  View(Value d, ViewOf w) : Object(d.depth() + 1), dict(std::move(d)), what(w) {}
  Value dict;
  ViewOf what;
};
struct Iterator : Object {  // what Python's generators and iterators are: read once
  Iterator(Values v, const char* type);
  Values items;
  size_t next = 0;
  std::shared_ptr<Object> failure;  // what reading beyond the items throws
  const char* type;                 // "generator", "list_reverseiterator"
};
struct Namespace : Object {  // owned by the rendering too, which empties it at the end: cycles cannot leak
  Pairs attributes;
};
struct Method : Object {
  Method(Value r, int m) : Object(r.depth() + 1), receiver(std::move(r)), id(m) {}
  Value receiver;
  int id;  // index into the table of methods
};
struct Cycler : Object {
  explicit Cycler(Values v);
  Values items;
  size_t position = 0;
};
struct Joiner : Object {
  explicit Joiner(Value s) : Object(s.depth() + 1), separator(std::move(s)) {}
  Value separator;
  bool used = false;
};

int deepest(const Values& values);

inline const Text& Value::text_object() const {
  return as<Text>();
}
inline const std::string& Value::text() const {
  return as<Text>().bytes;
}
inline const Values& Value::items() const {
  return as<List>().items;
}
inline const Dict& Value::dict() const {
  return as<Dict>();
}

}  // namespace ridge::jinja
