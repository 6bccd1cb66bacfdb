#!/usr/bin/env python3
"""Times ./demo and ./check as a newcomer runs them, and writes rows C14 (demo, bare system), C15 (demo again), C16 (check).

usage: workshop.py [--rows C14,C15,C16] [--wrapper 'COMMAND…'] [--dry]

--wrapper runs its last argument, a shell command that is added here, in a fresh clone of this commit on another system (a
container, a chroot), as root. C14 needs one that is bare: no compiler, no CMake. Without it C15 and C16 run in a clone in a
temporary folder, with this system's packages. C15 is the second ./demo of the same clone. C16 installs and fetches first,
unmeasured, and builds with an empty compiler cache. The work tree must be committed; a command that fails makes no row.
"""
import argparse
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench"))
import rows  # noqa: E402

# What says the commit of the clone, and how long a command took (milliseconds) and how it ended.
SAY_COMMIT = 'echo "workshop commit $(git rev-parse HEAD)"'
TIMED = ('began=$(date +%s%N); {command} </dev/null; rc=$?; '
         'echo "workshop time {row} $((($(date +%s%N) - began) / 1000000)) $rc"; [ $rc = 0 ] || exit $rc')
BARE = '! command -v g++ >/dev/null && ! command -v cmake >/dev/null || { echo "workshop: not bare, a compiler is there"; exit 3; }'


def timed(row, command):
    return TIMED.format(row=row, command=command)


def shell_commands(wanted):
    """One shell command for each clone that the rows need."""
    demos = [SAY_COMMIT]
    if "C14" in wanted:
        demos += [BARE, timed("C14", "./demo")]
    elif "C15" in wanted:
        demos += ["./demo </dev/null"]
    if "C15" in wanted:
        demos += [timed("C15", "./demo")]
    check = [SAY_COMMIT, "tools/setup.sh check", "tools/fetch_model.py smollm2 && tools/fetch_model.py gemma3", "rm -rf build",
             "export CCACHE_DIR=$(mktemp -d)", timed("C16", "./check")]
    commands = ["{ " + "; ".join(demos) + "; }"] if len(demos) > 1 else []
    return commands + (["{ " + "; ".join(check) + "; }"] if "C16" in wanted else [])


def times_of(output, head):
    """{row: seconds} of what a command said. rows.Wrong where it ran another commit, or failed."""
    found = re.search(r"^workshop commit (\w*)$", output, re.M)
    if not found or found.group(1) != head:
        raise rows.Wrong(f"it ran commit {found.group(1) if found else 'unknown'}, this work tree is at {head}")
    times = {}
    for row, milliseconds, code in re.findall(r"^workshop time (\w+) (\d+) (\d+)$", output, re.M):
        if code != "0":
            raise rows.Wrong(f"{row} ended with exit code {code}")
        times[row] = int(milliseconds) / 1e3
    return times


def shown(arguments, folder=None):
    """Runs a command, showing what it prints: its output and exit code."""
    child = subprocess.Popen(arguments, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, errors="replace")
    lines = []
    for line in child.stdout:
        print("  |", line, end="", flush=True)
        lines.append(line)
    return "".join(lines), child.wait()


def run(command, wrapper, head):
    """Runs a shell command in a fresh clone: {row: seconds}, and the share of the time in which a thread waited for a core."""
    before, start = rows.waited_us(), time.monotonic()
    if wrapper:
        output, code = shown([*shlex.split(wrapper), command])
    else:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["git", "clone", "-q", str(ROOT), folder], check=True)
            output, code = shown(["bash", "-c", command], folder)
    psi = (rows.waited_us() - before) / 1e6 / (time.monotonic() - start)
    times = times_of(output, head)
    if code != 0:
        raise rows.Wrong(f"ended with exit code {code}")
    return times, psi


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="C14,C15,C16")
    parser.add_argument("--wrapper", default="")
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    wanted = options.rows.split(",")
    if not set(wanted) <= {"C14", "C15", "C16"}:
        parser.error("--rows of C14, C15, C16")
    if "C14" in wanted and not options.wrapper:
        parser.error("C14 needs a bare system: give --wrapper")
    if rows.commit().endswith("+"):
        sys.exit("workshop: the work tree has changes that no clone would have: commit them first")
    head = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    device = f"{rows.cpu_name()}, {len(os.sched_getaffinity(0))} threads"
    failed = False
    for command in shell_commands(wanted):
        load = os.getloadavg()[0]
        try:
            times, psi = run(command, options.wrapper, head)
        except rows.Wrong as error:
            print(f"workshop: {error}", file=sys.stderr)
            failed = True
            continue
        for row, seconds in times.items():
            result = rows.make_row(row, seconds, spread=[seconds, seconds], runs=1, device=device,
                                   more={"psi": round(psi, 3), "load_average_before": load},
                                   command=f"bench/workshop.py --rows {row}")
            print(f"{row}: {seconds:.1f} s; {result['condition']}")
            if not options.dry:
                print("  wrote", rows.write_row(result).relative_to(ROOT))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
