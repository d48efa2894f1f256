#!/usr/bin/env bash
# The README's C++ compiles, and prints what it is there for: tests/readme/quotes.sh compares it with
# examples/cpp/first.cc.
#
#   tests/readme/check.sh SOURCE_DIR COMPILER libpurlin.a WORK_DIR
#
# In README.md a line `<!-- from examples/cpp/first.cc -->` stands before the ```cpp block. Exit code 1 if the block is
# not there, or does not compile without a warning and print the mean.
set -euo pipefail
. "$(dirname "$0")/../../scripts/common.sh"
[[ -d ${1-} && -n ${2-} && -f ${3-} && -n ${4-} ]] || usage "no such folder, compiler, archive and folder: '$*'"
no_arguments "${@:5}"
source_dir=$1 compiler=$2 archive=$3 work=$4
readme=$source_dir/README.md marker='<!-- from examples/cpp/first.cc -->' mean=24.25
mkdir -p "$work"

awk -v marker="$marker" '
  $0 == marker { marked = 1; next }
  marked && !inside && $0 == "```cpp" { inside = 1; next }
  marked && !inside && NF > 0 { exit }
  inside && $0 == "```" { exit }
  inside { print }' "$readme" >"$work/first.cc"
if ! [[ -s $work/first.cc ]]; then
  echo "FAILED: README.md has no \`\`\`cpp block after a line '$marker'"
  exit 1
fi
"$compiler" -std=c++17 -O1 -Wall -Wextra -Wpedantic -Wconversion -Werror -fno-exceptions -fno-rtti -I"$source_dir/include" \
  "$work/first.cc" "$archive" -lpthread -ldl -lm -o "$work/first"
printed=$("$work/first")
echo "$printed"
[[ $printed == "$mean" ]] || { echo "FAILED: it does not print $mean"; exit 1; }
