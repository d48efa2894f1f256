# Checks of a program whose output is in the files out and err of the current folder. Sourced.
# shellcheck shell=bash
passed=0 failed=0

# check NAME COMMAND...: the command's exit code decides.
check() {
  local name=$1
  shift
  if "$@"; then
    passed=$((passed + 1))
    echo "ok      $name"
  else
    failed=$((failed + 1))
    echo "FAILED  $name"
    sed 's/^/        stdout: /' out
    sed 's/^/        stderr: /' err
  fi
}

# The same of a check that needs python3.
with_python() {
  if command -v python3 >/dev/null; then check "$@"; else echo "skipped $1: there is no python3"; fi
}

# What the last run has learned.
checksum() { sed -n 's/^  checksum  *\([0-9a-f]\{16\}\) .*/\1/p' out; }
