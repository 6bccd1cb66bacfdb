#!/usr/bin/env python3
"""Writes src/formats/unicode_nfc_tables.cc: what canonical composition (NFC) needs, but for Hangul, which is computed.

Usage: pip install unicodedata2==16.0.0; tools/make_unicode_nfc.py > src/formats/unicode_nfc_tables.cc
Needs perl, for the age of code points. What Unicode 9.0 did not have is left out, since the reference library's
normalizer (tokenizers 0.23) does not know it: in a younger table some marks would be ordered that it leaves in place.
What a code point decomposes into never changes once it is assigned.
"""

import subprocess

import unicodedata2 as ucd

PERL = r"for (0 .. 0x10ffff) { print qq($_\n) if ($_ < 0xd800 || $_ > 0xdfff) && chr($_) =~ /\p{Present_In: 9.0}/ }"
KNOWN = {int(line) for line in subprocess.run(["perl", "-e", PERL], check=True, capture_output=True).stdout.split()}


def wrapped(items):
    line = "   "
    for item in items:
        if len(line) + len(item) + 2 > 120:
            yield line
            line = "   "
        line += f" {item},"
    yield line


def decompositions():
    """Single steps, as (code, [first] or [first, second], whether NFC puts it together again)."""
    for code in sorted(KNOWN):
        parts = ucd.decomposition(chr(code)).split()
        if parts and not parts[0].startswith("<"):
            yield code, [int(p, 16) for p in parts], ucd.normalize("NFC", chr(code)) == chr(code)


def pairs(composing):
    return [f"{c:#x}, {p[0]:#x}, {p[1]:#x}" for c, p, composes in decompositions() if len(p) == 2 and composes == composing]


def single_runs():
    """Runs of consecutive code points: first, count, then what each stands for."""
    runs = []
    for code, parts, _ in decompositions():
        if len(parts) == 2:
            continue
        if not runs or runs[-1][0] + len(runs[-1][1]) != code:
            runs.append((code, []))
        runs[-1][1].append(parts[0])
    return [f"{first:#x}, {len(targets)}, " + ", ".join(f"{t:#x}" for t in targets[i:i + 1])
            if i == 0 else f"{targets[i]:#x}" for first, targets in runs for i in range(len(targets))]


def class_ranges():
    first, current = 0, 0
    for code in range(0x110001):
        found = ucd.combining(chr(code)) if code in KNOWN else 0
        if found != current:
            if current:
                yield f"{first:#x}, {code - first}, {current}"
            first, current = code, found


def table(name, meaning, items):
    print(f"// {meaning}\nextern const uint32_t k{name}[] = {{")
    print("\n".join(wrapped(list(items))))
    print(f"}};\nextern const size_t k{name}Size = sizeof(k{name}) / sizeof(uint32_t);\n")


def main():
    assert ucd.unidata_version == "16.0.0", ucd.unidata_version
    print("// Written by tools/make_unicode_nfc.py from the Unicode Character Database, code points of 9.0; do not edit.")
    print('#include "formats/unicode_nfc.h"\n\nnamespace ridge::nfc_tables {\n')
    # Flat, since braces around each entry would double the file.
    table("Pairs", "code, first, second: taken apart and put together", pairs(True))
    table("OneWay", "code, first, second: only taken apart", pairs(False))
    table("Singles", "first code, count, then what each stands for: only replaced", single_runs())
    table("Classes", "first code, count, canonical combining class", class_ranges())
    print("}  // namespace ridge::nfc_tables")


main()
