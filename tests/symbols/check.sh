#!/usr/bin/env bash
# Compares what the libraries define for their users with the golden list tests/symbols/exported.txt.
#
#   tests/symbols/check.sh [--update] libpurlin.a libpurlin.so
#
# The archive's global names and the shared library's dynamic ones must both be the list, demangled and sorted. The
# archive must need no symbol that only Purlin could define, and the shared library must need nothing but the C++
# runtime, and no function of CUDA or of another library of NVIDIA's. --update writes the list anew; review the
# difference as a change of the ABI. Exit code 1 on any difference.
set -euo pipefail
. "$(dirname "$0")/../../scripts/common.sh"
golden=$(dirname "$0")/exported.txt
update=false
if [[ ${1-} == --update ]]; then update=true; shift; fi
[[ -f ${1-} && -f ${2-} ]] || usage "no such files: '${1-}' '${2-}'"
no_arguments "${@:3}"
archive=$1 shared=$2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# nm prints "address type name"; A is the version node itself.
names() { awk 'NF == 3 && $2 != "A" { print $3 }' | sed 's/@@PURLIN_0$//' | c++filt | LC_ALL=C sort -u; }
nm -D --defined-only "$shared" | names >"$work/shared"
nm --extern-only --defined-only "$archive" | names >"$work/archive"

if $update; then
  cp "$work/shared" "$golden"
  echo "$golden: $(wc -l <"$golden") names"
fi

failed=0
for kind in shared archive; do
  if ! diff -u --label "$golden" --label "$kind library" "$golden" "$work/$kind"; then
    echo "FAILED: the $kind library does not define what $golden lists (--update writes it anew)"
    failed=1
  fi
done
if ! grep -q . "$golden" || grep -nv 'purlin::v0::' "$golden"; then
  echo "FAILED: $golden is empty or has names outside purlin::v0"
  failed=1
fi
if nm --undefined-only "$archive" | grep -E '^ +U .*(purlin|cxxbridge|rust_|_R[NI])'; then
  echo "FAILED: the archive leaves names of our own undefined"
  failed=1
fi
if nm --extern-only --defined-only "$archive" | awk 'NF == 3 && $2 == "u"' | grep .; then
  echo "FAILED: GNU unique names would pin any plugin that holds the archive"
  failed=1
fi
needed=$(readelf -dW "$shared" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
if grep -vE '^(libstdc\+\+|libgcc_s|libm|libc|ld-linux-[a-z0-9-]+)\.so\.[0-9]+$' <<<"$needed"; then
  echo "FAILED: the shared library needs more than the C++ runtime"
  failed=1
fi
# cuInit, cudaMalloc, cublasCreate, nvrtcVersion, nvmlInit, nvJitLinkCreate, ncclSend.
if nm -D --undefined-only "$shared" | grep -E ' (cu[A-Z]|(cuda|cublas|cudnn|nvrtc|nvml|nvtx|nccl|nv)[A-Z])'; then
  echo "FAILED: the shared library needs functions of CUDA, which are found when a program runs, or not"
  failed=1
fi
if ! readelf -dW "$shared" | grep -q 'SONAME.*\[libpurlind\?\.so\.0\]'; then
  echo "FAILED: the shared library is not called libpurlin.so.0"
  failed=1
fi
((failed == 0)) && echo "$(wc -l <"$golden") names, the same in archive, shared library and golden list"
exit "$failed"
