#!/usr/bin/env python3
"""The program as a user meets it: exit codes, numbers that do not fit, output that cannot be written, Ctrl-C, JSON.

usage: program_test.py RIDGE      the built program; it runs on a model of random weights that the test makes
"""
import json
import os
import pathlib
import pty
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from program import DONE, FAILED, INTERRUPTED, RIDGE, WRONG, Runs


class Program(Runs):
    def test_a_number_that_does_not_fit_is_refused_and_never_cut(self):
        for option, value in (("--max-new-tokens", "99999999999999999999"), ("--seed", "18446744073709551616"), ("--seed", "-1"),
                              ("--temperature", "nan"), ("--top-p", "inf"), ("--top-k", "9223372036854775808")):
            self.ends(WRONG, value, "run", self.model, "-p", "hi", option, value)
        self.ends(WRONG, "nan", "bench", "--op", "add", "--seconds", "nan")
        self.ends(DONE, "", "run", self.model, "-p", "hi", "--max-new-tokens", "2", "--seed", "18446744073709551615")

    def test_a_value_that_is_wrong_is_a_wrong_command_and_a_file_that_is_wrong_a_failure(self):
        run = ("run", self.model, "-p", "hi")
        for more, says in ((["--isa", "foo"], "foo"), (["--kv", "q4"], "q4"), (["-t", "-1"], "-1"), (["--max-new-tokens", "0"], "0"),
                           (["--temperature", "-1"], "-1"), (["--raw", "-s", "x"], "--system"), (["--no-fuse", "zz"], "zz"),
                           (["--compare", "kv=foo", ""], "foo"), (["--compare", "threads=abc", ""], "abc")):
            self.ends(WRONG, says, *run, *more)
        self.ends(WRONG, "8192", "run", self.model, "--raw", "-p", "a" * 9000)
        self.ends(WRONG, "no tokens", "run", self.model, "--raw", "-p", "")
        self.ends(FAILED, "no/such", "run", "no/such.gguf", "-p", "hi")
        for path, says in (("no/such.gguf", "no such file"), (self.folder.name, "is a directory"), ("/dev/zero", "is a device")):
            for verb in (("inspect",), ("run", "-p", "hi"), ("bench",), ("profile",), ("advise",)):
                self.ends(FAILED, says, *verb, path)
        self.ends(FAILED, "is a directory", "profile", self.model, "--machine", self.folder.name)

    def test_I60_output_that_cannot_be_written_is_a_failure_in_every_verb(self):
        verbs = (["--help"], ["run", self.model, "-p", "hi", "-n", "2"], ["run", self.model, "-p", "hi", "-n", "2", "--json"],
                 ["inspect", self.model], ["inspect", self.model, "--json"], ["doctor"])
        for verb in verbs:
            with open("/dev/full", "w", encoding="utf-8") as full:
                run = subprocess.run([RIDGE, *verb], stdout=full, stderr=subprocess.PIPE, text=True, timeout=100)
            self.assertEqual(run.returncode, FAILED, verb)
            self.assertIn("cannot write the output", run.stderr, verb)

    def test_an_answer_that_cannot_be_written_is_not_generated_to_its_end(self):
        # Some 8,000 tokens of milliseconds each, were they generated.
        model = self.synthetic("slow.gguf", layers=8, hidden=1024, inner=4096, heads=16)
        for more, said in ((["--raw", "-p", "hi"], ""), ([], "hi\nhi\n")):
            begin = time.monotonic()
            with open("/dev/full", "w", encoding="utf-8") as full:
                run = subprocess.run([RIDGE, "run", model, "-n", "8000", *more], stdout=full, stderr=subprocess.PIPE, input=said,
                                     text=True, timeout=100)
            self.assertEqual((run.returncode, len(run.stderr.splitlines())), (FAILED, 1), run.stderr)
            self.assertIn("cannot write the output", run.stderr)
            self.assertLess(time.monotonic() - begin, 10, more)

    def test_prompts_that_cannot_be_read_are_a_failure_and_not_the_end_of_a_chat(self):
        folder = os.open(self.folder.name, os.O_RDONLY)
        try:
            run = subprocess.run([RIDGE, "run", self.model, "-n", "2"], stdin=folder, capture_output=True, text=True, timeout=100)
        finally:
            os.close(folder)
        self.assertEqual((run.returncode, run.stdout, len(run.stderr.splitlines())), (FAILED, "", 1), run.stderr)
        self.assertIn("stdin", run.stderr)
        self.assertIn("directory", run.stderr)

    def test_inspect_shows_no_control_character_of_a_file(self):
        hostile = os.path.join(self.folder.name, "hostile.gguf")
        whole = pathlib.Path(self.model).read_bytes()
        hostile_bytes = whole.replace(b"output_norm.weight", b"\x1b[31m\nnorm.weight").replace(b"general.name", b"general.\x1b[3m")
        pathlib.Path(hostile).write_bytes(hostile_bytes)
        shown = self.ridge("inspect", hostile, "--tensors")
        self.assertNotIn("\x1b", shown.stdout + shown.stderr)
        self.assertIn("\\x1b[31m\\x0anorm.weight", shown.stdout + shown.stderr)

    def test_bench_takes_a_shape_without_the_numbers_that_follow(self):
        for op, shape, whole in (("linear", "2,64,96", "2,64,96,3"), ("attention_prefill", "1,5,4,2,32,16,3", "1,2,5,4,2,32,3,16,3"),
                                 ("rope", "2,4,32", "2,4,32,16")):
            short, full = ([json.loads(self.ridge("bench", "--op", op, "--shape", s, "--seconds", "0.01", "--machine", self.machine(),
                                                  "--json").stdout)["operators"][0]["shape"]] for s in (shape, whole))
            self.assertEqual(short, full)
        bench = ("bench", "--op", "linear", "--machine", self.machine())
        self.ends(WRONG, "tokens,out,in", *bench, "--shape", "1,2")
        self.ends(WRONG, "no operand", *bench, "--shape", "1,32,32", "--dtype", "zz=f32")
        self.ends(WRONG, "one operator", "bench", "--op", "all", "--shape", "4,64", "--machine", self.machine())

    def test_no_control_character_of_the_command_line_reaches_the_terminal(self):
        run = self.ends(WRONG, "bad\\x1b", "run", self.model, "bad\x1b[31mx\ny")
        self.assertNotIn("\x1b", run.stderr)
        self.assertEqual(len(run.stderr.splitlines()), 1)

    def test_no_control_character_of_a_file_reaches_the_terminal(self):
        model = self.synthetic("raises.gguf", template='{{ raise_exception("\x1b[31mred\nline2") }}')
        for run in (self.ends(WRONG, "\\x1b[31mred\\x0aline2", "run", model, "-p", "hi"),
                    self.ends(WRONG, "line 1: ", "run", model, input="hi\n")):
            self.assertNotIn("\x1b", run.stderr)
            self.assertFalse([line for line in run.stderr.splitlines() if not line.startswith("ridge: ")], run.stderr)

    def test_json_is_json_and_carries_the_workload(self):
        one = json.loads(self.ridge("run", self.model, "-p", "hi", "-n", "3", "--temperature", "0.5", "--seed", "7", "--json").stdout)
        self.assertEqual(len(one["ids"]), 3)
        self.assertEqual(one["workload"]["sampling"], "temperature 0.5, seed 7")
        self.assertEqual((one["workload"]["prompt_tokens"], one["workload"]["output_tokens"]), (one["prompt_tokens"], 3))
        chat = self.ridge("run", self.model, "-n", "2", "--json", input="one\n\ntwo\n").stdout.splitlines()
        self.assertEqual([json.loads(line)["workload"]["output_tokens"] for line in chat], [2, 2])

    def test_stages_begin_with_tokenize_and_sum_to_end_to_end(self):
        profile = json.loads(self.ridge("profile", self.model, "-p", "some words to tokenize", "--output-tokens", "4", "--batch", "2",
                                        "--machine", self.machine(), "--json").stdout)
        self.assertIn("--output-tokens 4", profile["provenance"]["command"])
        self.assertIn("tiny.gguf", profile["provenance"]["command"])
        self.assertNotIn(self.folder.name, profile["provenance"]["command"])
        for request in {s["request"] for s in profile["stages"]}:
            spans = [s for s in profile["stages"] if s["request"] == request]
            self.assertEqual([s["stage"] for s in spans[:3]], ["tokenize", "queue", "prefill"])
            self.assertEqual({s["stage"] for s in spans}, {"tokenize", "queue", "prefill", "decode round", "sampling"})
            whole = max(s["begin_us"] + s["us"] for s in spans) - min(s["begin_us"] for s in spans)
            self.assertAlmostEqual(sum(s["us"] for s in spans), whole, delta=1 + 1e-6 * whole)

    def test_a_chat_outlives_a_line_that_cannot_be_answered(self):
        run = self.ends(WRONG, "line 2", "run", self.model, "-n", "2", "--json", input="one\n" + "a" * 9000 + "\nthree\n")
        self.assertEqual(len(run.stdout.splitlines()), 2)
        self.assertIn("1 of 3 lines", run.stderr)
        # Beyond what a template writes, and not only beyond what the model holds.
        run = self.ends(WRONG, "line 2", "run", self.model, "-n", "2", "--json", input="one\n" + "a" * (17 << 20) + "\nthree\n")
        self.assertEqual(len(run.stdout.splitlines()), 2)
        self.assertIn("1 of 3 lines", run.stderr)

    def test_what_ended_an_answer_is_named(self):
        self.ends(DONE, "ended by length", "run", self.model, "-p", "hi", "-n", "2")
        # So hot that all tokens are as likely, the end among them.
        self.ends(DONE, "ended by the end token <|end|>]", "run", self.model, "-p", "hi", "-n", "8000", "--temperature", "100", "--seed", "1")

    def test_the_sampling_of_an_answer_is_told_as_it_was_asked_for(self):
        run = self.ends(DONE, "", "run", self.model, "-p", "hi", "-n", "2", "--json", "--temperature", "0.7", "--top-p", "0.9")
        self.assertEqual(json.loads(run.stdout)["workload"]["sampling"], "temperature 0.7, top-p 0.9, seed 0")

    def test_operators_are_timed_at_the_types_of_models_too(self):
        def formats(*arguments):
            said = self.ends(DONE, "", "bench", "--op", *arguments, "--seconds", "0.001", "--json", "--machine", self.machine()).stdout
            return {row["formats"] for row in json.loads(said)["operators"]}

        self.assertLessEqual({"f32", "i8 q4_1", "i8 q4_k", "i8 q6_k", "i8 q8_0", "bf16"}, formats("linear"))
        self.assertEqual(formats("attention_decode"), {"f32 f32", "f16 f16"})
        self.assertEqual(formats("linear", "--dtype", "w=q4_1"), {"q4_1"})

    def test_more_threads_than_cores_are_taken_and_said(self):
        self.assertEqual(self.ends(DONE, "", "run", self.model, "-p", "hi", "-n", "2", "-t", "1", "--json").stderr, "")
        many = len(os.sched_getaffinity(0)) + 1
        self.ends(DONE, f"{many} threads, but mask and quota allow", "run", self.model, "-p", "hi", "-n", "2", "-t", str(many))

    def test_where_results_go_is_looked_at_before_they_cost_a_minute(self):
        folder = self.folder.name
        begin = time.monotonic()
        self.ends(WRONG, "--score: " + folder + " is not a file", "advise", self.model, "--score", folder)
        self.ends(FAILED, "--score: ", "advise", self.model, "--score", os.path.join(self.model, "below", "score.jsonl"))
        missing = os.path.join(folder, "missing", "report.html")
        for verb in ("advise", "profile"):
            said = self.ends(WRONG, "--report: " + missing, verb, self.model, "--report", missing).stderr
            self.assertNotIn("partial", said, "a file that the user did not name")
        self.ends(WRONG, "--trace: " + folder, "profile", self.model, "--trace", folder)
        self.ends(WRONG, "--output: " + folder, "probe", "-o", folder)
        self.assertLess(time.monotonic() - begin, 20)
        # Folders that the score lacks are made.
        score = os.path.join(folder, "new", "folder", "score.jsonl")
        self.ends(DONE, "", "advise", self.model, "--score", score, "--prompt-tokens", "8", "--output-tokens", "4", "--budget", "0.5",
                  "--quality-tokens", "0", "--machine", self.machine())
        self.assertTrue(os.path.exists(score))

    def test_I60_a_score_that_the_disk_has_no_room_for_is_named_with_its_bytes_and_not_left_empty(self):
        score = os.path.join(self.folder.name, "no_room.jsonl")
        advise = ("advise", self.model, "--score", score, "--prompt-tokens", "8", "--output-tokens", "4", "--budget", "0.5",
                  "--quality-tokens", "0", "--lever", "threads=1", "--machine", self.machine())
        # A limit on a file's size ends a write as a full disk does: after a part of it.
        full = {"restore_signals": False, "preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))}
        said = self.ends(FAILED, score, *advise, **full).stderr
        self.assertRegex(said, r"cannot append \d+ bytes at byte 0 \(100 bytes were written")
        self.assertFalse(os.path.exists(score))
        self.ends(DONE, "", *advise)
        before = pathlib.Path(score).read_bytes()
        self.ends(FAILED, f"at byte {len(before)}", *advise, **full)
        self.assertEqual(pathlib.Path(score).read_bytes(), before)

    def with_terminals(self, opened):
        """What opens a terminal; skips where the system has none, as a root folder without /dev/pts."""
        try:
            return opened()
        except OSError as error:
            self.skipTest(f"no terminal to be had: {error}")

    def on_terminal(self, **environment):
        """What `ridge profile` writes to a terminal."""
        terminal, other = self.with_terminals(pty.openpty)
        with subprocess.Popen([RIDGE, "profile", self.model, "--prompt-tokens", "8", "--output-tokens", "2", "--machine", self.machine()],
                              stdout=other, stderr=subprocess.DEVNULL, env={**os.environ, **environment}) as run:
            os.close(other)
            seen = b""
            try:
                while piece := os.read(terminal, 65536):
                    seen += piece
            except OSError:  # the other end is closed
                pass
            self.assertEqual(run.wait(), DONE)
        os.close(terminal)
        return seen

    def test_NO_COLOR_counts_when_it_is_set_and_not_empty(self):
        self.assertNotIn(b"\x1b", self.on_terminal(NO_COLOR="1"))
        self.assertIn(b"\x1b", self.on_terminal(NO_COLOR=""))

    def test_control_c_ends_a_long_prompt_between_two_operators(self):
        # One chunk of 7,000 tokens: seconds of work, in calls of milliseconds.
        model = self.synthetic("larger.gguf", layers=24, hidden=512, inner=1536, heads=8)
        ended = self.control_c(("run", model, "--raw", "-p", "a" * 7000, "--prefill-tokens", "8192", "-n", "1"), 1.5)
        self.assertIsNotNone(ended, "it was done before it could be interrupted")
        code, out, _, took = ended
        self.assertEqual((code, out), (INTERRUPTED, ""))
        self.assertLess(took, 1, "seconds remained of the chunk")
        print(f"Ctrl-C in a long prompt: {1e3 * took:.0f} ms")

    def test_control_c_ends_a_chat_that_waits_for_a_line(self):
        pid, terminal = self.with_terminals(pty.fork)
        if pid == 0:
            os.execv(RIDGE, [RIDGE, "run", self.model])
        seen = b""
        while b"> " not in seen:
            seen += os.read(terminal, 1000)
        time.sleep(0.1)
        os.write(terminal, b"\x03")
        deadline = time.monotonic() + 20
        ended = (0, 0)
        while ended[0] == 0 and time.monotonic() < deadline:
            ended = os.waitpid(pid, os.WNOHANG)
            time.sleep(0.02)
        if ended[0] == 0:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(terminal)
        self.assertNotEqual(ended[0], 0, "still waiting")
        self.assertEqual(os.waitstatus_to_exitcode(ended[1]), INTERRUPTED)

    def test_a_closed_standard_stream_is_nobodys_and_never_the_next_file(self):
        def closed(fd, *arguments):
            return subprocess.run([RIDGE, *arguments], stdin=None if fd == 0 else subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, timeout=100, close_fds=True, preexec_fn=lambda: os.close(fd))
        chat = closed(0, "run", self.model, "-n", "2")
        self.assertEqual((chat.returncode, chat.stdout, chat.stderr), (DONE, "", ""))
        self.assertEqual(closed(1, "inspect", self.model).returncode, FAILED)
        before = pathlib.Path(self.model).read_bytes()
        self.assertEqual(closed(2, "run", self.model, "--isa", "foo").returncode, WRONG)
        self.assertEqual(pathlib.Path(self.model).read_bytes(), before)

    def test_one_control_c_ends_every_command_that_takes_long(self):
        big = self.synthetic("big.gguf", layers=8, hidden=1024, inner=4096, heads=16)
        machine = ["--machine", self.machine()]
        commands = (["probe", "--busy", "-o", os.path.join(self.folder.name, "unfinished.json")],
                    ["inspect", big, "--weights"],
                    ["run", big, "--raw", "-p", "a" * 6000, "--compare", "isa=scalar", "isa=scalar no-fuse=all"],
                    ["run", big, "-p", "hi", "-n", "8000"],
                    ["bench", "--op", "all", *machine], ["bench", big, "--runs", "1000"],
                    ["profile", big, "--output-tokens", "4000", *machine],
                    ["advise", big, "--predict-only", "--output-tokens", "4000", *machine])
        for command in commands:
            # Early and late: while it reads, and while it works.
            for after in (0.3, 1):
                ended = self.control_c(command, after)
                if ended is None:  # it was faster: nothing to interrupt
                    self.assertEqual(command[0], "inspect", command)
                    continue
                code, _, said, took = ended
                if command[0] == "inspect" and code == DONE:  # it ended in that instant
                    continue
                self.assertEqual(code, INTERRUPTED, (command, after, said))
                self.assertLess(took, 5, command)
        self.assertFalse(os.path.exists(os.path.join(self.folder.name, "unfinished.json")))

    def test_a_file_without_a_chat_template_is_no_chat_and_its_prompts_are_text_with_a_warning(self):
        plain = self.synthetic("plain.gguf", template="")
        said = self.ends(DONE, "no chat template", "run", plain, "-p", "hi", "-n", "2").stderr
        self.assertIn("plain text", said)
        self.assertNotIn("no chat template", self.ends(DONE, "", "run", plain, "--raw", "-p", "hi", "-n", "2").stderr)
        # Before anything is loaded, and so before what is wrong with the context.
        self.ends(FAILED, "no chat template", "run", plain, "--context", "99999999", input="hi\n")

    def test_assume_pre_is_for_files_that_name_none(self):
        run = ("run", self.model, "-p", "hi", "-n", "2", "--assume-pre")
        self.ends(WRONG, "tokenizer.ggml.pre is 'gpt-2', which is known", *run, "qwen2")
        said = self.ends(WRONG, "--assume-pre is 'zork'", *run, "zork").stderr
        self.assertNotIn("tiny.gguf", said)
        self.ends(DONE, "", *run, "gpt-2")

    def test_a_wrong_command_ends_with_2_and_one_line_that_names_it(self):
        for says, command in (("zork", ["zork"]), ("verb", []), ("--device", ["run", self.model, "-p", "x", "--device", "zork"]),
                              ("zork", ["run", "zork", "--synthetic", "-p", "x"]), ("model is ''", ["run", ""]),
                              ("--threads", ["run", self.model, "-p", "x", "-t", "0"]), ("--threads", ["probe", "-t", "0"]),
                              ("--isa is ''", ["run", self.model, "-p", "x", "--isa", ""]),
                              ("--prompt is ''", ["profile", self.model, "-p", ""]),
                              ("--report is ''", ["profile", self.model, "--report", ""]),
                              ("--prompt", ["profile", self.model, "-p", "hello", "--prompt-tokens", "100"]),
                              ("give one of them", ["bench", "--op", "add", self.model]),
                              ("--zork", ["run", self.model, "--zork"])):
            run = self.ends(WRONG, says, *command)
            self.assertEqual(len(run.stderr.splitlines()), 1, run.stderr)

    def test_a_template_that_is_wrong_is_a_file_that_is_wrong(self):
        self.ends(FAILED, "chat template", "run", self.synthetic("divides.gguf", template="{{ messages[0].content + 1 }}"), "-p", "hi")
        self.ends(FAILED, "tokenizer.chat_template", "run", self.synthetic("open.gguf", template="{% for"), "-p", "hi")

    def test_the_path_is_named_once(self):
        model = pathlib.Path(self.model).read_bytes()
        broken = os.path.join(self.folder.name, "broken.gguf")
        pathlib.Path(broken).write_bytes(model.replace(b"tokenizer.ggml.tokens", b"tokenizer.ggml.tokenz"))
        self.assertEqual(self.ends(FAILED, "tokenizer.ggml.tokens", "run", broken, "-p", "hi").stderr.count(broken), 1)

    def test_a_machine_file_that_is_none_is_refused_in_words_for_people(self):
        path = os.path.join(self.folder.name, "no_machine.json")
        for content in ("nothing", "{}", '{"format": "x"}', "[]"):
            pathlib.Path(path).write_text(content, encoding="utf-8")
            self.assertNotIn("json.exception", self.ends(FAILED, path, "profile", self.model, "--machine", path).stderr)

    def test_profile_looks_at_its_files_first_and_prints_the_account_whatever_becomes_of_them(self):
        profile = ("profile", self.model, "--prompt-tokens", "8", "--output-tokens", "2", "--machine", self.machine())
        missing = os.path.join(self.folder.name, "nowhere", "r.html")
        self.assertEqual(self.ends(WRONG, missing, *profile, "--report", missing).stdout, "")
        same = os.path.join(self.folder.name, "same")
        self.ends(WRONG, "--trace and --report", *profile, "--report", same, "--trace", same)
        self.assertFalse(os.path.exists(same))

    def test_what_is_kept_goes_to_the_users_folder_and_never_beside_the_work(self):
        with tempfile.TemporaryDirectory() as work, tempfile.TemporaryDirectory() as cache:
            bare = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_CACHE_HOME", "RIDGE_MACHINE")}

            def path(**more):
                return json.loads(self.ridge("doctor", "--json", cwd=work, env={**bare, **more}).stdout)["machine_file"]["path"]

            self.assertTrue(path(XDG_CACHE_HOME=cache, HOME="/elsewhere").startswith(cache + "/ridge/"))
            self.assertTrue(path(HOME=cache).startswith(cache + "/.cache/ridge/"))
            self.assertTrue(path(XDG_CACHE_HOME="relative", HOME=cache).startswith(cache + "/.cache/ridge/"))
            self.assertIn(path()[:1], ("", "/"))
            self.assertEqual(os.listdir(work), [])

    def test_an_operator_without_a_kernel_here_is_said_to_have_none(self):
        bench = ("bench", "--machine", self.machine(), "--seconds", "0.01", "--op")
        none = json.loads(self.ridge("doctor", "--json").stdout)["no_cpu_kernel"]
        self.assertIn("linear_swiglu", none)
        self.ends(WRONG, "no kernel on cpu", *bench, "linear_swiglu")
        rows = json.loads(self.ends(DONE, "", *bench, "feed_tokens", "--reference", "--json").stdout)["operators"]
        self.assertTrue(rows)

    def test_bench_help_shows_the_order_that_it_takes(self):
        self.assertIn("ridge bench fusion [OPTIONS] MODEL\n", self.ridge("bench", "--help").stdout)
        self.assertIn("ridge bench fusion [OPTIONS] model", self.ridge("bench", "fusion", "--help").stdout)

    def test_bench_says_of_each_figure_what_was_run(self):
        bench = ("bench", self.model, "--prompt-tokens", "16", "--output-tokens", "4", "--runs", "1", "--json")
        said, deep = (json.loads(self.ridge(*bench, *more).stdout) for more in ([], ["--deep"]))
        for made in (said, deep):
            self.assertLess({"date", "commit", "build", "compiler", "command"}, made["provenance"].keys())
        self.assertIn("--deep", deep["provenance"]["command"])
        lengths = lambda w: (w["prompt_tokens"], w["output_tokens"])  # noqa: E731
        self.assertEqual((lengths(said["workload"]), lengths(said["tg_workload"])), ((16, 1), (1, 4)))
        self.assertEqual((lengths(deep["workload"]), lengths(deep["tg_workload"])), ((16, 1), (16, 4)))

    def test_bench_judges_rotated_operands_by_main_memory(self):
        row = json.loads(self.ridge("bench", "--op", "add", "--shape", "512,4096", "--seconds", "0.05", "--machine", self.machine(),
                                    "--json").stdout)
        self.assertEqual((row["workload"]["op"], row["workload"]["shape"], row["provenance"]["runs"]), ("add", [512, 4096], 1))
        row, = row["operators"]
        self.assertEqual(row["bound"], "memory")

    def test_a_chat_that_is_full_can_be_begun_anew(self):
        full = self.ends(WRONG, "/reset begins", "run", self.model, "-n", "2", "--json", input="a" * 5000 + "\n" + "b" * 5000 + "\nc\n")
        self.assertEqual(len(full.stdout.splitlines()), 2)
        lines = "a" * 5000 + "\n/reset\n" + "b" * 5000 + "\n"
        self.assertEqual(len(self.ends(DONE, "", "run", self.model, "-n", "2", "--json", input=lines).stdout.splitlines()), 2)

    def test_a_workload_that_does_not_fit_is_refused_before_anything_is_made(self):
        most = "9223372036854775807"
        for verb in ("profile", "bench", "advise"):
            for option, value in (("--prompt-tokens", most), ("--output-tokens", most), ("--batch", "4097"), ("--output-tokens", "0"),
                                  ("--prompt-tokens", "-1"), ("--batch", "0")):
                begin = time.monotonic()
                self.ends(WRONG, value, verb, self.model, option, value)
                self.assertLess(time.monotonic() - begin, 60, (verb, option))
            self.ends(WRONG, "8192", verb, self.model, "--prompt-tokens", "8000", "--output-tokens", "193")
            # What is told to be taken is.
            self.ends(WRONG, "use 1 to 8191", verb, self.model, "--prompt-tokens", "8192", "--output-tokens", "1")


if __name__ == "__main__":
    if not RIDGE:
        sys.exit(__doc__)
    unittest.main()
