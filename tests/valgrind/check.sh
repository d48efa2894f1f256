#!/usr/bin/env bash
# The C++ examples under valgrind's memcheck: no invalid access, nothing lost. Memory that is still reachable at the end
# is allowed: blocks of the slab and tables of the process stay by design (docs/architecture.md).
#
#   tests/valgrind/check.sh EXAMPLES_DIR   the folder of hello and digits
#
# A program that leaks on purpose must be found first. Exit code 77, with the reason, where valgrind cannot run.
set -uo pipefail
. "$(dirname "$0")/../../scripts/common.sh"
[[ -d ${1-} ]] || usage "no such folder: '${1-}'"
no_arguments "${@:2}"
here=$(cd "$(dirname "$0")" && pwd)
examples=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! valgrind --error-exitcode=9 true >"$work/log" 2>&1; then
  tail -n 3 "$work/log"
  echo "skipped: no memcheck of the examples, because valgrind cannot run here"
  exit 77
fi
passed=0 failed=0

memcheck() { # log program...
  local log=$1
  shift
  valgrind --leak-check=full --errors-for-leak-kinds=definite,indirect,possible --error-exitcode=9 --suppressions="$here/memcheck.supp" \
    --log-file="$log" "$@" >"$work/out" 2>"$work/err" </dev/null
}

check() { # name program...
  local name=$1 log=$work/$1.log
  shift
  if memcheck "$log" "$@" && grep -Eq 'definitely lost: 0 bytes|All heap blocks were freed' "$log"; then
    passed=$((passed + 1))
    echo "ok      $name: $(sed -n 's/^==[0-9]*== *\(definitely lost: .*\)/\1/p' "$log")"
  else
    failed=$((failed + 1))
    echo "FAILED  $name"
    cat "$log" "$work/err"
  fi
}

printf 'int main() {\n  char* volatile lost = new char[7];\n  lost = nullptr;\n}\n' >"$work/lost.cc"
if "${CXX:-c++}" -O0 "$work/lost.cc" -o "$work/lost" && ! memcheck "$work/lost.log" "$work/lost" &&
  grep -q 'definitely lost: 7 bytes in 1 blocks' "$work/lost.log"; then
  passed=$((passed + 1))
  echo "ok      a program that loses 7 bytes is found"
else
  failed=$((failed + 1))
  echo "FAILED  a program that loses 7 bytes is not found"
fi
check hello "$examples/hello"
check digits "$examples/digits" --steps 3
check digits-traced "$examples/digits" --steps 2 --devices 2 --workers 2 --trace "$work/trace.json"
echo "$passed passed, $failed failed"
[[ $failed == 0 ]]
