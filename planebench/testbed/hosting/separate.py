# SPDX-License-Identifier: BSD-3-Clause
"""``separate``: a VNF is a planed process of its own without isolation; the baseline for the cost of other hostings."""

from __future__ import annotations

from dataclasses import replace

from planebench.host.planed_program import find_planed, missing_planed, planed_version
from planebench.host.process import Supervisor
from planebench.host.programs import Found, NotFound
from planebench.model.cpus import cpu_text
from planebench.model.dimensions import HostingFacts
from planebench.model.switch import Option
from planebench.testbed.hosting.base import IDLE, HostedRequest, bind_ports
from planebench.testbed.hosting.inside import HostedPlaned, folder_of, planed_arguments


class SeparateHosting:
    """A planed process for each VNF."""

    name = "separate"
    title = "own planed process"
    options: tuple[Option, ...] = (IDLE,)
    ready_within_s = 15.0

    def find(self) -> Found | NotFound:
        planed, version = find_planed(), planed_version()
        return Found(version, planed) if planed and version else missing_planed()

    def start(self, request: HostedRequest, supervisor: Supervisor) -> HostedPlaned:
        request = replace(request, uid=None)  # it is not enclosed
        bind_ports(request, for_guest=False)
        process = supervisor.spawn(
            request.name,
            [str(request.planed), *planed_arguments(request)],
            cpus=frozenset({*request.cpus, *request.control_cpus}),
            workdir=folder_of(request),
        )
        version = planed_version(request.planed) or "planed"
        facts = HostingFacts(request.name, "separate", version, details={"cpus": cpu_text(request.cpus)})
        return HostedPlaned(request, process, facts)
