# Sourced by the scripts before they leave the folder that they were called from: what is said of a wrong argument, and
# how many jobs run at once.
#
#   usage WHY...        says so, and how the script is called (the indented lines of its head); ends it with exit code 2
#   no_arguments "$@"   ends the script so if it was given any
#   tracked             the files below this folder as git sees them, new ones too, without those that are gone; a NUL
#                       behind each
#   $jobs               JOBS of the environment, else as many as there are cores
self=$(realpath "$0")

usage() {
  {
    echo "${self##*/}: $*"
    sed -n '1d; /^#/!q; s/^#   /  /p' "$self"
    sed -n '1d; /^#/!q; p' "$self" | grep -q '^#   ' || echo "  usage: ${self##*/}"
  } >&2
  exit 2
}
tracked() {
  git ls-files -z --cached --others --exclude-standard |
    while IFS= read -rd '' file; do [[ ! -e $file ]] || printf '%s\0' "$file"; done
}
no_arguments() { (($# == 0)) || usage "no such argument: '$1'"; }

# Passed to all tools that start jobs of their own: cargo, nextest, libtest, CMake and with it Ninja, ctest. Without
# JOBS each follows its own rule.
if [[ -n ${JOBS-} ]]; then
  [[ $JOBS =~ ^[1-9][0-9]{0,3}$ ]] || usage "JOBS is a number from 1 to 9999, not '$JOBS'"
  export JOBS CARGO_BUILD_JOBS=$JOBS NEXTEST_TEST_THREADS=$JOBS RUST_TEST_THREADS=$JOBS
  export CMAKE_BUILD_PARALLEL_LEVEL=$JOBS CTEST_PARALLEL_LEVEL=$JOBS
fi
jobs=${JOBS:-$(nproc)}
