"""Measures the machine file that the tests of the program share, so that none of them waits for another that does.

usage: machine_file.py RIDGE
"""
import sys

sys.dont_write_bytecode = True
from program import RIDGE, machine_file  # noqa: E402

if not RIDGE:
    sys.exit(__doc__)
print(machine_file())
