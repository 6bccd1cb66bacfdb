#!/usr/bin/env bash
# Chromium without a window, for whatever looks at a page: the one place that knows its names and its sandbox.
# usage: headless.sh OPTION… URL    runs it, with its exit code
#        headless.sh                says whether there is one
# Without one it says so and ends with 77, which tests take for "skipped".
set -euo pipefail
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
  echo "headless: needs Chromium: apt-get install chromium" >&2
  exit 77
}
[ $# -gt 0 ] || exit 0
# Root may not use the sandbox of Chromium.
sandbox=()
[ "$(id -u)" -ne 0 ] || sandbox=(--no-sandbox)
exec "$browser" --headless "${sandbox[@]}" --disable-gpu --hide-scrollbars "$@"
