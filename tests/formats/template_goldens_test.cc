// Byte equality with jinja2 set up as Hugging Face transformers sets it up, on the goldens of
// tools/goldens/make_templates.py.
#include <gtest/gtest.h>

#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "formats/template/template.h"

namespace ridge {
namespace {

using OrderedJson = nlohmann::ordered_json;  // dicts of a template keep their order

// strftime_now of the goldens: 2025-03-09 14:05:07, local time.
int64_t golden_time() {
  std::tm t{};
  t.tm_year = 125, t.tm_mon = 2, t.tm_mday = 9, t.tm_hour = 14, t.tm_min = 5, t.tm_sec = 7, t.tm_isdst = -1;
  return std::mktime(&t);
}

// What this interpreter leaves out, each with the reason that it gives. Everything else must be equal.
const std::set<std::string> kLeftOut = {
    "arithmetic/21",  // an integer beyond 64 bits: refused, never wrapped
};

struct Rendering {
  Status status;
  std::string output;
  bool loaded = false;
};

Rendering render(const std::string& source, const OrderedJson& context) {
  Rendering out;
  const Result<ChatTemplate> parsed = ChatTemplate::parse(source);
  if (!parsed.ok()) {
    out.status = parsed.status();
    return out;
  }
  out.loaded = true;
  const Result<TemplateValue> value = template_value_from_json(context.dump());
  EXPECT_TRUE(value.ok()) << value.status().message();
  Result<std::string> text = parsed->render(*value, golden_time());
  out.status = text.status();
  if (text.ok()) out.output = text.take();
  return out;
}

// Empty when the rendering is what the golden says.
std::string difference(const OrderedJson& one, const Rendering& got) {
  const std::string message = got.status.message();
  if (one.contains("output")) {
    if (!got.status.ok()) return "wanted " + one["output"].dump() + ", got the error " + message;
    if (got.output != one["output"].get<std::string>())
      return "wanted " + one["output"].dump() + ", got " + OrderedJson(got.output).dump();
    return "";
  }
  const std::string kind = one["error"]["kind"], wanted = one["error"]["message"];
  if (got.status.ok()) return "wanted the error " + wanted + ", got " + OrderedJson(got.output).dump();
  if (kind == "load" && got.loaded) return "wanted a load error (" + wanted + "), got " + message;
  if (kind == "raised" && message.find(wanted) == std::string::npos)
    return "wanted the message " + wanted + ", got " + message;
  return "";
}

void check_goldens(const std::string& file, size_t at_least) {
  std::ifstream in(std::string(RIDGE_TEST_DATA) + "/goldens/" + file);
  const OrderedJson goldens = OrderedJson::parse(in);
  size_t equal = 0, left_out = 0;
  for (const OrderedJson& one : goldens["cases"]) {
    const std::string name = one["name"];
    const std::string source =
        one.contains("template")
            ? one["template"].get<std::string>()
            : goldens["templates"][one["template_name"].get<std::string>()].get<std::string>();
    const Rendering got = render(source, one["context"]);
    if (one.value("rare", false) && !got.loaded) {  // may be refused by name when it is loaded
      ++left_out;
      continue;
    }
    const std::string how = difference(one, got);
    if (kLeftOut.count(name) > 0) {
      EXPECT_FALSE(got.status.ok()) << name << " is left out but renders";
      ++left_out;
      continue;
    }
    EXPECT_EQ(how, "") << name << ": " << source.substr(0, 300);
    equal += how.empty();
  }
  std::printf("%s: %zu renderings equal, %zu left out by name\n", file.c_str(), equal, left_out);
  EXPECT_GE(equal, at_least);
  EXPECT_LE(left_out, 5u);
}

TEST(ChatTemplateGoldens, every_rendering_equals_that_of_jinja2) {
  check_goldens("templates.json", 530);
}

}  // namespace
}  // namespace ridge
