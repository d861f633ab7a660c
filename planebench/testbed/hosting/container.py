# SPDX-License-Identifier: BSD-3-Clause
"""``container``: a VNF is the static planed in a container of bubblewrap."""

from __future__ import annotations

from planebench.host.planed_program import STATIC_REMEDY, find_static_planed
from planebench.host.process import Supervisor
from planebench.host.programs import Found, NotFound
from planebench.model.cpus import cpu_text
from planebench.model.dimensions import HostingFacts
from planebench.model.errors import NotInstalledError
from planebench.model.switch import Option
from planebench.testbed.hosting import base, bubblewrap
from planebench.testbed.hosting.base import IDLE, HostedRequest
from planebench.testbed.hosting.inside import HostedPlaned, document_of, planed_arguments

MORE_MB = 1024
"""Memory beside that of the document, for tables of network functions."""
ISOLATION = "container with a read-only root, no network and no capabilities"


class ContainerHosting:
    """The static planed in a container for each VNF."""

    name = "container"
    title = "a container"
    remedy = bubblewrap.REMEDY
    options: tuple[Option, ...] = (
        Option("memory_mb", "whole", "memory limit in MiB", "computed from its tables, plus 1024", least=16),
        IDLE,
    )
    ready_within_s = 20.0

    def find(self) -> Found | NotFound:
        return NotFound(STATIC_REMEDY) if find_static_planed() is None else bubblewrap.find()

    def start(self, request: HostedRequest, supervisor: Supervisor) -> HostedPlaned:
        found, planed = bubblewrap.require(self.name), find_static_planed(request.planed)
        if planed is None:
            raise NotInstalledError(f"planed-static not found next to {request.planed}; {STATIC_REMEDY}")
        limit_mb = int(str(request.values.get("memory_mb", document_of(request).memory.size_mb + MORE_MB)))
        passed = base.bind_ports(request, for_guest=True)
        details = {
            "cpus": cpu_text(request.cpus),
            "isolation": ISOLATION,
            "limits": bubblewrap.LIMIT.format(limit_mb),
            **({"devices": ", ".join(nic.address for nic in passed)} if passed else {}),
        }
        container = bubblewrap.planed_container(found.binary, request, planed, base.device_files(passed))
        words = [*container, bubblewrap.PLANED, *planed_arguments(request)]
        cpus = frozenset({*request.cpus, *request.control_cpus})
        process = bubblewrap.spawn(request, supervisor, limit_mb, words, cpus)
        return HostedPlaned(request, process, HostingFacts(request.name, "container", found.version, details=details))


HOSTING = ContainerHosting()
