"""The key of the device code: moves with code and flags, not with comments; stale evidence is said to be stale."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "device_code.py"
LOG = """NVIDIA H200, 132 multiprocessors
add                add_rows                           12 runs      0 declined, worst error 0.000 of its bound: -
12 runs, {} failures
"""


class DeviceCode(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.write("cmake/Cuda.cmake", "set(RIDGE_CUDA_FLAGS -O3)\n")
        self.write("src/ops/add/add_cuda.cu", '#include "device/a.cuh"\nint f() { return 1; }\n')
        self.write("src/device/a.cuh", "int g();\n")
        self.write("src/ops/add/add.cc", "int host();\n")
        (self.root / "bench/results/nvidia-h200").mkdir(parents=True)

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run_tool(self, *arguments):
        return subprocess.run([sys.executable, "-B", TOOL, *arguments, self.root], capture_output=True, text=True, check=False)

    def key(self):
        return self.run_tool().stdout.strip()

    def test_key_moves_with_code_included_code_and_flags(self):
        keys = [self.key()]
        for name, text in (("src/ops/add/add_cuda.cu", '#include "device/a.cuh"\nint f() { return 2; }\n'),
                           ("src/device/a.cuh", "long g();\n"), ("cmake/Cuda.cmake", "set(RIDGE_CUDA_FLAGS -O2)\n")):
            self.write(name, text)
            keys.append(self.key())
        self.assertEqual(len(set(keys)), 4)

    def test_key_stays_with_comments_and_host_code(self):
        before = self.key()
        self.write("src/device/a.cuh", "// why\nint  g();  /* more */\n")
        self.write("src/ops/add/add.cc", "int other_host();\n")
        self.assertEqual(self.key(), before)

    def record(self, failures=0):
        self.write("log", LOG.format(failures))
        return self.run_tool("--record", self.root / "log")

    def test_evidence_is_taken_until_the_code_changes(self):
        missing = self.run_tool("--check")
        self.assertEqual(missing.returncode, 1)
        self.assertIn("no evidence", missing.stderr)
        self.assertEqual(self.record().returncode, 0)
        self.assertEqual(self.run_tool("--check").returncode, 0)
        evidence = json.loads((self.root / "bench/results/nvidia-h200/conformance.json").read_text())
        self.assertEqual(evidence["kernels"]["add"]["add_rows"]["runs"], 12)
        self.write("src/device/a.cuh", "short g();\n")
        stale = self.run_tool("--check")
        self.assertEqual(stale.returncode, 1)
        self.assertIn("stale", stale.stderr)

    def test_failed_runs_are_no_evidence(self):
        self.record(failures=3)
        self.assertIn("3 of 12 runs failed", self.run_tool("--check").stderr)

    def sanitizer_logs(self, found=0, wrong=0):
        for tool in ("memcheck", "racecheck", "synccheck", "initcheck"):
            kind = ("RACECHECK", "hazards displayed") if tool == "racecheck" else ("ERROR", "errors")
            self.write(f"san/{tool}.log", f"========= COMPUTE-SANITIZER\n{LOG.format(0)}========= {kind[0]} SUMMARY: {found} {kind[1]}\n")
            self.write(f"san/{tool}-cases.log", f"NVIDIA H200\nok   K13\n1 cases, {wrong} failed\n========= {kind[0]} SUMMARY: 0 {kind[1]}\n")
        return self.run_tool("--sanitized", self.root / "san")

    def test_sanitizer_evidence_is_of_clean_logs_and_goes_stale_too(self):
        self.record()
        self.assertEqual(self.sanitizer_logs().returncode, 0)
        evidence = json.loads((self.root / "bench/results/nvidia-h200/sanitizers.json").read_text())
        self.assertEqual(evidence["tools"]["racecheck"]["runs"]["ran"], 12)
        self.assertEqual(evidence["tools"]["racecheck"]["cases"]["ran"], 1)
        self.assertEqual(self.run_tool("--check").returncode, 0)
        self.assertIn("no evidence", self.sanitizer_logs(found=1).stderr)
        self.assertIn("no evidence", self.sanitizer_logs(wrong=1).stderr)
        self.write("src/device/a.cuh", "short g();\n")
        self.record()
        self.assertIn("sanitizers.json is stale", self.run_tool("--check").stderr)

    def test_cases_are_evidence_where_both_builds_passed(self):
        self.record()
        self.write("run/cases.log", "NVIDIA H200\nok   K13\nok   K14\n2 cases, 0 failed\n")
        self.write("run/checked.log", "NVIDIA H200\nok   K13\nFAIL checked: 1 checks, first: x\n2 cases, 1 failed\n")
        self.assertIn("no evidence", self.run_tool("--cases", self.root / "run").stderr)
        self.write("run/checked.log", "NVIDIA H200\nok   checked\n1 cases, 0 failed\n")
        self.assertEqual(self.run_tool("--cases", self.root / "run").returncode, 0)
        evidence = json.loads((self.root / "bench/results/nvidia-h200/cases.json").read_text())
        self.assertEqual(evidence["passed"], {"normal": ["K13", "K14"], "checked": ["checked"]})
        self.write("src/device/a.cuh", "short g();\n")
        self.record()
        self.assertIn("cases.json is stale", self.run_tool("--check").stderr)

    def test_goldens_are_evidence_only_where_all_ran_well(self):
        self.write("good", "[       OK ] Real/Goldens.tokens/m (3 ms)\nm: 11 prompts, max 1e-5\n")
        self.write("bad", "[       OK ] Real/Goldens.tokens/m (3 ms)\n[  FAILED  ] Real/Goldens.layers/m\n")
        self.assertNotEqual(self.run_tool("--goldens", self.root / "bad").returncode, 0)
        self.assertEqual(self.run_tool("--goldens", self.root / "good").returncode, 0)
        evidence = json.loads((self.root / "bench/results/nvidia-h200/goldens.json").read_text())
        self.assertEqual(evidence["passed"], ["Real/Goldens.tokens/m"])


if __name__ == "__main__":
    unittest.main()
