#!/usr/bin/env bash
# How long all CUDA code of the library takes to build: bench/gpu/build.sh SOURCE_FOLDER BUILD_FOLDER [JOBS]
# On JOBS (2) CPUs, from nothing and without a compiler cache; needs nvcc and ninja. Prints one JSON object, from which
# bench/gpu/build_rows.py makes rows G13-build and G13-file.
set -eu
source=$1 build=$2 jobs=${3:-2}
cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DRIDGE_CUDA=ON -DRIDGE_UNITY=ON -DRIDGE_KERNEL_ISAS=scalar \
  -DCMAKE_CXX_FLAGS=-Wno-format-security >"$build.log" 2>&1
objects=$(ninja -C "$build" -t targets all | grep -o '^CMakeFiles/ridge.dir/src/.*_cuda.cu.o')
began=$(date +%s%N)
# shellcheck disable=SC2086
CCACHE_DISABLE=1 taskset -c "0-$((jobs - 1))" ninja -C "$build" -j"$jobs" $objects >"$build.log"
ended=$(date +%s%N)
python3 - "$build/.ninja_log" "$jobs" "$((ended - began))" <<'P'
import json, sys
rows = [line.split("\t") for line in open(sys.argv[1], encoding="utf-8") if "_cuda.cu.o" in line]
slowest = max(rows, key=lambda r: int(r[1]) - int(r[0]))
print(json.dumps({"cpus": int(sys.argv[2]), "seconds": int(sys.argv[3]) / 1e9, "files": len(rows), "slowest": slowest[3],
                  "slowest_seconds": (int(slowest[1]) - int(slowest[0])) / 1e3}))
P
