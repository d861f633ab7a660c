#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Prolog= of slurm.conf: root runs it on each node before a job. It tunes the node, binds its NICs for the user of the
# job, and asks doctor. A node that is not fit is drained with doctor's sentence, and the job waits for another one.
#
# /etc/planebench/testbed has the settings of the node, if it needs any:
#   PLANEBENCH=/opt/planebench/bin/planebench     NICS="0000:3b:00.0 0000:3b:00.1"
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
PLANEBENCH=planebench NICS=
if [ -r "${PLANEBENCH_TESTBED_FILE:=/etc/planebench/testbed}" ]; then . "$PLANEBENCH_TESTBED_FILE"; fi

refuse() {
  reason=$(printf '%s\n' "$1" | sed -n 's/^planebench: \(problem: \)\{0,1\}//; /./{p;q;}')
  "$PLANEBENCH" doctor --undo --quiet
  scontrol update NodeName="$SLURMD_NODENAME" State=DRAIN Reason="planebench: ${reason:-doctor failed}"
  exit 1
}

bind=
for nic in $NICS; do bind="$bind --bind $nic"; done
# 1: a setting that this kernel or a container refuses. Whether it matters, doctor says below.
said=$("$PLANEBENCH" doctor --fix --quiet ${bind:+$bind --user "$SLURM_JOB_USER"} 2>&1) || [ $? = 1 ] || refuse "$said"
said=$("$PLANEBENCH" doctor --quiet 2>&1) || refuse "$said"
exit 0
