#!/usr/bin/env bash
# Text that the documentation quotes is in the file that it names.
#
#   tests/readme/quotes.sh SOURCE_DIR
#
# In README.md and docs/*.md a line `<!-- from FILE -->` stands before a block in ```. The block's lines stand in FILE,
# one after another, all by the same number of blanks further to the right; a line `...` leaves some out. README.md and
# docs/adopting.md have no other C++, CMake, Python, Rust or TOML; README.md has whole programs. Exit code 1 and the
# block's place for each that does not.
set -euo pipefail
. "$(dirname "$0")/../../scripts/common.sh"
[[ -d ${1-} ]] || usage "no such folder: '${1-}'"
no_arguments "${@:2}"
cd "$1"

quotes=$(mktemp)
trap 'rm -f "$quotes"' EXIT
awk -v quotes="$quotes" '
  function load(file,    text) {
    count = 0
    while ((getline text < file) > 0) lines[++count] = text
    close(file)
  }
  # Whether the part from first to last of the block stands in the file behind line `after`; sets `end` to its last
  # line.
  function stands(first, last, after,    i, at, pad, same) {
    for (at = after + 1; at + last - first <= count; ++at) {
      pad = substr(lines[at], 1, length(lines[at]) - length(block[first]))
      same = pad ~ /^ *$/
      for (i = first; same && i <= last; ++i) {
        same = lines[at + i - first] == (block[i] == "" ? "" : pad block[i])
      }
      if (same) { end = at + last - first; return 1 }
    }
    return 0
  }
  function check(    i, first, after) {
    load(named)
    if (count == 0) { complain("there is no file " named); return }
    if (size == 0) { complain("an empty block"); return }
    after = 0
    first = 1
    for (i = 1; i <= size + 1; ++i) {
      if (i <= size && block[i] !~ /^ *\.\.\.$/) continue
      if (i > first && !stands(first, i - 1, after)) {
        complain(named " has no such lines" (after ? " below line " after : "") ": " block[first])
        return
      }
      if (i > first) after = end
      first = i + 1
    }
    if (FILENAME == "README.md" && named ~ /^examples\// && count != size) complain(named " has other lines, too")
  }
  function complain(what) { print FILENAME ":" place ": " what; failed = 1 }
  FNR == 1 { named = ""; inside = 0 }
  inside && /^```$/ { if (named != "") { check(); ++checked }; inside = 0; named = ""; next }
  inside { block[++size] = $0; next }
  /^<!-- from [^ ]+ -->$/ { named = $3; next }
  /^```/ {
    inside = 1; size = 0; place = FNR
    if (named == "" && /^```(cpp|cmake|python|rust|toml)/ && FILENAME ~ /^(README|docs\/adopting)\.md$/) {
      complain("a block from nowhere")
    }
    next
  }
  named != "" && NF > 0 { place = FNR; complain("no block after a line that names " named); named = "" }
  END { print checked > quotes; exit failed }' README.md docs/*.md || { echo "FAILED: the documentation quotes what is not there"; exit 1; }
echo "$(cat "$quotes") quotes stand in the files that they name"
