"""Small templates, one construct each, out of the part of Jinja that chat templates use: (name, template, context)."""

import re

ITEMS = {"xs": [3, 1, 2], "words": ["pear", "Apple", "fig"], "empty": [], "none": None, "yes": True, "no": False, "n": 7, "f": 2.5,
         "s": "  Hello, World  ", "t": "a,b,,c", "d": {"b": 2, "a": 1, "C": 3},
         "people": [{"name": "Ann", "age": 30, "admin": True}, {"name": "Bob", "age": 25}, {"name": "Cy", "age": None, "admin": False}]}

EXPRESSIONS = {
    "arithmetic": ["1 + 2 * 3", "7 // 2", "-7 // 2", "7 % 3", "-7 % 3", "7 / 2", "6 / 2", "2 ** 10", "2 ** -1", "-2 ** 2",
        "1.5 + 1", "10 - 2 - 3",
                   "0.1 + 0.2", "1e3", "1_000", "n + f", "+n", "-n", "'ab' * 3", "[1] * 2", "[1] + [2, 3]", "10 ** 20", "3.0",
                   "1 / 3", "(2 + 3) * 4",
                   "2 ** 3 ** 2", "true + 1", "7.5 // 2", "1e20", "1e-7", "123456789.125"],
    "compare": ["1 < 2", "2 <= 2 < 3", "1 == 1.0", "'a' < 'b'", "'10' == 10", "none == none", "xs == [3, 1, 2]", "1 != 2",
        "n > 5 and n < 9",
                "not yes", "no or 'fallback'", "'' or 0 or 'last'", "yes and n", "true == 1", "xs is sameas xs", "(1, 2) == (1, 2)",
                "d == {'a': 1, 'b': 2, 'C': 3}"],
    "membership": ["1 in xs", "9 in xs", "9 not in xs", "'ell' in s", "'a' in d", "1 in d", "'' in 'x'", "'x' in ('x', 'y')"],
    "concatenate": ["'a' ~ 1 ~ none ~ true", "n ~ '%'", "1 ~ 2", "'x' ~ undefined_name ~ 'y'", "xs ~ d", "'a' ~ 1.0"],
    "conditional": ["'a' if yes else 'b'", "'a' if no else 'b'", "'a' if no", "1 if xs else 2", "1 if empty else 2",
        "1 if none else 2", "1 if '' else 2",
                    "'p' if n > 9 else 'q' if n > 6 else 'r'"],
    "literals": ["[1, 'two', 3.0, none, true, [4]]", "{'k': [1], 'j': {'i': none}}", "(1, 2)", "(1,)", "()", "'it\\'s'",
        "\"a\\tb\\n\"", "'\\u00e9'", "None", "True", "False",
                 "'caf\u00e9'", "[]", "{}", "'a' 'b'", "[1, 2,]"],
    "index": ["xs[0]", "xs[-1]", "xs[1:]", "xs[:1]", "xs[::-1]", "xs[-2:]", "xs[::2]", "xs[5:]", "xs[-9:2]", "s[2:7]", "'abc'[-1]",
        "'abc'[::-1]", "d['a']", "d.a", "d['zz']",
              "d.get('zz')", "d.get('zz', 'dflt')", "xs[9]", "people[1].name", "people[-1]['name']", "d['C']", "xs[1:-1]",
              "xs[2:0:-1]", "'h\u00e9llo'[1:3]", "xs.0", "t[n]", "(1, 2, 3)[1]"],
    "strings": ["s.strip()", "s.lstrip() ~ '|'", "s.rstrip() ~ '|'", "'xxaxx'.strip('x')", "t.split(',')", "t.split(',', 1)",
        "' a  b '.split()", "'a</t>b</t>c'.split('</t>')[-1]",
                "s.upper()", "s.lower()", "'hello wORLD x1y'.title()", "'hello WORLD'.capitalize()", "s.replace('l', 'L')",
                "'aaa'.replace('a', 'b', 2)", "'abc'.startswith('ab')",
                "'abc'.endswith(('x', 'c'))", "'abc'.startswith('')", "'-'.join(['a', 'b'])", "'abcabc'.find('c')",
                "'abc'.find('z')", "'abcabc'.count('b')", "'abc'.index('b')", "'12'.isdigit()",
                "'a1'.isalpha()", "'\\n x \\n'.strip() ~ '|'", "'a\\nb\\r\\nc'.splitlines()", "'x'.islower()",
                "'a-b-c'.rsplit('-', 1)", "'\u00c9COLE'.lower()", "'stra\u00dfe'.upper()", "'ab'.isalnum()",
                "'X'.isupper()", "'abc'.removeprefix('a')", "'abc'.removesuffix('c')", "'{} and {}'.format(1, 'b')"],
    "dictionaries": ["d.items() | list", "d.keys() | list", "d.values() | list", "d | length", "d | list", "d | dictsort",
        "d | dictsort(by='value')", "d | dictsort(reverse=true)",
                     "d | dictsort(case_sensitive=true)", "d | items | list", "d.get('a') + 1", "dict(a=1, b='x')", "d | first"],
    "filters_text": ["s | trim", "'xxaxx' | trim('x')", "s | upper", "s | lower", "s | length", "'hello wORLD' | capitalize",
        "'hello big-world o\\'neil' | title", "'a.b.c' | replace('.', '-')",
                     "'aaa' | replace('a', 'b', 2)", "'a\\nb\\n\\nc' | indent", "'a\\nb\\n\\nc' | indent(2, true)",
                     "'a\\nb\\n\\nc' | indent(width=2, blank=true)", "'<b>&\"\\'' | escape", "'<b>' | e",
                     "'<b>' | safe", "n | string", "'42' | int", "'x' | int", "'x' | int(5)", "'0x1f' | int(base=16)", "3.9 | int",
                     "'3.5' | float", "'z' | float", "none | string", "'%s-%d' | format('a', 3)",
                     "'ab cd ef' | wordcount", "'long text to cut here now' | truncate(12)", "'abc' | reverse", "'abc' | first",
                     "'abc' | last", "'abc' | list", "-3 | abs", "2.567 | round(2)", "2.5 | round | int",
                     "'x' | center(5)", "n | float", "true | string", "true | int"],
    "filters_lists": ["xs | length", "xs | count", "xs | first", "xs | last", "xs | reverse | list", "xs | sort", "words | sort",
        "words | sort(case_sensitive=true)", "xs | sort(reverse=true)", "xs | join", "xs | join(', ')",
                      "people | join(', ', attribute='name')", "[1, 1, 2, 1] | unique | list", "['a', 'A', 'b'] | unique | list",
                      "xs | sum", "xs | min", "xs | max", "people | map(attribute='name') | list",
                      "people | map(attribute='admin', default='-') | list", "words | map('upper') | list",
                      "words | map('replace', 'p', 'P') | join('+')", "xs | select('odd') | list", "xs | reject('odd') | list",
                      "[0, 1, '', 'x', none] | select | list", "xs | select('greaterthan', 1) | list",
                      "people | selectattr('admin') | map(attribute='name') | list",
                      "people | rejectattr('admin') | map(attribute='name') | list",
                      "people | selectattr('name', 'equalto', 'Bob') | list",
                      "people | selectattr('age', 'none') | map(attribute='name') | list",
                      "people | rejectattr('age', 'none') | map(attribute='age') | sum",
                      "people | selectattr('admin', 'defined') | list | length",
                      "people | selectattr('name', 'in', ['Ann', 'Cy']) | map(attribute='name') | join", "empty | first",
                      "empty | last | default('none')",
                      "empty | length", "xs | batch(2) | list", "xs | slice(2) | list",
                      "people | groupby('name') | map(attribute='grouper') | list", "range(3) | list", "range(5, 0, -2) | list",
                      "xs | list"],
    "default": ["undefined_name | default('d')", "none | default('d')", "none | default('d', true)", "'' | default('d', true)",
        "no | d('x', boolean=true)", "d.zz | default('d')", "undefined_name | default", "0 | default(5)"],
    "tojson": ["d | tojson", "xs | tojson", "s | tojson", "'caf\u00e9 <b> & \\'q\\' \"d\" \\\\ \\n\\t' | tojson", "none | tojson",
        "yes | tojson", "f | tojson", "people | tojson(indent=2)", "d | tojson(sort_keys=true)",
               "'\u00e9' | tojson(ensure_ascii=true)", "d | tojson(separators=(',', ':'))", "{} | tojson(indent=4)", "[] | tojson",
               "{'a': [], 'b': {}} | tojson(indent=2)", "{'x': [1, {'y': none}]} | tojson(indent=4)", "'\\u0001\\u007f' | tojson",
               "1e20 | tojson", "0.1 | tojson", "3.0 | tojson", "{1: 2} | tojson"],
    "tests": ["n is defined", "undefined_name is defined", "undefined_name is undefined", "d.zz is defined", "none is none",
        "n is none", "s is string", "n is string", "d is mapping", "xs is mapping", "xs is iterable", "s is iterable",
              "n is iterable", "d is iterable", "xs is sequence", "n is number", "yes is number", "f is float", "n is integer",
              "yes is integer", "yes is boolean", "yes is true", "n is true", "no is false", "none is false", "n is odd",
              "n is even",
              "n is divisibleby 7", "n is divisibleby(2)", "n is equalto 7", "n is eq 7", "n is ne 7", "n is gt 5",
              "n is lessthan 5", "1 is in xs", "'b' is in d", "s is not none", "n is not defined", "'ab' is lower", "'AB' is upper",
              "not n is none",
              "undefined_name is none", "xs is sameas(xs)", "raise_exception is callable", "n is ge 7"],
    "undefined": ["undefined_name", "undefined_name or 'x'", "undefined_name == none", "undefined_name | length",
        "undefined_name ~ ''", "undefined_name is iterable", "d.zz", "undefined_name | list", "not undefined_name",
        "undefined_name | join(',')",
                  "undefined_name | trim", "undefined_name | string", "undefined_name in xs", "undefined_name == undefined_name",
                  "undefined_name | upper", "none.x is defined", "none.x"],
    "clock": ["strftime_now('%Y-%m-%d')", "strftime_now('%d %B %Y')", "strftime_now('%d %b %Y')", "strftime_now('%H:%M:%S')",
        "strftime_now('%A, %a %j %%')", "strftime_now('%y/%m/%d %I:%M %p')"],
    "printed": ["none", "true", "1.0", "1e100", "[1, 'a', none, true, 1.5]", "{'a': 'b'}",
        "['it\\'s', '\"', 'both\\'\"', 'caf\u00e9\\n']", "(1, 'a')", "xs", "1.5e-8", "100000000000000000000.0", "1e16", "123456.7"],
}

