// JSON to template values, without a document in between.
#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "formats/template/template.h"

namespace ridge {

namespace {

using jinja::Value;

class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return put(Value::none()); }
  bool boolean(bool v) override { return put(Value::boolean(v)); }
  bool number_integer(number_integer_t v) override { return put(Value::integer(v)); }
  bool number_unsigned(number_unsigned_t v) override {
    if (v > static_cast<uint64_t>(INT64_MAX)) return refuse(text("the integer ", v, " does not fit 64 bits"));
    return put(Value::integer(static_cast<int64_t>(v)));
  }
  bool number_float(number_float_t v, const string_t& digits) override {
    // A whole number this long is an integer to Python, which has no bound; this interpreter has.
    if (digits.find_first_of(".eE") == digits.npos)
      return refuse("the integer " + printable(digits, 40) + " does not fit 64 bits");
    return put(Value::number(v));
  }
  bool string(string_t& v) override { return put(Value::string(std::move(v))); }
  bool binary(binary_t&) override { return refuse("binary data in JSON"); }
  bool start_object(std::size_t) override { return open(false); }
  bool start_array(std::size_t) override { return open(true); }
  bool key(string_t& v) override {
    levels_.back().pairs.emplace_back(std::move(v), Value());
    return true;
  }
  bool end_object() override {
    auto pairs = std::move(levels_.back().pairs);
    levels_.pop_back();
    const size_t given = pairs.size();
    Value dict = Value::dict(std::move(pairs));
    if (dict.dict().items.size() != given) return refuse("a key occurs twice in an object");
    return put(std::move(dict));
  }
  bool end_array() override {
    Value list = Value::list(std::move(levels_.back().items));
    levels_.pop_back();
    return put(std::move(list));
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    return refuse(text("not JSON at byte ", position));
  }

  Value root;
  Status status;

 private:
  struct Level {
    bool is_array;
    jinja::Values items;
    std::vector<std::pair<std::string, Value>> pairs;
  };

  bool refuse(const std::string& why) {
    if (status.ok()) status = invalid_argument(why);
    return false;
  }
  bool open(bool is_array) {
    if (static_cast<int64_t>(levels_.size()) >= limits::kJsonDepth)
      return refuse(text("JSON nested deeper than ", limits::kJsonDepth));
    levels_.push_back({is_array, {}, {}});
    return true;
  }
  bool put(Value v) {
    if (levels_.empty())
      root = std::move(v);
    else if (levels_.back().is_array)
      levels_.back().items.push_back(std::move(v));
    else
      levels_.back().pairs.back().second = std::move(v);
    return true;
  }

  std::vector<Level> levels_;
};

}  // namespace

Result<TemplateValue> template_value_from_json(std::string_view json) {
  if (static_cast<int64_t>(json.size()) > limits::kJsonBytes)
    return resource_exhausted("JSON of ", json.size(), " bytes, the limit is ", limits::kJsonBytes);
  Builder builder;
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &builder)) return builder.status;
  return std::move(builder.root);
}

}  // namespace ridge
