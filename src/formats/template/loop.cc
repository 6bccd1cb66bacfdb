// Iteration: cursors, for statements and the loop variable.
#include <algorithm>

#include "formats/template/python_text.h"
#include "formats/template/render.h"

namespace ridge::jinja {

bool Cursor::next(Value* out) {
  switch (source.kind()) {
    case Kind::kList:
    case Kind::kTuple:
      if (position >= source.items().size()) return false;
      *out = source.items()[position++];
      return true;
    case Kind::kDict:
      if (position >= source.dict().items.size()) return false;
      *out = source.dict().items[position++].first;
      return true;
    case Kind::kString: {
      const std::string_view rest = std::string_view(source.text()).substr(position);
      if (rest.empty()) return false;
      const size_t n = character_bytes(rest);
      *out = Value::string(std::string(rest.substr(0, n)));
      position += n;
      return true;
    }
    case Kind::kRange: {
      const Range& range = source.as<Range>();
      if (static_cast<int64_t>(position) >= range.length) return false;
      *out = Value::integer(range.start + range.step * static_cast<int64_t>(position++));
      return true;
    }
    case Kind::kView: {
      const View& view = source.as<View>();
      if (position >= view.dict.dict().items.size()) return false;
      const auto& [key, value] = view.dict.dict().items[position++];
      *out = view.what == ViewOf::kKeys     ? key
             : view.what == ViewOf::kValues ? value
                                            : Value::tuple({key, value});
      return true;
    }
    case Kind::kIterator: {
      auto& iterator = source.as<Iterator>();
      if (iterator.next >= iterator.items.size()) {
        if (const auto failure = std::move(iterator.failure); failure != nullptr)
          throw Failure{static_cast<const DeferredFailure&>(*failure).status};
        return false;
      }
      *out = iterator.items[iterator.next++];
      return true;
    }
    default:
      return false;  // undefined: empty
  }
}

int64_t Cursor::length() const {
  switch (source.kind()) {
    case Kind::kList:
    case Kind::kTuple:
      return static_cast<int64_t>(source.items().size());
    case Kind::kDict:
      return static_cast<int64_t>(source.dict().items.size());
    case Kind::kString:
      return source.text_object().characters;
    case Kind::kRange:
      return source.as<Range>().length;
    case Kind::kView:
      return static_cast<int64_t>(source.as<View>().dict.dict().items.size());
    case Kind::kIterator:
      return -1;
    default:
      return 0;
  }
}

Cursor Renderer::iterate(const Value& v) {
  switch (v.kind()) {
    case Kind::kUndefined:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kString:
    case Kind::kRange:
    case Kind::kView:
    case Kind::kIterator:
      return {v};
    default:
      fail(text(type_text(v), " cannot be iterated"));
  }
}

Values Renderer::to_values(const Value& v) {
  if (v.is_sequence()) {
    burn_items(v.items().size());
    return v.items();
  }
  Cursor cursor = iterate(v);
  Values out;
  for (Value item; cursor.next(&item);) {
    burn(1);
    out.push_back(std::move(item));
  }
  return out;
}

// The next element of the loop's source that its filter lets pass.
bool Renderer::advance_source(Loop& loop, Value* out) {
  if (loop.reads_rest) {
    if (loop.rest_at >= loop.rest.size()) return false;
    *out = loop.rest[loop.rest_at++];
    return true;
  }
  const bool filtered = loop.node->expressions.size() > 1;
  while (loop.cursor.next(out)) {
    burn(1);
    if (!filtered) return true;
    Scope* scope = new_scope(loop.scope);
    assign(loop.node->target, *out, scope);
    const bool passes = truth(eval(*loop.node->expressions[1], scope));
    release(scope);
    if (passes) return true;
  }
  return false;
}

bool Renderer::advance(Loop& loop, Value* out) {
  if (loop.has_after) {
    *out = std::move(loop.after);
    loop.has_after = false;
  } else if (!advance_source(loop, out)) {
    return false;
  }
  ++loop.index0;
  loop.before = std::move(loop.current);
  loop.current = *out;
  return true;
}

int64_t Renderer::loop_length(Loop& loop) {
  if (loop.length >= 0) return loop.length;
  const bool filtered = loop.node->expressions.size() > 1;
  if (!filtered && loop.cursor.length() >= 0) return loop.length = loop.cursor.length();
  Values rest;
  for (Value v; advance_source(loop, &v);) rest.push_back(std::move(v));
  burn_items(rest.size());
  loop.rest = std::move(rest);
  loop.rest_at = 0;
  loop.reads_rest = true;
  return loop.length = static_cast<int64_t>(loop.rest.size()) + loop.index0 + 1 + (loop.has_after ? 1 : 0);
}

Value Renderer::loop_attribute(Loop& loop, const std::string& name) {
  const auto peek = [&] {
    if (!loop.has_after) loop.has_after = advance_source(loop, &loop.after);
    return loop.has_after;
  };
  if (name == "index") return Value::integer(loop.index0 + 1);
  if (name == "index0") return Value::integer(loop.index0);
  if (name == "first") return Value::boolean(loop.index0 == 0);
  if (name == "last") return Value::boolean(!peek());
  if (name == "length") return Value::integer(loop_length(loop));
  if (name == "revindex") return Value::integer(loop_length(loop) - loop.index0);
  if (name == "revindex0") return Value::integer(loop_length(loop) - loop.index0 - 1);
  if (name == "depth") return Value::integer(1);
  if (name == "depth0") return Value::integer(0);
  if (name == "previtem")
    return loop.index0 == 0 ? Value::undefined("there is no previous item") : loop.before;
  if (name == "nextitem") return peek() ? loop.after : Value::undefined("there is no next item");
  return Value::unset();
}

Value Renderer::loop_call(const Value& value, const std::string& name, const Arguments& arguments) {
  auto& loop = value.as<Loop>();
  if (!arguments.named.empty()) fail(text("loop.", name, "() takes no named argument"));
  if (name == "cycle") {
    if (arguments.positional.empty()) fail("loop.cycle() needs an item");
    return arguments.positional[static_cast<size_t>(loop.index0) % arguments.positional.size()];
  }
  bool same = loop.has_changed && loop.last_changed.size() == arguments.positional.size();
  for (size_t i = 0; same && i < arguments.positional.size(); ++i)
    same = equal(loop.last_changed[i], arguments.positional[i]);
  if (!same) loop.last_changed = arguments.positional, loop.has_changed = true;
  return Value::boolean(!same);
}

Flow Renderer::for_statement(const Statement& s, Scope* scope) {
  const auto loop = std::make_shared<Loop>(iterate(eval(*s.expressions[0], scope)).source);
  check_depth(loop->depth);
  loop->node = &s;
  loop->scope = scope;
  if (s.uses_loop && s.expressions.size() > 1)
    capture_scopes(scope);  // the object may outlive this statement
  const Value loop_value(Kind::kLoop, loop);
  bool completed = false;  // Jinja's else also runs when break or continue cut every iteration short
  for (Value v; advance(*loop, &v);) {
    burn(1);
    Scope* inner = new_scope(scope);
    if (s.uses_loop) inner->variables.emplace_back(loop_id_, loop_value);
    assign(s.target, v, inner);
    const Flow flow = block(s.blocks[0], inner);
    release(inner);
    if (flow == Flow::kBreak) break;
    completed |= flow == Flow::kNormal;
  }
  if (completed || s.blocks.size() < 2) return Flow::kNormal;
  Scope* inner = new_scope(scope);
  const Flow flow = block(s.blocks[1], inner);
  release(inner);
  return flow;
}

}  // namespace ridge::jinja
