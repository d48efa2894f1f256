#!/usr/bin/env bash
# What examples/cpp/digits promises on the platform cuda, on the driver that it finds: tests/cuda/on_fake.sh has it
# find the fake one, whose detector ends a program that misses a wait.
#
#   tests/cuda/on_fake.sh tests/digits/cuda.sh PATH_OF_THE_PROGRAM
#
# One line a check; then "N passed, N failed", and exit code 1 if any failed. DIGITS_TEST_STEPS (8) is the number of
# steps where accuracy matters.
set -uo pipefail
. "$(dirname "$0")/../../scripts/common.sh"
. "$(dirname "$0")/checks.bash"
[[ -f ${1-} ]] || usage "no such file: '${1-}'"
no_arguments "${@:2}"
digits=$(realpath "$1")
data=$(realpath "$(dirname "$0")/../../examples/data/digits.csv")
steps=${DIGITS_TEST_STEPS:-8}  # Enough to know more than eight digits of ten.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
# run ARGUMENTS...: leaves exit code in $code, output in out and err.
run() {
  "$digits" --data "$data" --platform cuda "$@" >out 2>err </dev/null
  code=$?
}
trains() { run "$@" && [[ $code -eq 0 && ! -s err ]] && [[ -n $(checksum) ]] && grep -q '^  platform    cuda, ' out; }

# The same weights whenever the operations begin: with a trace, then with delays of two seeds.
traced() { trains --steps 5 --devices 2 --trace trace.json; }
check "it_trains_and_writes_a_trace" traced
first=$(checksum)
same_bits() { trains --steps 5 --devices 2 "$@" && [[ -n $first && $first == "$(checksum)" ]]; }
for delays in 1:300 2:1000; do
  PURLIN_FAKECUDA_DELAYS=$delays check "delays_${delays}_do_not_change_the_bits" same_bits
done
check "programs_give_the_same_bits" same_bits --program
# Of each GPU the errors and the gradient of five steps, of the first the updates, too.
has_launches_of_gpus() {
  python3 - >>err 2>&1 <<'EOF'
import json
events = json.load(open("trace.json"))
events = events["traceEvents"] if isinstance(events, dict) else events
lanes = {event["args"]["name"]: event["tid"] for event in events if event["name"] == "thread_name"}
for lane, launches in ("cuda:0, launches", 15), ("cuda:1, launches", 10):
    spans = [event for event in events if event["ph"] == "X" and event["tid"] == lanes[lane]]
    assert len(spans) == launches and all(span["dur"] > 0 for span in spans), f"{lane}: {spans}"
EOF
}
with_python "a_trace_has_the_launches_of_each_gpu" has_launches_of_gpus
# More devices than the three GPUs of the fake driver: two are virtual devices of one.
check "four_devices_share_the_gpus" trains --steps 3 --devices 4
learns() { trains --steps "$steps" && awk '$1 == "accuracy" { ok = $2 >= 85 } END { exit !ok }' out; }
check "it_learns" learns
has_table() { awk '$1 ~ /^cuda:[0-9]+$/ { rows++; if ($2 <= 0 || $4 <= 0 || $6 <= 0) bad = 1 } END { exit bad || rows != 4 }' out; }
check "times_are_those_of_the_gpus" has_table
has_no_gpu() {
  PURLIN_FAKECUDA_DEVICES=0 run
  [[ $code -eq 2 && ! -s out && $(wc -l <err) -eq 1 ]] && grep -q '^digits: .*CUDA_ERROR_NO_DEVICE' err
}
check "a_driver_without_a_gpu_is_told" has_no_gpu

echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
