#!/usr/bin/env python3
"""Measures Ridge alone on SmolLM2 and on a synthetic model, and writes the rows C4 to C9 and C13.

usage: spine.py [--ridge build/cpu/ridge] [--rows C4,C5,…] [--runs 5] [-t 2] [--dry]

C4 writes a model of 10^9 random parameters (1.1 GB) into a temporary folder first. Each row is the median of --runs;
--dry prints and writes nothing.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import rows  # noqa: E402

CONTEXT = 512


class Bench:
    def __init__(self, options):
        self.options = options
        fetched = subprocess.run([str(ROOT / "tools" / "fetch_model.py"), "smollm2"], check=True, stdout=subprocess.PIPE, text=True)
        self.model = fetched.stdout.strip()

    def ridge(self, *arguments):
        """(stdout, seconds, largest resident memory in bytes) of one run."""
        start = time.monotonic()
        child = subprocess.Popen([self.options.ridge, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        out = child.stdout.read()
        error = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - start
        if child.returncode != 0:
            sys.exit(f"spine: ridge {' '.join(arguments)} ended with {child.returncode}:\n{error[-2000:]}")
        return out, seconds, usage.ru_maxrss * 1024

    def threads(self):
        return ["-t", str(self.options.threads)]

    def profile(self, model, prompt, output):
        out, _, _ = self.ridge("profile", model, "--prompt-tokens", str(prompt), "--output-tokens", str(output), "--json",
                               *self.threads())
        return json.loads(out)

    def start_up(self):
        """Resident bytes above file and cache, seconds to the first call, of one answer of 64 tokens."""
        out, seconds, resident = self.ridge("run", self.model, "--raw", "-p", "The sky is", "-n", "64", "--context", str(CONTEXT),
                                            "--json", *self.threads())
        answer = json.loads(out)
        spent = (answer["ttft_us"] + answer["tpot_us"] * (len(answer["ids"]) - 1)) / 1e6
        plan, _, _ = self.ridge("inspect", self.model, "--context", str(CONTEXT), "--json")
        return (resident - os.path.getsize(self.model) - json.loads(plan)["memory"]["kv_bytes"]) / 1e6, seconds - spent

    def unexplained(self, name, prompt, output):
        found = self.profile(self.model, prompt, output)
        phase = next(p for p in found["phases"] if p["name"] == name)
        share = 100 * sum(abs(o["loss_us"]["unexplained"]) for o in phase["operators"]) / phase["wall_us"]
        parts = {"limit": phase["limit_us"], **phase["loss_us"]}
        return share, found["workload"], {"drift": phase.get("drift"), "between_us": phase["between_us"], "share_percent": {k: 100 * v / phase["wall_us"] for k, v in parts.items() if v}}

    def linear_share(self, model):
        """Bytes of weights that linear reads over its time, as a share of main memory's read bandwidth as the same
        profile found it between its own steps. A profile whose readings were all disturbed is made again."""
        for _ in range(6):
            found = self.profile(model, 16, 32)
            if next(p for p in found["phases"] if p["name"] == "decode").get("drift", {}).get("read_gbs", 0) > 0:
                break
        else:
            sys.exit("spine: C4: no profile of six read memory undisturbed between its steps: the machine is not idle")
        phase = next(p for p in found["phases"] if p["name"] == "decode")
        linear = [o for o in phase["operators"] if o["name"] == "linear"]
        read = sum(o["bytes"][c]["read"] for o in linear for c in ("weights", "scales") if c in o["bytes"])
        rate = read / sum(o["time_us"] for o in linear) / 1e3  # GB/s
        between = phase["drift"]["read_gbs"]
        return rate / between, found["workload"], {"gbs": rate, "machine_read_gbs": found["machine"]["read_gbs"],
                                                   "read_gbs_between_steps": between}


def measure(bench, row):
    """(values, workload or None, what else belongs into the row, if anything) of one row."""
    runs = range(bench.options.runs)
    if row == "C4":
        with tempfile.TemporaryDirectory() as folder:
            model = os.path.join(folder, "synthetic-1b.gguf")
            subprocess.run([sys.executable, "-B", str(ROOT / "tools" / "make_synthetic.py"), model], check=True)
            results = [bench.linear_share(model) for _ in runs]
        return [r[0] for r in results], results[0][1], {"profiles": [r[2] for r in results]}
    if row in ("C5", "C6"):
        results = [bench.start_up() for _ in runs]
        workload = {"model": "SmolLM2-135M-Instruct", "weight_format": "Q4_1", "kv_format": "f16", "activation_format": "int8",
                    "prompt_tokens": 3, "output_tokens": 64, "batch": 1, "prefix_hit_tokens": 0, "sampling": "greedy",
                    "constrained_decoding": False}
        return [r[0 if row == "C5" else 1] for r in results], workload
    if row == "C7":
        return [1e3 * bench.ridge("--help")[1] for _ in range(20)], None
    if row in ("C8", "C9"):
        name, prompt, output = ("prefill", 512, 1) if row == "C8" else ("decode", 512, 128)
        results = [bench.unexplained(name, prompt, output) for _ in runs]
        return [r[0] for r in results], results[0][1], {"profiles": [r[2] for r in results]}
    with tempfile.TemporaryDirectory() as folder:
        return [bench.ridge("probe", "-o", os.path.join(folder, "machine.json"), *bench.threads())[1]], None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    all_rows = ["C4", "C5", "C6", "C7", "C8", "C9", "C13"]
    parser.add_argument("--ridge", default=str(ROOT / "build" / "cpu" / "ridge"))
    parser.add_argument("--rows", default=",".join(all_rows))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    wanted = options.rows.split(",")
    if options.runs < 1 or options.threads < 1 or not set(wanted) <= set(all_rows):
        parser.error(f"--runs and -t are 1 or more, --rows of {', '.join(all_rows)}")
    bench = Bench(options)
    for row in wanted:
        began, waited = time.monotonic(), rows.waited_us()
        values, workload, *more = measure(bench, row)
        psi = (rows.waited_us() - waited) / 1e6 / (time.monotonic() - began)
        result = rows.make_row(
            row, statistics.median(values), spread=[min(values), max(values)], runs=len(values), workload=workload,
            device=f"{rows.cpu_name()}, {options.threads} threads", more={"psi": round(psi, 3), "load_average": os.getloadavg()[0], **(more[0] if more else {})},
            command=f"bench/cpu/spine.py --rows {row} --runs {options.runs} -t {options.threads}")
        print(f"{row}: {result['value']:.4g} {result['unit']} ({min(values):.4g} to {max(values):.4g}); {result['condition']}")
        if not options.dry:
            print("  wrote", rows.write_row(result).relative_to(ROOT))


if __name__ == "__main__":
    main()
