#!/usr/bin/env python3
"""Checks formatting and file sizes of the files that git tracks.

usage: check_style.py format | size
format  clang-format 14 leaves every C++ and CUDA file as it is, but for generated tables; exits 1 if not, and prints
        the command that repairs
size    names the source files above 400 lines; a warning: exits 0
"""
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMIT = 400  # lines


def tracked(*suffixes):
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], check=True, capture_output=True, text=True).stdout
    return [p for p in listed.split("\0") if p.endswith(suffixes) and (ROOT / p).is_file()]


def generated(path):
    with open(ROOT / path, encoding="utf-8") as file:
        return file.readline().startswith("// Written by tools/")


def format_():
    tool = shutil.which("clang-format-14") or shutil.which("clang-format")
    if tool is None:
        print("clang-format 14 is not installed: tools/setup.sh check")
        return 1
    files = [f for f in tracked(".h", ".cc", ".c", ".cu", ".cuh") if not generated(f)]
    bad = []
    for start in range(0, len(files), 50):
        chunk = files[start:start + 50]
        run = subprocess.run([tool, "--dry-run", "--ferror-limit=1", "--Werror", *chunk], cwd=ROOT, capture_output=True, text=True)
        if run.returncode != 0:
            bad += [f for f in chunk if subprocess.run([tool, "--dry-run", "--Werror", f], cwd=ROOT, capture_output=True).returncode]
    print(f"{len(files)} files, {len(bad)} not as clang-format 14 writes them")
    if bad:
        print("repair with: clang-format-14 -i " + " ".join(bad))
    return 1 if bad else 0


def size():
    for path in tracked(".h", ".cc", ".c", ".cu", ".cuh", ".py", ".sh"):
        lines = (ROOT / path).read_text(encoding="utf-8").count("\n")
        if lines > LIMIT and not generated(path):
            print(f"warning: {path} has {lines} lines, above {LIMIT}: split it by idea")
    return 0


if __name__ == "__main__":
    checks = {"format": format_, "size": size}
    if len(sys.argv) != 2 or sys.argv[1] not in checks:
        print(__doc__.strip(), file=sys.stderr)
        sys.exit(2)
    sys.exit(checks[sys.argv[1]]())
