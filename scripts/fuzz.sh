#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Real fuzzing: every harness under libFuzzer with AddressSanitizer and UBSan, from the inputs that tests/fuzz keeps.
#
#     scripts/fuzz.sh [--keep] [SECONDS [HARNESS...]]      60 seconds each of all
#
# vhost_machine is no libFuzzer's: drivers of tests/planed/test_vhost_machine.py on a real planed, by hypothesis. PYTHON: which has
# planebench's packages; by default .venv's.
#
# One line a harness. What it found out stays in build-fuzz/corpus and is where the next run goes on; what ended the
# program is in build-fuzz/findings. --keep puts a minimal set of what it found out into tests/fuzz, unless it ended.
set -euo pipefail
cd "$(dirname "$0")/.."

keep=false
if [ "${1:-}" = --keep ]; then keep=true && shift; fi
seconds=${1:-60}
harnesses=("${@:2}")
[ ${#harnesses[@]} -gt 0 ] || harnesses=(vring vhost_listener frontend memif offload config rpc packet nf rule_file route_file frame capture fib_message vhost_machine)
build=build-fuzz

scripts/setup.sh clang libcmocka-dev
scripts/setup.sh "libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev"
if ! [ -f $build/build.ninja ]; then
	echo "fuzz: setting up $build"
	CC=clang meson setup $build --buildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false \
		-Dfuzz=true -Dwerror=true
fi
targets=()
for name in "${harnesses[@]}"; do
	[ "$name" = vhost_machine ] || targets+=("dataplane/${name}_fuzz")
done
[ ${#targets[@]} -eq 0 ] || ninja -C $build -j"${JOBS:-2}" --quiet "${targets[@]}"

# Leaks are looked for at the end, not after each input: DPDK keeps what it made at start.
export ASAN_OPTIONS=abort_on_error=0:symbolize=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

fuzz() { # HARNESS: one line, non-zero if it found something
	local name=$1 corpus=$build/corpus/$1 findings=$build/findings/$1 log=$build/$1.log options=(-max_len=2048)
	mkdir -p "$corpus" "$findings"
	[ ! -f "tests/fuzz/$name.dict" ] || options+=("-dict=tests/fuzz/$name.dict")
	local rc=0
	"$build/dataplane/${name}_fuzz" "${options[@]}" -max_total_time="$seconds" -timeout=120 -rss_limit_mb=2048 \
		-detect_leaks=0 -print_final_stats=1 -artifact_prefix="$findings/" "$corpus" "tests/fuzz/$name" >"$log" 2>&1 || rc=$?
	local runs coverage
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
	coverage=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -1)
	if [ $rc -eq 0 ]; then
		echo "fuzz: $name: $seconds s, ${runs:-0} inputs, ${coverage:-0} branches, nothing found"
	else
		echo "fuzz: $name: FOUND after ${runs:-?} inputs: $(ls -t "$findings" | head -1 | sed "s|^|$findings/|"), log $log"
	fi
	return $rc
}

# A planed as it is installed, or PLANEBENCH_PLANED: another set of steps until the time is over.
fuzz_machine() { # one line, non-zero if it found something
	local log=$build/vhost_machine.log end=$((SECONDS + seconds)) runs=0
	local python=${PYTHON:-.venv/bin/python}
	command -v "$python" >/dev/null || { echo "fuzz: vhost_machine: no $python: run make setup, or set PYTHON" && return 1; }
	mkdir -p $build && : >"$log"
	while [ $SECONDS -lt $end ]; do
		HYPOTHESIS_PROFILE=fuzz "$python" -m pytest -q -p no:cacheprovider --hypothesis-seed=$RANDOM \
			tests/planed/test_vhost_machine.py >>"$log" 2>&1 || { echo "fuzz: vhost_machine: FOUND, log $log" && return 1; }
		runs=$((runs + 1))
	done
	echo "fuzz: vhost_machine: $seconds s or more, $runs times twenty examples of sixty steps, nothing found"
}

# Beside the named inputs one for each branch that these do not reach: small, and replayed by every `meson test`.
# tests/fuzz changes only once the new set is complete.
keep_minimal() { # HARNESS
	local seeds=tests/fuzz/$1 named=$build/kept/$1 found=$build/kept/$1.found log=$build/$1.merge.log seed
	local hash='.*/[0-9a-f]{40}'
	rm -rf "$named" "$found" && mkdir -p "$named" "$found"
	find "$seeds" -regextype posix-extended -type f -regex "$hash" -exec cp -t "$found" {} +
	find "$seeds" -regextype posix-extended -type f ! -regex "$hash" -exec cp -t "$named" {} +
	if ! "$build/dataplane/$1_fuzz" -merge=1 -use_counters=0 -max_len=2048 -detect_leaks=0 "$named" "$found" \
		"$build/corpus/$1" >"$log" 2>&1; then
		echo "fuzz: $1: no minimal set, $seeds is as it was, log $log"
		return 1
	fi
	cp -n -t "$seeds" "$named"/* || return 1
	for seed in "$found"/*; do
		[ -e "$named/${seed##*/}" ] || rm -f "$seeds/${seed##*/}"
	done
	echo "fuzz: $1: $seeds has $(ls "$seeds" | wc -l) files"
}

code=0
for name in "${harnesses[@]}"; do
	if [ "$name" = vhost_machine ]; then
		fuzz_machine || code=1
	elif ! fuzz "$name"; then
		code=1
	elif $keep; then
		keep_minimal "$name" || code=1
	fi
done
exit $code
