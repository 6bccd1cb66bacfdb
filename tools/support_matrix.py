#!/usr/bin/env python3
"""Writes docs/support.md: operator x kernel x dtypes x instruction set, with the worst error over its bound.

usage: support_matrix.py FOLDER [--write | --check]

FOLDER holds what conformance wrote: RIDGE_SUPPORT_FOLDER=FOLDER conformance_test. GPU kernels are those of the recorded
runs, bench/results/*/conformance.json. --write replaces docs/support.md, or on a processor that lacks one of its instruction
sets the GPUs' part alone; --check exits 1 if it lacks or wrongly claims a
combination (the errors themselves may differ by compiler). Without either it prints the matrix.
"""
import argparse
import collections
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "support.md"
DEVICES = sorted(ROOT.glob("bench/results/*/conformance.json"))
ISAS = ["scalar", "avx2", "avx512"]
HEAD = """# What runs where

Written by tools/support_matrix.py from a conformance run; do not edit. Each number is the largest error over all cases as a share
of the bound that the operator's README derives: 1 would be at the bound, and above fails. No number: no kernel of that
name, or it declines, and the next one or the reference takes the call. dtypes are those of the operands in the
description's order.

The first part is the CPU: every kernel, dtype and instruction set, run anew by `./check`. The second is what ran on a GPU:
`./check` needs none, so it is the recorded run of the same cases on the device named there. That record has a kernel's worst
error over all dtypes and cases that it took; which those are, its `declined` cases tell, and its name or its operator's
README.
"""


def read(folder):
    """{operator: {(backend, kernel, dtypes): {isa: worst}}}"""
    found = collections.defaultdict(lambda: collections.defaultdict(dict))
    for path in sorted(pathlib.Path(folder).glob("*.tsv")):
        for line in path.read_text(encoding="utf-8").splitlines():
            operator, kernel, backend, isa, dtypes, worst = line.split("\t")
            found[operator][backend, kernel, dtypes][isa] = float(worst)
    return found


def page(found):
    out = [HEAD]
    for operator, rows in sorted(found.items()):
        columns = [i for i in ISAS if any(i in by for by in rows.values())]
        columns += sorted({i for by in rows.values() for i in by} - set(columns))
        out.append(f"## {operator}\n")
        out.append("| backend | kernel | dtypes | " + " | ".join(columns) + " |")
        out.append("|---" * (3 + len(columns)) + "|")
        for (backend, kernel, dtypes), by in sorted(rows.items()):
            cells = [f"{by[i]:.3f}" if i in by else "" for i in columns]
            out.append(f"| {backend} | {kernel} | {dtypes} | " + " | ".join(cells) + " |")
        out.append("")
    return "\n".join(out)


def device_part(record):
    """The kernels of one recorded run, bench/results/*/conformance.json."""
    out = [f"# On a GPU: {record['device']}\n",
           f"{record['runs']} runs, {record['failures']} failures, {record['date']}, commit {record['commit']}, device code "
           f"{record['device_code']}.\n",
           "| operator | GPU kernel | cases run | declined | worst |", "|---|---|---|---|---|"]
    for operator, kernels in sorted(record["kernels"].items()):
        for kernel, k in kernels.items():
            out.append(f"| {operator} | {kernel} | {k['runs']} | {k['declined']} | {k['worst']:.3f} |")
    return "\n".join(out + [""])


def device_kernels(text):
    """What a page claims of GPUs: {(operator, kernel)}."""
    rows = re.findall(r"^\| (\S+) \| (\S+) \| \d+ \| \d+ \| [\d.]+ \|$", text, re.M)
    return set(rows)


def combinations(text):
    """What a page claims of CPUs: {(operator, backend, kernel, dtypes, isa)}."""
    claims, operator, columns = set(), "", []
    for line in text.split("\n# On a GPU")[0].splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")]
        if match := re.match(r"## (\S+)", line):
            operator = match.group(1)
        elif line.startswith("| backend"):
            columns = cells[3:]
        elif line.startswith("| ") and columns:
            claims |= {(operator, *cells[:3], isa) for isa, cell in zip(columns, cells[3:]) if cell}
    return claims


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    found = read(options.folder)
    if not found:
        print(f"{options.folder} holds no conformance results")
        return 1
    text = "\n".join([page(found)] + [device_part(json.loads(p.read_text(encoding="utf-8"))) for p in DEVICES])
    seen = {isa for rows in found.values() for by in rows.values() for isa in by}
    kept = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    if options.write:
        if unseen := sorted({c[4] for c in combinations(kept)} - seen):
            print(f"this run has nothing of {', '.join(unseen)}: the CPU's part stays as it is")
            text = kept.split("\n# On a GPU")[0] + text[text.index("\n# On a GPU"):]
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(text, encoding="utf-8")
    elif options.check:
        ran, claimed = combinations(text), combinations(kept)
        claimed = {c for c in claimed if c[4] in seen}  # a narrower CPU cannot tell about the wider sets
        for what, which in (("runs, but docs/support.md does not say so", ran - claimed),
                            ("is in docs/support.md, but did not run", claimed - ran)):
            for c in sorted(which)[:10]:
                print(f"{' '.join(c)} {what}")
        on_gpu = device_kernels(text) ^ device_kernels(kept)
        for operator, kernel in sorted(on_gpu)[:10]:
            print(f"{operator} {kernel} is in only one of docs/support.md and the records of GPUs")
        if ran != claimed or on_gpu:
            print(f"repair with: tools/support_matrix.py {options.folder} --write")
        return int(ran != claimed or bool(on_gpu))
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
