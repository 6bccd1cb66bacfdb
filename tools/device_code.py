#!/usr/bin/env python3
"""The key of the compiled device code, and whether the committed conformance evidence is of that code.

usage: device_code.py [ROOT]                      prints the key
       device_code.py --check [ROOT]              exits 1, saying why, when the evidence is missing or of other code
       device_code.py --record LOG [ROOT]         makes the evidence of a log of gpu_conformance, run on this code
The key covers every src/**/*_cuda.cu, what they include from src/ (comments and spacing aside), and the flags that
cmake/Cuda.cmake compiles them with. The evidence is bench/results/nvidia-h200/conformance.json.
"""
import datetime
import hashlib
import json
import pathlib
import re
import subprocess
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
KERNEL = re.compile(r"^(\S+)\s+(\S+)\s+(\d+) runs\s+(\d+) declined, worst error (\S+) of its bound")
TOTAL = re.compile(r"^(\d+) runs, (\d+) failures$", re.M)
EVIDENCE = pathlib.Path("bench/results/nvidia-h200/conformance.json")


def code_of(text):
    """Without comments and spacing: what they change is no code."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return " ".join(re.sub(r"//[^\n]*", " ", text).split())


def sources(root):
    src = root / "src"
    found, waiting = {}, sorted(src.rglob("*_cuda.cu"))
    while waiting:
        path = waiting.pop()
        name = path.relative_to(src).as_posix()
        if name in found or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8")
        found[name] = code_of(text)
        waiting += [src / included for included in INCLUDE.findall(text)]
    return found


def key_of(root):
    digest = hashlib.sha256()
    flags = re.search(r"set\(RIDGE_CUDA_FLAGS ([^)]*)\)", (root / "cmake/Cuda.cmake").read_text(encoding="utf-8"))
    digest.update(flags[1].encode())
    for name, code in sorted(sources(root).items()):
        digest.update(f"\n{name}\n{code}".encode())
    return digest.hexdigest()[:16]


def check(root):
    path = root / EVIDENCE
    if not path.is_file():
        return f"there is no evidence that the CUDA kernels conform: run bench/gpu/run.sh on a GPU, then {pathlib.Path(__file__).name} --record"
    evidence, key = json.loads(path.read_text(encoding="utf-8")), key_of(root)
    if evidence["failures"] != 0 or evidence["runs"] == 0:
        return f"{EVIDENCE}: {evidence['failures']} of {evidence['runs']} runs failed"
    if evidence["device_code"] != key:
        return (f"{EVIDENCE} is stale: it is of device code {evidence['device_code']} ({evidence['date']}), this is {key}: "
                "run bench/gpu/run.sh on a GPU again")
    return None


def record(root, log):
    text = pathlib.Path(log).read_text(encoding="utf-8")
    total = TOTAL.search(text)
    if total is None:
        sys.exit(f"{log} has no line '… runs, … failures': it is no whole log of gpu_conformance")
    kernels = {}
    for line in text.splitlines():
        if match := KERNEL.match(line):
            kernels.setdefault(match[1], {})[match[2]] = {"runs": int(match[3]), "declined": int(match[4]), "worst": float(match[5])}
    commit = subprocess.run(["git", "-C", root, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    evidence = {"device_code": key_of(root), "device": text.splitlines()[0], "runs": int(total[1]), "failures": int(total[2]),
                "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "commit": commit, "kernels": kernels}
    (root / EVIDENCE).write_text(json.dumps(evidence, indent=1) + "\n", encoding="utf-8")
    print(f"{EVIDENCE}: {total[1]} runs, {total[2]} failures, device code {evidence['device_code']}")


def main(arguments):
    mode = arguments.pop(0) if arguments and arguments[0] in ("--check", "--record") else None
    log = arguments.pop(0) if mode == "--record" else None
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).resolve().parent.parent)
    if mode == "--record":
        record(root, log)
    elif mode == "--check":
        if fault := check(root):
            sys.exit(fault)
        print(f"the conformance evidence is of this device code, {key_of(root)}")
    else:
        print(key_of(root))


if __name__ == "__main__":
    main(sys.argv[1:])
