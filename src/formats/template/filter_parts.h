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

std::vector<std::string> split_attributes(const std::string& list);  // at commas
Value ignore_case(Renderer& r, const Value& v);  // a string's lower case, others as they are

}  // namespace ridge::jinja
