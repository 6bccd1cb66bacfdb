"""Rows G10 and G12 of the scoreboard from what bench/gpu/engine.sh wrote: step_rows.py OUT_FOLDER COMMIT

Of its part "prompt", which no target names, bench/results/DEVICE/prompt_rate.json.

G10: bytes of weights and keys that a step must read, over the read ceiling of the same run, over the step's time. Weights are all but
the embedding, of which a step reads a row a sequence; keys and values are those of the mean context while decoding."""
import json
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import rows  # noqa: E402

LAYERS, HIDDEN, KV_WIDTH, INNER, VOCAB = 32, 4096, 1024, 14336, 128256
STEP_WEIGHTS = 2 * (LAYERS * HIDDEN * (2 * HIDDEN + 2 * KV_WIDTH + 3 * INNER) + VOCAB * HIDDEN)


def step_bytes(batch, context):
    return STEP_WEIGHTS + batch * context * LAYERS * 2 * KV_WIDTH * 2


def bench_of(folder, name):
    return json.loads((folder / f"{name}.log").read_text(encoding="utf-8").splitlines()[-1])


def main():
    folder, commit = pathlib.Path(sys.argv[1]), sys.argv[2]
    machine = json.loads((folder / "machine.json").read_text(encoding="utf-8"))
    ceiling = max(p["read"] for p in machine["by_threads"][0]["bandwidth_gbs"] if p["bytes"] >= 1 << 30) * 1e9
    device = machine["cpu"].split(",")[0]
    made = []
    for batch in (1, 8, 64):
        if not (folder / f"step-{batch}.log").is_file():
            continue
        found = bench_of(folder, f"step-{batch}")
        load = found.get("tg_workload", found["workload"])
        context = load["prompt_tokens"] + load["output_tokens"] / 2
        share = [step_bytes(batch, context) / ceiling / (batch / rate) for rate in (found["tg"], *found["tg_range"])]
        made.append(rows.make_row(f"G10-b{batch}", share[0], spread=sorted(share[1:]), runs=found["runs"], device=device,
                                  command="bench/gpu/engine.sh BUILD OUT probe step", workload=load,
                                  more={"step_us": batch / found["tg"] * 1e6, "bytes": step_bytes(batch, context),
                                        "read_ceiling_gb_per_s": ceiling / 1e9}))
    if (folder / "smollm2.log").is_file():
        found = bench_of(folder, "smollm2")
        made.append(rows.make_row("G12", 1e6 / found["tg"], spread=sorted(1e6 / rate for rate in found["tg_range"]), runs=found["runs"],
                                  device=device, command="bench/gpu/engine.sh BUILD OUT smollm2",
                                  workload=found.get("tg_workload", found["workload"])))
    if prompts := [bench_of(folder, path.stem) for path in sorted(folder.glob("prompt-*.log"))]:
        kept = {"unit": "prompt tokens/s, median of the runs after the first", "runs": [found["pp_runs"] for found in prompts],
                "values": [found["pp"] for found in prompts], "workload": prompts[0]["workload"],
                "provenance": {"device": device, "commit": commit, "date": machine["date"], "command": "bench/gpu/engine.sh BUILD OUT probe prompt",
                               "measured_by": prompts[0]["provenance"]["command"]}}
        path = rows.ROOT / "bench" / "results" / rows.folder_name(device) / "prompt_rate.json"
        path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        print(path.name, *(round(value) for value in kept["values"]))
    for row in made:
        row["provenance"].update(commit=commit, date=machine["date"])
        print(rows.write_row(row).name, f'{row["value"]:.4g} {row["unit"]}')


if __name__ == "__main__":
    main()
