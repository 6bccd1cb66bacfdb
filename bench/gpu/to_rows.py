#!/usr/bin/env python3
"""Turns what gpu_bench measured into rows of the scoreboard.

usage: to_rows.py ROWS.json [--at COMMIT]        gpu_bench's rows.json

Of each row that bench/targets.json asks for, our fastest contender is the value; its unit decides which number:
us, a share of the read ceiling of the same run, or us beside the fastest contender that is not ours. Rows that no
target names are left out, and counted. The hash of the sources is that of the commit that the file names, or of
COMMIT where that one is not in this repository any more (a rebase) and COMMIT holds the same sources.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import rows  # noqa: E402


def hashes_at(commit):
    """{source set: hash} of a commit."""
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "-C", str(ROOT), "archive", commit], capture_output=True)
        if archive.returncode != 0:
            sys.exit(f"to_rows: {commit} is no commit here: give one with the same sources by --at")
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        return {name: rows.sources_hash(globs, pathlib.Path(folder)) for name, globs in rows.load_targets()[0].items()}


def convert(measured, target, hashes):
    """The result of one measured row, or why there is none."""
    ours = min((c for c in measured["contenders"] if c["ours"]), key=lambda c: c["us"], default=None)
    peer = min((c for c in measured["contenders"] if not c["ours"]), key=lambda c: c["us"], default=None)
    if ours is None:
        return None, "no contender of ours"
    if target["of"] == "peer" and peer is None:
        return None, "no peer in the run"
    low, high = ours["us_quartiles"]
    if target["unit"] == "us":
        value, spread = ours["us"], [low, high]
    else:
        value, spread = ours["share_of_read_ceiling"], [ours["share_of_read_ceiling"] * ours["us"] / us for us in (high, low)]
    result = rows.make_row(
        target["id"], value, spread=spread, runs=ours["replays"], device=measured["device"], command=measured["command"],
        peer=peer and {"name": peer["name"], "value": peer["us"], "spread": peer["us_quartiles"], "same_run": True},
        more={"kernel": ours["name"], "bytes": measured["bytes"], "flops": measured["flops"],
              "read_ceiling_bytes_per_us": measured["read_ceiling_bytes_per_us"], "driver": measured["driver"],
              "cuda": measured["cuda"], "clocks": [measured["clocks_before"], measured["clocks_after"]]})
    result["provenance"].update(date=measured["date"], commit=measured["commit"], sources_sha256=hashes[target["sources"]])
    return result, None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", type=pathlib.Path)
    parser.add_argument("--at", help="a commit with the sources that were measured")
    options = parser.parse_args()
    targets = {t["id"]: t for t in rows.load_targets()[1]}
    others, hashes = 0, {}
    for measured in json.loads(options.measured.read_text(encoding="utf-8")):
        if (target := targets.get(measured["row"])) is None:
            others += 1
            continue
        commit = options.at or measured["commit"]
        if commit not in hashes:
            hashes[commit] = hashes_at(commit)
        result, why = convert(measured, target, hashes[commit])
        print(f"{target['id']}: " + (why or f"wrote {rows.write_row(result).relative_to(ROOT)}"))
    print(f"{others} rows that no target names")


if __name__ == "__main__":
    main()
