#!/usr/bin/env bash
# Runs a program on the fake CUDA driver, with three GPUs that NVLink joins, and the fakes of NVML and nvrtc; a report
# of the driver's detector ends the program.
#
#   tests/cuda/on_fake.sh PROGRAM [ARGUMENT...]               on the driver that cargo builds; in the environment:
#                                                             PURLIN_CARGO, and CARGO_TARGET_DIR if it is not `target`
#   tests/cuda/on_fake.sh --driver FOLDER PROGRAM [ARGUMENT...]   on FOLDER/libcuda.so
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/scripts/common.sh"
built=
if [[ ${1-} == --driver ]]; then
  built=${2-}
  [[ -f $built/libcuda.so ]] || usage "no driver in '$built'"
  shift 2
fi
[[ -x ${1-} ]] || usage "no such program: '${1-}'"
cd "$root"
if [[ -z $built ]]; then
  "${PURLIN_CARGO:-cargo}" build --locked --quiet --package purlin-fakecuda </dev/null
  built=${CARGO_TARGET_DIR:-$root/target}/debug/deps
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# By both names that programs look for: a machine with a GPU may have either.
for name in libcuda.so libcuda.so.1; do
  ln -s "$built/libcuda.so" "$folder/$name"
done
ln -s "$built/libnvidia_ml.so" "$folder/libnvidia-ml.so.1"
export PURLIN_FAKECUDA_FABRIC=${PURLIN_FAKECUDA_FABRIC-3:0:7}
export PURLIN_NVRTC=$built/libpurlin_fakenvrtc.so  # Cargo builds it beside the driver.
export PURLIN_FAKECUDA_DEVICES=${PURLIN_FAKECUDA_DEVICES-3} PURLIN_FAKECUDA_ON_REPORT=${PURLIN_FAKECUDA_ON_REPORT-abort}
LD_LIBRARY_PATH=$folder "$@"
