#pragma once
// What the filters on sequences share.

#include <string>
#include <vector>

#include "formats/template/render.h"

namespace ridge::jinja {

/// "a.b.0": attributes and items to follow from a value; nothing: the value itself.
class AttributePath {
 public:
  AttributePath(Renderer& r, const Value& attribute, Value otherwise = Value::unset());
  Value get(Renderer& r, Value v) const;

 private:
  Values parts_;
  Value otherwise_;  // for what is undefined on the way
};

/// What a Python generator would yield, made at once by fill(Values&). Its error is thrown where the
/// generator would: when the iterator is read so far. Only an exceeded budget does not wait.
template <class Fill>
Value generate(Renderer& r, Fill fill) {
  Values items;
  std::shared_ptr<Object> failure;
  try {
    fill(items);
  } catch (const Failure& f) {
    if (f.status.code() == Code::kResourceExhausted) throw;
    failure = std::make_shared<DeferredFailure>(f.status);
  }
  const Value out = r.make_iterator(std::move(items));
  out.as<Iterator>().failure = std::move(failure);
  return out;
}

std::vector<std::string> split_attributes(const std::string& list);  // at commas
Value ignore_case(Renderer& r, const Value& v);  // a string's lower case, others as they are

}  // namespace ridge::jinja
