#!/usr/bin/env python3
"""What `ridge bench --op` prints, holds and costs: shapes that it takes back, memory, Ctrl-C, refusals before anything is measured.

usage: program_bench_test.py RIDGE
"""
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

from program import DONE, FAILED, INTERRUPTED, RIDGE, WRONG, Runs

MEASURED = "import os, sys; w = os.wait4(os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:]), 0); print(w[1], w[2].ru_maxrss)"


class Bench(Runs):
    def bench(self, *arguments):
        return "bench", "--machine", self.machine(), "--seconds", "0.01", *arguments

    def rows(self, *arguments):
        return json.loads(self.ends(DONE, "", *self.bench(*arguments, "--json")).stdout)["operators"]

    def all_rows(self):
        """The rows of all operators, and the seconds that they took: once for all tests."""
        if not hasattr(Bench, "made"):
            self.machine()
            begin = time.monotonic()
            Bench.made = self.rows("--op", "all"), time.monotonic() - begin
        return Bench.made

    def test_every_shape_that_is_printed_is_the_one_that_shape_takes(self):
        printed, _ = self.all_rows()
        self.assertGreater(len({r["op"] for r in printed}), 12)
        types = {}  # that the description names first: a shape alone is of these
        for row in printed:
            types.setdefault(row["op"], row["formats"])
        self.assertLess(len(types), len({(r["op"], r["formats"]) for r in printed}), "models use other types too")
        printed = [row for row in printed if row["formats"] == types[row["op"]]]
        for row in printed:
            again, = self.rows("--op", row["op"], "--shape", row["shape"])
            same = [{k: r[k] for k in ("op", "shape", "formats", "kernel")} for r in (row, again)]
            self.assertEqual(*same)
            # Work over time and time: what the call computes and moves.
            for rate in ("gb_s", "gflop_s"):
                work, work_again = (r[rate] * r["us"] for r in (row, again))
                self.assertAlmostEqual(work, work_again, delta=1e-6 * work, msg=row)
        for shape in ("4,100,576", "3,7,32"):
            self.assertEqual(self.rows("--op", "embedding", "--shape", shape)[0]["shape"], shape)
        # Numbers that are not those that follow are printed too.
        self.assertEqual(self.rows("--op", "sample", "--shape", "2,64,5,3", "--reference")[0]["shape"], "2,64,5,3")
        self.assertEqual(self.rows("--op", "sample", "--shape", "2,64,0,0")[0]["shape"], "2,64")

    def test_calls_of_small_operands_do_not_take_gigabytes(self):
        for op, shape in (("rms_norm", "3,7"), ("sample", "1,49152"), ("embedding", "1,49152,576")):
            run = subprocess.run([sys.executable, "-c", MEASURED, RIDGE, *self.bench("--op", op, "--shape", shape, "--json")],
                                 capture_output=True, text=True, timeout=100)
            *_, last = run.stdout.splitlines()
            status, kilobytes = map(int, last.split())
            self.assertEqual(status, 0, run.stderr)
            self.assertLess(kilobytes * 1024, 900e6 if op == "embedding" else 700e6, op)

    def test_all_operators_are_timed_in_bounded_time_and_rows_come_as_they_are_made(self):
        _, whole = self.all_rows()
        self.assertLess(whole, 90)
        command = self.bench("--op", "all")
        begin = time.monotonic()
        with subprocess.Popen([RIDGE, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as run:
            self.assertIn(b"\n", os.read(run.stdout.fileno(), 65536))
            first = time.monotonic() - begin
            self.assertIsNone(run.poll())
            run.kill()
        self.assertLess(first, whole / 2)

    def test_control_c_ends_a_bench_while_its_operands_are_made(self):
        # 600 million random numbers in blocks: many seconds.
        command = self.bench("--op", "embedding", "--shape", "1,600000,1024", "--dtype", "w=q4_k")
        ended = self.control_c(command, 1)
        self.assertIsNotNone(ended, "it was done before it could be interrupted")
        code, out, _, took = ended
        self.assertEqual((code, out), (INTERRUPTED, ""))
        self.assertLess(took, 4, "its operands were made to their end")

    def test_ceilings_of_other_threads_end_alike_whoever_takes_them(self):
        with open(self.machine(), encoding="utf-8") as kept:
            machine = json.load(kept)
        machine["by_threads"] = [c for c in machine["by_threads"] if c["threads"] == 1]
        one = os.path.join(self.folder.name, "one_thread.json")
        with open(one, "w", encoding="utf-8") as file:
            json.dump(machine, file)
        add = ("bench", "--op", "add", "--shape", "1,64", "--seconds", "0.01", "-t", "2")
        workload = (self.model, "--prompt-tokens", "8", "--output-tokens", "2", "-t", "2")
        for command in (add, ("bench", "--op", "all", "-t", "2"), ("profile", *workload), ("advise", *workload, "--predict-only")):
            said = "has ceilings of 1 thread, none of 2"
            self.ends(FAILED, said, *command, "--machine", one)
            self.assertEqual(self.ends(FAILED, said, *command, env={**os.environ, "RIDGE_MACHINE": one}).stdout, "")

    def test_figures_of_a_busy_machine_serve_the_commands_of_the_next_minutes(self):
        with open(self.machine(), encoding="utf-8") as kept:
            machine = json.load(kept)
        machine["pressure"] = 0.5
        with tempfile.TemporaryDirectory() as cache:
            env = {k: v for k, v in os.environ.items() if k != "RIDGE_MACHINE"} | {"XDG_CACHE_HOME": cache}
            path = os.path.join(cache, "ridge", f"machine-{machine['isa']}.json.disturbed")
            os.mkdir(os.path.dirname(path))
            with open(path, "w", encoding="utf-8") as file:
                json.dump(machine, file)
            command = ("profile", self.model, "--prompt-tokens", "8", "--output-tokens", "2")
            run = self.ends(DONE, "not idle", *command, env=env)
            self.assertNotIn("measuring", run.stderr)
            machine["by_threads"] = [c for c in machine["by_threads"] if c["threads"] == 1]
            for threads, age in (("1", 3600), ("2", 0)):  # too old; of one thread alone
                with open(path, "w", encoding="utf-8") as file:
                    json.dump(machine, file)
                os.utime(path, (time.time() - age,) * 2)
                with subprocess.Popen([RIDGE, *command, "-t", threads], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                      text=True) as child:
                    self.assertIn("measuring this machine first", child.stderr.readline())
                    child.kill()

    def test_what_is_refused_is_refused_before_the_machine_is_measured(self):
        with tempfile.TemporaryDirectory() as cache:
            env = {k: v for k, v in os.environ.items() if k != "RIDGE_MACHINE"} | {"XDG_CACHE_HOME": cache}
            for says, more in (("tokens,out,in", ("linear", "--shape", "1,2")), ("zz", ("linear", "--dtype", "zz=f32")),
                               ("i32", ("linear", "--shape", "1,32,32", "--dtype", "w=i32")), ("no kernel on cpu", ("linear_swiglu",)),
                               ("--shape has -1", ("add", "--shape", "-1,3"))):
                run = self.ends(WRONG, says, "bench", "--op", *more, env=env)
                self.assertEqual((run.stdout, len(run.stderr.splitlines())), ("", 1), run.stderr)
            self.assertEqual(os.listdir(cache), [])


if __name__ == "__main__":
    if not RIDGE:
        sys.exit(__doc__)
    unittest.main()
