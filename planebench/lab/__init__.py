# SPDX-License-Identifier: BSD-3-Clause
"""Many testbeds: a matrix of runs becomes jobs of Slurm, or of hosts behind ssh, each run alone on its testbed.

Nothing here schedules. Slurm, or a lock of the kernel, decides who is next (docs/jobs.md).
"""
