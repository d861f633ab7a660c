#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Epilog= of slurm.conf: root runs it on each node after a job, however that ended. It ends and removes what killed runs
# of the user left, and restores settings and drivers. A node that cannot be restored is drained with the reason.
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
PLANEBENCH=planebench
if [ -r "${PLANEBENCH_TESTBED_FILE:=/etc/planebench/testbed}" ]; then . "$PLANEBENCH_TESTBED_FILE"; fi

# As the user, because it trusts what is in the folders of the user's runs.
runuser -u "$SLURM_JOB_USER" -- "$PLANEBENCH" doctor --undo --quiet > /dev/null 2>&1
if said=$("$PLANEBENCH" doctor --undo --quiet 2>&1); then exit 0; fi
reason=$(printf '%s\n' "$said" | sed -n 's/^planebench: //; /./{p;q;}')
scontrol update NodeName="$SLURMD_NODENAME" State=DRAIN Reason="planebench: ${reason:-doctor --undo failed}"
exit 0
