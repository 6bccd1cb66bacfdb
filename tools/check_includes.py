#!/usr/bin/env python3
"""Checks that includes of src/ and apps/ point one way (docs/architecture.md), and where CUDA's headers appear.

usage: check_includes.py [ROOT]        ROOT: a checkout; default: this one
Prints a line for each include that goes against the arrows and exits 1 if there is one.
"""
import pathlib
import re
import sys

# Folder → where it stands. An include may go to a lower rank, or to the same folder, or to a sibling named below.
RANK = {"base": 0, "tensor": 1, "machine": 2, "account": 2, "runtime": 3, "simd": 4, "device": 4, "kernels": 5,
        "ops": 6, "plan": 7, "models": 8, "engine": 9, "parallel": 10, "lab": 10, "serve": 10, "advise": 10, "capi": 11, "apps": 11}
SIBLINGS = {("machine", "account"), ("account", "machine"), ("advise", "lab"), ("lab", "advise")}
# formats stands beside the ranks: it sees these only, and these see it.
FORMATS_SEE = {"base", "tensor", "formats"}
SEE_FORMATS = {"formats", "models", "engine", "parallel", "lab", "serve", "advise", "capi", "apps"}
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]')
CUDA = re.compile(r"^(cuda|cub|cublas|cooperative_groups|nv/|nccl|nvtx|thrust|mma\.h|device_launch|cute/|cutlass)")
BACKEND = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif)\b.*\b(__CUDACC__|__CUDA_ARCH__|RIDGE_CUDA)\b")
SUFFIXES = {".h", ".cc", ".c", ".cu", ".cuh", ".inc"}


def folder_of(path):
    """The layer of a file of the checkout, and its operator if it is in one's folder."""
    parts = path.parts
    if parts[0] == "apps":
        return "apps", None
    layer = parts[1] if len(parts) > 2 else None
    return layer, parts[2] if layer == "ops" and len(parts) > 3 else None


def fault_of(layer, operator, included):
    """Why a file of `layer` (and `operator`) may not include `included`, or None."""
    parts = included.split("/")
    target = parts[0]
    if len(parts) == 1 or (target != "formats" and target not in RANK):
        return None
    if layer == "formats":
        return None if target in FORMATS_SEE else f"formats may include {', '.join(sorted(FORMATS_SEE))} only"
    if target == "formats":
        return None if layer in SEE_FORMATS else f"{layer} may not include formats"
    if layer not in RANK:
        return f"folder {layer} has no place in the layers: give it one in tools/check_includes.py"
    if target == layer == "ops" and operator and len(parts) > 2 and parts[1] != operator:
        return f"operator {operator} includes the folder of operator {parts[1]}: share through kernels/"
    if target == layer or (layer, target) in SIBLINGS or RANK[target] < RANK[layer]:
        return None
    return f"{layer} may not include {target}"


def may_see_cuda(path):
    return path.suffix in (".cu", ".cuh") or path.parts[:3] == ("src", "runtime", "cuda") or path.parts[:2] == ("src", "device")


def faults_in(path, text):
    layer, operator = folder_of(path)
    for number, line in enumerate(text.splitlines(), 1):
        if BACKEND.match(line) and not may_see_cuda(path):
            yield number, "asks which backend is compiled: the generated registration decides that"
        if not (match := INCLUDE.match(line)):
            continue
        included = match.group(1)
        if CUDA.match(included) and not may_see_cuda(path):
            yield number, f"includes CUDA's {included} outside of runtime/cuda, device and *.cu"
        elif layer and (fault := fault_of(layer, operator, included)):
            yield number, f"includes {included}: {fault}"


def main(arguments):
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).resolve().parent.parent)
    files = sorted(p for top in ("src", "apps") for p in (root / top).rglob("*") if p.suffix in SUFFIXES)
    if not files:
        print(f"{root}: no sources found under src/ and apps/")
        return 1
    count = 0
    for file in files:
        path = file.relative_to(root)
        for number, fault in faults_in(path, file.read_text(encoding="utf-8")):
            print(f"{path}:{number}: {fault}")
            count += 1
    print(f"{len(files)} files, {count} includes against the arrows")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
