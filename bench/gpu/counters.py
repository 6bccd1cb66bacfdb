#!/usr/bin/env python3
"""A table of what the hardware counted beside what the account counts: counters.py OUT_FOLDER, of bench/gpu/counters.sh

The last layer of a decode step and the step's end: their launches in order, and of the account the rows of 8 tokens. Prints
Markdown; a difference above 5 % is marked. Matrix pipe: the share of its cycles that the account's operations take at 8 cycles for
each mma.sync of 4096 operations, half of the rate that wgmma has; warps: those of the blocks that fit on a multiprocessor."""
import csv
import json
import math
import pathlib
import sys

# Calls in order: operator, what its shape begins with, kernels of its launches.
LAYER = [("rms_norm", "8x4096", ["rms_norm_row"]), ("linear_rope_kv", "8x", ["gemm_stream"]),
         ("attention_decode", "8 q", ["attention_decode_split"]), ("linear_add", "8x4096x4096", ["gemm_stream"]),
         ("rms_norm", "8x4096", ["rms_norm_row"]), ("linear_swiglu", "8x2x14336x4096", ["gemm_stream"]),
         ("linear_add", "8x4096x14336", ["gemm_stream"])]
END = [("gather_rows", "8x4096", ["gather_rows"]), ("rms_norm", "8x4096", ["rms_norm_row"]),
       ("linear", "8x128256x4096", ["gemm_stream"]), ("sample", "8x128256", ["sample_stats", "sample_rows"])]
CALLS = LAYER + END
SUBCORES, CLOCK_GHZ, MMA_FLOPS, MMA_CYCLES, SM_WARPS = 132 * 4, 1.98, 4096, 8, 64


def launches(path):
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith('"')]
    return list(csv.DictReader(lines))[1:]  # the first row names units: bytes, percent, ns


def calls_of(rows):
    """[launches of each of CALLS]: the last place where all of them follow each other."""
    kernels = [kernel for _, _, names in CALLS for kernel in names]
    for at in range(len(rows) - len(kernels), -1, -1):
        if all(kernel in row["Kernel Name"] for kernel, row in zip(kernels, rows[at:])):
            left = iter(rows[at:])
            return [[next(left) for _ in names] for _, _, names in CALLS]
    sys.exit("no whole layer and end among the launches: " + ", ".join(row["Kernel Name"][:40] for row in rows))


def number(row, name):
    return float(row[name].replace(",", ""))


def account_of(account, operator, shape):
    decode = next(p for p in account["phases"] if p["name"] == "decode")
    row = next(o for o in decode["operators"] if o["name"] == operator and o["shape"].startswith(shape))
    of_bytes = [sum(b[way] for b in row["bytes"].values()) / row["calls"] for way in ("read", "written")]
    return of_bytes + [row["executed_flops"] / row["calls"]]


def beside(ours, counted, digits):
    mark = " *" if abs(counted - ours) > 0.05 * max(abs(counted), abs(ours), 1e-9) else ""
    return f"{ours:.{digits}f} | {counted:.{digits}f}{mark}"


def line_of(call, rows, account):
    operator, shape, _ = call
    read, written, flops = account_of(account, operator, shape)
    total = lambda name: sum(number(row, name) for row in rows)  # noqa: E731
    row, ns = rows[0], total("gpu__time_duration.sum")
    mma = flops / MMA_FLOPS * MMA_CYCLES / SUBCORES / (ns * CLOCK_GHZ) * 100
    counted_mma = number(row, "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active")
    blocks, threads = (math.prod(int(n) for n in row[name].strip("()").split(",")) for name in ("Grid Size", "Block Size"))
    shared, registers = number(row, "launch__shared_mem_per_block"), number(row, "launch__registers_per_thread")
    fit = min(2048 // threads, int(233472 // shared), int(65536 // (registers * threads)), -(-blocks // 132))
    warps = 100 * fit * threads / 32 / SM_WARPS
    uses_matrix = flops > 0 and counted_mma > 1
    return (f"| {operator} {shape} | {beside(read / 1e6, total('dram__bytes_read.sum') / 1e6, 3)} "
            f"| {beside(written / 1e6, total('dram__bytes_write.sum') / 1e6, 3)} "
            f"| {beside(mma, counted_mma, 1) if uses_matrix else '– | ' + format(counted_mma, '.1f')} "
            f"| {beside(warps, number(row, 'sm__warps_active.avg.pct_of_peak_sustained_active'), 1)} "
            f"| {registers:.0f} | {shared / 1024:.0f} | {blocks} x {threads} |")


def main():
    folder = pathlib.Path(sys.argv[1])
    account = json.JSONDecoder().raw_decode((folder / "account.json").read_text(encoding="utf-8"))[0]
    print("| call | MB read | DRAM | MB written | DRAM | matrix pipe % | counted | warps % | counted | registers | KiB | blocks |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for call, rows in zip(CALLS, calls_of(launches(folder / "ncu.csv"))):
        print(line_of(call, rows, account))


if __name__ == "__main__":
    main()
