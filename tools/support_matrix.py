#!/usr/bin/env python3
"""Writes docs/support.md: operator x kernel x dtypes x instruction set, with the worst error over its bound.

usage: support_matrix.py FOLDER [--write | --check]

FOLDER holds what conformance wrote: RIDGE_SUPPORT_FOLDER=FOLDER conformance_test. --write replaces docs/support.md;
--check exits 1 if it lacks or wrongly claims a combination (the errors themselves may differ by compiler). Without
either it prints the matrix.
"""
import argparse
import collections
import pathlib
import re
import sys

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "support.md"
ISAS = ["scalar", "avx2", "avx512"]
HEAD = """# What runs where

Written by tools/support_matrix.py from a conformance run; do not edit. Each number is the largest error over all cases as a share
of the bound that the operator's README derives: 1 would be at the bound, and above fails. No number: no kernel of that
name, or it declines, and the next one or the reference takes the call. dtypes are those of the operands in the
description's order.
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


def combinations(text):
    """What a page claims: {(operator, backend, kernel, dtypes, isa)}."""
    claims, operator, columns = set(), "", []
    for line in text.splitlines():
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
    text = page(found)
    if options.write:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(text, encoding="utf-8")
    elif options.check:
        seen = {isa for rows in found.values() for by in rows.values() for isa in by}
        ran, claimed = combinations(text), combinations(PAGE.read_text(encoding="utf-8") if PAGE.exists() else "")
        claimed = {c for c in claimed if c[4] in seen}  # a narrower CPU cannot tell about the wider sets
        for what, which in (("runs, but docs/support.md does not say so", ran - claimed),
                            ("is in docs/support.md, but did not run", claimed - ran)):
            for c in sorted(which)[:10]:
                print(f"{' '.join(c)} {what}")
        if ran != claimed:
            print(f"repair with: tools/support_matrix.py {options.folder} --write")
        return int(ran != claimed)
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
