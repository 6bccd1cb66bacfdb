# shellcheck shell=bash
# Sourced: where RIDGE_CUBLASLT is not set, it becomes the cuBLASLt that python's packages have, if they do.
if [ -z "${RIDGE_CUBLASLT+set}" ]; then
  packaged=$(python3 -c 'import glob, sysconfig; print(next(iter(glob.glob(sysconfig.get_path("purelib") + "/nvidia/*/lib/libcublasLt.so.1*")), ""))' 2>/dev/null)
  [ -n "$packaged" ] && export RIDGE_CUBLASLT=$packaged
fi
