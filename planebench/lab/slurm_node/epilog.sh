#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Epilog= of slurm.conf: root runs it on each node after every job. It ends the processes and removes the files that
# killed runs of the user left, and restores settings and drivers. If this fails, it drains the node, with the reason.
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
PLANEBENCH=planebench
if [ -r "${PLANEBENCH_TESTBED_FILE:=/etc/planebench/testbed}" ]; then . "$PLANEBENCH_TESTBED_FILE"; fi

# This runs as the user, because doctor acts on files that the user could have written.
runuser -u "$SLURM_JOB_USER" -- "$PLANEBENCH" doctor --undo --quiet > /dev/null 2>&1
if said=$("$PLANEBENCH" doctor --undo --quiet 2>&1); then exit 0; fi
reason=$(printf '%s\n' "$said" | sed -n 's/^planebench: //; /./{p;q;}')
scontrol update NodeName="$SLURMD_NODENAME" State=DRAIN Reason="planebench: ${reason:-doctor --undo failed}"
exit 0
