#!/usr/bin/env python3
"""Writes what Python's str knows about characters, as ranges.

Usage: tools/unicode/make_tables.py case > src/formats/template/case_tables.inc
       tools/unicode/make_tables.py class > src/formats/template/class_tables.inc
The Unicode version is that of the Python that runs it.
"""
import sys
import unicodedata

POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def ranges(predicate):
    out = []
    for c in POINTS:
        if predicate(chr(c)):
            if out and out[-1][1] == c - 1:
                out[-1][1] = c
            else:
                out.append([c, c])
    return out


def mapping(function):
    """Runs (first, last, step, delta) of one-to-one mappings, and the one-to-many ones apart."""
    runs, many = [], []
    for c in POINTS:
        to = function(chr(c))
        if len(to) > 1:
            many.append((c, [ord(x) for x in to]))
        elif ord(to) != c:
            delta = ord(to) - c
            if runs and runs[-1][3] == delta:
                first, last, step, _ = runs[-1]
                if c - last in (1, 2) and (first == last or step == c - last):
                    runs[-1][1], runs[-1][2] = c, c - last
                    continue
            runs.append([c, c, 1, delta])
    return runs, many


def emit(name, kind, rows):
    print(f"constexpr {kind} {name}[] = {{")
    line = "   "
    for row in rows:
        item = " {" + ", ".join(str(v) for v in row) + "},"
        if len(line) + len(item) > 110:
            print(line)
            line = "   "
        line += item
    print(line)
    print("};")


def case_tables():
    for name, function in (("Upper", str.upper), ("Lower", str.lower)):
        runs, many = mapping(function)
        emit(f"k{name}", "CaseRun", runs)
        emit(f"k{name}Many", "CaseMany", [(c, *(to + [0] * (3 - len(to)))) for c, to in many])
    # Title case where it is not upper case.
    special = [(c, [ord(x) for x in chr(c).title()]) for c in POINTS if chr(c).title() != chr(c).upper()]
    emit("kTitleMany", "CaseMany", [(c, *(to + [0] * (3 - len(to)))) for c, to in special])
    emit("kCased", "CodeRange", ranges(lambda c: c.isupper() or c.islower() or c.istitle()))


def class_tables():
    emit("kNotPrintable", "CodeRange", ranges(lambda c: not c.isprintable()))
    emit("kAlphanumeric", "CodeRange", ranges(str.isalnum))
    emit("kAlpha", "CodeRange", ranges(str.isalpha))
    emit("kDigit", "CodeRange", ranges(str.isdigit))


def main():
    tables = {"case": case_tables, "class": class_tables}
    if len(sys.argv) != 2 or sys.argv[1] not in tables:
        sys.exit(f"usage: {sys.argv[0]} case|class")
    print(f"// Written by tools/unicode/make_tables.py {sys.argv[1]} from Unicode {unicodedata.unidata_version}.")
    tables[sys.argv[1]]()


main()
