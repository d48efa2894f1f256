#!/usr/bin/env bash
# Checks which names a shared library that has Purlin's archive inside shows to the process that loads it.
#
#   tests/symbols/module.sh [--only] MODULE [NAME...]
#
# Its own functions are NAMEs, all of them. Besides, it may define what every C++ library defines from headers:
# instances of std's templates and their virtual tables; and the tags of types in futures (PayloadTag), which have one
# address in a process, so that libraries that share libpurlin.so understand each other's futures. With --only, not even
# those. It must not import names of Purlin, of Rust, or of Debian's abseil: those are inside. Exit code 1 otherwise.
set -euo pipefail
. "$(dirname "$0")/../../scripts/common.sh"
only=false
if [[ ${1-} == --only ]]; then only=true; shift; fi
[[ -f ${1-} ]] || usage "no such file: '${1-}'"
module=$1
shift
failed=0

defined=$(nm -D --defined-only "$module" | awk 'NF == 3 && $2 != "A" { print $2, $3 }')
if ! $only; then
  # Weak (W, V) or unique (u): the mangled name begins with std, one of its abbreviations, or __gnu_cxx.
  defined=$(grep -vE '^[WVu] _Z(Z|T[VTIS])?(N?K?S[tabsiod]|NK?9__gnu_cxx)|^[Vu] _ZN6purlin2v08internal10PayloadTagI.*E3tagE$' <<<"$defined" || true)
fi
if ! diff -u --label allowed --label "$module" <(for name in "$@"; do echo "T $name"; done | LC_ALL=C sort) \
  <(sed '/^$/d' <<<"$defined" | LC_ALL=C sort); then
  echo "FAILED: the module does not define what it may define and nothing else"
  failed=1
fi
if nm -D --undefined-only "$module" | grep -E 'purlin|second_rust|rust_|_R[NI]|absl12lts_20220623'; then
  echo "FAILED: the module asks the process for names that must be inside"
  failed=1
fi
((failed == 0)) && echo "$# names of its own"
exit "$failed"
