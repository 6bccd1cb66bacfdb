"""The scripts that write rows of the scoreboard, without what they measure: how advice is counted, how commands are timed."""
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
sys.path.insert(0, str(ROOT / "bench" / "cpu"))
import advice  # noqa: E402
import rows  # noqa: E402
import workshop  # noqa: E402


def one(decision, predicted, gain, priced=True):
    return {"decision": decision, "decision_reason": "", "workload": {}, "provenance": {"runs": 40},
            "chosen": {"lever": "kv", "from": "f16", "to": "q8", "reason": "",
                       **({"predicted_gain": {"low": predicted - 0.05, "value": predicted, "high": predicted + 0.05}} if priced else {})},
            "experiment": {"gain": gain, "blocks": 10,
                           "measured_gain": {"low": gain - abs(gain) / 2, "value": gain, "high": gain + abs(gain) / 2}}}


class Advice(unittest.TestCase):
    def values(self, *advices):
        found = advice.results({str(i): a for i, a in enumerate(advices)}, types.SimpleNamespace(threads=2, scale=1))
        return {r["row"]: r["value"] for r in found}

    def test_pairs_are_counted_and_wrong_signs_among_the_decided(self):
        self.assertEqual(self.values(one("held", 0.1, 0.2), one("refuted", 0.1, -0.2), one("no decision", 0.1, -0.2),
                                     one("refuted", -0.1, -0.5)), {"C10": 4, "C11": 1})

    def test_what_was_not_predicted_or_not_run_is_no_pair(self):
        self.assertEqual(self.values(one("held", 0.1, 0.1), one("no decision", 0, 0.1, priced=False), one("not run", 0.1, 0)),
                         {"C10": 1, "C11": 0})

    def test_a_prediction_that_allows_both_signs_has_that_of_its_middle(self):
        self.assertEqual(self.values(one("held", 0.01, 0.02), one("held", 0.01, -0.02)), {"C10": 2, "C11": 1})
        self.assertEqual(self.values(one("held", -0.01, -0.02), one("held", 0.1, 0.1)), {"C10": 2, "C11": 0})

    def test_what_refutes_with_zero_in_its_interval_has_no_sign(self):
        refuted = one("refuted", 0.1, -0.02)
        refuted["experiment"]["measured_gain"] = {"low": -0.05, "value": -0.02, "high": 0.01}
        self.assertEqual(self.values(refuted), {"C10": 1, "C11": 0})

    def test_nothing_decided_shows_no_sign_right(self):
        self.assertEqual(self.values(one("no decision", 0.1, 0.1)), {"C10": 1})

    def test_pairs_are_of_different_workloads_and_levers(self):
        self.assertGreaterEqual(len(advice.PAIRS), 6)
        self.assertEqual(len({(p[0], p[1], p[3]) for p in advice.PAIRS.values()}), len(advice.PAIRS))
        self.assertGreaterEqual(len({p[1].split("=")[0] for p in advice.PAIRS.values()}), 5)


class Workshop(unittest.TestCase):
    """The shell commands run for real, in a repository whose ./demo and ./check are made up here."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        (self.root / "tools").mkdir()
        for name, body in {"demo": "sleep 0.2; echo answer", "check": 'test -n "$CCACHE_DIR"', "tools/setup.sh": "",
                           "tools/fetch_model.py": ""}.items():
            self.script(name, body)
        for command in (["init", "-q"], ["add", "-A"], ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "m"]):
            subprocess.run(["git", "-C", str(self.root), *command], check=True)
        self.head = subprocess.run(["git", "-C", str(self.root), "rev-parse", "HEAD"], check=True, capture_output=True,
                                   text=True).stdout.strip()

    def script(self, name, body):
        (self.root / name).write_text(f"#!/bin/bash\n{body}\n")
        (self.root / name).chmod(0o755)

    def times(self, wanted, head=None):
        times = {}
        for command in workshop.shell_commands(wanted):
            output = subprocess.run(["bash", "-c", command], cwd=self.root, capture_output=True, text=True).stdout
            times.update(workshop.times_of(output, head or self.head))
        return times

    def test_the_second_demo_and_the_check_are_timed(self):
        times = self.times(["C15", "C16"])
        self.assertEqual(set(times), {"C15", "C16"})
        self.assertGreaterEqual(times["C15"], 0.2)

    def test_a_system_with_a_compiler_is_not_bare(self):
        (self.root / "bin").mkdir()
        self.script("bin/g++", "")
        command = workshop.shell_commands(["C14"])[0]
        run = subprocess.run(["bash", "-c", f"PATH={self.root}/bin:$PATH; {command}"], cwd=self.root, capture_output=True, text=True)
        self.assertEqual(run.returncode, 3)
        self.assertEqual(workshop.times_of(run.stdout, self.head), {})

    def test_a_command_that_fails_makes_no_row(self):
        self.script("check", "exit 7")
        with self.assertRaisesRegex(rows.Wrong, "C16 ended with exit code 7"):
            self.times(["C16"])

    def test_another_commit_makes_no_row(self):
        with self.assertRaisesRegex(rows.Wrong, "this work tree is at 123"):
            self.times(["C15"], head="123")


if __name__ == "__main__":
    unittest.main()
