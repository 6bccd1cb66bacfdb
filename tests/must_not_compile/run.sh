#!/bin/sh
# run.sh COMPILER SRC FILE [FLAG...]: FILE compiles; with -DMISUSE it does not, and the compiler says what "// expect:" names.
set -u
compiler=$1 src=$2 file=$3
shift 3
[ $# -gt 0 ] || set -- -Wall -Wextra -Werror -fsyntax-only
expected=$(sed -n 's|^// expect: ||p' "$file")
[ -n "$expected" ] || { echo "$file names no message that it expects"; exit 1; }
if ! message=$("$compiler" -std=c++20 -I"$src" "$@" "$file" 2>&1); then
  printf 'does not compile even without the misuse:\n%s\n' "$message"
  exit 1
fi
if message=$("$compiler" -std=c++20 -I"$src" "$@" -DMISUSE "$file" 2>&1); then
  echo "compiles with the misuse"
  exit 1
fi
printf '%s\n' "$message" | grep -Eq "$expected" && exit 0
printf 'is refused, but not for /%s/:\n%s\n' "$expected" "$message"
exit 1
