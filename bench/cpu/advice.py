#!/usr/bin/env python3
"""Has ridge advise predict, run and score pairs of lever and workload, and writes rows C10 (pairs) and C11 (wrong signs).

usage: advice.py [--ridge build/cpu/ridge] [--pairs NAME,…] [--scale 1] [-t 2] [--dry]

A pair is one change of one setting of one workload: predicted from the account, then run against the original in blocks of
original, changed, changed, original, on the same prompts and seeds. The machine is probed first. It takes 10 minutes, times
--scale. --dry, or less than all pairs, writes nothing. Pairs: see PAIRS.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import rows  # noqa: E402

# All intervals together are to hold with 90 %: each with 99 %, which takes 8 blocks.
CONFIDENCE = 0.99

# name: model, lever, seconds of the experiment, what the workload is.
PAIRS = {
    "prefill-activations": ("smollm2", "activations=f32", 30, "--prompt-tokens 512 --output-tokens 1"),
    "mixed-activations": ("smollm2", "activations=int8", 35, "--prompt-tokens 128 --output-tokens 32 --activations f32 --kv f16"),
    "decode-threads": ("smollm2", "threads=1", 35, "--prompt-tokens 16 --output-tokens 128"),
    "prefill-chunk": ("smollm2", "prefill-chunk=32", 30, "--prompt-tokens 512 --output-tokens 1"),
    "small-chunk": ("smollm2", "prefill-chunk=512", 30, "--prompt-tokens 512 --output-tokens 1 --prefill-tokens 32"),
    "prefill-fusion": ("smollm2", "fuse-add_rms_norm=off", 50, "--prompt-tokens 512 --output-tokens 1"),
    "long-past-kv": ("smollm2", "kv=q8", 60, "--prompt-tokens 768 --output-tokens 96"),
    "long-prompt-kv": ("smollm2", "kv=f32", 50, "--prompt-tokens 1024 --output-tokens 1"),
    "gemma-decode-activations": ("gemma3", "activations=f32", 40, "--prompt-tokens 16 --output-tokens 48"),
    "gemma-threads": ("gemma3", "threads=2", 40, "--prompt-tokens 128 --output-tokens 32 -t 1"),
    "batch-threads": ("smollm2", "threads=1", 40, "--prompt-tokens 32 --output-tokens 32 --batch 8"),
}


def fetched(model):
    run = subprocess.run([str(ROOT / "tools" / "fetch_model.py"), model], check=True, stdout=subprocess.PIPE, text=True)
    return run.stdout.strip()


def ridge(options, *arguments):
    run = subprocess.run([options.ridge, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True)
    if run.returncode != 0:
        sys.exit(f"advice: ridge {' '.join(arguments)} ended with {run.returncode}:\n{run.stderr[-2000:]}")
    return run.stdout


def measure(name, options, machine, folder):
    """What ridge advise says of one pair: docs/json.md."""
    model, lever, seconds, workload = PAIRS[name]
    if "-t " not in workload:
        workload += f" -t {options.threads}"
    out = ridge(options, "advise", fetched(model), "--lever", lever, *workload.split(), "--budget", str(seconds * options.scale),
                "--confidence", str(CONFIDENCE), "--machine", machine, "--score", os.path.join(folder, "score"), "--json")
    return json.loads(out)


def decided(advice):
    return advice["decision"] in ("held", "refuted")


def sign(advice):
    """'right' or 'wrong' of a decided pair, by the middle of the predicted interval, be 0 in it or not; 'open' where the
    measured one has 0 in it."""
    predicted, measured = advice["chosen"]["predicted_gain"], advice["experiment"]["measured_gain"]
    if measured["low"] <= 0 <= measured["high"]:
        return "open"
    return "right" if predicted["value"] * advice["experiment"]["gain"] > 0 else "wrong"


def shown(name, advice):
    """One line: what was predicted, what was measured, the verdict."""
    def interval(i):
        return f"{100 * i['value']:+6.1f} % [{100 * i['low']:+6.1f}, {100 * i['high']:+6.1f}]"
    chosen, experiment = advice["chosen"], advice["experiment"]
    predicted = interval(chosen["predicted_gain"]) if "predicted_gain" in chosen else "no price"
    measured = interval(experiment["measured_gain"]) if "measured_gain" in experiment else f"{100 * experiment['gain']:+6.1f} %"
    verdict = f"{advice['decision']}, sign {sign(advice)}" if decided(advice) else advice["decision"]
    return (f"{name:25} {chosen['lever'] + ' ' + chosen['from'] + ' -> ' + chosen['to']:32} predicted {predicted}  measured {measured}"
            f"  {verdict}")


def kept(name, advice):
    """What a row keeps of one pair."""
    chosen, experiment = advice["chosen"], advice["experiment"]
    return {"pair": name, "lever": chosen["lever"], "from": chosen["from"], "to": chosen["to"], "why": chosen["reason"],
            "predicted_gain": chosen.get("predicted_gain"), "measured_gain": experiment.get("measured_gain"),
            "gain": experiment["gain"], "blocks": experiment["blocks"], "psi": experiment.get("pressure"),
            "clock_mhz": experiment.get("block_clock_mhz"), "power_w": experiment.get("block_power_w"), "decision": advice["decision"], "decision_reason": advice["decision_reason"], "quality": advice.get("quality"),
            "workload": advice["workload"]}


def results(advices, options):
    """Rows C10 and C11; C11 only if something was decided."""
    scored = {n: a for n, a in advices.items() if a["decision"] != "not run" and "predicted_gain" in a["chosen"]}
    certain = [a for a in scored.values() if decided(a)]
    runs = sum(a["provenance"]["runs"] for a in scored.values())
    values = {"C10": len(scored)}
    signs = [sign(a) for a in certain]
    if signs:
        values["C11"] = signs.count("wrong")
    else:
        print("nothing was decided: no row C11")
    more = {"decided": len(certain), "sign_right": signs.count("right"), "sign_wrong": signs.count("wrong"),
            "held": sum(a["decision"] == "held" for a in certain), "confidence": CONFIDENCE, "scale": options.scale,
            "load_average": os.getloadavg()[0], "pairs": [kept(n, a) for n, a in scored.items()]}
    return [rows.make_row(row, value, spread=[value, value], runs=runs, device=f"{rows.cpu_name()}, {options.threads} threads",
                          more=more, command=f"bench/cpu/advice.py --scale {options.scale:g} -t {options.threads}")
            for row, value in values.items()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ridge", default=str(ROOT / "build" / "cpu" / "ridge"))
    parser.add_argument("--pairs", default=",".join(PAIRS))
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    names = options.pairs.split(",")
    if options.scale <= 0 or options.threads < 1 or not set(names) <= set(PAIRS):
        parser.error(f"--scale is above 0, -t 1 or more, --pairs of {', '.join(PAIRS)}")
    advices, began = {}, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        machine = os.path.join(folder, "machine.json")
        ridge(options, "probe", "-o", machine, "-t", str(options.threads))
        for name in names:
            advices[name] = measure(name, options, machine, folder)
            print(shown(name, advices[name]), flush=True)
    print(f"{len(advices)} pairs in {time.monotonic() - began:.0f} s")
    for result in results(advices, options):
        print(f"{result['row']}: {result['value']} {result['unit']}; {result['decided']} decided, {result['held']} held")
        if not options.dry and set(names) == set(PAIRS):
            print("  wrote", rows.write_row(result).relative_to(ROOT))


if __name__ == "__main__":
    main()
