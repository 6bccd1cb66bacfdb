"""Rows G13-build and G13-file of the scoreboard from what bench/gpu/build.sh printed: build_rows.py BUILD.json DEVICE COMMIT DATE"""
import json
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import rows  # noqa: E402


def main():
    path, device, commit, date = sys.argv[1:5]
    found = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    more = {key: found[key] for key in ("cpus", "files", "slowest")}
    for row, value in (("G13-build", found["seconds"] / 60), ("G13-file", found["slowest_seconds"])):
        made = rows.make_row(row, value, spread=[value, value], runs=1, device=device, command="bench/gpu/build.sh SOURCE BUILD",
                             more=more)
        made["provenance"].update(commit=commit, date=date)
        print(rows.write_row(made).name, f'{made["value"]:.3g} {made["unit"]}')


if __name__ == "__main__":
    main()
