"""Rows of the scoreboard from rows.json files of gpu_bench: collect.py rows.json [...]

Writes bench/results/DEVICE/ROW.json of this checkout, which must be the one that was measured. Of our shapes the fastest
is the row's value; `tried` has the others' medians. Linears and attention of prompts, which have no target,
are kept together in bench/results/DEVICE/prompts.json and prefill.json; other rows that targets.json does not name are left out.
Of a row that several files have, runs of one build, each contender's time is the median over the runs; the peer's is that of the
fastest of each run."""
import json
import pathlib
import re
import statistics
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import rows  # noqa: E402


def peer_of(row, peers):
    if peers:
        return {"name": peers[0]["name"], "value": peers[0]["us"], "same_run": True}
    quoted = re.search(r"best peer's ([0-9.]+) us", row["target"])
    return quoted and {"name": "best of FlashInfer 0.6.12 and vLLM 0.24.0", "value": float(quoted[1]), "same_run": False}


def result_of(row, target):
    ours = sorted((c for c in row["contenders"] if c["ours"]), key=lambda c: c["us"])
    peers = sorted((c for c in row["contenders"] if not c["ours"]), key=lambda c: c["us"])
    best, share = ours[0], row["bytes"] / max(row["read_ceiling_bytes_per_us"], 1e-9)
    is_time = target["unit"] == "us"
    value = (lambda us: us) if is_time else (lambda us: share / us)
    more = {"shape": best["name"], "us": best["us"], "tried": {c["name"]: c["us"] for c in ours[1:] + peers[1:]},
            "bytes": row["bytes"], "input_sets": row["input_sets"], "calls_in_graph": best["calls_in_graph"],
            "measured": row["condition"]}
    if row["read_ceiling_bytes_per_us"] > 0:
        more["read_ceiling_gb_per_s"] = row["read_ceiling_bytes_per_us"] / 1e3
    result = rows.make_row(row["row"], value(best["us"]), spread=sorted(map(value, best["us_quartiles"])), runs=best["replays"],
                           device=row["device"], command="bench/gpu/run.sh: " + row["command"], peer=peer_of(row, peers) if is_time else None,
                           more=more)
    result["provenance"].update(date=row["date"], commit=row["commit"], driver=row["driver"], cuda=row["cuda"],
                                clocks_before=row["clocks_before"], clocks_after=row["clocks_after"])
    return result


def median_of(same):
    """One contender of several runs: the median of its medians, between the least and the largest quartile."""
    return same[0] | {"us": statistics.median(c["us"] for c in same), "replays": sum(c["replays"] for c in same),
                      "us_quartiles": [min(c["us_quartiles"][0] for c in same), max(c["us_quartiles"][1] for c in same)]}


def joined(runs):
    """The same row of several runs: contenders that all of them have, and the fastest peer of each run where it is not always the same."""
    if len(runs) == 1:
        return runs[0]
    by_run = [{c["name"]: c for c in run["contenders"]} for run in runs]
    contenders = [median_of([run[name] for run in by_run]) for name in by_run[0] if all(name in run for run in by_run)]
    peers = [min((c for c in run["contenders"] if not c["ours"]), key=lambda c: c["us"], default=None) for run in runs]
    names = sorted({c["name"] for c in peers if c is not None})
    if len(names) > 1 and not runs[0]["row"].startswith("prompt-"):
        contenders.append(median_of(peers) | {"name": "fastest of each run: " + ", ".join(names)})
    return runs[0] | {"contenders": contenders,
                      "read_ceiling_bytes_per_us": statistics.median(run["read_ceiling_bytes_per_us"] for run in runs)}


def prompts_of(measured):
    """Of linears or attention of prompts: microseconds of each contender, TFLOP/s of ours and of the peer are flops over them."""
    first = measured[0]
    about = {key: first[key] for key in ("date", "commit", "device", "driver", "cuda")}
    kept = [{key: row[key] for key in ("row", "condition", "flops", "bytes", "input_sets", "clocks_before", "clocks_after")} |
            {"us": {c["name"]: c["us"] for c in row["contenders"]}, "us_quartiles": {c["name"]: c["us_quartiles"] for c in row["contenders"]},
             "runs": row["contenders"][0]["replays"]} for row in measured]
    return {"rows": kept, "provenance": about | {"command": "bench/gpu/run.sh: " + first["command"]}}


def main():
    _, targets = rows.load_targets()
    by_id = {t["id"]: t for t in targets}
    by_row = {}
    for source in sys.argv[1:]:
        for row in json.loads(pathlib.Path(source).read_text(encoding="utf-8")):
            by_row.setdefault(row["row"], []).append(row)
    if len({row["commit"] for runs in by_row.values() for row in runs}) > 1:
        sys.exit("collect: the files are of more than one commit")
    measured = [joined(runs) for runs in by_row.values()]
    for row in measured:
        if row["row"] in by_id:
            print(rows.write_row(result_of(row, by_id[row["row"]])).name)
    for start, name in (("prompt-", "prompts.json"), ("prefill-", "prefill.json")):
        if kept := [row for row in measured if row["row"].startswith(start)]:
            path = rows.ROOT / "bench" / "results" / rows.folder_name(kept[0]["device"]) / name
            path.write_text(json.dumps(prompts_of(kept), indent=1) + "\n", encoding="utf-8")
            print(path.name)


if __name__ == "__main__":
    main()