STATEMENTS = [
    ("loop_fields",
    "{% for x in xs %}{{ loop.index }}/{{ loop.index0 }}/{{ loop.revindex }}/{{ loop.revindex0 }}/{{ loop.length }}/{{ loop.first }}/{{ loop.last }} {% endfor %}"),
    ("loop_neighbours", "{% for x in xs %}{{ loop.previtem | default('-') }}<{{ x }}>{{ loop.nextitem | default('-') }} {% endfor %}"),
    ("loop_undefined_neighbour",
    "{% for p in people %}{% if loop.previtem is defined and loop.previtem.name == 'Ann' %}after Ann: {{ p.name }}{% endif %}{% endfor %}"),
    ("loop_cycle", "{% for x in xs %}{{ loop.cycle('odd', 'even') }} {% endfor %}"),
    ("loop_changed", "{% for x in [1, 1, 2] %}{{ loop.changed(x) }} {% endfor %}"),
    ("loop_else", "{% for x in empty %}x{% else %}nothing{% endfor %}|{% for x in xs %}{{ x }}{% else %}nothing{% endfor %}"),
    ("loop_filter", "{% for x in xs if x > 1 %}{{ loop.index }}:{{ x }} {% endfor %}"),
    ("loop_pairs", "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k, v in d | dictsort %}{{ k }}={{ v }};{% endfor %}"),
    ("loop_nested",
    "{% for x in xs %}{% set outer = loop %}{% for y in 'ab' %}{{ outer.index }}{{ y }}{{ loop.index }} {% endfor %}{% endfor %}"),
    ("loop_string", "{% for c in 'h\u00e9\U0001F600' %}[{{ c }}]{% endfor %}"),
    ("loop_mapping", "{% for k in d %}{{ k }}{% endfor %}"),
    ("loop_range", "{% for i in range(2, 8, 3) %}{{ i }} {% endfor %}{% for i in range(0) %}x{% endfor %}"),
    ("loop_recursive",
    "{% for x in [[1, [2]], 3] recursive %}{{ loop.depth }}{% if x is iterable %}({{ loop(x) }}){% else %}{{ x }}{% endif %}{% endfor %}"),
    ("loop_break", "{% for x in xs %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}!"),
    ("loop_continue", "{% for x in xs %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{{ loop.index }} {% endfor %}!"),
    ("loop_scope", "{% set x = 0 %}{% for i in xs %}{% set x = i %}{{ x }}{% endfor %}{{ x }}"),
    ("loop_variable_after", "{% for i in xs %}{% endfor %}{{ i is defined }}"),
    ("namespace",
    "{% set ns = namespace(found=false, n=0) %}{% for x in xs %}{% set ns.n = ns.n + x %}{% if x == 2 %}{% set ns.found = true %}{% endif %}{% endfor %}{{ ns.n }} {{ ns.found }}"),
    ("namespace_new_field", "{% set ns = namespace() %}{% set ns.a = 'x' %}{{ ns.a }}{{ ns.b is defined }}"),
    ("if_chain", "{% if n < 5 %}low{% elif n < 8 %}mid{% elif n < 9 %}never{% else %}high{% endif %}"),
    ("if_scope", "{% if yes %}{% set v = 'set inside' %}{% endif %}{{ v }}"),
    ("set_block", "{% set b %}<{{ n }}>{% endset %}{{ b | length }}{{ b }}"),
    ("set_block_filter", "{% set b | upper %}abc{% endset %}{{ b }}"),
    ("set_tuple", "{% set a, b = 1, 2 %}{{ b }}{{ a }}"),
    ("macro",
    "{% macro tag(name, attr='none', n=1) %}<{{ name }} {{ attr }} {{ n }}>{% endmacro %}{{ tag('a') }}{{ tag('b', n=3) }}{{ tag(name='c', attr='x') }}"),
    ("macro_scope", "{% set g = 1 %}{% macro m(x) %}{{ g }}{{ x }}{{ y is defined }}{% endmacro %}{% set y = 2 %}{{ m(5) }}"),
    ("macro_calls_macro", "{% macro a(x) %}[{{ x }}]{% endmacro %}{% macro b(x) %}{{ a(x ~ '!') }}{% endmacro %}{{ b('q') }}"),
    ("macro_recursive", "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}"),
    ("macro_missing_argument", "{% macro m(a, b) %}{{ a }}-{{ b }}{% endmacro %}{{ m(1) }}"),
    ("macro_varargs", "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, z=3) }}"),
    ("macro_result_is_text", "{% macro m() %} x {% endmacro %}{{ m() | trim }}{{ m().strip() }}{{ m() | length }}"),
    ("call_block", "{% macro box(t) %}[{{ t }}:{{ caller() }}]{% endmacro %}{% call box('T') %}body {{ n }}{% endcall %}"),
    ("filter_block", "{% filter upper %}abc {{ s | trim }}{% endfilter %}"),
    ("with", "{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}"),
    ("generation", "A{% generation %}b {{ n }}{% endgeneration %}C"),
    ("generation_scope", "{% set x = 1 %}{% generation %}{% set x = 2 %}{{ x }}{% endgeneration %}{{ x }}"),
    ("comment", "a{# gone {{ n }} {% if %} #}b{#- trimmed -#} c"),
    ("raw", "{% raw %}{{ not }} {% this %}{% endraw %}"),
    ("do_is_not_enabled", "{% do xs.append(1) %}"),
    ("space_control", "a  {%- if yes -%}  b  {%- endif -%}  c  {{- n -}}  d"),
    ("space_trim_blocks", "{% if yes %}\nline\n{% endif %}\nnext\n"),
    ("space_lstrip_blocks", "x\n    {% if yes %}\n    y\n    {% endif %}\n  {{ n }}\n"),
    ("space_lstrip_after_text", "x  {% if yes %} y  {% endif %} z"),
    ("space_plus_keeps", "x\n    {%+ if yes %}\ny{% endif +%}\nz"),
    ("space_comment", "a\n  {# c #}\nb\n"),
    ("space_minus_over_lines", "a\n\n  {%- set q = 1 -%}\n\n  b\n {{- q }}\n\n"),
    ("space_variable_keeps_newline", "{{ n }}\n{{ n }}\n\n"),
    ("space_final_newline", "text\n"), ("space_two_final_newlines", "text\n\n"), ("space_crlf",
    "a\r\n{% if yes %}\r\nb\r\n{% endif %}\r\nc\r\n"),
    ("space_tabs", "\t{% if yes %}\t\n\tx\n\t{% endif %}\n"),
    ("space_set_lines", "{% set a = 1 %}\n{% set b = 2 %}\n{{ a + b }}"),
    ("space_nested_for", "{% for x in xs %}\n  {% for y in [1] %}\n    {{ x }}{{ y }}\n  {% endfor %}\n{% endfor %}\n"),
    ("empty_template", ""), ("only_text", "plain { text } with % and # and }} kept"), ("expression_over_lines", "{{\n  n\n  + 1\n}}"),
    ("for_over_undefined", "{% for x in undefined_name %}{{ x }}{% else %}none{% endfor %}"),
    ("precedence_filter", "{{ 'a' ~ 'b' | upper }}{{ -1 | abs }}{{ 1 + 2 | string | length }}{{ not no | string }}"),
    ("precedence_test", "{{ n + 1 is odd }}{{ not n is odd }}{{ 1 == 1 is true }}"),
    ("chained_calls", "{{ s.strip().split(', ')[1].lower()[::-1] }}"),
    ("escape_is_off", "{{ '<b>&</b>' }}{{ '\"' }}"),
]

