#!/usr/bin/env python3
"""Measures what recording the account costs on SmolLM2 and writes row C12.

usage: recording.py [--recording build/cpu/recording] [--answers 12] [-t 2] [--dry]

Decode steps without, with, with, without the account, some at a time, within each answer of one process; the row's value is
the median over such blocks, its spread the interval of that median. Kept beside it, from the same minutes: without beside
without (the bench's own error), and an observer that keeps nothing (the stamps alone). Build the program first:
cmake --build build/cpu --target recording
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import rows  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recording", default=str(ROOT / "build" / "cpu" / "recording"))
    parser.add_argument("--answers", type=int, default=12)
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    fetched = subprocess.run([str(ROOT / "tools" / "fetch_model.py"), "smollm2"], check=True, stdout=subprocess.PIPE, text=True)
    run = subprocess.run([options.recording, fetched.stdout.strip(), str(options.threads), str(options.answers)],
                         stdout=subprocess.PIPE, text=True)
    if run.returncode != 0:
        sys.exit(f"recording: {options.recording} ended with {run.returncode}")
    found = json.loads(run.stdout)
    cost = found["recording_percent"]
    result = rows.make_row(
        "C12", cost["median"], spread=[cost["low"], cost["high"]], runs=cost["blocks"], workload=found["workload"],
        device=f"{rows.cpu_name()}, {options.threads} threads",
        more={"recording": cost, "stamps": found["stamps_percent"], "control": found["control_percent"],
              "psi": found.get("pressure"), "load_average": os.getloadavg()[0]},
        command="bench/cpu/recording.py")
    for what, at in (("C12", cost), ("stamps alone", found["stamps_percent"]), ("without beside without", found["control_percent"])):
        print(f"{what}: {at['median']:+.2f} % [{at['low']:+.2f}, {at['high']:+.2f}] of {at['off_us']:.0f} us, {at['blocks']} blocks")
    if not options.dry:
        print("  wrote", rows.write_row(result).relative_to(ROOT))


if __name__ == "__main__":
    main()
