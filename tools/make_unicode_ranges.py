#!/usr/bin/env python3
"""Writes src/formats/unicode_ranges.cc: the general categories that tokenizers ask for, as ranges of code points.

Usage: pip install unicodedata2==16.0.0; tools/make_unicode_ranges.py > src/formats/unicode_ranges.cc
Unicode 16.0 is what the regular expressions of the reference library (tokenizers 0.23, Oniguruma) know.
"""

import unicodedata2

WHITE_SPACE = {*range(0x9, 0xE), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
NAMES = {"Nd": "D", "Nl": "R", "No": "F", "Pc": "C"}


def category(code):
    if code in WHITE_SPACE:
        return "S"
    name = unicodedata2.category(chr(code))
    return {"L": "L", "M": "M"}.get(name[0]) or NAMES.get(name)


def ranges():
    first, current = 0, None
    for code in range(0x110001):
        found = category(code) if code < 0x110000 else None
        if found != current:
            if current:
                yield first, code - first, current
            first, current = code, found


def main():
    assert unicodedata2.unidata_version == "16.0.0", unicodedata2.unidata_version
    print("// Written by tools/make_unicode_ranges.py from the Unicode Character Database 16.0.0; do not edit.")
    print('#include "formats/unicode.h"\n')
    print("namespace ridge {\nnamespace {")
    print("constexpr auto L = CharClass::kLetter, M = CharClass::kMark, D = CharClass::kDigit, R = CharClass::kLetterNumber,")
    print("               F = CharClass::kOtherNumber, C = CharClass::kConnector, S = CharClass::kSpace;")
    print("// {first code point, how many, class}\nconstexpr CharRange kRanges[] = {")
    line = "   "
    for first, count, name in ranges():
        item = f" {{{first:#x}, {count}, {name}}},"
        if len(line) + len(item) > 120:
            print(line)
            line = "   "
        line += item
    print(line + "\n};\n}  // namespace\n")
    print("const CharRange* unicode_ranges(size_t* count) {")
    print("  *count = sizeof(kRanges) / sizeof(kRanges[0]);\n  return kRanges;\n}\n}  // namespace ridge")


main()
