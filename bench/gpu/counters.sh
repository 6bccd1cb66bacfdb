#!/usr/bin/env bash
# What the hardware counted beside what the account counts, on one layer of a decode step: bench/gpu/counters.sh BUILD_FOLDER OUT_FOLDER
# Needs Nsight Compute (ncu) and a GPU that lets it read counters. Llama-3-8B's shape, batch 8, 512 keys, bf16; call by call.
# OUT_FOLDER gets ncu.csv and account.json, which bench/gpu/counters.py makes a table of.
set -u
build=$1 out=$2
mkdir -p "$out"
load="llama-3-8b --synthetic --device cuda --activations bf16 --kv bf16 --page-size 16 --context 1024 --prompt-tokens 512 --prefill-tokens 4096 --batch 8 --no-graphs"
machine=${RIDGE_MACHINE:-$out/machine.json}
[ -f "$machine" ] || "$build/ridge" probe --device cuda -o "$machine" >/dev/null || exit 1
# Of the chosen kernels a step of prompts launches 101, and there are two before the first decode step, of which 30
# layers are passed over.
# shellcheck disable=SC2086
ncu --csv --page raw --clock-control none --kernel-name 'regex:gemm_stream|attention_decode_split|rms_norm_row|rope_kv_write_pairs|gather_rows|sample_stats|sample_rows' \
  --launch-skip 412 --launch-count 20 \
  --metrics dram__bytes_read.sum,dram__bytes_write.sum,sm__warps_active.avg.pct_of_peak_sustained_active,sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active,launch__registers_per_thread,launch__shared_mem_per_block,launch__occupancy_per_block_size,launch__waves_per_multiprocessor,gpu__time_duration.sum \
  "$build/ridge" bench $load --output-tokens 4 --runs 1 --deep --no-look-ahead >"$out/ncu.csv" 2>"$out/ncu.log" || exit 1
# shellcheck disable=SC2086
"$build/ridge" profile $load --output-tokens 4 --machine "$machine" --json >"$out/account.json"
