#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The same results under AddressSanitizer, LeakSanitizer and UBSan: the C tests, then the Python tests that run planed and nf_run,
# against a planed that is built with them. Any report of any process fails, whatever the tests say. And the FIB's readers against
# its writer, and the workers of ports against their sessions, under ThreadSanitizer, for longer than in CI.
#
#     scripts/sanitize.sh [PYTEST ARGUMENT...]      by default tests/planed, tests/switches and tests/nf
#
# PYTHON: which has planebench's packages; by default .venv's.
set -euo pipefail
cd "$(dirname "$0")/.."

build=build-sanitize
build_tsan=build-tsan
python=${PYTHON:-.venv/bin/python}
scripts/setup.sh libcmocka-dev
[ $# -gt 0 ] || set -- tests/planed tests/switches tests/nf

[ -f $build/build.ninja ] || meson setup $build --buildtype=debugoptimized -Db_sanitize=address,undefined \
	-Db_lundef=false -Dwerror=true
ninja -C $build -j"${JOBS:-2}" --quiet

[ -f $build_tsan/build.ninja ] || meson setup $build_tsan --buildtype=debugoptimized
ninja -C $build_tsan -j"${JOBS:-2}" --quiet dataplane/cuckoo_stress_tsan dataplane/fib_race_tsan dataplane/port_race_tsan dataplane/port_contract_tsan

reports=$PWD/$build/reports
rm -rf "$reports" && mkdir "$reports"
# Reports go to files: planed's end is not looked at by every test, and some kill it.
export ASAN_OPTIONS=log_path=$reports/asan:detect_stack_use_after_return=1
export UBSAN_OPTIONS=log_path=$reports/ubsan:print_stacktrace=1
export LSAN_OPTIONS=suppressions=$PWD/scripts/lsan.supp:print_suppressions=0
code=0
# Slow, and on a machine that is busy: a test that hangs is found all the same.
meson test -C $build --no-rebuild --print-errorlogs --timeout-multiplier 20 || code=1
TSAN_OPTIONS=log_path=$reports/tsan $build_tsan/dataplane/cuckoo_stress_tsan 2000000 2 || code=1
TSAN_OPTIONS=log_path=$reports/tsan $build_tsan/dataplane/fib_race_tsan 1000 || code=1
TSAN_OPTIONS=log_path=$reports/tsan $build_tsan/dataplane/port_race_tsan 1000 || code=1
TSAN_OPTIONS=log_path=$reports/tsan $build_tsan/dataplane/port_contract_tsan '*workers*' '*dpdk*' || code=1
PLANEBENCH_PLANED=$PWD/$build/dataplane/planed "$python" -m pytest -q "$@" || code=1

if [ -n "$(ls -A "$reports")" ]; then
	echo "sanitize: reports, the first of $(ls "$reports" | wc -l):" >&2
	head -40 "$(ls -d "$reports"/* | head -1)" >&2
	code=1
fi
[ $code -ne 0 ] || echo "sanitize: no reports"
exit $code
