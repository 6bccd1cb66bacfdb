#!/usr/bin/env python3
"""Times a build of all CUDA code from nothing, on two cores and without the compiler cache: rows G13.

usage: time_cuda_build.py FOLDER [--write]        FOLDER: an empty or missing folder for the build
Prints the build's minutes, the slowest CUDA file and the size of the linked library; --write makes rows of the scoreboard.
"""
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import rows  # noqa: E402


def configure(folder):
    subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DRIDGE_CUDA=ON", "-DRIDGE_TESTS=OFF",
                    "-DRIDGE_CCACHE="], check=True, stdout=subprocess.DEVNULL)


def cuda_objects(folder):
    targets = subprocess.run(["ninja", "-C", folder, "-t", "targets", "all"], check=True, capture_output=True, text=True).stdout
    return re.findall(r"^(CMakeFiles/ridge\.dir/\S+\.cu\.o):", targets, re.M)


def slowest(folder):
    """Of the log of ninja: milliseconds of start and end, then the output."""
    times = {}
    for line in (folder / ".ninja_log").read_text().splitlines()[1:]:
        start, end, _, output, _ = line.split("\t")
        if output.endswith(".cu.o"):
            times[output] = (int(end) - int(start)) / 1e3
    return max(times.items(), key=lambda item: item[1])


def library_mb(folder, objects):
    """All CUDA code as one shared library."""
    out = folder / "libridge_cuda_code.so"
    subprocess.run(["g++", "-shared", "-o", out, *(folder / o for o in objects), "-Wl,--unresolved-symbols=ignore-all"], check=True)
    return out.stat().st_size / 1e6


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    configure(folder)
    objects = cuda_objects(folder)
    begin = time.monotonic()
    subprocess.run(["cmake", "--build", folder, "-j", "2", "--target", *objects], check=True, stdout=subprocess.DEVNULL)
    minutes = (time.monotonic() - begin) / 60
    name, seconds = slowest(folder)
    size = library_mb(folder, objects)
    print(f"{len(objects)} CUDA files in {minutes:.1f} minutes; slowest {name}: {seconds:.1f} s; as one shared library {size:.1f} MB")
    if "--write" in sys.argv:
        command = "tools/time_cuda_build.py FOLDER --write"
        for row, value, more in (("G13-build", minutes, {"files": len(objects)}), ("G13-file", seconds, {"file": name}), ("G13-library", size, {})):
            print(rows.write_row(rows.make_row(row, value, spread=[value, value], runs=1, device="amd-epyc-2-threads", command=command, more=more)).name)


if __name__ == "__main__":
    main()
