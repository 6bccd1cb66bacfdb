#!/bin/sh
# Compiler launcher for kernels of one instruction set: isolate.sh COMPILER ARGS…
# After compiling, every weak symbol that the object defines (inline functions and templates of the standard library
# and of ours) becomes its own local copy, so that the linker cannot let an older CPU run a wide copy of it.
set -e
"$@"
previous= object=
for argument in "$@"; do
  [ "$previous" = -o ] && object=$argument
  previous=$argument
done
case $object in *.o) ;; *) exit 0 ;; esac
list=$object.weak
nm --defined-only "$object" | sed -nE 's/^[0-9a-f]+ [WV] (.*)$/\1/p' | grep -v '^DW\.ref\.' >"$list" || true
if [ -s "$list" ]; then
  objcopy --remove-section .group --localize-symbols="$list" "$object"
fi
rm -f "$list"
