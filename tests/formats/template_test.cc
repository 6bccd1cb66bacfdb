#include "formats/template/template.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/limits.h"
#include "sanitized.h"

namespace ridge {
namespace {

TemplateValue context(const std::string& json = "{}") {
  Result<TemplateValue> v = template_value_from_json(json);
  EXPECT_TRUE(v.ok()) << v.status().message();
  return v.ok() ? v.take() : TemplateValue::none();
}

// The text, or "load: …" or "render: …" with the error.
std::string rendered(const std::string& source, const std::string& json = "{}") {
  const Result<ChatTemplate> t = ChatTemplate::parse(source);
  if (!t.ok()) return "load: " + t.status().message();
  const Result<std::string> out = t->render(context(json), 0);
  return out.ok() ? *out : "render: " + out.status().message();
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

constexpr const char* kChat =
    R"({"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
        "add_generation_prompt": true, "bos_token": "<s>", "eos_token": "</s>"})";

TEST(ChatTemplate, renders_the_common_chatml_loop) {
  EXPECT_EQ(
      rendered("{% for m in messages %}{{'<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + "
               "'\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
               kChat),
      "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
}

TEST(ChatTemplate, I25_a_template_that_emits_the_bos_emits_it_once) {
  ChatContext chat;
  chat.messages = *template_value_from_json(R"([{"role": "user", "content": "Hi"}])");
  chat.bos_token = "<s>";
  const Result<ChatTemplate> t =
      ChatTemplate::parse("{{ bos_token }}{% for m in messages %}[{{ m.content }}]{% endfor %}");
  ASSERT_TRUE(t.ok());
  const Result<std::string> out = t->render(chat.value());
  ASSERT_TRUE(out.ok()) << out.status().message();
  EXPECT_EQ(*out, "<s>[Hi]");
}

TEST(ChatTemplate, I28_the_listed_features_render_as_in_transformers) {
  EXPECT_EQ(rendered("{{ x[-1] }}{{ x[::-1] }}", R"({"x": [1, 2, 3]})"), "3[3, 2, 1]");
  EXPECT_EQ(rendered("{% set ns = namespace(n=0) %}{% for i in [1, 2] %}{% set ns.n = ns.n + i %}{% endfor "
                     "%}{{ ns.n }}"),
            "3");
  EXPECT_EQ(
      rendered("{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | join }}",
               kChat),
      "Hi");
  EXPECT_EQ(rendered("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}"),
            "01");
  EXPECT_EQ(rendered("a{% generation %}{{ 1 }}{% endgeneration %}b"), "a1b");
  EXPECT_EQ(rendered("{{ strftime_now('%Y') | length }}"), "4");
}

TEST(ChatTemplate, I28_an_unknown_name_is_a_load_error_with_its_line) {
  for (const auto& [source, name] : std::vector<std::pair<std::string, std::string>>{
           {"a\n{% frobnicate %}", "'frobnicate'"},
           {"a\n{{ 1 | frobnicate }}", "unknown filter 'frobnicate'"},
           {"a\n{% if false %}{{ 1 | frobnicate }}{% endif %}", "unknown filter 'frobnicate'"},
           {"a\n{{ 1 is frobnicate }}", "unknown test 'frobnicate'"},
           {"a\n{{ frobnicate() }}", "unknown function 'frobnicate'"},
           {"a\n{{ x | map('frobnicate') }}", "unknown filter 'frobnicate'"},
           {"a\n{{ x | selectattr('a', 'frobnicate') }}", "unknown test 'frobnicate'"},
           {"a\n{{ x.encode() }}", "'encode'"},
           {"a\n{% for x in y recursive %}{% endfor %}", "recursive"}}) {
    const std::string out = rendered(source);
    EXPECT_TRUE(has(out, "load: chat template, line 2: ") && has(out, name)) << source << " gave " << out;
  }
}

double milliseconds_to_exceed_the_budget(const std::string& source) {
  double best = 1e9;  // of three: other work on the machine is not ours
  for (int run = 0; run < 3; ++run) {
    const auto start = std::chrono::steady_clock::now();
    const std::string out = rendered(source);
    best = std::min(
        best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    EXPECT_TRUE(has(out, "budget exceeded")) << source << " gave " << out.substr(0, 200);
  }
  return best;
}
#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr double kSlowBuild = 1;
#else
constexpr double kSlowBuild = 40;
#endif

TEST(ChatTemplate, I29_endless_loops_exceed_the_budget_within_50_ms) {
  for (const char* source :
       {"{% for i in range(10**9) %}{% endfor %}",
        "{% for i in range(10000) %}{% for j in range(10000) %}{% for k in range(10000) %}{{ k }}"
        "{% endfor %}{% endfor %}{% endfor %}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"})
    EXPECT_LT(milliseconds_to_exceed_the_budget(source), 50 * kSlowBuild) << source;
}

TEST(ChatTemplate, I29_values_that_grow_without_end_exceed_the_budget) {
  const auto grow = [](const std::string& what) {
    return "{% set ns = namespace(s='aaaaaaaa', l=[1]) %}{% for i in range(9999) %}{% set " + what +
           " %}{% endfor %}";
  };
  for (const std::string& source : {grow("ns.s = ns.s ~ ns.s"),
                                    grow("ns.s = ns.s + ns.s"),
                                    grow("ns.s = ns.s | replace('a', 'aa')"),
                                    grow("ns.s = ns.s.replace('', 'aa')"),
                                    grow("ns.l = ns.l + ns.l"),
                                    grow("ns.l = [ns.l]"),
                                    grow("ns.l = {1: ns.l}"),
                                    grow("ns.s = (ns.s * 99999).split('a') | join('ab')"),
                                    grow("ns.s = '%s%s' % (ns.s, ns.s)"),
                                    grow("ns.s = [ns.s, ns.s] | string"),
                                    grow("ns.s = [ns.s, ns.s] | tojson"),
                                    grow("ns.s = ns.s | e * 2"),
                                    std::string("{{ 'a' * 10**12 }}"),
                                    std::string("{{ [0] * 10**12 }}"),
                                    std::string("{{ '%1000000000000d' % 1 }}"),
                                    std::string("{{ '{:1000000000000}'.format(1) }}"),
                                    std::string("{{ 'a' | center(10**12) }}"),
                                    std::string("{{ 'a\nb' | indent(10**12) }}"),
                                    std::string("{{ [1] | tojson(indent=10**12) }}"),
                                    std::string("{{ [1] | batch(10**12, 0) | list }}"),
                                    std::string("{{ 'a'.ljust(10**12) }}"),
                                    std::string("{{ 'a'.zfill(10**12) }}")})
    EXPECT_LT(milliseconds_to_exceed_the_budget(source), 1000 * kSlowBuild) << source;
}

TEST(ChatTemplate, I29_another_request_renders_meanwhile) {
  const Result<ChatTemplate> t =
      ChatTemplate::parse("{% for i in range(n) %}{% for j in range(n) %}{{ j }}{% endfor %}{% endfor %}");
  ASSERT_TRUE(t.ok());
  std::thread hostile([&] { EXPECT_FALSE(t->render(context(R"({"n": 100000})")).ok()); });
  const Result<std::string> out = t->render(context(R"({"n": 2})"));
  hostile.join();
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(*out, "0101");
}

TEST(ChatTemplate, I30_nothing_but_data_is_reachable) {
  EXPECT_EQ(rendered("[{{ x.__class__ }}]", R"({"x": "s"})"), "[]");
  for (const char* source : {"{{ x.__class__.__mro__ }}", "{{ x['__class__']['__mro__'] }}",
                             "{{ x.append(1) }}", "{{ d.update({}) }}"})
    EXPECT_TRUE(has(rendered(source, R"({"x": [1], "d": {}})"), "render: ")) << source;
  for (const char* source :
       {"{% include 'a' %}", "{% import 'a' as b %}", "{% from 'a' import b %}", "{% extends 'a' %}"})
    EXPECT_TRUE(has(rendered(source), "refused: a chat template reads no other template")) << source;
  EXPECT_TRUE(has(rendered("{{ namespace(__init__=1) }}"), "underscore"));
}

TEST(ChatTemplate, I31_raise_exception_carries_its_message) {
  const std::string out = rendered("{% if messages | length == 0 %}\n{{ raise_exception('no') }}{% endif %}",
                                   R"({"messages": []})");
  EXPECT_EQ(out, "render: chat template, line 2: no");
  EXPECT_TRUE(has(rendered("{% for m in messages %}{% if m.role not in ['user', 'assistant'] %}{{ "
                           "raise_exception('Unknown role: ' ~ m.role) }}"
                           "{% endif %}{% endfor %}",
                           R"({"messages": [{"role": "oracle", "content": ""}]})"),
                  "Unknown role: oracle"));
}

TEST(ChatTemplate, deep_nesting_is_refused_not_recursed_into) {
  const auto repeat = [](const std::string& s, int n) {
    std::string out;
    // Deep enough for any stack; a tenth, where sanitizers take their time, is far beyond the limit as well.
    for (int i = 0; i < (kSanitized ? n / 10 : n); ++i) out += s;
    return out;
  };
  for (const std::string& source :
       {"{{ " + repeat("(", 100000) + "1" + repeat(")", 100000) + " }}",
        "{{ " + repeat("not ", 100000) + "1 }}", "{{ " + repeat("-", 100000) + "1 }}",
        "{{ 1" + repeat("+1", 100000) + " }}", "{{ x" + repeat(".a", 100000) + " }}",
        "{{ x" + repeat("|e", 100000) + " }}", repeat("{% if 1 %}", 50000), "{{ " + repeat("[", 200000),
        "{{ " + repeat("{1:", 200000), "{{ " + repeat("1 if 1 else ", 80000) + "1 }}",
        "{% set " + repeat("(", 100000), "{{ " + repeat("a if b ", 50000) + " }}",
        "{{ f" + repeat("(x", 100000) + repeat(")", 100000) + " }}"}) {
    EXPECT_TRUE(has(rendered(source), "load: ")) << source.substr(0, 40);
  }
}

TEST(ChatTemplate, limits_of_the_template_itself_are_stated) {
  EXPECT_TRUE(has(rendered(std::string(static_cast<size_t>(limits::kTemplateBytes) + 1, 'a')),
                  "the limit is 1048576"));
  EXPECT_TRUE(has(rendered("a\xff"), "not UTF-8"));
  const Result<ChatTemplate> t = ChatTemplate::parse("{{ x }}");
  ASSERT_TRUE(t.ok());
  EXPECT_FALSE(t->render(TemplateValue::dict({{"x", TemplateValue::string("\xff")}})).ok());
  EXPECT_FALSE(t->render(TemplateValue::none()).ok());
  TemplateValue deep = TemplateValue::none();
  for (int i = 0; i < 1000; ++i) deep = TemplateValue::list({deep});
  EXPECT_EQ(t->render(TemplateValue::dict({{"x", deep}})).status().code(), Code::kResourceExhausted);
}

TEST(ChatTemplate, json_that_is_not_plain_data_is_refused) {
  for (const char* json : {"", "{", "{\"a\": 1, \"a\": 2}", "NaN", "\"\\ud800\"",
                           "123456789012345678901234567890", "1e999", "[1,]"})
    EXPECT_FALSE(template_value_from_json(json).ok()) << json;
  EXPECT_FALSE(template_value_from_json(std::string(100000, '[')).ok());
  EXPECT_EQ(rendered("{{ x }}", R"({"x": {"b": 1, "a": [1.0, 1e20, true, null, "é"]}})"),
            "{'b': 1, 'a': [1.0, 1e+20, True, None, 'é']}");
}

}  // namespace
}  // namespace ridge
