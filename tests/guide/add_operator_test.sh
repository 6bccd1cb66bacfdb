#!/usr/bin/env bash
# add_operator_test.sh ROOT: does what CONTRIBUTING.md says under "Add an operator" in a copy of the checkout, and
# shows that no other file changed, that conformance runs and passes the new operator on every instruction set that
# this CPU has, and that it would have noticed a wrong kernel.
set -euo pipefail
root=$(cd "$1" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "add_operator_test: $*" >&2 && exit 1; }

git -C "$root" ls-files -z | (cd "$root" && xargs -0 -n 100 sh -c 'for f; do [ -f "$f" ] && printf "%s\0" "$f"; done' sh) |
  tar -C "$root" --null -T - -cf - | tar -C "$scratch" -xf -
cd "$scratch"
# What its conformance finds is about the copy.
unset RIDGE_SUPPORT_FOLDER
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t
git init -q . && git add -A && git commit -qm copy

# Steps 1 to 4: the files, as the guide prints them.
python3 - <<'PY'
import pathlib, re
guide = pathlib.Path("CONTRIBUTING.md").read_text(encoding="utf-8")
files = re.findall(r"<!-- file: (\S+) -->\n```cpp\n(.*?)```\n", guide, re.S)
assert len(files) == 4, f"{len(files)} files found in the guide"
for name, text in files:
    path = pathlib.Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
PY
clang-format-14 --dry-run --Werror src/ops/scale_rows/* || fail "the guide's code is not formatted"
python3 tools/check_includes.py >/dev/null || fail "the guide's code includes against the arrows"

# Step 5. Built as ./check builds, whose objects are in the compiler cache.
export CCACHE_BASEDIR=$scratch CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
build() { cmake --build build/cpu -j "$(nproc)" --target conformance_test >build.log 2>&1 || { tail -n 30 build.log >&2 && fail "no build"; }; }
cmake --preset cpu -DRIDGE_UNITY=ON >build.log 2>&1 || { tail -n 30 build.log >&2 && fail "no configuration"; }
build
build/cpu/conformance_test --gtest_filter='*/scale_rows' | tee run.log
grep -q '1 test from' run.log && grep -q 'PASSED.* 1 test' run.log || fail "conformance did not pass one test"
kernels=$(grep -c 'scale_rows_by_row' run.log)
[ "$kernels" -ge 1 ] || fail "conformance named no kernel"
[ "$(git status --porcelain | grep -v '\.log$')" = "?? src/ops/scale_rows/" ] || fail "other files changed: $(git status --porcelain)"

sed -i 's|load(x + i, live) \* scale|load(x + i, live) + scale|' src/ops/scale_rows/scale_rows_cpu.cc
build
if build/cpu/conformance_test --gtest_filter='*/scale_rows' >run.log; then fail "a wrong kernel passed conformance"; fi
grep -q 'scale_rows_by_row' run.log || fail "the failure does not name the kernel"
echo "ok: $kernels kernels, no other file"