EDGES = [
    ("raise", "a{{ raise_exception('no') }}b"), ("raise_built_message",
    "{% if n > 5 %}{{ raise_exception('n is ' ~ n ~ ', wanted at most 5: \u00e9') }}{% endif %}"),
    ("raise_in_set", "{% set _ = raise_exception('from set') %}"), ("raise_not_reached",
    "{% if no %}{{ raise_exception('never') }}{% endif %}fine"),
    ("unknown_filter", "{{ n | nosuchfilter }}"), ("unknown_test", "{{ n is nosuchtest }}"), ("unknown_tag", "{% nosuchtag %}"),
    ("unknown_function", "{{ nosuchfunction(1) }}"),
    ("unclosed_if", "{% if yes %}x"), ("unclosed_for", "{% for x in xs %}x"), ("unclosed_expression", "{{ n "), ("unclosed_comment",
    "a {# b"), ("unclosed_string", "{{ 'abc }}"), ("stray_endif", "x{% endif %}"),
    ("wrong_end", "{% for x in xs %}{% endif %}"), ("bad_expression", "{{ 1 + }}"), ("bad_character", "{{ n ? 1 : 2 }}"),
    ("empty_expression", "{{ }}"), ("break_outside", "{% break %}"), ("assign_in_expression", "{{ n = 1 }}"),
    ("field_of_undefined", "{{ undefined_name.x }}"), ("item_of_undefined", "{{ undefined_name['x'] }}"), ("add_text_and_number",
    "{{ 'a' + 1 }}"), ("add_none", "{{ 'a' + none }}"), ("add_undefined", "{{ 'a' + undefined_name }}"),
    ("divide_by_zero", "{{ 1 / 0 }}"), ("modulo_zero", "{{ 1 % 0 }}"), ("less_mixed", "{{ 'a' < 1 }}"), ("call_a_number",
    "{{ n() }}"), ("length_of_number", "{{ n | length }}"), ("iterate_a_number", "{% for x in n %}{% endfor %}"), ("iterate_none",
    "{% for x in none %}{% endfor %}"),
    ("in_a_number", "{{ 1 in n }}"), ("unpack_short", "{% for a, b in [[1]] %}{% endfor %}"), ("index_not_found",
    "{{ 'abc'.index('z') }}"), ("macro_too_many", "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}"), ("macro_unknown_keyword",
    "{% macro m(a) %}{% endmacro %}{{ m(b=2) }}"),
    ("filter_missing_argument", "{{ s | replace }}"), ("range_too_large", "{% for i in range(1000000) %}{% endfor %}"),
    ("class_is_unreachable", "{{ s.__class__ }}"), ("class_chain", "{{ s.__class__.__mro__ }}"), ("globals_are_unreachable",
    "{{ raise_exception.__globals__ }}"),
    ("format_cannot_reach_out", "{{ '{0.__class__}'.format(n) }}"), ("append_is_refused", "{{ xs.append(4) }}"),
    ("update_is_refused", "{{ d.update({'x': 1}) }}"), ("include", "{% include 'x' %}"), ("import", "{% import 'x' as y %}"),
    ("extends", "{% extends 'x' %}"),
    ("set_of_a_field", "{% set d.a = 1 %}"), ("negative_step_zero", "{{ xs[::0] }}"),
]


