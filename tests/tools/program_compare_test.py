#!/usr/bin/env python3
"""What `ridge run --compare` says of two configurations, and how it ends.

usage: program_compare_test.py RIDGE
"""
import json
import sys
import unittest

from program import DONE, FAILED, RIDGE, Runs


class Compare(Runs):
    def test_sound_sides_are_within_their_operators_bounds(self):
        compared = json.loads(self.ridge("run", self.model, "-p", "hi", "--activations", "f32", "--compare", "isa=scalar", "",
                                         "--json").stdout)
        for side in compared["sides"].values():
            self.assertIsNone(side["first"])
            self.assertEqual(side["unjudged"], [])
            self.assertGreater(side["calls"], 20)
            self.assertTrue(0 < side["worst"]["ratio"] <= 1, side)
        self.assertGreater(compared["outputs"], 10)
        self.assertEqual((compared["bound"], compared["too_far"]), (None, None))

    def test_compare_asks_the_model_what_run_asks_it(self):
        run = json.loads(self.ridge("run", self.model, "-p", "hi", "-n", "1", "--json").stdout)
        compared = json.loads(self.ridge("run", self.model, "-p", "hi", "--compare", "isa=scalar", "", "--json").stdout)
        self.assertEqual(compared["prompt_tokens"], run["prompt_tokens"])

    def test_compare_beyond_the_bound_is_a_failure(self):
        compare = ("run", self.model, "-p", "hi", "--compare", "activations=f32", "activations=int8", "--json")
        run = self.ends(FAILED, "beyond --bound 1e-06", *compare, "--bound", "1e-6")
        self.assertIsNotNone(json.loads(run.stdout)["too_far"])
        self.ends(DONE, "", *compare, "--bound", "10")
        said = self.ends(DONE, "", *compare[:-1]).stdout
        self.assertEqual(said.count("calls within their operators' bounds; nearest, at "), 2, said)


if __name__ == "__main__":
    if not RIDGE:
        sys.exit(__doc__)
    unittest.main()
