#!/usr/bin/env bash
# The action of prelinked_archive.bzl. cmake/PurlinLibraries.cmake does the same for CMake and says why each flag is
# there.
#
#   prelinked_archive.sh HOST_SH EXPORTED_SYMBOLS keep|strip CPP_ARCHIVE RUST_ARCHIVE ARCHIVE   keep: debug information
set -euo pipefail
host=$1 exported=$2 debug=$3 cpp=$4 rust=$5 archive=$6
# shellcheck source=/dev/null  # written by rust_host.bzl
. "$host"
prelinked=${archive%.a}_prelinked.o
localised=${archive%.a}_localised.o
trap 'rm -f "$prelinked" "$localised"' EXIT

"$LD" -r --force-group-allocation --wrap=dlopen -o "$prelinked" --whole-archive "$cpp" --no-whole-archive "$rust"
strip=()
[[ $debug == keep ]] || strip=(--strip-debug)
"$OBJCOPY" --wildcard "--keep-global-symbols=$exported" --localize-hidden --remove-section=.llvmbc \
  --remove-section=.llvmcmd "${strip[@]}" "$prelinked" "$localised"
rm -f "$archive"
"$AR" rcsD "$archive" "$localised"
