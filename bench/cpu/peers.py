#!/usr/bin/env python3
"""Measures Ridge beside llama.cpp and ik_llama.cpp, in turns, and writes the rows C0 to C3 and C0-ik to C3-ik.

usage: peers.py --llama-bench PROGRAM [--llama-commit C] [--ik-llama-bench PROGRAM] [--ik-llama-commit C] [--peer-build TEXT]
                [--ridge build/cpu/ridge] [--models smollm2,gemma3] [--rounds 5] [-t 2] [--dry]

PROGRAM: their llama-bench, built natively (-march=native), Release, C the commit it was built from where it does not say
it itself, TEXT compiler and options of both; ik_llama.cpp's interleaves rows at load (-rtr 1),
its fastest way. Each round runs all programs on each model, the order turned round every second time: prefill of 512
tokens and decode of 128. The row is the median; spread is the lowest and the highest. psi is the largest share of the
time, over all runs, in which a runnable thread waited for a core: above 0.05 somebody else was using the machine. --dry
prints and writes nothing.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import rows  # noqa: E402

PROMPT, OUTPUT = 512, 128
MODELS = {"smollm2": ("SmolLM2-135M-Instruct", "Q4_1", {"tg": "C0", "pp": "C1"}),
          "gemma3": ("Gemma-3-270M", "Q4_K_M", {"tg": "C2", "pp": "C3"})}
# name, option with its program, its own options
PEERS = [("llama.cpp", "llama_bench", []), ("ik_llama.cpp", "ik_llama_bench", ["-rtr", "1"])]


def timed(command):
    """(stdout, share of the wall time in which a thread waited)."""
    before, start = rows.waited_us(), time.monotonic()
    run = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    share = (rows.waited_us() - before) / 1e6 / (time.monotonic() - start)
    if run.returncode != 0:
        sys.exit(f"peers: {' '.join(command)} ended with {run.returncode}:\n{run.stderr[-2000:]}")
    return run.stdout, share


def peer_speed(out, name):
    """llama-bench's JSON: one object a test."""
    speeds = {}
    for test in json.loads(out[out.index("["):]):
        speeds["tg" if test["n_gen"] else "pp"] = test["avg_ts"]
        speeds["name"] = f"{name} {test.get('build_commit', '')}".strip()
    return speeds


def ridge_speed(out):
    data = json.loads(out)
    return {"pp": data["pp"], "tg": data["tg"], "workload": data.get("workload", {})}


def measure(path, options):
    """{program: {pp|tg: [tokens/s]}}, what the programs said of themselves, the largest psi."""
    threads = str(options.threads)
    commands = [("ridge", ridge_speed, [options.ridge, "bench", path, "--prompt-tokens", str(PROMPT), "--output-tokens",
                                        str(OUTPUT), "-t", threads, "--runs", "1", "--json"])]
    for name, program, more in PEERS:
        if path_of := getattr(options, program):
            commands.append((name, lambda out, name=name: peer_speed(out, name),
                             [path_of, "-m", path, "-p", str(PROMPT), "-n", str(OUTPUT), "-t", threads, "-mmp", "0", *more,
                              "-r", "1", "-o", "json"]))
    found = {name: {"pp": [], "tg": []} for name, _, _ in commands}
    said, psi = {}, 0.0
    for number in range(options.rounds):
        for name, parse, command in commands if number % 2 == 0 else commands[::-1]:
            out, share = timed(command)
            speeds = parse(out)
            said[name] = speeds
            psi = max(psi, share)
            for test in ("pp", "tg"):
                found[name][test].append(speeds[test])
            print(f"  round {number + 1}, {name:12} pp {speeds['pp']:9.1f}  tg {speeds['tg']:8.1f} tokens/s, psi {share:.2f}",
                  flush=True)
    return found, said, psi


def named(name, commit):
    """A peer's name with the commit that was given, if any, in the place of what it says of itself."""
    return f"{name.split()[0]} {commit}" if commit else name


def results(key, path, options):
    """The rows of one model."""
    name, weights, ids = MODELS[key]
    print(f"{name} {weights}")
    found, said, psi = measure(path, options)
    commits = {"llama.cpp": options.llama_commit, "ik_llama.cpp": options.ik_llama_commit}
    peers = [(name, suffix) for name, suffix in (("llama.cpp", ""), ("ik_llama.cpp", "-ik")) if name in found]
    for test, row in ids.items():
        ours = found["ridge"][test]
        # Decode starts from one token, as theirs does.
        lengths = {"tg": (1, OUTPUT), "pp": (PROMPT, 1)}[test]
        workload = {"model": name, "weight_format": weights, "kv_format": "f16", "activation_format": "int8", "batch": 1,
                    "prefix_hit_tokens": 0, "sampling": "greedy", "constrained_decoding": False, **said["ridge"]["workload"],
                    "prompt_tokens": lengths[0], "output_tokens": lengths[1]}
        for peer, suffix in peers:
            theirs = found[peer][test]
            yield rows.make_row(
                row + suffix, statistics.median(ours), spread=[min(ours), max(ours)], runs=len(ours),
                device=f"{rows.cpu_name()}, {options.threads} threads", workload=workload,
                command="bench/cpu/peers.py --llama-bench PROGRAM "
                        + ("--ik-llama-bench PROGRAM " if options.ik_llama_bench else "")
                        + f"--models {key} --rounds {options.rounds} -t {options.threads}",
                peer={"name": named(said[peer]["name"], commits[peer]), "build": options.peer_build, "value": statistics.median(theirs), "spread": [min(theirs), max(theirs)],
                      "same_run": True},
                more={"psi": round(psi, 3), "load_average": os.getloadavg()[2]})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llama-bench", required=True)
    parser.add_argument("--llama-commit", default="")
    parser.add_argument("--ik-llama-bench")
    parser.add_argument("--ik-llama-commit", default="")
    parser.add_argument("--peer-build", default="")
    parser.add_argument("--ridge", default=str(ROOT / "build" / "cpu" / "ridge"))
    parser.add_argument("--models", default="smollm2,gemma3")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    models = options.models.split(",")
    if options.rounds < 1 or options.threads < 1 or not set(models) <= set(MODELS):
        parser.error(f"--rounds and -t are 1 or more, --models of {', '.join(MODELS)}")
    for key in models:
        fetched = subprocess.run([str(ROOT / "tools" / "fetch_model.py"), key], check=True, stdout=subprocess.PIPE, text=True)
        for result in results(key, fetched.stdout.strip(), options):
            print(f"  {result['row']}: {result['value']:.1f} against {result['peer']['value']:.1f} {result['unit']}, "
                  f"ratio {result['ratio']:.2f}")
            if not options.dry:
                print("  wrote", rows.write_row(result).relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
