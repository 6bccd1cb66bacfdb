#!/usr/bin/env bash
# The conformance set at small sizes and the cases of a batch under compute-sanitizer's four tools, side by side:
# bench/gpu/sanitize.sh BUILD_FOLDER OUT_FOLDER [EVERY]
# EVERY: each EVERYth choice of types and layouts of gpu_conformance (default 97: about a minute). OUT_FOLDER gets a log a
# tool; tools/device_code.py --sanitized OUT_FOLDER makes the evidence of them. Exits with 1 when a tool finds something.
set -u
build=$1 out=$2 every=${3:-97}
mkdir -p "$out"
pids=()
for tool in memcheck racecheck synccheck initcheck; do
  compute-sanitizer --tool "$tool" --print-limit 20 "$build/gpu_conformance" "every=$every" >"$out/$tool.log" 2>&1 &
  pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done
failed=0
for tool in memcheck racecheck synccheck initcheck; do
  echo "$tool: $(grep -E '^[0-9]+ runs, ' "$out/$tool.log"); $(grep -E ' SUMMARY: ' "$out/$tool.log")"
  grep -qE ' SUMMARY: 0 (errors|hazards)' "$out/$tool.log" || failed=1
done
exit $failed
