// str(), repr() and the names of types.
#include "formats/template/python_text.h"
#include "formats/template/render.h"

namespace ridge::jinja {

const char* type_name(const Value& v) {
  switch (v.kind()) {
    case Kind::kUndefined:
    case Kind::kUnset:
      return "Undefined";
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return "str";
    case Kind::kList:
      return "list";
    case Kind::kDict:
      return "dict";
    case Kind::kTuple:
      return "tuple";
    case Kind::kRange:
      return "range";
    case Kind::kView: {
      const ViewOf what = v.as<View>().what;
      return what == ViewOf::kKeys ? "dict_keys" : what == ViewOf::kValues ? "dict_values" : "dict_items";
    }
    case Kind::kIterator:
      return v.as<Iterator>().type;
    case Kind::kNamespace:
      return "Namespace";
    case Kind::kLoop:
      return "LoopContext";
    case Kind::kMacro:
      return "Macro";
    case Kind::kMethod:
      return "method";
    case Kind::kFunction:
      return "function";
    case Kind::kCycler:
      return "Cycler";
    case Kind::kJoiner:
      return "Joiner";
  }
  return "";
}

std::string type_text(const Value& v) {
  if (v.is(Kind::kNone)) return "None";
  return text("'", type_name(v), " object'");
}

std::string Renderer::str(const Value& v) {
  std::string out;
  append_str(out, v);
  return out;
}

void Renderer::append_str(std::string& out, const Value& v) {
  if (v.is_undefined()) return;
  if (v.is_string()) {
    out += v.text();
    return;
  }
  append_repr(out, v);
}

namespace {
template <class Items, class Append>
void append_joined(std::string& out, const Items& items, Append append) {
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += ", ";
    first = false;
    append(item);
  }
}
}  // namespace

namespace {
void append_plain_repr(std::string& out, const Value& v) {
  switch (v.kind()) {
    case Kind::kUndefined:
    case Kind::kUnset:
      out += "Undefined";
      break;
    case Kind::kNone:
      out += "None";
      break;
    case Kind::kBool:
      out += v.as_bool() ? "True" : "False";
      break;
    case Kind::kInt:
      append_text(out, v.as_int());
      break;
    case Kind::kFloat:
      append_float_repr(out, v.as_double());
      break;
    default:
      out += text("<", type_name(v), " object>");
      break;  // Python prints an address there
  }
}
}  // namespace

void Renderer::append_repr(std::string& out, const Value& v) {
  const Guard guard(this);
  burn(1);
  if (static_cast<int64_t>(out.size()) > limits::kTemplateOutputBytes)
    exhausted(text("a text of more than ", limits::kTemplateOutputBytes, " bytes"));
  const auto one = [&](const Value& item) { append_repr(out, item); };
  const auto pair = [&](const std::pair<Value, Value>& item) {
    append_repr(out, item.first);
    out += ": ";
    append_repr(out, item.second);
  };
  switch (v.kind()) {
    case Kind::kString:
      burn_bytes(v.text().size());
      jinja::append_repr(out, v.text());
      break;
    case Kind::kList:
      out += '[';
      append_joined(out, v.items(), one);
      out += ']';
      break;
    case Kind::kTuple:
      out += '(';
      append_joined(out, v.items(), one);
      out += v.items().size() == 1 ? ",)" : ")";
      break;
    case Kind::kDict:
      out += '{';
      append_joined(out, v.dict().items, pair);
      out += '}';
      break;
    case Kind::kRange: {
      const Range& range = v.as<Range>();
      out += text("range(", range.start, ", ", range.stop);
      out += range.step == 1 ? ")" : text(", ", range.step, ")");
      break;
    }
    case Kind::kView:
      out += text(type_name(v), "([");
      append_joined(out, to_values(v), one);
      out += "])";
      break;
    case Kind::kNamespace:
      out += "<Namespace {";
      append_joined(out, v.as<Namespace>().attributes, pair);
      out += "}>";
      break;
    case Kind::kLoop:
      out += text("<LoopContext ", v.as<Loop>().index0 + 1, "/", loop_length(v.as<Loop>()), ">");
      break;
    case Kind::kMacro:
      out += v.as<Macro>().name.empty() ? "<Macro anonymous>" : text("<Macro '", v.as<Macro>().name, "'>");
      break;
    default:
      append_plain_repr(out, v);
  }
}

int64_t Renderer::to_index(const Value& v, const char* what) const {
  if (!v.is_integral()) fail(text(what, " must be an integer, found ", type_text(v)));
  return v.as_int();
}
std::string_view Renderer::to_text(const Value& v, const char* what) const {
  if (v.is_undefined()) fail_undefined(v);
  if (!v.is_string()) fail(text(what, " must be a string, found ", type_text(v)));
  return v.text();
}

}  // namespace ridge::jinja
