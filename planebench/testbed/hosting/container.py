# SPDX-License-Identifier: BSD-3-Clause
"""``container``: a VNF is the static planed in a container of bubblewrap."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from planebench.host.planed_program import STATIC_REMEDY, find_static_planed
from planebench.host.process import Supervisor
from planebench.host.programs import Found, NotFound, required
from planebench.model.cpus import cpu_text
from planebench.model.dimensions import HostingFacts
from planebench.model.errors import NotInstalledError
from planebench.model.switch import Option
from planebench.testbed.hosting import base, bubblewrap
from planebench.testbed.hosting.base import IDLE, HostedRequest
from planebench.testbed.hosting.bubblewrap import Shown
from planebench.testbed.hosting.inside import DOCUMENT, HostedPlaned, document_of, folder_of, give, planed_arguments

PLANED = Path("/planed")
"""The path of the static planed in the container, where it is alone."""
MORE_MB = 1024
"""Memory beside that of the document, for tables of network functions."""
ISOLATION = "container with a read-only root, no network and no capabilities"


class ContainerHosting:
    """The static planed in a container for each VNF."""

    name = "container"
    title = "a container"
    options: tuple[Option, ...] = (
        Option("memory_mb", "whole", "memory limit in MiB", "computed from its tables, plus 1024", least=16),
        IDLE,
    )
    ready_within_s = 20.0

    def find(self) -> Found | NotFound:
        return NotFound(STATIC_REMEDY) if find_static_planed() is None else bubblewrap.find()

    def start(self, request: HostedRequest, supervisor: Supervisor) -> HostedPlaned:
        found, planed = required("bubblewrap", bubblewrap.find()), find_static_planed(request.planed)
        if planed is None:
            raise NotInstalledError(f"planed-static not found next to {request.planed}; {STATIC_REMEDY}")
        limit_mb = int(str(request.values.get("memory_mb", document_of(request).memory.size_mb + MORE_MB)))
        passed = base.bind_ports(request, for_guest=True)
        details = {
            "cpus": cpu_text(request.cpus),
            "isolation": ISOLATION,
            "user": bubblewrap.user_of(request),
            "limits": bubblewrap.LIMIT.format(limit_mb),
            **({"devices": ", ".join(nic.address for nic in passed)} if passed else {}),
        }
        arguments = planed_arguments(request)
        process = bubblewrap.spawn(
            found.binary,
            request,
            supervisor,
            [Shown(planed.resolve(), PLANED), *_files(request)],
            [str(PLANED), *arguments],
            cpus=frozenset({*request.cpus, *request.control_cpus}),
            limit_mb=limit_mb,
            devices=base.device_files(passed),
            as_pid_1=True,
        )
        return HostedPlaned(request, process, HostingFacts(request.name, "container", found.version, details=details))


def _files(request: HostedRequest) -> Iterator[Shown]:
    """Yield the document and the files that it names; a copy of one that the user of the container cannot read."""
    document = folder_of(request) / DOCUMENT
    yield Shown(document, document)
    for number, file in enumerate(request.files):
        source = file.resolve()
        if request.uid is not None and source.is_file() and not source.stat().st_mode & stat.S_IROTH:
            source = folder_of(request) / f"file{number}"
            shutil.copyfile(file, source)
            give(request, source)
        yield Shown(source, file)
