#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# For `git bisect run`: builds the commit that is checked out, measures it three times, and asks the gate.
#
#   git bisect start BAD GOOD
#   git bisect run bisect.sh old1,old2,old3 'planebench run regression --switch vpp:path=build/vpp' 'make build-release'
#
# old1, old2 and old3 are runs of GOOD. A commit that does not build, or that the gate does not decide, is skipped.
set -u
base=$1 measure=$2 build=${3:-true}
sh -c "$build" || exit 125
commit=$(git rev-parse --short HEAD)
runs=
for turn in 1 2 3; do
	# Above 127: git ends the bisection, for a run that fails says nothing of the commit.
	sh -c "$measure --name bisect-$commit-$turn" || exit 128
	runs=$runs,bisect-$commit-$turn
done
planebench compare "$base" "${runs#,}" --fail-below "${FAIL_BELOW:-0.97}"
case $? in
0) exit 0 ;;
1) exit 1 ;;
6) exit 125 ;;
*) exit 128 ;;
esac
