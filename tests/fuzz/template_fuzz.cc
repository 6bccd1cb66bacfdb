// Any bytes as a chat template: refused when loaded, or rendered within its budget; never a crash.

#include <vector>

#include "base/limits.h"
#include "formats/template/template.h"
#include "fuzz/seeds.h"

namespace ridge {
namespace {

std::vector<std::string> seeds() {
  return {
      "{% for m in messages %}{{'<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n'}}{% "
      "endfor %}"
      "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
      "{%- set ns = namespace(n=0, s='') -%}\n{%- for m in messages if m.role != 'system' -%}{% set ns.n = "
      "ns.n + 1 %}"
      "{{ loop.index }}/{{ loop.length }}{{ loop.last }}{{ loop.previtem }}{{ loop.cycle('a', 'b') }}{%- "
      "else -%}none{%- endfor -%}",
      "{% macro f(a, b=2, *c) %}{{ a }}{{ caller() }}{{ varargs }}{{ kwargs }}{% endmacro %}{% call f(1) "
      "%}x{% endcall %}",
      "{% macro f(a, b=a) %}{{ a ~ b }}{% if a > 0 %}{{ f(a - 1) }}{% endif %}{% endmacro %}{{ f(3) }}{{ "
      "f(b=1, a=0) }}",
      "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | join(', ') | upper | "
      "trim | indent(2) }}",
      "{{ tools | tojson(indent=2) }}{{ d | dictsort }}{{ d.items() | list }}{{ x[::-1] }}{{ x[1:-1:2] }}{{ "
      "s[2:5] }}{{ s.split('a', 1) }}",
      "{% set a, b = 1, 2 %}{% set t %}block{% endset %}{% filter upper | replace('A', 'b') %}abc{% "
      "endfilter %}{% with q = 1 %}{{ q }}{% endwith %}",
      "{% raw %}{{ x }}{% endraw %}{# note #}{% generation %}{{ 1 if t else 2 }}{% endgeneration %}{% print "
      "1, 'a' %}",
      "{% for i in range(9) %}{% if i is odd %}{% continue %}{% elif i == 6 %}{% break %}{% endif %}{{ i // "
      "2 % 3 ** 2 }}{% endfor %}",
      "{{ '%s %05.2f %-4d|%x' % ('a', 1.5, 3, 255) }}{{ '{:>8}{0[a]!r:^9}'.format(d) }}{{ s is string and "
      "not n is defined }}",
      "{{ 1 < 2 <= 3 != 4 }}{{ 'a' in s }}{{ [1, 'b', none, {'c': (1,)}] }}{{ raise_exception('no') if f "
      "}}{{ strftime_now('%Y') }}",
      "{{ x | batch(2, 0) | list }}{{ x | slice(2) | list }}{{ messages | groupby('role') }}{{ x | "
      "sort(reverse=true) | unique | sum }}"};
}

const TemplateValue& context() {
  static const TemplateValue kContext = *template_value_from_json(R"({
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Héllo\n 'you' 中 😀"},
                 {"role": "assistant", "content": [{"type": "text", "text": "a"}], "tool_calls": [{"id": 1.5}]}],
    "add_generation_prompt": true, "bos_token": "<s>", "eos_token": "</s>", "documents": null,
    "tools": [{"name": "f", "parameters": {"x": {"type": "integer"}}}],
    "x": [1, 2, 3, 2], "s": "banana straße", "d": {"b": 2, "a": 1}, "t": true, "f": 1e20, "n": null, "i": -7})");
  return kContext;
}

}  // namespace
}  // namespace ridge

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  ridge::write_seeds(*argc, *argv, ridge::seeds());
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto parsed = ridge::ChatTemplate::parse(std::string(reinterpret_cast<const char*>(data), size));
  if (!parsed.ok()) {
    RIDGE_FUZZ_CHECK(parsed.status().code() != ridge::Code::kInternal &&
                     parsed.status().message().size() < 1000);
    return 0;
  }
  const auto out = parsed->render(ridge::context(), 0);
  if (!out.ok()) {
    RIDGE_FUZZ_CHECK(out.status().code() != ridge::Code::kInternal);
    return 0;
  }
  RIDGE_FUZZ_CHECK(static_cast<int64_t>(out->size()) <= ridge::limits::kTemplateOutputBytes);
  const auto again = parsed->render(ridge::context(), 0);  // rendering leaves no trace
  RIDGE_FUZZ_CHECK(again.ok() && *again == *out);
  RIDGE_FUZZ_CHECK(ridge::ChatTemplate::parse("{{ x }}")
                       ->render(ridge::TemplateValue::dict({{"x", ridge::TemplateValue::string(*out)}}))
                       .ok());
  return 0;
}
