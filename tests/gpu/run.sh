#!/usr/bin/env bash
# Runs the tests of CUDA on this machine's GPUs, and measures it. `scripts/gpu pack` puts it, as `run`, beside
# tests.tar.gz with what it runs: the machine needs a driver, bash and the usual tools (coreutils, grep, sed, awk, tar,
# gzip), but neither Rust nor a compiler nor a network.
#
#   run [RESULTS]        RESULTS: a folder for what it writes; by default `results`, where it is called
#
# Each step has a time limit, all together less than ten minutes, and a file of RESULTS that grows as it runs.
# summary.txt is what is printed: a line per step, what operations cost, what the GPU is, and at the end `N passed, N
# failed, N skipped`. Exit code 1: something failed; a goal that is missed has not. measure.tsv has the times. Without a
# device it says `gpu: skipped: why`, with exit code 0. Clocks, power, compute mode and MIG stay as they are.
#
# A folder on LD_LIBRARY_PATH can bring another driver: the fake one, for a rehearsal. JOBS=n: n tests at once.
set -uo pipefail
usage() {
  echo "${0##*/}: $*
  ${0##*/} [RESULTS]        RESULTS: a folder for what it writes" >&2
  exit 2
}
(($# <= 1)) || usage "no such argument: '$2'"
[[ ${1-} != -* ]] || usage "no such argument: '$1'"
pack=$(cd "$(dirname "$0")" && pwd)
results=${1:-results}
jobs=${JOBS:-$(nproc)}
[[ $jobs =~ ^[1-9][0-9]*$ ]] || usage "JOBS is a number, not '$jobs'"
# Each process has a context of its own, which takes half a gigabyte of the GPU.
((jobs <= 8)) || jobs=8
mkdir -p "$results" || exit
results=$(cd "$results" && pwd)
work=$(mktemp -d) || exit
trap 'rm -rf "$work"' EXIT
tar -C "$work" -xzf "$pack/tests.tar.gz" || exit
cd "$work" || exit
: >"$results/summary.txt"
say() { printf '%s\n' "$*" | tee -a "$results/summary.txt"; }
passed=0 failed=0 skipped=0

# step NAME SECONDS COMMAND...: its output goes into RESULTS/NAME.log. `expected` says how many tests NAME has.
step() {
  local name=$1 seconds=$2 log=$results/$1.log start=$SECONDS code=0 p f missing expected why=
  shift 2
  timeout --kill-after=10 "$seconds" "$@" >"$log" 2>&1 </dev/null || code=$?
  # As nextest and GoogleTest tell them, one by one; what nextest repeats after its summary is not counted again.
  p=$(sed '/^ *Summary \[/,$d' "$log" | grep -cE '^ *(PASS|LEAK) \[|^\[       OK \]')
  f=$(sed '/^ *Summary \[/,$d' "$log" | grep -cE '^ *(FAIL|TIMEOUT|ABORT|SIG[A-Z0-9]+|LEAK-FAIL) \[|^\[  FAILED  \] .* ms\)$')
  expected=$(sed -n "s/^$name //p" expected)
  missing=$((expected - p - f))
  ((missing == 0)) || why="$missing of $expected did not run"
  if [[ $code == 124 || $code == 137 ]]; then
    why+="${why:+; }it took more than $seconds s and was ended"
  elif [[ $code != 0 && $f == 0 ]]; then
    why+="${why:+; }exit code $code"
  fi
  if [[ -n $why ]]; then f=$((f + (missing > 0 ? missing : 1))); fi
  passed=$((passed + p)) failed=$((failed + f))
  say "$(printf '%-22s %d passed, %d failed; %d s' "$name" "$p" "$f" $((SECONDS - start)))${why:+: $why}"
  ((f == 0)) || { grep -E '^ *(FAIL|TIMEOUT|ABORT|SIG[A-Z0-9]+) \[|^\[  FAILED  \] .* ms\)$|panicked at' "$log" || tail -n 5 "$log"; } |
    awk '!seen[$0]++' | head -n 20 | cut -c 1-200 | tee -a "$results/summary.txt"
}

# skip NAME WHY...: with all its tests.
skip() {
  local count
  count=$(sed -n "s/^$1 //p" expected)
  skipped=$((skipped + ${count:-1}))
  say "$(printf '%-22s skipped: %s' "$1" "${*:2}")"
}

# Trains as `make demo` does on the host; the fake driver interprets the kernels, so that fewer steps must do.
demo() {
  local steps=300 least=95
  if [[ -n $is_fake ]]; then steps=8 least=85; fi
  ./digits --platform cuda --data digits.csv --steps "$steps" | tee demo.out
  awk -v least="$least" '$1 == "accuracy" { ok = $2 >= least }
    END { print ok ? "[       OK ] Demo.Learns" : "[  FAILED  ] Demo.Reaches" least "Percent (0 ms)"; exit !ok }' demo.out
}

# Compares what the library does with the reference model, from Rust and from C++, by one thread and by two. The fake
# driver's reports end the C++ program.
fuzz() {
  local operations=10000 wrong=0
  [[ -z $is_fake ]] || operations=1000
  part() {
    local name=$1
    if ./reference --backend cuda --corpus corpus --operations "$operations" "${@:2}"; then
      echo "[       OK ] Fuzz.$name"
    else
      echo "[  FAILED  ] Fuzz.$name (0 ms)" && wrong=1
    fi
  }
  part Rust
  part RustByTwoThreads --threads 2
  export PURLIN_FAKECUDA_ON_REPORT=abort
  part Cpp --cpp ./reference_subject
  part CppByTwoThreads --cpp ./reference_subject --threads 2
  return "$wrong"
}

# What is there, each part by whatever knows it; none of them changes anything.
machine() {
  ask() { echo "---- $*" && timeout 20 "$@" 2>&1; }
  date -u '+%F %T UTC'
  ask uname -srm
  ask nproc
  echo "LD_LIBRARY_PATH=${LD_LIBRARY_PATH-}"
  ask head -n 3 /proc/meminfo
  ask grep -m 1 'model name' /proc/cpuinfo
  ask cat /proc/driver/nvidia/version
  for gpu in /proc/driver/nvidia/gpus/*/information; do ask cat "$gpu"; done
  if ! command -v nvidia-smi >/dev/null; then
    echo "nvidia-smi: not there"
  elif ask nvidia-smi; then
    # Each by itself, because old drivers do not know all of them.
    for field in driver_version pci.bus_id memory.total memory.used pcie.link.gen.max pcie.link.width.max \
      pcie.link.gen.current pcie.link.width.current compute_mode mig.mode.current ecc.mode.current clocks.max.sm; do
      ask nvidia-smi --query-gpu="$field" --format=csv
    done
    ask nvidia-smi topo -m
  fi
  echo "---- libraries"
  { ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null | grep -E 'libcuda|libnvidia-ml|libcudart|libnvrtc|libnccl|libgcc_s|libc\.so'
  for tool in nvcc compute-sanitizer nsys python3; do echo "$tool: $(command -v "$tool" || echo 'not there')"; done
}
machine >"$results/machine.txt" 2>&1

if ! devices=$(timeout 60 ./devices 2>&1); then
  say "gpu: skipped: ${devices:-the driver did not answer within a minute}"
  exit 0
fi
export PURLIN_GPU_DEVICES=$devices
IFS=: read -ra folders <<<"${LD_LIBRARY_PATH-}"
if grep -qs PURLIN_FAKECUDA_DEVICES "${folders[@]/%//libcuda.so.1}"; then
  is_fake=yes what='of the fake driver: a rehearsal, which says nothing of GPUs'
else
  is_fake= what=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | sort -u | tr '\n' ';')
  [[ -n $what ]] || what=$(sed -n '1s/^NVRM version: *//p' /proc/driver/nvidia/version 2>/dev/null | tr -s ' ')
  what="(${what:-neither nvidia-smi nor /proc says of which kind})"
fi

# The seeds are the fake driver's. Case by case in processes of their own, so that one that breaks its context harms no
# other, and so that what is left behind is found.
export PURLIN_CUDA_PROCESSES=16
if grep -qi '^exclusive_process' "$results/machine.txt"; then jobs=1; fi
mkdir -p workspace/rust/cuda workspace/tests/fakecuda/control && : >workspace/Cargo.toml
of_rust() {
  step "$1" "$2" ./cargo-nextest nextest run --cargo-metadata cargo.json --binaries-metadata binaries.json \
    --target-dir-remap target --workspace-remap workspace --config-file nextest.toml --filterset "$(<"filter-$1")" \
    --no-fail-fast --status-level all --final-status-level fail --color never --test-threads "$jobs"
}
of_rust rust 240
# What the fake driver takes for the behaviour of a real one.
of_rust driver 40
step cpp 50 ./cuda_test --gtest_filter="$(<filter-cpp)"
step measure 80 ./measure ${is_fake:+--quick} --tsv "$results/measure.tsv"
[[ -n $is_fake ]] || sed -n '/^operation  /,$p' "$results/measure.log" | tee -a "$results/summary.txt"
export -f demo fuzz
export is_fake
# told NAME SECONDS: without a log in the end, because summary.txt has all that it prints.
told() {
  step "$1" "$2" bash -c "$1"
  sed '/^\[/d; s/^/  /' "$results/$1.log" | tee -a "$results/summary.txt"
  rm "$results/$1.log"
}
told demo "${is_fake:+1}30"
told fuzz "${is_fake:+1}40"
# What neighbours' operations cost is no column of the table.
for neighbour in torch jax_plugins.xla_cuda12; do
  why='python3 has none'
  ! timeout 10 python3 -c "import importlib.util as i; exit(not i.find_spec('$neighbour'))" >/dev/null 2>&1 ||
    why='it is there, and nothing measures it'
  skip "$neighbour" "$why"
done
sanitizer=$(PATH=$PATH:/usr/local/cuda/bin command -v compute-sanitizer)
if [[ -z $sanitizer || -n $is_fake ]]; then
  skip compute-sanitizer "$([[ -n $is_fake ]] && echo "the driver is not NVIDIA's" || echo 'it is not there')"
else
  step compute-sanitizer 100 "$sanitizer" --report-api-errors no --error-exitcode 9 ./cuda_test --gtest_filter="$(<filter-cpp)"
fi
say "gpu: $devices device$([[ $devices == 1 ]] || echo s) $what"
say "$passed passed, $failed failed, $skipped skipped"
[[ $failed == 0 ]]
