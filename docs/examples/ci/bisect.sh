#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# For `git bisect run`: builds the commit that is checked out, measures it and the good build in turns, in one run, and
# asks the gate.
#
#   git bisect start BAD GOOD
#   git bisect run bisect.sh 'planebench run regression --switch vpp:name=good:path=/opt/good/vpp,vpp:name=now:path=build/vpp' 'make build-release'
#
# The first switch is the good one. A commit that does not build, or that the gate does not decide, is skipped.
set -u
measure=$1 build=${2:-true}
sh -c "$build" || exit 125
name=bisect-$(git rev-parse --short HEAD)
# Above 127: git ends the bisection, for a run that fails says nothing of the commit.
sh -c "$measure --name $name" || exit 128
planebench compare "$name" --fail-below "${FAIL_BELOW:-0.97}"
case $? in
0) exit 0 ;;
1) exit 1 ;;
6) exit 125 ;;
*) exit 128 ;;
esac