# Parts of Jinja that chat templates hardly use: an interpreter may refuse to load them by name, but never print else.
RARE = re.compile(
    r"\b(wordcount|truncate|center|batch|groupby|divisibleby|sameas|callable|recursive|cycle|changed|varargs|caller|round|sum|min|max"
    r"|rsplit|splitlines|removeprefix|removesuffix|capitalize|escape|isalnum|isalpha|islower|isupper|is float|is lower|is upper|is ge)\b"
    r"|\| (e|slice\(2\)) |format\(|dict\(|\.index\('|base=|% (filter|with) |set b \||xs\.0|10 \*\* 20|1_000|'a' 'b'")


def snippets():
    cases = []
    for group, expressions in EXPRESSIONS.items():
        for i, expression in enumerate(expressions):
            names = {n: v for n, v in ITEMS.items() if uses(expression, n)}
            cases.append((f"{group}/{i}", "{{ " + expression + " }}", names))
    for name, template in STATEMENTS:
        cases.append((name, template, {n: v for n, v in ITEMS.items() if uses(template, n)}))
    for name, template in EDGES:
        cases.append(("edge/" + name, template, {n: v for n, v in ITEMS.items() if uses(template, n)}))
    return cases


def uses(template, name):
    """Whether the name stands in the template as a word of its own: a context holds what its template may read."""
    return any(not (before.isalnum() or before == "_") and not (after.isalnum() or after == "_")
               for before, after in neighbours(template, name))


def neighbours(template, name):
    padded, start = " " + template + " ", 1
    while (at := padded.find(name, start)) >= 0:
        yield padded[at - 1], padded[at + len(name)]
        start = at + 1


SNIPPETS = snippets()
