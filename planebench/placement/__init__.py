# SPDX-License-Identifier: BSD-3-Clause
"""Which core runs what, and the documents that follow from it. Pure: facts in, records and documents out."""

from planebench.placement.place import Cpus, Placement, place
from planebench.placement.tasks import assign_tasks, tester_tasks
from planebench.placement.tester_config import LinkSettings, VethPair, full_stage, switch_request, wire_stage
from planebench.placement.vnf_documents import crowded, port_macs, vnf_documents

__all__ = [
    "Cpus",
    "LinkSettings",
    "Placement",
    "VethPair",
    "assign_tasks",
    "crowded",
    "full_stage",
    "place",
    "port_macs",
    "switch_request",
    "tester_tasks",
    "vnf_documents",
    "wire_stage",
]
