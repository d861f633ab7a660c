# SPDX-License-Identifier: BSD-3-Clause
"""The two sides of the ports: what the tester and the VNFs run, what a switch is asked for, and its adapter.

Pure but for :mod:`planebench.wiring.adapter`: a topology and a placement in, documents and requests out.
"""

from planebench.wiring.tasks import assign_tasks, tester_tasks
from planebench.wiring.tester_config import LinkSettings, VethPair, full_stage, switch_request, wire_stage
from planebench.wiring.vnf_documents import port_macs, shares_cpu, vnf_documents

__all__ = [
    "LinkSettings",
    "VethPair",
    "assign_tasks",
    "full_stage",
    "port_macs",
    "shares_cpu",
    "switch_request",
    "tester_tasks",
    "vnf_documents",
    "wire_stage",
]
