#!/usr/bin/env python3
"""Measures what recording the account costs on SmolLM2 and writes row C12.

usage: recording.py [--recording build/cpu/recording] [--blocks 15] [-t 2] [--dry]

Blocks of decode without, with, with, without the account, in one process; the row's value is the median over blocks, its
spread the interval of that median. A control of without beside without is kept beside it. Build the program first:
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
    parser.add_argument("--blocks", type=int, default=15)
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    fetched = subprocess.run([str(ROOT / "tools" / "fetch_model.py"), "smollm2"], check=True, stdout=subprocess.PIPE, text=True)
    run = subprocess.run([options.recording, fetched.stdout.strip(), str(options.threads), str(options.blocks)],
                         stdout=subprocess.PIPE, text=True)
    if run.returncode != 0:
        sys.exit(f"recording: {options.recording} ended with {run.returncode}")
    found = json.loads(run.stdout)
    cost = found["recording_percent"]
    result = rows.make_row(
        "C12", cost["median"], spread=[cost["low"], cost["high"]], runs=4 * len(cost["blocks"]), workload=found["workload"],
        device=f"{rows.cpu_name()}, {options.threads} threads",
        more={"recording": cost, "control": found["control_percent"], "psi": cost["pressure"], "load_average": os.getloadavg()[0]},
        command="bench/cpu/recording.py")
    print(f"C12: {cost['median']:+.2f} % [{cost['low']:+.2f}, {cost['high']:+.2f}]; without beside without "
          f"{found['control_percent']['median']:+.2f} % [{found['control_percent']['low']:+.2f}, {found['control_percent']['high']:+.2f}]")
    if not options.dry:
        print("  wrote", rows.write_row(result).relative_to(ROOT))


if __name__ == "__main__":
    main()
