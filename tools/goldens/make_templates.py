#!/usr/bin/env python3
"""Chat-template goldens: what jinja2, set up as transformers sets it up, makes of whole templates and of snippets.

usage: make_templates.py OUT.json [--model MODEL.gguf]... [--cross-check]
  --model        adds the chat template of this file, if it has one
  --cross-check  also renders every case with transformers' own environment and demands the same
needs: pip install jinja2; with --model also gguf; with --cross-check also transformers

OUT.json: `templates` by name; `cases` are {name, template, context, output} or {name, template, context, error}.
A case of a whole template has `template_name` in place of `template`. Errors have a kind: `raised` (the template
called raise_exception: the message must reach the caller), `load` (the template cannot be loaded) or `runtime`.
The wording of load and runtime errors is jinja2's and binds nobody; a runtime error may be found at load already.
`rare`: uses what chat templates hardly use; an interpreter may refuse to load it by name, but not print otherwise. strftime_now tells 2025-03-09 14:05:07.
"""

import argparse
import datetime
import json
import sys

import jinja2
import jinja2.ext
from common import provenance, write_json
from jinja2.sandbox import ImmutableSandboxedEnvironment
from template_chats import chat_cases
from template_snippets import RARE, SNIPPETS

NOW = datetime.datetime(2025, 3, 9, 14, 5, 7)


class RaisedByTemplate(jinja2.TemplateError):
    pass


class GenerationBlock(jinja2.ext.Extension):
    """{% generation %} ... {% endgeneration %}: the body, with a scope of its own as any call block has."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("body_of"), [], [], body).set_lineno(line)

    def body_of(self, caller):
        return caller()


def raise_exception(message):
    raise RaisedByTemplate(message)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationBlock, jinja2.ext.loopcontrols])
    env.filters["tojson"] = to_json
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def render(env, template, context):
    try:
        compiled = env.from_string(template)
    except (jinja2.TemplateSyntaxError, SyntaxError) as error:
        return {"error": {"kind": "load", "message": str(error)}}
    try:
        return {"output": compiled.render(**context)}
    except RaisedByTemplate as error:
        return {"error": {"kind": "raised", "message": error.message}}
    except Exception as error:  # whatever a template can make Python raise is the expectation
        return {"error": {"kind": "runtime", "message": f"{type(error).__name__}: {error}"}}


def cross_check(cases):
    """The reference library itself, with its clock stopped; its errors are compared by kind."""
    from transformers.utils import chat_template_utils

    class StoppedClock(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return NOW

    chat_template_utils.datetime = StoppedClock
    for case, template in cases:
        try:
            got = chat_template_utils._compile_jinja_template(template).render(**case["context"])
        except Exception as error:
            got = error
        want = case.get("output")
        same = got == want if want is not None else isinstance(got, Exception)
        if want is None and case["error"]["kind"] == "raised":
            same = same and str(got) == case["error"]["message"]
        if not same:
            raise SystemExit(f"{case['name']}: transformers gives {got!r}, this script {want or case['error']!r}")
    print(f"transformers agrees on {len(cases)} cases", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--cross-check", action="store_true")
    args = parser.parse_args()

    model_templates = {}
    for path in args.model:
        import gguf
        fields = gguf.GGUFReader(path).fields
        if "tokenizer.chat_template" in fields:
            model_templates[fields["general.basename"].contents()] = fields["tokenizer.chat_template"].contents()
    env, cases, templates, checked = environment(), [], {}, []
    for name, template, context in chat_cases(model_templates):
        templates[name.split("/")[0]] = template
        cases.append({"name": name, "template_name": name.split("/")[0], "context": context}
                     | render(env, template, context))
        checked.append((cases[-1], template))
    for name, template, context in SNIPPETS:
        rare = {"rare": True} if RARE.search(template) else {}
        cases.append({"name": name, "template": template, "context": context} | rare | render(env, template, context))
        checked.append((cases[-1], template))
    names = [case["name"] for case in cases]
    if len(set(names)) != len(names):
        raise SystemExit(f"two cases of one name: {sorted(n for n in set(names) if names.count(n) > 1)}")
    if args.cross_check:
        cross_check(checked)
    write_json(args.out, {
        "about": "Renderings by jinja2 as transformers sets it up; fields: see the script's help.",
        "provenance": provenance(__file__, ["jinja2"], args.model),
        "templates": templates,
        "cases": cases,
    }, 300_000)


if __name__ == "__main__":
    main()
