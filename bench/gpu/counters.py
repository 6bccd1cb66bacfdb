#!/usr/bin/env python3
"""A table of what the hardware counted beside what the account counts: counters.py OUT_FOLDER, of bench/gpu/counters.sh

One layer of a decode step: its launches in order, and of the account the rows of 8 tokens. Prints Markdown; a difference of bytes
above 5 % is marked."""
import csv
import json
import pathlib
import sys

# A layer's calls in order: operator, shape it begins with, kernel.
LAYER = [("add_rms_norm", "8x4096", "rms_norm_row"), ("linear", "8x6144x4096", "gemm_stream"),
         ("rope_kv_write", "8x", "rope_kv_write_pairs"), ("attention_decode", "8 q", "attention_decode_split"),
         ("linear", "8x4096x4096", "gemm_stream"), ("add_rms_norm", "8x4096", "rms_norm_row"),
         ("linear_swiglu", "8x2x14336x4096", "gemm_stream"), ("linear", "8x4096x14336", "gemm_stream")]
SCALE = {"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}


def launches(path):
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith('"')]
    rows = list(csv.DictReader(lines))
    return rows[0], rows[1:]  # units, then launches


def layer_of(rows):
    """The first launches that are a whole layer."""
    for at in range(len(rows) - len(LAYER) + 1):
        if all(LAYER[i][2] in rows[at + i]["Kernel Name"] for i in range(len(LAYER))):
            return rows[at:at + len(LAYER)]
    sys.exit("no whole layer among the launches: " + ", ".join(row["Kernel Name"][:40] for row in rows))


def counted(account, operator, shape):
    """(bytes read, bytes written) of one call."""
    decode = next(p for p in account["phases"] if p["name"] == "decode")
    row = next(o for o in decode["operators"] if o["name"] == operator and o["shape"].startswith(shape))
    return [sum(b[way] for b in row["bytes"].values()) / row["calls"] for way in ("read", "written")]


def main():
    folder = pathlib.Path(sys.argv[1])
    account = json.JSONDecoder().raw_decode((folder / "account.json").read_text(encoding="utf-8"))[0]
    units, rows = launches(folder / "ncu.csv")
    number = lambda row, name: float(row[name].replace(",", "")) * SCALE.get(units[name], 1)  # noqa: E731
    print("| call | MB read: account | DRAM | MB written: account | DRAM | matrix pipe | warps active | registers | shared KiB | blocks x threads |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for (operator, shape, _), row in zip(LAYER, layer_of(rows)):
        read, written = counted(account, operator, shape)
        dram = number(row, "dram__bytes_read.sum")
        mark = " *" if abs(dram - read) > 0.05 * max(read, 1) else ""
        blocks, threads = row["Grid Size"].strip("()").replace(" ", ""), row["Block Size"].strip("()").replace(" ", "")
        print(f"| {operator} {shape} | {read / 1e6:.3f} | {dram / 1e6:.3f}{mark} | {written / 1e6:.3f} "
              f"| {number(row, 'dram__bytes_write.sum') / 1e6:.3f} "
              f"| {float(row['sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active']):.1f} % "
              f"| {float(row['sm__warps_active.avg.pct_of_peak_sustained_active']):.1f} % | {row['launch__registers_per_thread']} "
              f"| {number(row, 'launch__shared_mem_per_block') / 1024:.1f} | {blocks} x {threads} |")


if __name__ == "__main__":
    main()
