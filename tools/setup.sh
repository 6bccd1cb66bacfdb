#!/usr/bin/env bash
# Installs, by apt, what a build needs and is missing: setup.sh [build|check].
#   build (default)  compiler, CMake, libraries: enough for ./demo
#   check            also clang, its sanitizers and clang-format: enough for ./check
# Without root it prints the command and stops with exit code 1. Does nothing, silently, when all is there.
set -euo pipefail

have() { command -v "$1" >/dev/null 2>&1; }
header() { # HEADER…: whether the compiler finds each
  local name
  for name in "$@"; do
    printf '#if !__has_include(<%s>)\n#error missing\n#endif\n' "$name" | g++ -std=c++20 -E -x c++ - >/dev/null 2>&1 || return 1
  done
}

# clang's major version on this system: its sanitizer runtime is a package of its own, named by it.
clang_major() {
  local id="" version=""
  if [ -r /etc/os-release ]; then
    id=$(. /etc/os-release && echo "${ID:-}")
    version=$(. /etc/os-release && echo "${VERSION_ID:-}")
  fi
  if have clang; then
    clang -dumpversion | cut -d. -f1
  elif [ "$id" = ubuntu ] && [ "${version%%.*}" -ge 24 ] 2>/dev/null; then
    echo 18
  else
    echo 14
  fi
}

missing=()
needs_build() {
  have g++ || missing+=(g++)
  have cmake || missing+=(cmake)
  have ninja || missing+=(ninja-build)
  have objcopy || missing+=(binutils)
  have g++ && header CLI/CLI.hpp || missing+=(libcli11-dev)
  have g++ && header nlohmann/json.hpp || missing+=(nlohmann-json3-dev)
  have git || missing+=(git)
  have python3 || missing+=(python3)
  have python3 && python3 -m pip --version >/dev/null 2>&1 || missing+=(python3-pip)
}
needs_check() {
  have g++ && header gtest/gtest.h || missing+=(libgtest-dev)
  have clang && have clang++ || missing+=(clang)
  have clang-format-14 || missing+=(clang-format-14)
  have ccache || missing+=(ccache)
  local major
  major=$(clang_major)
  compgen -G "/usr/lib/llvm-$major/lib/clang/*/lib/linux/libclang_rt.fuzzer-*" >/dev/null ||
    missing+=("libclang-rt-$major-dev")
}

case ${1:-build} in
  build) needs_build ;;
  check) needs_build && needs_check ;;
  *) echo "usage: tools/setup.sh [build|check]" >&2 && exit 2 ;;
esac
[ ${#missing[@]} -eq 0 ] && exit 0

install="apt-get install -y --no-install-recommends ${missing[*]}"
if ! have apt-get; then
  echo "setup: missing, and there is no apt-get here: install what corresponds to ${missing[*]}" >&2
  exit 1
fi
if [ "$(id -u)" != 0 ]; then
  printf 'setup: %d packages are missing. Run this, then try again:\n  sudo apt-get update && sudo %s\n' \
    "${#missing[@]}" "$install" >&2
  exit 1
fi
echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt-get update -q && apt-get install -y -q --no-install-recommends "${missing[@]}"; } </dev/null >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "setup: this failed, see above: $install" >&2
  exit 1
fi
