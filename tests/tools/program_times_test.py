#!/usr/bin/env python3
"""The times and rates that `ridge run`, `bench` and `profile` print, against the time that their process takes and their own work.

All runs have one thread, whose processor time is what it takes where nothing disturbs it. What is printed is elapsed time: on a busy
machine too it lies between the two, and never above the process' own.

usage: program_times_test.py RIDGE
"""
import json
import os
import subprocess
import sys
import time
import unittest

from program import DONE, RIDGE, Runs

# Of the processor time of what was measured, at least so much must be in the printed times: the rest is the printing program's.
SHARE = 0.7


class Times(Runs):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = cls.synthetic("timed.gguf", layers=4, hidden=512, inner=1536, heads=8)

    def timed(self, *arguments):
        """What a command prints as JSON, its seconds of elapsed and of processor time."""
        begin = time.monotonic()
        with subprocess.Popen([RIDGE, *arguments, "-t", "1", "--json"], stdout=subprocess.PIPE, text=True) as run:
            out = run.stdout.read()
            _, status, usage = os.wait4(run.pid, 0)
            run.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(run.returncode, DONE, arguments)
        return json.loads(out), time.monotonic() - begin, usage.ru_utime + usage.ru_stime

    def holds(self, told_s, wall_s, processor_s, little_s, what):
        """The told time fits into the process', and is what the process took beyond one that did little."""
        self.assertLessEqual(told_s, wall_s, what)
        self.assertGreaterEqual(told_s, SHARE * (processor_s - little_s), what)

    def test_prompt_and_output_tokens_over_the_rates_of_bench_are_the_time_that_it_took(self):
        bench = ("bench", self.model, "--runs", "1")
        _, _, little = self.timed(*bench, "--prompt-tokens", "1", "--output-tokens", "1", "--batch", "2")
        for prompt, output, batch in ((1500, 1, 2), (1, 200, 2)):
            made, wall, processor = self.timed(*bench, "--prompt-tokens", str(prompt), "--output-tokens", str(output),
                                               "--batch", str(batch))
            for rate in ("pp", "tg"):  # of one run: it is median, least and most
                self.assertEqual(made[rate + "_range"], [made[rate]] * 2, rate)
            prefill = batch * prompt * (1 / made["pp_first"] + 1 / made["pp"])
            decode = batch * output * (1 / made["tg_first"] + 1 / made["tg"])
            self.holds(prefill + decode, wall, processor, little, (prompt, output, made))
            longer = max(prefill, decode)
            self.assertGreater(longer, 0.8 * (prefill + decode), "one of the two is hardly measured here")

    def test_bench_of_more_runs_gives_their_median_between_least_and_most(self):
        made, wall, _ = self.timed("bench", self.model, "--runs", "4", "--prompt-tokens", "64", "--output-tokens", "8")
        told = 0
        for rate, tokens in (("pp", 64), ("tg", 8)):
            least, most = made[rate + "_range"]
            self.assertLessEqual(least, made[rate])
            self.assertLessEqual(made[rate], most)
            runs = made[rate + "_runs"]  # A32: one that stands out is there with its rank
            self.assertEqual((len(runs), runs[0], min(runs[1:]), max(runs[1:])), (5, made[rate + "_first"], least, most))
            told += tokens / made[rate + "_first"] + 4 * tokens / most
        self.assertLessEqual(told, wall)

    def test_times_of_run_are_those_of_its_process(self):
        run = ("run", self.model, "--raw")
        _, _, little = self.timed(*run, "-p", "a", "-n", "1")
        for prompt, output in (("a" * 3000, 2), ("a", 400)):
            made, wall, processor = self.timed(*run, "-p", prompt, "-n", str(output))
            self.assertEqual(len(made["ids"]), output)
            first, later = made["ttft_us"] / 1e6, made["tpot_us"] / 1e6 * (output - 1)
            self.holds(first + later, wall, processor, little, (len(prompt), output, made))
            self.assertGreater(max(first, later), 0.8 * (first + later), "one of the two is hardly measured here")

    def test_rates_of_an_operator_are_its_flops_and_bytes_over_its_time(self):
        tokens, out, into = 3, 512, 768
        bench = ("bench", "--op", "linear", "--shape", f"{tokens},{out},{into}", "--dtype", "w=f32", "--dtype", "x=f32", "--machine",
                 self.machine(), "--seconds")
        _, _, little = self.timed(*bench, "0.001")
        made, wall, processor = self.timed(*bench, "0.3")
        row, = made["operators"]
        self.assertEqual(row["gflop_s"] * 1e3 * row["us"], self.near(2 * tokens * out * into))
        self.assertEqual(row["gb_s"] * 1e3 * row["us"], self.near(4 * (out * into + tokens * into + tokens * out)))
        self.assertEqual(row["attainment"], self.near(row["limit_us"] / row["us"]))
        self.assertLessEqual(row["us_least"], row["us"])
        self.assertLessEqual(row["us"], row["us_most"])
        self.assertIn(row["us_most_run"], range(1, row["runs"] + 1))
        self.assertLessEqual(row["us_least"] * row["runs"] / 1e6, wall)
        # Up to as much again goes to calls that are not timed yet.
        self.assertGreaterEqual(row["us"] * row["runs"] / 1e6, 0.5 * SHARE * (processor - little))

    def near(self, value):
        class Near:
            def __eq__(self, other):
                return abs(other - value) <= 1e-6 * abs(value)

            def __repr__(self):
                return f"{value} within 1e-6"
        return Near()

    def test_times_of_a_profile_are_those_of_its_stages_and_steps(self):
        output = 24
        made, wall, _ = self.timed("profile", self.model, "--prompt-tokens", "40", "--output-tokens", str(output), "--machine",
                                   self.machine())
        stages = made["stages"]
        tokens = [s["begin_us"] + s["us"] for s in stages if s["stage"] == "sampling"]
        self.assertEqual(len(tokens), output)
        arrived = next(s["begin_us"] for s in stages if s["stage"] == "queue")
        begun = min(arrived, *(s["begin_us"] for s in stages))
        self.assertLessEqual(abs(made["ttft_us"] - (tokens[0] - begun)), 1, "intended arrival to first token")
        self.assertEqual(made["tpot_us"], self.near((tokens[-1] - tokens[0]) / (output - 1)))
        whole = sum(s["us"] for s in stages)
        self.assertLessEqual(whole * made["provenance"]["runs"] / 1e6, wall, "the shortest of that many")
        steps = sum(p["wall_us"] for p in made["phases"])
        self.assertLessEqual(steps, whole)
        self.assertGreater(steps, 0.3 * whole)
        for phase in made["phases"]:
            self.assertEqual(sum(r["time_us"] for r in phase["operators"]), self.near(phase["wall_us"]))


if __name__ == "__main__":
    if not RIDGE:
        sys.exit(__doc__)
    unittest.main()
