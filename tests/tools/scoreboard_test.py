"""bench/scoreboard on scoreboards made up here: met, missed, missing, stale, faulty."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import rows  # noqa: E402

WORKLOAD = dict.fromkeys(rows.WORKLOAD_KEYS, 0)


def target(id_, **more):
    return {"id": id_, "area": "a", "condition": "c", "target": 2, "unit": "s", "better": "lower", "of": "value",
            "sources": "all", "workload": False, **more}


class Scoreboard(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        (self.root / "src").mkdir()
        (self.root / "src" / "x.cc").write_text("1")
        (self.root / "bench").mkdir()

    def targets(self, *targets):
        (self.root / "bench" / "targets.json").write_text(json.dumps({"sources": {"all": ["src/**"]}, "rows": targets}))

    def measured(self, id_, value, **more):
        return rows.write_row(rows.make_row(id_, value, spread=[value, value], runs=5, device="Some CPU (2)", command="x",
                                            root=self.root, **more), self.root)

    def board(self, *arguments):
        run = subprocess.run([sys.executable, str(ROOT / "bench" / "scoreboard"), "--root", str(self.root), "--json",
                              *arguments], capture_output=True, text=True)
        return run.returncode, json.loads(run.stdout)["rows"] if run.stdout else run.stderr

    def statuses(self, *arguments):
        code, lines = self.board(*arguments)
        return code, [line["status"] for line in lines]

    def test_a_row_that_meets_its_target_passes(self):
        self.targets(target("R1"))
        self.measured("R1", 2)
        self.assertEqual(self.statuses(), (0, ["met"]))

    def test_a_missing_row_fails(self):
        self.targets(target("R1"), target("R2"))
        self.measured("R1", 1)
        self.assertEqual(self.statuses(), (1, ["met", "missing"]))

    def test_a_missed_row_fails_in_either_direction(self):
        self.targets(target("R1"), target("R2", better="higher"))
        self.measured("R1", 2.1)
        self.measured("R2", 1.9)
        self.assertEqual(self.statuses(), (1, ["missed", "missed"]))

    def test_a_changed_or_new_source_makes_a_row_stale(self):
        self.targets(target("R1"))
        self.measured("R1", 1)
        (self.root / "src" / "y.cc").write_text("")
        self.assertEqual(self.statuses(), (1, ["met, stale"]))
        (self.root / "src" / "y.cc").unlink()
        self.assertEqual(self.statuses(), (0, ["met"]))
        (self.root / "src" / "x.cc").write_text("2")
        self.assertEqual(self.statuses(), (1, ["met, stale"]))

    def test_a_ratio_is_judged_against_the_peer_of_the_same_file(self):
        self.targets(target("R1", of="peer", better="higher"))
        self.measured("R1", 30, peer={"name": "p", "value": 15, "same_run": True})
        code, lines = self.board()
        self.assertEqual((code, lines[0]["judged"]), (0, 2))
        self.measured("R1", 29, peer={"name": "p", "value": 15, "same_run": True})
        self.assertEqual(self.statuses(), (1, ["missed"]))

    def test_a_per_token_figure_without_workload_fails(self):
        self.targets(target("R1", workload=True))
        with self.assertRaisesRegex(rows.Wrong, "workload lacks"):
            self.measured("R1", 1)
        path = self.measured("R1", 1, workload=WORKLOAD)
        self.assertEqual(self.statuses(), (0, ["met"]))
        result = json.loads(path.read_text())
        del result["workload"]["kv_format"]
        path.write_text(json.dumps(result))
        code, lines = self.board()
        self.assertEqual((code, lines[0]["status"]), (1, "faulty"))
        self.assertIn("kv_format", lines[0]["fault"])

    def test_a_result_that_lies_about_itself_is_faulty(self):
        self.targets(target("R1"))
        path = self.measured("R1", 1)
        good = path.read_text()
        for change in ({"unit": "ms"}, {"row": "R2"}, {"value": "1"}, {"value": None}, {"provenance": {}}):
            path.write_text(json.dumps({**json.loads(good), **change}))
            self.assertEqual(self.statuses(), (1, ["faulty"]), change)
        path.write_text(good[:-9])
        self.assertEqual(self.statuses(), (1, ["faulty"]))

    def test_an_area_has_only_its_rows_and_an_unknown_one_is_refused(self):
        self.targets(target("R1"), target("S1", area="b"))
        self.measured("R1", 1)
        self.assertEqual(self.statuses("--area", "a"), (0, ["met"]))
        self.assertEqual(self.statuses("--area", "b"), (1, ["missing"]))
        code, error = self.board("--area", "c")
        self.assertEqual(code, 2)
        self.assertIn("a, b", error)

    def test_two_devices_are_two_lines_and_both_must_meet(self):
        self.targets(target("R1"))
        self.measured("R1", 1)
        rows.write_row(rows.make_row("R1", 3, spread=[3, 3], runs=1, device="B", command="x", root=self.root), self.root)
        self.assertEqual(self.statuses(), (1, ["missed", "met"]))

    def test_the_text_names_every_row_and_counts(self):
        self.targets(target("R1"), target("R2"))
        self.measured("R1", 1)
        run = subprocess.run([sys.executable, str(ROOT / "bench" / "scoreboard"), "--root", str(self.root)],
                             capture_output=True, text=True)
        self.assertIn("R1", run.stdout)
        self.assertTrue(run.stdout.strip().endswith("1 met, 1 missing"), run.stdout)


class Sources(unittest.TestCase):
    def test_a_glob_after_an_exclamation_mark_takes_files_away(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name in ("a/x.cc", "a/b/y.cu"):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(name)
            both, one = rows.sources_hash(["a/**"], root), rows.sources_hash(["a/**", "!a/**/*.cu"], root)
            self.assertNotEqual(both, one)
            (root / "a/b/y.cu").write_text("changed")
            self.assertNotEqual(rows.sources_hash(["a/**"], root), both)
            self.assertEqual(rows.sources_hash(["a/**", "!a/**/*.cu"], root), one)
            (root / "a/x.cc").write_text("changed")
            self.assertNotEqual(rows.sources_hash(["a/**", "!a/**/*.cu"], root), one)


class Targets(unittest.TestCase):
    def test_the_repository_s_own_targets_are_well_formed(self):
        sources, targets = rows.load_targets()
        self.assertGreater(len(targets), 0)
        for name, globs in sources.items():
            for glob in globs:
                self.assertTrue(rows.named(glob.removeprefix("!"), ROOT), f"{name}: {glob} names no file")


if __name__ == "__main__":
    unittest.main()
