# SPDX-License-Identifier: BSD-3-Clause
"""``container``: a VNF is the static planed in a container, by bubblewrap or by podman with runc."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from planebench.host.process import Supervisor
from planebench.host.programs import Found, NotFound, version_lines
from planebench.hosting import bubblewrap, limits, podman
from planebench.hosting.base import IDLE, HostedRequest
from planebench.hosting.inside import RunningPlaned, document_of, folder_of, planed_arguments
from planebench.hosting.limits import Limits
from planebench.model.cpus import cpu_text
from planebench.model.errors import NotInstalledError
from planebench.model.hosting import HostingFacts
from planebench.model.option import Option
from planebench.planed import STATIC_REMEDY, find_static_planed

MORE_MB = 1024
"""Beside its document's memory: tables that network functions keep in memory of their own."""
ISOLATION = "container with a read-only root, no network and no capabilities"


@dataclass(frozen=True, slots=True)
class Runtime:
    """A container runtime."""

    name: str
    binary: Path
    version: str


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
        limits.PIDS_OPTION,
        IDLE,
    )
    own_vnf = False
    ready_within_s = 20.0

    def find(self) -> Found | NotFound:
        if find_static_planed() is None:
            return NotFound(STATIC_REMEDY)
        runtime = find_runtime("auto")
        return runtime if isinstance(runtime, NotFound) else Found(runtime.version, runtime.binary)

    def start(self, request: HostedRequest, supervisor: Supervisor) -> RunningPlaned:
        runtime = find_runtime(str(request.values.get("runtime", "auto")))
        if isinstance(runtime, NotFound):
            raise NotInstalledError(f"hosting container is not available; {runtime.remedy}")
        planed = static_planed(request)
        chosen = limits.chosen(request.values, document_of(request).memory.size_mb + MORE_MB)
        if runtime.name == podman.PROGRAM:
            return podman.start(request, supervisor, planed, chosen, self._facts(request, runtime))
        return _start_bubblewrap(request, supervisor, planed, chosen, self._facts(request, runtime))

    def _facts(self, request: HostedRequest, runtime: Runtime) -> HostingFacts:
        details = {"cpus": cpu_text(request.cpus), "isolation": ISOLATION}
        return HostingFacts(request.name, "container", runtime.version, details=details)


def find_runtime(wanted: str) -> Runtime | NotFound:
    """Return ``bwrap`` or ``podman``; for ``auto`` the first that is installed."""
    bwrap = bubblewrap.find()
    if bwrap is not None and wanted in ("auto", bubblewrap.PROGRAM):
        lines = version_lines(bwrap)
        return Runtime(bubblewrap.PROGRAM, bwrap, lines[0] if lines else bubblewrap.PROGRAM)
    if wanted == bubblewrap.PROGRAM:
        return NotFound(bubblewrap.REMEDY)
    found = podman.find()
    if isinstance(found, NotFound):
        return NotFound(bubblewrap.REMEDY) if wanted == "auto" else found
    return Runtime(podman.PROGRAM, found.binary, found.version)


def static_planed(request: HostedRequest) -> Path:
    """Return the static planed that belongs to the request's. Raises NotInstalledError."""
    planed = find_static_planed(request.planed)
    if planed is None:
        raise NotInstalledError(f"planed-static not found next to {request.planed}; {STATIC_REMEDY}")
    return planed


def _start_bubblewrap(
    request: HostedRequest, supervisor: Supervisor, planed: Path, chosen: Limits, facts: HostingFacts
) -> RunningPlaned:
    bwrap = bubblewrap.find()
    assert bwrap is not None
    argv: Sequence[str] = [
        *bubblewrap.planed_container(bwrap, request, planed),
        bubblewrap.PLANED,
        *planed_arguments(request),
    ]
    limited = limits.limit(request, chosen, supervisor)
    process = supervisor.spawn(
        request.name,
        [*limited.prefix, *argv],
        cpus=frozenset({*request.cpus, *request.control_cpus}),
        workdir=folder_of(request),
        enclosed=True,
    )
    return RunningPlaned(request, process, limited.told(facts), limited)


HOSTING = ContainerHosting()
