# SPDX-License-Identifier: BSD-3-Clause
"""``container``: a VNF is the static planed in a container, by bubblewrap or by podman with runc."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from planebench.host.planed_program import STATIC_REMEDY, find_static_planed
from planebench.host.process import Supervisor
from planebench.host.programs import Found, NotFound
from planebench.model.cpus import cpu_text
from planebench.model.dimensions import HostingFacts
from planebench.model.errors import NotInstalledError
from planebench.model.switch import Option
from planebench.testbed.hosting import base, bubblewrap, inside, podman
from planebench.testbed.hosting.base import IDLE, HostedRequest
from planebench.testbed.hosting.inside import HostedPlaned, VnfLimits, document_of, folder_of, planed_arguments

MORE_MB = 1024
"""Memory beside that of the document, for tables of network functions."""
ISOLATION = "container with a read-only root, no network and no capabilities"


RUNTIMES: Mapping[str, Callable[[], Found | NotFound]] = {
    bubblewrap.PROGRAM: bubblewrap.find,
    podman.PROGRAM: podman.find,
}
"""How to look for each container runtime, the preferred one first."""


class ContainerHosting:
    """The static planed in a container for each VNF."""

    name = "container"
    title = "a container"
    remedy = bubblewrap.REMEDY
    options: tuple[Option, ...] = (
        Option(
            "runtime", "text", "container runtime", "auto: bwrap if installed, else podman", ("auto", "bwrap", "podman")
        ),
        Option("memory_mb", "whole", "memory limit in MiB", "computed from its tables, plus 1024", least=16),
        inside.PIDS_OPTION,
        base.DEVICES,
        IDLE,
    )
    ready_within_s = 20.0

    def find(self) -> Found | NotFound:
        if find_static_planed() is None:
            return NotFound(STATIC_REMEDY)
        return find_runtime("auto")

    def start(self, request: HostedRequest, supervisor: Supervisor) -> HostedPlaned:
        runtime = find_runtime(str(request.values.get("runtime", "auto")))
        if isinstance(runtime, NotFound):
            raise NotInstalledError(f"hosting container is not available; {runtime.remedy}")
        planed = static_planed(request)
        chosen = inside.chosen(request.values, document_of(request).memory.size_mb + MORE_MB)
        details = {"cpus": cpu_text(request.cpus), "isolation": ISOLATION}
        passed = base.passed_devices(request)
        if passed:
            details["devices"] = ", ".join(nic.address for nic in passed)
        files = base.device_files(passed)
        facts = HostingFacts(request.name, "container", runtime.version, details=details)
        if runtime.binary.name == podman.PROGRAM:
            return podman.start(request, supervisor, planed, chosen, facts, files)
        return _start_bubblewrap(runtime.binary, request, supervisor, planed, chosen, facts, files)


def find_runtime(wanted: str) -> Found | NotFound:
    """Return ``bwrap`` or ``podman``; for ``auto`` the first that is installed."""
    found = [find() for name, find in RUNTIMES.items() if wanted in ("auto", name)]
    return next((runtime for runtime in found if isinstance(runtime, Found)), found[0])


def static_planed(request: HostedRequest) -> Path:
    """Return the static planed that belongs to the request's. Raises NotInstalledError."""
    planed = find_static_planed(request.planed)
    if planed is None:
        raise NotInstalledError(f"planed-static not found next to {request.planed}; {STATIC_REMEDY}")
    return planed


def _start_bubblewrap(
    bwrap: Path,
    request: HostedRequest,
    supervisor: Supervisor,
    planed: Path,
    chosen: VnfLimits,
    facts: HostingFacts,
    files: Sequence[Path],
) -> HostedPlaned:
    argv = [
        *bubblewrap.planed_container(bwrap, request, planed, files),
        bubblewrap.PLANED,
        *planed_arguments(request),
    ]
    limited = inside.limit(request, chosen, supervisor)
    process = supervisor.spawn(
        request.name,
        [*limited.prefix, *argv],
        cpus=frozenset({*request.cpus, *request.control_cpus}),
        workdir=folder_of(request),
        enclosed=True,
    )
    return HostedPlaned(request, process, limited.told(facts), limited)


HOSTING = ContainerHosting()
