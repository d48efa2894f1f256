#!/usr/bin/env bash
# Checks that shared libraries are marked as never unloaded, and that those behind `--` are not: the latter show that
# the library itself pins its users.
#
#   tests/plugin/nodelete.sh LIBRARY... [-- LIBRARY...]
set -euo pipefail
for library; do
  if [[ $library != -- && ! -f $library ]]; then
    echo "usage: tests/plugin/nodelete.sh LIBRARY... [-- LIBRARY...]; '$library' is no file" >&2
    exit 2
  fi
done
expected=true failed=0
for library; do
  if [[ $library == -- ]]; then expected=false; continue; fi
  says=false
  if readelf -dW "$library" | grep -q 'FLAGS_1.*NODELETE'; then says=true; fi
  if [[ $says != "$expected" ]]; then echo "FAILED: $library is linked with -z nodelete: $says"; failed=1; fi
done
((failed == 0)) && echo "$# arguments looked at"
exit "$failed"
