#!/usr/bin/env bash
# readme_test.sh COMPILER ROOT: the C++ of README.md compiles.
set -euo pipefail
file=$(mktemp --suffix=.cc)
trap 'rm -f "$file"' EXIT
sed -n '/^```cpp$/,/^```$/p' "$2/README.md" | sed '/^```/d' >"$file"
grep -q '#include' "$file" || { echo "README.md holds no C++" && exit 1; }
"$1" -std=c++20 -Wall -Wextra -Werror -fsyntax-only -I"$2/src" "$file"
