#!/usr/bin/env python3
"""What the program refuses before it runs: an output that is an input, options that the chosen mode does not use. And inspect's verdict.

usage: program_refusals_test.py RIDGE
"""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from program import DONE, FAILED, RIDGE, WRONG, Runs


class Refusals(Runs):
    def path(self, name, content=None):
        path = os.path.join(self.folder.name, name)
        if content is not None:
            pathlib.Path(path).write_text(content, encoding="utf-8")
        return path

    def refused(self, names, *arguments, **more):
        """One line that has all of `names`, code 2, nothing on stdout."""
        run = self.ends(WRONG, "", *arguments, **more)
        for name in names:
            self.assertIn(name, run.stderr, arguments)
        self.assertEqual((run.stdout, len(run.stderr.splitlines())), ("", 1), (arguments, run.stderr))

    def test_an_output_that_is_an_input_or_another_output_is_refused_and_left_as_it_is(self):
        machine, score = self.path("kept.json", "{}"), self.path("kept.jsonl", "")
        soft, hard = self.path("soft"), self.path("hard")
        os.symlink(self.model, soft)
        os.link(self.model, hard)
        kept = {path: pathlib.Path(path).read_bytes() for path in (self.model, machine, score)}
        for model in (self.model, soft, hard, os.path.join(self.folder.name, "..", os.path.basename(self.folder.name), "tiny.gguf")):
            for verb, option in (("profile", "--report"), ("profile", "--trace"), ("advise", "--report"), ("advise", "--score")):
                self.refused((option, "MODEL", model), verb, self.model, option, model)
        for verb, option in (("profile", "--report"), ("profile", "--trace"), ("advise", "--report"), ("advise", "--score")):
            self.refused((option, "--machine", machine), verb, self.model, "--machine", machine, option, machine)
            self.refused((option, "kept machine file", machine), verb, self.model, option, machine,
                         env={**os.environ, "RIDGE_MACHINE": machine})
        self.refused(("--score", "--report", score), "advise", self.model, "--score", score, "--report", score)
        self.refused(("kept score", "--report", score), "advise", self.model, "--report", score, env={**os.environ, "RIDGE_ADVICE": score})
        self.refused(("kept score", "MODEL"), "advise", self.model, env={**os.environ, "RIDGE_ADVICE": self.model})
        self.assertEqual({path: pathlib.Path(path).read_bytes() for path in kept}, kept)

    def test_outputs_that_do_not_exist_yet_are_compared_by_folder_and_name(self):
        new, away = self.path("new.html"), self.path("away")
        os.symlink(self.folder.name, away)
        os.symlink("new.html", self.path("nowhere"))
        for other in (os.path.join(".", "new.html"), os.path.join("away", "new.html"), "nowhere"):
            self.refused(("--report", "--trace"), "profile", self.model, "--report", new, "--trace", other, cwd=self.folder.name)
        self.refused(("--report", "--score"), "advise", self.model, "--report", new, "--score", "new.html", cwd=self.folder.name)
        self.assertFalse(os.path.exists(new))

    def test_what_a_standard_stream_goes_to_is_another_output(self):
        out = self.path("out.txt")
        for command in (["profile", self.model, "--report"], ["advise", self.model, "--report"], ["probe", "--json", "-o"]):
            with open(out, "w", encoding="utf-8") as to:
                run = self.ridge_into(to, *command, out)
            self.assertEqual(run.returncode, WRONG, run.stderr)
            self.assertIn("standard output", run.stderr)

    def ridge_into(self, stdout, *arguments):
        return subprocess.run([RIDGE, *arguments], stdout=stdout, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                              timeout=100)

    def test_a_file_that_keeps_no_score_is_not_appended_to(self):
        for content in ("a letter\n", "{}\n[1]\n", '{"decision": 3}\n'):
            other = self.path("other.txt", content)
            self.refused(("--score", other, "no line of advice"), "advise", self.model, "--score", other)
            self.assertEqual(pathlib.Path(other).read_text(encoding="utf-8"), content)

    def test_options_of_another_mode_are_refused_by_name(self):
        run = ("run", self.model)
        compare = (*run, "-p", "hi", "--compare", "isa=scalar", "")
        advise = ("advise", self.model, "--predict-only")
        modes = (
            (("bench", self.model), (("--shape", "1,2"), ("--dtype", "w=f32"), ("--reference",), ("--seconds", "1"), ("--machine", "x"))),
            (("bench", "--op", "add"),
             (("--synthetic",), ("--activations", "f32"), ("--kv", "f32"), ("--context", "9"), ("--page-size", "9"),
              ("--prefill-tokens", "9"), ("--no-fuse", "all"), ("--assume-pre", "qwen2"), ("--no-graphs",), ("--no-look-ahead",),
              ("--prompt", "x"), ("--prompt-tokens", "9"), ("--output-tokens", "9"), ("--batch", "2"), ("--deep",), ("--runs", "2"))),
            (compare, (("--memory",), ("--max-new-tokens", "9"), ("--temperature", "1"), ("--top-k", "1"), ("--top-p", "1"),
                       ("--min-p", "0"), ("--repetition-penalty", "1"), ("--presence-penalty", "0"), ("--frequency-penalty", "0"),
                       ("--seed", "1"), ("--no-look-ahead",))),
            ((*run, "-p", "hi"), (("--bound", "1"),)),
            (run, (("--bound", "1"), ("--memory",))),
            (advise, (("--budget", "1"), ("--confidence", "0.9"), ("--quality-tokens", "1"))))
        for command, options in modes:
            for option in options:
                self.refused((option[0] + " is ", "leave it out"), *command, *option)

    def test_options_of_another_device_are_refused_by_name(self):
        for option in ("--no-graphs", "--no-look-ahead"):
            self.refused((option + " is for a GPU",), "run", self.model, "-p", "hi", option)
        for option in (("--threads", "1"), ("--isa", "scalar")):
            self.refused((option[0] + " is for --device cpu, not cuda",), "probe", "--device", "cuda", *option)
        self.refused(("--isa is for --device cpu, not cuda",), "run", self.model, "-p", "hi", "--device", "cuda", "--isa", "scalar")

    def test_a_random_prompt_of_a_vocabulary_without_normal_tokens_is_refused(self):
        model = pathlib.Path(self.model).read_bytes()
        types = struct.pack("<512i", 3, *[1] * 511)
        self.assertIn(types, model)
        path = self.path("control.gguf")
        pathlib.Path(path).write_bytes(model.replace(types, struct.pack("<512i", *[3] * 512)))
        for command in (("bench", path), ("profile", path)):
            self.refused(("none of the 512 tokens", "give a prompt"), *command, "--prompt-tokens", "8", "--output-tokens", "2")

    def test_options_out_of_range_are_named_as_they_are_written(self):
        run = ("run", self.model, "-p", "hi")
        for option, value, says in (("--page-size", "0", "use 1 to 4096"), ("--page-size", "5000", "use 1 to 4096"),
                                    ("--context", "-1", "use 1 or more"), ("--prefill-tokens", "0", "use 1 or more")):
            self.assertIn(says, self.ends(WRONG, f"{option} is {value}", *run, option, value).stderr)
        self.ends(WRONG, "made for 8192: use 1 to 8192", *run, "--context", "9000")
        for threads in ("0", "1025", "99999999999", "-99999999999"):
            self.assertIn("use 1 to 1024", self.ends(WRONG, f"'{threads}'", *run, "-t", threads).stderr)
        for verb in (("bench",), ("bench", "fusion"), ("profile",), ("advise",)):
            for batch in ("0", "5000"):
                self.ends(WRONG, f"--batch is {batch}: use 1 to 4096", *verb, self.model, "--batch", batch)
        for option, value in (("--top-p", "1.1"), ("--temperature", "-0.1"), ("--min-p", "1.2"), ("--repetition-penalty", "-0.3")):
            self.ends(WRONG, f"{option} is {value}: use ", *run, option, value)
        self.ends(WRONG, "--kv is given 2 values, 'f16', 'f32': give it once", *run, "--kv", "f16", "--kv", "f32")

    def test_a_prompt_is_told_to_be_raised_to_a_context_only_where_the_model_has_one(self):
        run = ("run", self.model, "--raw", "-p")
        self.assertIn("raise the context", self.ends(WRONG, "holds 16", *run, "a" * 40, "--context", "16").stderr)
        self.assertNotIn("raise", self.ends(WRONG, "made for 8192", *run, "a" * 9000).stderr)
        self.assertNotIn("raise", self.ends(WRONG, "made for no more", "profile", self.model, "-p", "a" * 8000, "--output-tokens", "8000").stderr)
        self.assertIn("raise the context", self.ends(WRONG, "holds 64", "profile", self.model, "-p", "a" * 40, "--output-tokens", "50",
                                                     "--context", "64").stderr)

    def test_doctor_tells_a_machine_file_once_and_what_to_do_about_it(self):
        path = os.path.join(self.folder.name, "none", "machine.json")
        said = self.ends(DONE, "", "doctor", env={**os.environ, "RIDGE_MACHINE": path}).stdout
        self.assertEqual(said.count(path), 1, said)
        self.assertIn("ridge probe", said)

    def test_inspect_says_what_its_sum_leaves_out(self):
        said = self.ends(DONE, "", "inspect", self.model).stdout
        self.assertIn("activations, workspaces", said)
        memory = json.loads(self.ends(DONE, "", "inspect", self.model, "--json").stdout)["memory"]
        self.assertEqual(memory["total_bytes"], memory["weights_bytes"] + memory["kv_bytes"])

    def test_bench_prints_nothing_before_what_it_refuses(self):
        for wrong in (("--op", "zork"), ("--op", "all", "--shape", "1,2")):
            self.refused((wrong[-1] if "zork" in wrong else "--shape",), "bench", *wrong)

    def test_inspect_ends_with_1_where_something_is_refused_and_0_where_nothing_is(self):
        model = pathlib.Path(self.model).read_bytes()

        def broken(name, old, new):
            path = self.path(name)
            self.assertIn(old, model)
            pathlib.Path(path).write_bytes(model.replace(old, new))
            return path

        def inspected(code, *arguments):
            j = json.loads(self.ends(code, "", "inspect", *arguments, "--json").stdout)
            self.assertEqual(code == DONE, j["refused"] == [], j["refused"])
            self.assertEqual(self.ridge("inspect", *arguments).returncode, code)
            return j

        self.assertIn("memory", inspected(DONE, self.model, "--weights"))
        plain = inspected(DONE, self.synthetic("plain.gguf", template=""))
        self.assertNotIn("chat_template", plain)
        inspected(FAILED, broken("token.gguf", b"tokenizer.ggml.tokens", b"tokenizer.ggml.tokenz"))
        other = inspected(FAILED, broken("arch.gguf", b"\x05\0\0\0\0\0\0\0llama", b"\x05\0\0\0\0\0\0\0zorka"))
        self.assertNotIn("memory", other)
        inspected(FAILED, self.model, "--context", "99999999")
        self.assertEqual(self.ends(FAILED, "", "inspect", self.path("none.gguf", "not a model")).stdout, "")
        self.ends(WRONG, "--page-size", "inspect", self.model, "--page-size", "0")
        self.assertIn("Exit codes", self.ridge("inspect", "--help").stdout)

    def test_inspect_gives_metadata_and_shapes_as_json_values(self):
        j = json.loads(self.ends(DONE, "", "inspect", self.model, "--json").stdout)
        values = {key: entry["value"] for key, entry in j["metadata"].items()}
        self.assertEqual((values["general.architecture"], values["llama.block_count"]), ("llama", 1))
        self.assertIs(type(values["llama.attention.layer_norm_rms_epsilon"]), float)
        self.assertEqual({type(e["value"]) for e in j["metadata"].values() if e["type"].startswith(("u", "i"))}, {int})
        tokens = j["metadata"]["tokenizer.ggml.tokens"]
        self.assertEqual((tokens["type"], tokens["element"], tokens["count"], len(tokens["value"])), ("array of string", "string", 512, 8))
        self.assertEqual({type(t) for t in tokens["value"]}, {str})
        shapes = {t["name"]: t["shape"] for t in j["tensors"]}
        self.assertEqual((shapes["token_embd.weight"], shapes["output_norm.weight"]), ([512, 64], [64]))
        # 199 bytes, and a character that would end beyond the 200th.
        template = "x" * 199 + "é" * 9
        entry = json.loads(self.ends(DONE, "", "inspect", self.synthetic("long.gguf", template=template), "--json").stdout)["metadata"]
        self.assertEqual((entry["tokenizer.chat_template"]["value"], entry["tokenizer.chat_template"]["cut"]), ("x" * 199 + "…", True))
        self.assertNotIn("cut", entry["general.architecture"])

    def test_a_lever_that_changes_nothing_is_refused_before_anything_is_measured(self):
        with tempfile.TemporaryDirectory() as cache:
            env = {k: v for k, v in os.environ.items() if k not in ("RIDGE_MACHINE", "RIDGE_ADVICE")} | {"XDG_CACHE_HOME": cache}
            for lever, says in (("fuse-linear_add=on", "linear_add fuses nothing on cpu; the fusions there are fuse-add_rms_norm"),
                                ("colour=red", "no lever is called 'colour'"), ("kv=f16", "lever kv=f16 is how the workload runs already"),
                                ("prefill-chunk=4096", "lever prefill-chunk=4096 changes nothing")):
                begin = time.monotonic()
                run = self.ends(WRONG, says, "advise", self.model, "--lever", lever, env=env)
                self.assertLess(time.monotonic() - begin, 5, "what is refused took a measurement")
                self.assertEqual((run.stdout, len(run.stderr.splitlines())), ("", 1), run.stderr)
                if lever in ("kv=f16", "prefill-chunk=4096"):
                    self.assertIn("here there are activations=", run.stderr)
            self.ends(WRONG, "--lever auto is given beside others", "advise", self.model, "--lever", "auto", "kv=q8", env=env)
            self.assertFalse([f for f in pathlib.Path(cache).rglob("*.json") if f.is_file()])


if __name__ == "__main__":
    if not RIDGE:
        sys.exit(__doc__)
    unittest.main()
