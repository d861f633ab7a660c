# SPDX-License-Identifier: BSD-3-Clause
"""Which core runs what. Pure: facts of the machine in, a placement out."""

from planebench.model.cpus import Cpus
from planebench.placement.nodes import place, place_vnfs, refusal, tester_elsewhere
from planebench.placement.place import Placement, odd_cores

__all__ = ["Cpus", "Placement", "odd_cores", "place", "place_vnfs", "refusal", "tester_elsewhere"]
