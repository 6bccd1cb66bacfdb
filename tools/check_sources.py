#!/usr/bin/env python3
"""Checks the documentation offline: rows of docs/sources.md, links between pages, pages that sources name.

usage: check_sources.py [ROOT]
Every row of docs/sources.md says claim, source, year, hardware, condition and an existing file or folder that uses it;
every relative link of a tracked .md file leads to a file, and to a heading if it names one; every docs/*.md that a
source file mentions exists. Prints each fault and exits 1 if there is one.
"""
import pathlib
import re
import sys

COLUMNS = ["claim", "source", "year", "hardware", "condition", "used in"]
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
MENTION = re.compile(r"\b(docs/[a-z_/]+\.md)\b")
NOT_OURS = {"docs/gguf.md"}  # the GGUF specification's place in its own repository
SKIP = {"build", ".git", "node_modules", ".models"}


def files(root, *suffixes):
    for path in sorted(root.rglob("*")):
        if path.suffix in suffixes and not SKIP & set(path.relative_to(root).parts) and path.is_file():
            yield path


def source_faults(root, page):
    rows, header = 0, None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if not line.startswith("|"):
            header = None
            continue
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if header is None:
            header = cells
            if cells != COLUMNS:
                yield number, f"columns are {cells}, wanted {COLUMNS}"
        elif not set(line) <= set("|-: "):
            rows += 1
            if len(cells) != len(COLUMNS) or not all(cells):
                yield number, "a cell is empty or missing"
                continue
            if not re.fullmatch(r"(19|20)\d\d", cells[2]):
                yield number, f"year is {cells[2]}"
            if not (root / cells[5]).exists():
                yield number, f"{cells[5]} does not exist"
    if rows == 0:
        yield 1, "holds no claim"


def anchors(path):
    found = set()
    for line in path.read_text(encoding="utf-8").splitlines():
        if match := re.match(r"#+ (.*)", line):
            found.add(re.sub(r"[^\w\- ]", "", match.group(1).lower()).replace(" ", "-"))
    return found


def link_faults(path):
    fenced = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        if fenced:
            continue
        for match in LINK.finditer(re.sub(r"`[^`]*`", "", line)):
            target = match.group(1) or match.group(2)
            if re.match(r"(https?|mailto):", target):
                if not re.match(r"(https?://[\w.-]+\.[a-z]{2,}(/\S*)?|mailto:\S+@\S+)$", target):
                    yield number, f"link {target} is malformed"
                continue
            name, _, anchor = target.partition("#")
            to = path.parent / name if name else path
            if not to.exists():
                yield number, f"link {target} leads nowhere"
            elif anchor and to.suffix == ".md" and anchor not in anchors(to):
                yield number, f"link {target}: no such heading"


def main(arguments):
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).resolve().parent.parent).resolve()
    found = []
    page = root / "docs" / "sources.md"
    found += [(page, *f) for f in source_faults(root, page)] if page.exists() else [(page, 0, "is missing")]
    for path in files(root, ".md"):
        found += [(path, *f) for f in link_faults(path)]
    for path in files(root, ".h", ".cc", ".c", ".cu", ".cuh", ".cmake"):
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            found += [(path, number, f"names {name}, which does not exist") for name in MENTION.findall(line) if name not in NOT_OURS and not (root / name).exists()]
    for path, number, fault in found:
        print(f"{path.relative_to(root)}:{number}: {fault}")
    print(f"{len(found)} faults in the documentation")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
