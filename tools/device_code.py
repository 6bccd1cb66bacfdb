#!/usr/bin/env python3
"""The key of the compiled device code, and whether the committed conformance evidence is of that code.

usage: device_code.py [ROOT]                      prints the key
       device_code.py --check [ROOT]              exits 1, saying why, when the evidence is missing or of other code
       device_code.py --record LOG [ROOT]         makes the evidence of a log of gpu_conformance, run on this code
       device_code.py --sanitized FOLDER [ROOT]   makes that of the logs of bench/gpu/sanitize.sh, likewise
       device_code.py --cases FOLDER [ROOT]      makes that of cases.log and checked.log of bench/gpu/run.sh, likewise
       device_code.py --goldens LOG [ROOT]        makes that of a log of goldens_test with RIDGE_TEST_DEVICE=cuda, likewise
The key covers every src/**/*_cuda.cu, what they include from src/ (comments and spacing aside), and the flags that
cmake/Cuda.cmake compiles them with. The evidence is bench/results/nvidia-h200/conformance.json, sanitizers.json,
cases.json and goldens.json; of the three last, --check looks at those that are there.
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
TOTAL = re.compile(r"^(\d+) (?:runs|cases), (\d+) (?:failures|failed)$", re.M)
CASE = re.compile(r"^(ok  |FAIL) (\S+)", re.M)
RESULTS = pathlib.Path("bench/results/nvidia-h200")
EVIDENCE, SANITIZERS, CASES, GOLDENS = (RESULTS / f"{name}.json" for name in ("conformance", "sanitizers", "cases", "goldens"))
SUMMARY = re.compile(r"^========= (?:ERROR|RACECHECK) SUMMARY: (\d+) (?:errors|hazards).*$", re.M)
PASSED = re.compile(r"^\[       OK \] (\S+)", re.M)
FAILED = re.compile(r"^\[  FAILED  \] (\S+)", re.M)


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
    for name, script in ((EVIDENCE, "run.sh"), (SANITIZERS, "sanitize.sh"), (CASES, "run.sh"), (GOLDENS, "engine.sh")):
        if not (root / name).is_file():
            continue
        evidence = json.loads((root / name).read_text(encoding="utf-8"))
        if evidence["device_code"] != key:
            return (f"{name} is stale: it is of device code {evidence['device_code']} ({evidence['date']}), this is {key}: "
                    f"run bench/gpu/{script} on a GPU again")
    return None


def stamp(root):
    """What every piece of evidence carries."""
    commit = subprocess.run(["git", "-C", root, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    return {"device_code": key_of(root), "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "commit": commit}


def keep(root, name, evidence):
    (root / name).write_text(json.dumps(evidence, indent=1) + "\n", encoding="utf-8")
    print(f"{name}: device code {evidence['device_code']}")


def sanitized(root, folder):
    tools = {}
    for tool in ("memcheck", "racecheck", "synccheck", "initcheck"):
        for log, counts in ((f"{tool}.log", "runs"), (f"{tool}-cases.log", "cases")):
            text = (pathlib.Path(folder) / log).read_text(encoding="utf-8")
            total, summary = TOTAL.search(text), SUMMARY.search(text)
            if total is None or summary is None:
                sys.exit(f"{folder}/{log} has no line '… {counts}, … failed' or no summary: it is no whole log of bench/gpu/sanitize.sh")
            if int(total[2]) or int(summary[1]) or not int(total[1]):
                sys.exit(f"{folder}/{log}: {total[0]}; {summary[0]}: what a tool finds is no evidence")
            tools.setdefault(tool, {})[counts] = {"ran": int(total[1]), "failed": int(total[2]), "summary": summary[0].removeprefix("========= ")}
    keep(root, SANITIZERS, {**stamp(root), "device": text.splitlines()[1], "tools": tools})


def cases(root, folder):
    builds = {}
    for log, build in (("cases.log", "normal"), ("checked.log", "checked")):
        text = (pathlib.Path(folder) / log).read_text(encoding="utf-8")
        total = TOTAL.search(text)
        if total is None or int(total[2]) or not int(total[1]):
            sys.exit(f"{folder}/{log}: {total[0] if total else 'no line … cases, … failed'}: that is no evidence")
        builds[build] = [name for _, name in CASE.findall(text)]
    keep(root, CASES, {**stamp(root), "device": text.splitlines()[0], "passed": builds})


def goldens(root, log):
    text = pathlib.Path(log).read_text(encoding="utf-8")
    passed, failed = PASSED.findall(text), FAILED.findall(text)
    if failed or not passed:
        sys.exit(f"{log}: {len(passed)} tests passed, {len(failed)} failed: that is no evidence")
    worst = re.findall(r"^(\S+: \d+ prompts, .*)$", text, re.M)
    keep(root, GOLDENS, {**stamp(root), "passed": passed, "differences": worst})


def record(root, log):
    text = pathlib.Path(log).read_text(encoding="utf-8")
    total = TOTAL.search(text)
    if total is None:
        sys.exit(f"{log} has no line '… runs, … failures': it is no whole log of gpu_conformance")
    kernels = {}
    for line in text.splitlines():
        if match := KERNEL.match(line):
            kernels.setdefault(match[1], {})[match[2]] = {"runs": int(match[3]), "declined": int(match[4]), "worst": float(match[5])}
    keep(root, EVIDENCE, {**stamp(root), "device": text.splitlines()[0], "runs": int(total[1]), "failures": int(total[2]), "kernels": kernels})


def main(arguments):
    makers = {"--record": record, "--sanitized": sanitized, "--cases": cases, "--goldens": goldens}
    mode = arguments.pop(0) if arguments and arguments[0] in ("--check", *makers) else None
    log = arguments.pop(0) if mode in makers else None
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).resolve().parent.parent)
    if mode in makers:
        makers[mode](root, log)
    elif mode == "--check":
        if fault := check(root):
            sys.exit(fault)
        print(f"the conformance evidence is of this device code, {key_of(root)}")
    else:
        print(key_of(root))


if __name__ == "__main__":
    main(sys.argv[1:])
