#!/usr/bin/env bash
# Device checks and figures on a machine with an H100 or H200: bench/gpu/run.sh BUILD_FOLDER OUT_FOLDER [COMMIT]
# BUILD_FOLDER: of the cuda preset, with gpu_bench, gpu_conformance and gpu_cases (cmake --build build/cuda --target
# gpu_bench gpu_conformance gpu_cases). OUT_FOLDER gets the logs and the figures (PART/rows.json); bench/gpu/collect.py makes
# rows of the scoreboard of them; tools/device_code.py --record OUT_FOLDER/conformance.log and --cases OUT_FOLDER keep the
# evidence. RIDGE_CHECKED_BUILD: a folder of the checked preset, with gpu_cases, whose kernels check their indices
# (default: checked, beside BUILD_FOLDER, where it is). About a minute. The peer of the linear rows, and a kernel of linears, is
# the machine's own cuBLASLt: RIDGE_CUBLASLT names its library when the loader does not find it; unset, the packaged one if
# python has it.
set -u
build=$1 out=$2 commit=${3:-$(git rev-parse --short HEAD 2>/dev/null || echo unknown)}
mkdir -p "$out"
# shellcheck source=bench/gpu/cublaslt.sh
. "$(dirname "$0")/cublaslt.sh"
failed=0
"$build/gpu_conformance" > "$out/conformance.log" 2>&1 || failed=1
tail -n 1 "$out/conformance.log"
"$build/gpu_cases" > "$out/cases.log" 2>&1 || failed=1
tail -n 1 "$out/cases.log"
checked=${RIDGE_CHECKED_BUILD:-$(dirname "$build")/checked}
if [ -x "$checked/gpu_cases" ]; then
  "$checked/gpu_cases" > "$out/checked.log" 2>&1 || failed=1
  echo "checked build: $(tail -n 1 "$out/checked.log")"
fi
"$build/gpu_bench" "$out" "$commit" check > "$out/check.log" 2>&1 || failed=1
tail -n 1 "$out/check.log"
for part in rows linear attention prefill packed; do
  mkdir -p "$out/$part"
  "$build/gpu_bench" "$out/$part" "$commit" "$part" > "$out/$part.log" 2>&1 || failed=1
  cat "$out/$part.log"
done
exit $failed
