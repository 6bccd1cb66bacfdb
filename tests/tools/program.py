"""Runs the built program, which the first argument of a test names, and holds it to its exit codes."""
import fcntl
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RIDGE = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else ""
TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:"
DONE, FAILED, WRONG, INTERRUPTED = 0, 1, 2, 130


def machine_file():
    """A machine file, measured once for all tests of this program: it takes half a minute."""
    path = RIDGE + ".machine.json"
    with open(RIDGE + ".machine.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(path) or os.path.getmtime(path) < os.path.getmtime(RIDGE):
            subprocess.run([RIDGE, "probe", "--busy", "-o", path], check=True, stdout=subprocess.DEVNULL, timeout=100)
    return path


class Runs(unittest.TestCase):
    """With a model of random weights in a folder of its own."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.model = cls.synthetic("tiny.gguf")

    @classmethod
    def synthetic(cls, name, template=TEMPLATE, layers=1, hidden=64, inner=128, heads=2):
        path = os.path.join(cls.folder.name, name)
        sizes = {"layers": layers, "hidden": hidden, "inner": inner, "heads": heads, "kv-heads": 1, "vocab": 512}
        subprocess.run([sys.executable, "-B", str(ROOT / "tools" / "make_synthetic.py"), path, "--chat-template", template,
                        *(word for key, value in sizes.items() for word in (f"--{key}", str(value)))],
                       check=True, stdout=subprocess.DEVNULL)
        return path

    def machine(self):
        return machine_file()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def ridge(self, *arguments, **more):
        return subprocess.run([RIDGE, *arguments], capture_output=True, text=True, timeout=100, **{"input": "", **more})

    def control_c(self, command, after):
        """Runs a command and presses Ctrl-C `after` seconds later: exit code, output, what it said, and the seconds it then took;
        or None if it had ended before."""
        with subprocess.Popen([RIDGE, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
            time.sleep(after)
            if run.poll() is not None:
                return None
            begin = time.monotonic()
            run.send_signal(signal.SIGINT)
            out, said = run.communicate(timeout=100)
            return run.returncode, out, said, time.monotonic() - begin

    def ends(self, code, says, *arguments, **more):
        run = self.ridge(*arguments, **more)
        self.assertEqual(run.returncode, code, (arguments, run.stderr))
        self.assertIn(says, run.stderr, arguments)
        return run
