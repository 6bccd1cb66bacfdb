#pragma once
// The names that a template may use: filters, tests, functions and methods, each with what it runs.

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/template/value.h"

namespace ridge::jinja {

class Renderer;

struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> named;
};

/// Python's binding: one value per name, kUnset where left out. Throws on a missing, unknown or doubled
/// argument.
Values bind_arguments(Renderer& r, std::string_view callee, const Arguments& arguments,
                      std::initializer_list<const char*> names, size_t required = 0);

using Filter = Value (*)(Renderer& r, const Value& input, const Arguments& arguments);
using Test = bool (*)(Renderer& r, const Value& input, const Arguments& arguments);
using Function = Value (*)(Renderer& r, const Arguments& arguments);
using MethodFunction = Value (*)(Renderer& r, const Value& self, const Arguments& arguments);

template <class F>
struct Named {
  const char* name;
  F run;
};
using FilterTable = std::vector<Named<Filter>>;
/// Filters by subject; find_filter looks through all.
FilterTable text_filters();
FilterTable number_filters();
FilterTable sequence_filters();
FilterTable selection_filters();

int find_filter(std::string_view name);  // -1: none
const Named<Filter>& filter_at(int id);
int find_test(std::string_view name);
const Named<Test>& test_at(int id);
int find_function(std::string_view name);
const Named<Function>& function_at(int id);

struct MethodEntry {
  Kind of;
  const char* name;
  MethodFunction run;  // nullptr: it would change its object, which the sandbox forbids
};
using MethodTable = std::vector<MethodEntry>;
MethodTable text_methods();
MethodTable container_methods();
int find_method(Kind of, std::string_view name);  // -1: none
const MethodEntry& method_at(int id);
enum class MethodName {
  kSome,
  kNone,
  kUnsupported
};  // kUnsupported: Python has it for strings, this does not
MethodName find_method_name(std::string_view name);

}  // namespace ridge::jinja
