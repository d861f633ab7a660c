# SPDX-License-Identifier: BSD-3-Clause
"""Limits of memory and processes for a hosted VNF: by control groups (version 1 or 2) if we may create them, else by a
resource limit as far as that goes. The report says what is not enforced.

A group is made below our own, so that our limits hold for it too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from planebench.host import reaper
from planebench.host.process import Supervisor
from planebench.host.procfs import read_text
from planebench.hosting.base import HostedRequest
from planebench.hosting.inside import Sandbox
from planebench.model.errors import StartError
from planebench.model.hosting import HostingFacts
from planebench.model.option import Option, Value

CONTROLLERS = ("memory", "pids")
_MEMORY_FILES = ("memory.limit_in_bytes", "memory.max")
"""The files of versions 1 and 2. A group has one of them."""
_OOM_FILES = ("memory.oom_control", "memory.events")
PIDS = 128
PIDS_OPTION = Option("pids", "whole", "maximum number of processes and threads", str(PIDS), least=8)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a VNF."""

    memory_mb: int
    pids: int = PIDS


@dataclass(frozen=True, slots=True)
class Limited(Sandbox):
    """Limits in force for one VNF by its control ``groups``, which are removed when it has ended."""

    limits: Limits
    groups: tuple[Path, ...]
    words: str
    """A description of what is limited, how, and what is not."""

    @property
    def prefix(self) -> tuple[str, ...]:
        """Return the words before a command line that put the command under the limits."""
        if not self.groups:
            return ("prlimit", f"--data={self.limits.memory_mb << 20}", "--")
        joins = "".join('echo 0 >"$1/cgroup.procs"; shift; ' for _ in self.groups)
        return ("/bin/sh", "-ec", f'{joins}exec "$@"', "sh", *map(str, self.groups))

    def why(self) -> str:
        if not any(_killed_for_memory(group) for group in self.groups):
            return ""
        return f"\nit reached its memory limit of {self.limits.memory_mb} MiB; raise the limit with memory_mb="

    def told(self, facts: HostingFacts) -> HostingFacts:
        """Return the facts with a description of the limits."""
        return replace(facts, details={**facts.details, "limits": self.words})

    def remove(self) -> None:
        for group in self.groups:
            reaper.remove_path(group)


def chosen(values: Mapping[str, Value], memory_mb: int) -> Limits:
    """Return the limits in the options; ``memory_mb`` is the default for memory."""
    return Limits(int(str(values.get("memory_mb", memory_mb))), int(str(values.get("pids", PIDS))))


def limit(request: HostedRequest, limits: Limits, supervisor: Supervisor) -> Limited:
    """Put limits in force for a VNF. The supervisor removes the control groups at the latest. Raises StartError."""
    parents = list(dict.fromkeys(parent for parent in map(parent_group, CONTROLLERS) if parent is not None))
    groups = tuple(parent / group_name(request, supervisor) for parent in parents)
    for group in groups:
        supervisor.track_path(group)
        _make(group, limits)
    return Limited(limits, groups, _words(limits, bool(parent_group("memory")), bool(parent_group("pids"))))


def group_name(request: HostedRequest, supervisor: Supervisor) -> str:
    """Return a name that no other VNF has, also of another harness."""
    return f"{supervisor.root.name}-{request.workdir.name}-{request.name}"


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A mounted hierarchy of control groups. ``controllers``: empty for version 2."""

    controllers: tuple[str, ...]
    mount: Path
    own: Path
    """Our group, as a folder."""


def hierarchies() -> tuple[Hierarchy, ...]:
    """Return the hierarchies that we are in: in version 1 one or more per controller, in version 2 one, or both."""
    mounts = [line.split() for line in (read_text("/proc/self/mounts") or "").splitlines()]
    found = []
    for line in (read_text("/proc/self/cgroup") or "").splitlines():
        _, names, path = line.split(":", 2)
        kind = "cgroup" if names else "cgroup2"
        for _, mount, type_, options, *_ in mounts:
            if type_ == kind and set(names.split(",")) - {""} <= set(options.split(",")):
                own = Path(mount) / path.lstrip("/")
                found.append(Hierarchy(tuple(names.split(",")) if names else (), Path(mount), own))
                break
    return tuple(found)


def parent_group(controller: str) -> Path | None:
    """Return where a group with that controller can be made: our group, or one above it that may have it; else None."""
    known = hierarchies()
    for hierarchy in known:
        if controller in hierarchy.controllers:
            return _first_usable(hierarchy)
    return next((_first_usable(hierarchy, controller) for hierarchy in known if not hierarchy.controllers), None)


def everywhere() -> tuple[Path, ...]:
    """Return where a container engine makes a group: in every hierarchy of version 1; in version 2 with memory."""
    known = hierarchies()
    if not any(hierarchy.controllers for hierarchy in known):
        return tuple(parent for parent in (parent_group("memory"),) if parent is not None)
    return tuple(parent for parent in map(_first_usable, known) if parent is not None)


def as_parent(name: str) -> str:
    """Return the parent group for a container engine: below our group per hierarchy, or the path of version 2."""
    if any(hierarchy.controllers for hierarchy in hierarchies()):
        return name
    (only,) = hierarchies()
    return f"/{(_first_usable(only, 'memory') or only.mount).relative_to(only.mount) / name}"


def _first_usable(hierarchy: Hierarchy, passed_on: str = "") -> Path | None:
    """Return our group, or the next above it, that exists, is writable and in version 2 passes ``passed_on`` on."""
    for folder in (hierarchy.own, *hierarchy.own.parents):
        if not folder.is_relative_to(hierarchy.mount):
            break
        below = (read_text(folder / "cgroup.subtree_control") or "").split()
        if os.access(folder / "cgroup.procs", os.W_OK) and (not passed_on or passed_on in below):
            return folder
    return None


def _make(group: Path, limits: Limits) -> None:
    try:
        group.mkdir(exist_ok=True)
        _write([group / name for name in _MEMORY_FILES], limits.memory_mb << 20)
        _write([group / "pids.max"], limits.pids)
    except OSError as error:
        raise StartError(f"cannot create control group {group}: {error}") from error


def _write(files: Sequence[Path], value: int) -> None:
    for file in files:
        if file.exists():
            file.write_text(str(value), encoding="ascii")


def _killed_for_memory(group: Path) -> bool:
    texts = [read_text(group / name) or "" for name in _OOM_FILES]
    return any(re.search(r"^oom_kill [1-9]", text, re.MULTILINE) for text in texts)


def _words(limits: Limits, memory: bool, pids: bool) -> str:
    memory_words = f"{limits.memory_mb} MiB of memory by a control group"
    if not (memory or pids):
        memory_words = (
            f"{limits.memory_mb} MiB of private memory (RLIMIT_DATA, because no control group can be created)"
        )
    elif not memory:
        memory_words = "memory not limited (no control group can be created)"
    pids_words = f"{limits.pids} processes by a control group" if pids else "number of processes not limited"
    return f"{memory_words}; {pids_words}"
