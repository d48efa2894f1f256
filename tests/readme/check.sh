#!/usr/bin/env bash
# The README's C++ example is examples/cpp/hello.cc, and it compiles and runs as the README prints it.
#
#   tests/readme/check.sh SOURCE_DIR COMPILER libpurlin.a WORK_DIR
#
# In README.md a line `<!-- examples/cpp/hello.cc -->` stands before the ```cpp block. Exit code 1 if the block is not
# there, differs from the file, or does not compile and run with success.
set -euo pipefail
. "$(dirname "$0")/../../scripts/common.sh"
[[ -d ${1-} && -n ${2-} && -f ${3-} && -n ${4-} ]] || usage "no such folder, compiler, archive and folder: '$*'"
no_arguments "${@:5}"
source_dir=$1 compiler=$2 archive=$3 work=$4
readme=$source_dir/README.md example=$source_dir/examples/cpp/hello.cc marker='<!-- examples/cpp/hello.cc -->'
mkdir -p "$work"

awk -v marker="$marker" '
  $0 == marker { marked = 1; next }
  marked && !inside && $0 == "```cpp" { inside = 1; next }
  marked && !inside && NF > 0 { exit }
  inside && $0 == "```" { exit }
  inside { print }' "$readme" >"$work/hello.cc"
if ! [[ -s $work/hello.cc ]]; then
  echo "FAILED: README.md has no \`\`\`cpp block after a line '$marker'"
  exit 1
fi
if ! diff -u --label README.md --label examples/cpp/hello.cc "$work/hello.cc" "$example"; then
  echo "FAILED: README.md and examples/cpp/hello.cc differ"
  exit 1
fi
"$compiler" -std=c++17 -O1 -Wall -Wextra -Wpedantic -Werror -I"$source_dir/include" "$work/hello.cc" "$archive" \
  -lpthread -ldl -lm -o "$work/hello"
"$work/hello"
