#!/usr/bin/env bash
# Loads a report page in headless Chromium, light and dark, wide and narrow: fails on a console message, a blocked
# or attempted request or an empty picture, and leaves the pictures to be looked at. Without Chromium it ends with 77.
# usage: report_screenshot.sh PAGE.html [FOLDER]
#        report_screenshot.sh --test PROGRAM PAGE.html FOLDER    the page of tests/lab/report_test.cc, which PROGRAM holds
set -euo pipefail
if [ "${1:-}" = --test ]; then
  RIDGE_REPORT_EXAMPLE=$3 "$2" --gtest_filter=Report.is_written_where_asked
  shift 2
fi
page=${1:?usage: report_screenshot.sh PAGE.html [FOLDER]}
folder=${2:-$(mktemp -d)}
page=$(realpath "$page")
headless=$(dirname "$(realpath "$0")")/../../tools/headless.sh
"$headless" || exit $?
mkdir -p "$folder"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

failed=0
shoot() { # NAME WIDTH HEIGHT [OPTION…]
  local name=$1 width=$2 height=$3
  shift 3
  timeout 120 "$headless" --enable-logging=stderr --v=0 \
    --user-data-dir="$scratch/$name" --window-size="$width,$height" --screenshot="$folder/$name.png" "$@" \
    "file://$page" >"$scratch/$name.log" 2>&1 || { echo "$name: Chromium failed" && failed=1; }
  if grep -E 'CONSOLE|Refused to|ERR_' "$scratch/$name.log"; then
    echo "$name: the page complained" && failed=1
  fi
  # A page of one colour makes a tiny picture.
  if [ "$(stat -c %s "$folder/$name.png" 2>/dev/null || echo 0)" -lt 40000 ]; then
    echo "$name: no picture, or an empty one" && failed=1
  fi
}
shoot wide 1280 3200
shoot narrow 400 4200
shoot dark 1280 3200 --blink-settings=preferredColorScheme=0
echo "pictures in $folder"
exit $failed
