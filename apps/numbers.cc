#include "numbers.h"

#include <charconv>
#include <cmath>

namespace ridge::app {

namespace {

template <class T>
bool reads(std::string_view text) {
  if (text.substr(0, 1) == "+") text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  if constexpr (std::is_floating_point_v<T>) return std::isfinite(value);
  return true;
}

/// Text that may be empty: what a model is asked, and a side of --compare that changes nothing.
bool may_be_empty(const CLI::App& verb, const CLI::Option& option) {
  const std::string name = option.get_name();
  return verb.get_name() == "run" && (name == "--prompt" || name == "--system" || name == "--compare");
}

}  // namespace

Status check_values(const CLI::App& verb) {
  for (const CLI::Option* option : verb.get_options()) {
    const std::string type = option->get_type_name();
    const auto is = [&](const char* name) { return type.rfind(name, 0) == 0; };
    for (const std::string& given : option->results()) {
      if (given.empty() && !may_be_empty(verb, *option))
        return invalid_argument(option->get_name(), " is '': ",
                                option->get_required() ? "give a value" : "leave it out, or give a value");
      const char* wanted = is("INT") && !reads<int64_t>(given)     ? "a whole number of 64 bits"
                           : is("UINT") && !reads<uint64_t>(given) ? "a whole number from 0 to 2^64 - 1"
                           : is("FLOAT") && !reads<double>(given)  ? "a finite number"
                                                                   : nullptr;
      if (wanted != nullptr)
        return invalid_argument(option->get_name(), " is ", printable(given), ": use ", wanted);
    }
  }
  return {};
}

namespace {

/// More values than the option takes: the same option twice.
Status check_count(const CLI::Option& option) {
  const auto most = static_cast<size_t>(option.get_items_expected_max());
  const std::vector<std::string> given = option.results();
  if (given.size() <= most || option.get_type_size() == 0) return {};
  std::string values;
  for (const std::string& value : given) values += text(values.empty() ? "" : ", ", printable(value));
  return invalid_argument(option.get_name(), " is given ", given.size(), " values, ", values, ": give it ",
                          most == 1 ? std::string("once") : text("at most ", most));
}

/// A whole number beyond the 32 bits of most options that count something.
Status check_int(const CLI::Option& option) {
  if (option.get_type_name().rfind("INT", 0) != 0) return {};
  for (const std::string& given : option.results())
    if (!reads<int32_t>(given))
      return invalid_argument(option.get_name(), " is ", printable(given), ": use a whole number from ",
                              INT32_MIN, " to ", INT32_MAX);
  return {};
}

}  // namespace

Status check_read(const CLI::App& cli, const std::string& said) {
  for (const CLI::Option* option : cli.get_options()) RIDGE_TRY(check_count(*option));
  RIDGE_TRY(check_values(cli));
  for (const CLI::Option* option : cli.get_options())
    if (said.find(option->get_name() + " ") != std::string::npos) RIDGE_TRY(check_int(*option));
  for (const CLI::App* verb : cli.get_subcommands()) RIDGE_TRY(check_read(*verb, said));
  return {};
}

}  // namespace ridge::app
