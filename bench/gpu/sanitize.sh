#!/usr/bin/env bash
# The conformance set at small sizes and the small cases under compute-sanitizer's four tools, side by side:
# bench/gpu/sanitize.sh BUILD_FOLDER OUT_FOLDER [EVERY]
# BUILD_FOLDER: with gpu_conformance and gpu_cases. EVERY: each EVERYth choice of types and layouts of gpu_conformance
# (default 97: about a minute). OUT_FOLDER gets two logs a tool; tools/device_code.py --sanitized OUT_FOLDER makes the
# evidence of them. Exits with 1 when a tool finds something, a check fails or a program takes more than
# RIDGE_SANITIZE_SECONDS (default 300).
set -u
export RIDGE_CUBLASLT=/dev/null # its kernels are its maker's to check, run.sh compares what they write; an empty one would not reach the programs
build=$1 out=$2 every=${3:-97}
tools="memcheck racecheck synccheck initcheck"
mkdir -p "$out"
pids=()
for tool in $tools; do
  timeout "${RIDGE_SANITIZE_SECONDS:-300}" compute-sanitizer --tool "$tool" --print-limit 20 "$build/gpu_conformance" "every=$every" >"$out/$tool.log" 2>&1 &
  pids+=($!)
  timeout "${RIDGE_SANITIZE_SECONDS:-300}" compute-sanitizer --tool "$tool" --print-limit 20 "$build/gpu_cases" small >"$out/$tool-cases.log" 2>&1 &
  pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done
failed=0
for tool in $tools; do
  for log in "$out/$tool.log" "$out/$tool-cases.log"; do
    echo "$tool: $(grep -E '^[0-9]+ (runs|cases), ' "$log"); $(grep -E ' SUMMARY: ' "$log")"
    grep -qE ' SUMMARY: 0 (errors|hazards)' "$log" && grep -qE '^[0-9]+ (runs|cases), 0 ' "$log" || failed=1
  done
done
exit $failed
