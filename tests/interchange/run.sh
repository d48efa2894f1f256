#!/usr/bin/env bash
# Purlin's .npy files, safetensors files and DLPack structs against NumPy and safetensors from PyPI, in both directions.
#
#   tests/interchange/run.sh [PATH_OF_libpurlin_interchange.so]       default: that of build/release
#
# The packages are pinned, and go into .tools/interchange. Exit code 77, with the reason on the last line: there is no
# python3 with venv, or PyPI is out of reach. check.py has the checks.
set -euo pipefail
. "$(dirname "$0")/../../scripts/common.sh"
[[ $# == 0 || -f $1 ]] || usage "no such file: '$1'"
no_arguments "${@:2}"
cd "$(dirname "$0")/../.."
library=$(realpath "${1:-build/release/tests/libpurlin_interchange.so}")
[[ -f $library ]] || { echo "there is no $library: build the target purlin_interchange"; exit 1; }
packages=(numpy==2.4.6 safetensors==0.8.0 ml_dtypes==0.6.0)
venv=.tools/interchange
skip() { echo "skipped: $*; Purlin's files were not checked against NumPy and safetensors"; exit 77; }

if [[ "$(cat "$venv/packages" 2>/dev/null)" != "${packages[*]}" ]]; then
  command -v python3 >/dev/null || skip "there is no python3"
  python3 -m venv "$venv" || skip "python3 has no venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --retries 2 --timeout 30 "${packages[@]}" || skip "PyPI does not give ${packages[*]}"
  echo "${packages[*]}" >"$venv/packages"
fi
"$venv/bin/python" tests/interchange/check.py "$library"
