#!/usr/bin/env bash
# The public headers include only headers of the C++ standard library, and each other: not absl, not rust/cxx.h, not
# what cxx generates, nothing of cpp/, and none of the adapters, which may include all but the last three. Exit code 1
# otherwise.
set -euo pipefail
. "$(dirname "$0")/../../scripts/common.sh"
no_arguments "$@"
include=$(cd "$(dirname "$0")/../../include" && pwd)
standard_headers=" algorithm any array atomic bitset cassert charconv chrono cmath complex condition_variable coroutine cstdarg cstddef
  cstdint cstdio cstdlib cstring ctime deque exception execution filesystem forward_list fstream functional future
  initializer_list iomanip ios iosfwd iostream istream iterator limits list locale map memory memory_resource mutex new
  numeric optional ostream queue random ratio regex scoped_allocator set shared_mutex source_location span sstream stack
  stdexcept streambuf string string_view system_error thread tuple type_traits typeindex typeinfo unordered_map
  unordered_set utility valarray variant vector version "
standard_headers=$(tr -s ' \n' ' ' <<<"$standard_headers")

failed=0
while IFS=: read -r file line text; do
  if [[ $text =~ ^[[:space:]]*#[[:space:]]*include[[:space:]]*\<([^\>]+)\> ]]; then
    [[ " $standard_headers " == *" ${BASH_REMATCH[1]} "* ]] && continue
  elif [[ $text =~ ^[[:space:]]*#[[:space:]]*include[[:space:]]*\"(purlin/[^\"]+)\" ]]; then
    [[ ${BASH_REMATCH[1]} != purlin/adapters/* && -f $include/${BASH_REMATCH[1]} ]] && continue
  fi
  echo "$file:$line: not of the standard library and not of include/purlin: $text"
  failed=1
done < <(cd "$include" && grep -rnE --exclude-dir=adapters '^[[:space:]]*#[[:space:]]*include' .)

# Names as well, so that a forward declaration does not tie users to them. purlin::compat has an absl and a tsl of its
# own: elsewhere they have its name before them, inside they are others only with `::` before them.
others() { (cd "$include" && grep -rnP "$@" | grep -vE '^[^:]+:[0-9]+: *//'); }
if others --exclude-dir={adapters,compat} '(?<!compat::)(absl|tsl)::|xla::|rust::|cxxbridge' . ||
  others '(?<!compat)::(absl|tsl)::|xla::|rust::|cxxbridge' purlin/compat; then
  echo "names of absl or cxx in public headers"
  failed=1
fi
((failed == 0)) && echo "the headers include the standard library and each other, nothing else"
exit "$failed"
