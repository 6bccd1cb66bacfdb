"""tools/check_includes.py on trees made up here."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Includes(unittest.TestCase):
    def check(self, **files):
        """Exit code and output on a tree; in file names __ stands for / and _DOT_ for a dot."""
        with tempfile.TemporaryDirectory() as scratch:
            for name, include in files.items():
                path = pathlib.Path(scratch) / name.replace("__", "/").replace("_DOT_", ".")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(include + "\n")
            run = subprocess.run([sys.executable, str(ROOT / "tools" / "check_includes.py"), scratch],
                                 capture_output=True, text=True)
            return run.returncode, run.stdout

    def refused(self, why, **files):
        code, out = self.check(**files)
        self.assertEqual(code, 1, out)
        self.assertIn(why, out)

    def taken(self, **files):
        code, out = self.check(**files)
        self.assertEqual(code, 0, out)

    def test_a_lower_layer_may_not_see_a_higher_one(self):
        self.refused("tensor may not include ops", src__tensor__a_DOT_h='#include "ops/operator.h"')
        self.taken(src__ops__a_DOT_h='#include "tensor/tensor.h"')

    def test_an_operator_may_not_see_another_s_folder(self):
        self.refused("through kernels", src__ops__add__add_DOT_cc='#include "ops/rope/rope.h"')
        self.taken(src__ops__add__add_DOT_cc='#include "ops/add/add.h"\n#include "ops/operator.h"')

    def test_formats_see_base_and_tensor_only(self):
        self.refused("formats may include", src__formats__a_DOT_cc='#include "account/cost.h"')
        self.refused("may not include formats", src__kernels__a_DOT_h='#include "formats/gguf.h"')
        self.taken(src__engine__a_DOT_cc='#include "formats/gguf.h"')

    def test_cuda_stays_in_its_places(self):
        self.refused("includes CUDA's cuda_runtime.h", src__engine__a_DOT_cc='#include <cuda_runtime.h>')
        self.refused("which backend", src__engine__a_DOT_cc='#ifdef RIDGE_CUDA')
        self.taken(src__runtime__cuda__a_DOT_cc='#include <cuda_runtime.h>', src__ops__a__b_DOT_cu='#include <mma.h>')

    def test_a_new_folder_needs_a_place(self):
        self.refused("has no place", src__stuff__a_DOT_h='#include "base/status.h"')

    def test_a_tree_without_sources_is_no_success(self):
        self.assertEqual(self.check(readme="")[0], 1)


if __name__ == "__main__":
    unittest.main()
