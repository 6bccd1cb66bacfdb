"""tools/check_sources.py on pages made up here."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = "| claim | source | year | hardware | condition | used in |\n|---|---|---|---|---|---|\n"
ROW = "| c | s | 2020 | any | d | x.cc |\n"


class Sources(unittest.TestCase):
    def check(self, **pages):
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch)
            (root / "docs").mkdir()
            (root / "x.cc").write_text(pages.pop("code", ""))
            (root / "docs" / "sources.md").write_text(pages.pop("sources", TABLE + ROW))
            for name, text in pages.items():
                (root / f"{name}.md").write_text(text)
            run = subprocess.run([sys.executable, str(ROOT / "tools" / "check_sources.py"), scratch], capture_output=True, text=True)
            return run.returncode, run.stdout

    def refused(self, why, **pages):
        code, out = self.check(**pages)
        self.assertEqual(code, 1, out)
        self.assertIn(why, out)

    def test_a_complete_page_passes(self):
        code, out = self.check(a="# One thing\n[here](#one-thing) [there](docs/sources.md) `[no](link)`\n```\n[x](y)\n```\n")
        self.assertEqual(code, 0, out)

    def test_a_claim_must_be_complete(self):
        self.refused("empty or missing", sources=TABLE + "| c |  | 2020 | any | d | x.cc |\n")
        self.refused("empty or missing", sources=TABLE + "| c | s | 2020 | any | d |\n")
        self.refused("year is", sources=TABLE + "| c | s | soon | any | d | x.cc |\n")
        self.refused("does not exist", sources=TABLE + "| c | s | 2020 | any | d | gone.cc |\n")
        self.refused("holds no claim", sources="nothing\n")

    def test_links_must_lead_somewhere(self):
        self.refused("leads nowhere", a="[a](gone.md)\n")
        self.refused("no such heading", a="# Here\n[a](#there)\n")
        self.refused("malformed", a="[a](https://nowhere)\n")

    def test_a_page_that_code_names_must_exist(self):
        self.refused("which does not exist", code="// see docs/gone.md\n")


if __name__ == "__main__":
    unittest.main()
