#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# in_use.sh VENV: fail while a planebench of this virtual environment runs. A new installation replaces its modules and
# planed under it, so that its trials fail.
set -euo pipefail
python=$(realpath --no-symlinks "$1")/bin/python

for process in /proc/[0-9]*; do
	mapfile -d '' -t words 2>/dev/null <"$process/cmdline" || continue # it has ended
	[ "${#words[@]}" -gt 1 ] && [[ ${words[0]} == "$python"* ]] || continue
	[[ "${words[1]##*/}" == planebench || " ${words[*]:1:3} " =~ (\ -m\ planebench\ |\ (.*/)?bench/[a-z_]*\.py\ ) ]] || continue
	echo "setup: planebench runs from $1 (process ${process#/proc/}: ${words[*]:1:3}), and a new installation would" \
		"take its programs away. Wait for its end, or end it: kill -INT ${process#/proc/}" >&2
	exit 1
done
