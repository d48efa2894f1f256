#!/usr/bin/env bash
# Compiles every header under include/, alone or all together, and twice in a row, with all warnings as errors. Adapters
# are left out, because they need their other sides (tests/interop), except those that need the standard library alone,
# and the layouts.
#
#   tests/headers/check.sh alone|together COMPILER STANDARD      such as: tests/headers/check.sh alone g++ c++17
#
# Exit code 1 if one does not compile, 77 if COMPILER is not there.
set -euo pipefail
. "$(dirname "$0")/../../scripts/common.sh"
how=${1-} compiler=${2-} standard=${3-}
[[ $how == alone || $how == together ]] || usage "'$how' is neither alone nor together"
[[ $standard =~ ^c\+\+[0-9a-z]+$ ]] || usage "no such standard: '$standard'"
no_arguments "${@:4}"
include=$(cd "$(dirname "$0")/../../include" && pwd)

if [[ -z $compiler || $compiler == *-NOTFOUND ]] || ! command -v "$compiler" >/dev/null; then
  echo "skipped: no such compiler here: '$compiler'; no header was compiled as $standard with it"
  exit 77
fi

# compile HEADER...: as one unit.
compile() {
  printf '#include "%s"\n' "$@" "$@" |
    "$compiler" -x c++ -std="$standard" -Wall -Wextra -Wpedantic -Wconversion -Werror -fno-exceptions -fno-rtti \
      -I"$include" -fsyntax-only - || { echo "FAILED: does not compile: $*"; return 1; }
}
export -f compile
export compiler standard include

mapfile -t headers < <(cd "$include" && find purlin -name '*.h' \( -not -path '*/adapters/*' -o -name std.h -o -name 'owed_*.h' -o -name 'pjrt_*.h' \) | sort)
((${#headers[@]} > 0)) || { echo "no header under include/"; exit 1; }
if [[ $how == alone ]]; then
  printf '%s\0' "${headers[@]}" | xargs -0 -P "$jobs" -I{} bash -c 'compile "{}"'
else
  compile "${headers[@]}"
fi
# The layouts are C as well.
printf '#include "purlin/adapters/pjrt_abi.h"\nint after;\n' |
  "$compiler" -x c -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$include" -fsyntax-only - ||
  { echo "FAILED: pjrt_abi.h is no C"; exit 1; }
echo "${#headers[@]} headers compile $how: $("$compiler" --version | head -n 1), $standard"
