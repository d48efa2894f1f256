#!/usr/bin/env bash
# Runs a program on the fake CUDA driver, which cargo builds.
#
#   tests/cuda/on_fake.sh PROGRAM        in the environment: PURLIN_CARGO, and CARGO_TARGET_DIR if it is not `target`
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/scripts/common.sh"
program=${1-}
[[ -x $program ]] || usage "no such program: '$program'"
no_arguments "${@:2}"
cd "$root"
"${PURLIN_CARGO:-cargo}" build --locked --quiet --package purlin-fakecuda </dev/null
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# By both names that programs look for: a machine with a GPU may have either.
for name in libcuda.so libcuda.so.1; do
  ln -s "${CARGO_TARGET_DIR:-$root/target}/debug/deps/libcuda.so" "$folder/$name"
done
LD_LIBRARY_PATH=$folder PURLIN_FAKECUDA_DEVICES=3 PURLIN_FAKECUDA_ON_REPORT=abort "$program"
