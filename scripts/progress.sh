#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# progress.sh LOG COMMAND...: runs a command that says much or nothing, and prints what it does every few seconds:
# the last package, or how many files are compiled; the same again after half a minute. LOG gets all output; its end
# is printed if the command fails.
set -uo pipefail

log=$1
shift
mkdir -p "$(dirname "$log")"
"$@" >"$log" 2>&1 &
command=$!
trap 'kill "$command" 2>/dev/null; wait "$command"; exit 130' INT TERM

# The last line that names a step: [12/345] of ninja, or a package of pip.
doing() {
	local step='\[[0-9]+/[0-9]+\]|^ *(Collecting|Downloading|Preparing|Building) [a-zA-Z][^ (:]*|^ *Installing [a-z ]+' last
	last=$(grep -aoE "$step" "$log" | tail -n 1)
	case $last in
	'') echo starting ;;
	\[*) last=${last//[\[\]]/} && echo "compiled ${last/\// of } files" ;;
	*) echo "${last#"${last%%[! ]*}"}" ;;
	esac
}

begun=$SECONDS said="" said_at=$SECONDS
while kill -0 "$command" 2>/dev/null; do
	sleep "${PROGRESS_S:-10}" &
	wait -n "$command" $!
	kill $! 2>/dev/null || true
	now=$(doing)
	[ "$now" != "$said" ] || [ $((SECONDS - said_at)) -ge "${PROGRESS_AGAIN_S:-30}" ] || continue
	if kill -0 "$command" 2>/dev/null; then
		echo "setup: $((SECONDS - begun)) s: $now"
		said=$now said_at=$SECONDS
	fi
done
wait "$command"
code=$?
[ "$code" -eq 0 ] || {
	tail -n 40 "$log"
	echo "setup: this failed with exit code $code; all of its output is in $log" >&2
}
exit "$code"
