# SPDX-License-Identifier: BSD-3-Clause
"""Many testbeds: a matrix of runs becomes jobs of Slurm, each run alone on its testbed (docs/jobs.md).

Nothing here schedules.
"""
