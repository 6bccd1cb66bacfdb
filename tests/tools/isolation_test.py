#!/usr/bin/env python3
"""K12: wide instructions only where they were asked for, and nothing of them shared.

usage: isolation_test.py BUILD_FOLDER      a Release build, CMakeFiles/{ridge,kernels_SET}.dir inside

Of the objects of each instruction set: no weak or unique symbol (the linker could hand a wide copy of an inline
function to an older CPU), no static initialiser (it would run before anything asks the CPU). Of all other objects of
the library: no ymm and no zmm register. And the wide sets do use theirs, so that this test can fail.
"""
import pathlib
import re
import subprocess
import sys

WIDE = {"scalar": re.compile("%[yz]mm"), "avx2": re.compile("%zmm")}
OWN = {"avx2": re.compile("%ymm"), "avx512": re.compile("%zmm")}
# DW.ref.*: a pointer to the exception personality, the same in every object.
SHARED = re.compile(r"^[0-9a-f]* *([WVu]) (?!DW\.ref\.)(.*)$", re.M)


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, errors="replace").stdout


def registers(objects, pattern):
    """The first use of a register in each object that has one."""
    found = []
    for path in objects:
        if match := re.search(r"^.*" + pattern.pattern + r".*$", run("objdump", "-d", "--no-show-raw-insn", path), re.M):
            found.append((path, " ".join(match.group(0).split())))
    return found


def faults(folder):
    objects = {name: sorted(map(str, (folder / "CMakeFiles" / f"{name}.dir").rglob("*.o")))
               for name in ("ridge", "kernels_scalar", "kernels_avx2", "kernels_avx512")}
    for name, paths in objects.items():
        if not paths:
            yield f"{folder}: no objects of {name}: nothing was checked"
    for set_ in ("scalar", "avx2", "avx512"):
        for path in objects[f"kernels_{set_}"]:
            for kind, symbol in SHARED.findall(run("nm", "--defined-only", path)):
                yield f"{path}: symbol {symbol} is shared ({kind}): the linker may give it to another instruction set"
            if ".init_array" in run("objdump", "-h", path):
                yield f"{path}: a static initialiser runs before the CPU was asked"
    for name, pattern in (("ridge", WIDE["scalar"]), ("kernels_scalar", WIDE["scalar"]), ("kernels_avx2", WIDE["avx2"])):
        for path, line in registers(objects[name], pattern):
            yield f"{path}: a wide register where none may be: {line}"
    for set_, pattern in OWN.items():
        if objects[f"kernels_{set_}"] and not registers(objects[f"kernels_{set_}"], pattern):
            yield f"kernels_{set_} uses no wide register: this test or the build is broken"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    found = list(faults(pathlib.Path(sys.argv[1])))
    print("\n".join(found) or "isolated")
    sys.exit(1 if found else 0)
