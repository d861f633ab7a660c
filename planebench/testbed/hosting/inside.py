# SPDX-License-Identifier: BSD-3-Clause
"""VNFs that are a process, enclosed in namespaces or not, and the limits of their memory and processes.

Limits are control groups (version 1 or 2) if we may create them, else a resource limit as far as that goes; the report
says what is not enforced. A group is made below our own, so that our limits hold for it too.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from planebench.host import procfs, reaper
from planebench.host.evidence import WatchedThread
from planebench.host.process import Process, Supervisor
from planebench.host.procfs import read_text
from planebench.model.dimensions import HostingFacts
from planebench.model.errors import PlanebenchError, StartError
from planebench.model.switch import Option, Value
from planebench.planed.client import apply, get_statistics
from planebench.planed.document import Document
from planebench.planed.process import PlanedProcess
from planebench.testbed.hosting.base import HostedRequest, RunningVnf, Sandbox

APPLY_DEADLINE_S = 120.0
"""Enough for a FIB of a million routes while other VNFs load theirs."""
ASK_DEADLINE_S = 60.0
"""A worker parks when it runs next, twice per call: with 63 on a core each takes a fifth of a second."""
DYING_S = 1.0
"""A process closes its socket a moment before it is dead."""


BWRAP = "bwrap"
"""By default process 1 of a container of bubblewrap is bwrap again."""
_MEMORY_FILES = ("memory.limit_in_bytes", "memory.max")
"""The files of versions 1 and 2. A group has one of them."""
_OOM_FILES = ("memory.oom_control", "memory.events")
PIDS = 128
PIDS_OPTION = Option("pids", "whole", "maximum number of processes and threads", str(PIDS), least=8)


def folder_of(request: HostedRequest) -> Path:
    """Make and return the VNF's own folder, the only one that is writable from inside."""
    folder = request.workdir / request.name
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def document_of(request: HostedRequest) -> Document:
    """Return the document. Raises StartError without one: only VNFs of the user have none."""
    if request.document is None:
        raise StartError(f"{request.name} has no document for planed; give HostedRequest.document")
    return request.document


def planed_arguments(request: HostedRequest) -> list[str]:
    """Write the document without polling, and return planed's arguments: the document and the control socket."""
    config, socket = folder_of(request) / "document.json", folder_of(request) / "rpc"
    document_of(request).idle().write(config)  # those that are up must not take the CPU of those that come
    socket.unlink(missing_ok=True)  # of one that was killed
    return ["--config", str(config), "--rpc", str(socket)]


def attach(process: Process, socket: Path, title: str, report: Callable[[], str] | None = None) -> PlanedProcess:
    """Connect to the planed of a VNF, which may be one of many on its CPU. Raises StartError."""
    asked = {"connect_s": ASK_DEADLINE_S, "timeout_s": ASK_DEADLINE_S, "dying_s": DYING_S}
    return PlanedProcess(process, socket, title, report=report, **asked)


class HostedPlaned(RunningVnf):
    """A planed that is up and does not poll yet. One thread at a time may call it."""

    def __init__(self, request: HostedRequest, process: Process, facts: HostingFacts, sandbox: Sandbox) -> None:
        super().__init__(process, facts, sandbox)
        self._document = document_of(request)
        try:
            self._planed = self.planed = attach(process, folder_of(request) / "rpc", self._title, self._last_words)
        except BaseException:
            self.stop()
            raise

    def forward(self) -> None:
        try:
            apply(self._planed.call, self._document, APPLY_DEADLINE_S)
        except PlanebenchError as error:
            raise StartError(f"{self._title}: {error}") from error

    def threads(self) -> tuple[WatchedThread, ...]:
        """Return planed's workers by their ids outside of the container. Raises DiedError."""
        if not self._threads:
            outside = ids_outside(self._process.pid)
            workers = get_statistics(self._planed.call).workers
            self._threads = tuple(WatchedThread("vnf", *outside[it.tid], it.name) for it in workers)
        return self._threads


class RunningCommand(RunningVnf):
    """A command of the user, which starts by itself."""

    def __init__(
        self, request: HostedRequest, process: Process, facts: HostingFacts, sandbox: Sandbox, doubt: str = ""
    ) -> None:
        """Take a command that was started. ``doubt``: what its words may lack; empty without a doubt."""
        super().__init__(process, facts, sandbox)
        self._cpus = frozenset(request.cpus)
        self._doubt = doubt

    def threads(self) -> tuple[WatchedThread, ...]:
        """Return the threads of the command that may run on CPUs of the VNF only."""
        if not self._threads:
            found = ids_outside(self._process.pid, besides=(BWRAP,)).values()
            for pid, tid in sorted(found):
                with contextlib.suppress(OSError):  # it is gone
                    if os.sched_getaffinity(tid) <= self._cpus:
                        watched = WatchedThread("vnf", pid, tid, procfs.threads(pid).get(tid, ""))
                        self._threads = (*self._threads, watched)
        return self._threads

    def _last_words(self) -> str:
        return "; ".join(filter(None, (self._doubt, super()._last_words())))


def ids_outside(pid: int, besides: tuple[str, ...] = ()) -> dict[int, tuple[int, int]]:
    """Return process and thread id here of each thread of the program inside a process's namespaces, by thread id
    there.

    ``besides``: names of processes there that are not part of the program.
    """
    return {
        procfs.ids_of_thread(tid)[-1]: (one, tid)
        for one in procfs.innermost((pid, *procfs.descendants(pid)))
        if procfs.read_text(f"/proc/{one}/comm") not in besides
        for tid in procfs.threads(one)
    }


@dataclass(frozen=True, slots=True)
class VnfLimits:
    """The limits of a VNF."""

    memory_mb: int
    pids: int = PIDS


@dataclass(frozen=True, slots=True)
class Limited(Sandbox):
    """Limits in force for one VNF by its control ``groups``, which are removed when it has ended."""

    limits: VnfLimits
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
        texts = [read_text(group / name) or "" for group in self.groups for name in _OOM_FILES]
        if not any(re.search(r"^oom_kill [1-9]", text, re.MULTILINE) for text in texts):
            return ""
        return f"\nit reached its memory limit of {self.limits.memory_mb} MiB; raise the limit with memory_mb="

    def told(self, facts: HostingFacts) -> HostingFacts:
        """Return the facts with a description of the limits."""
        return replace(facts, details={**facts.details, "limits": self.words})

    def remove(self) -> None:
        for group in self.groups:
            reaper.remove_path(group)


def chosen(values: Mapping[str, Value], memory_mb: int) -> VnfLimits:
    """Return the limits in the options; ``memory_mb`` is the default for memory."""
    return VnfLimits(int(str(values.get("memory_mb", memory_mb))), int(str(values.get("pids", PIDS))))


def limit(request: HostedRequest, limits: VnfLimits, supervisor: Supervisor) -> Limited:
    """Put limits in force for a VNF. The supervisor removes the control groups at the latest. Raises StartError."""
    memory, pids = parent_group("memory"), parent_group("pids")
    parents = dict.fromkeys(parent for parent in (memory, pids) if parent is not None)
    groups = tuple(parent / group_name(request, supervisor) for parent in parents)
    for group in groups:
        supervisor.track_path(group)
        values = {**dict.fromkeys(_MEMORY_FILES, limits.memory_mb << 20), "pids.max": limits.pids}
        try:
            group.mkdir(exist_ok=True)
            for file in (group / name for name in values):
                if file.exists():
                    file.write_text(str(values[file.name]), encoding="ascii")
        except OSError as error:
            raise StartError(f"cannot create control group {group}: {error}") from error
    if memory:
        memory_words = f"{limits.memory_mb} MiB of memory by a control group"
    elif pids:
        memory_words = "memory not limited (no control group can be created)"
    else:
        memory_words = (
            f"{limits.memory_mb} MiB of private memory (RLIMIT_DATA, because no control group can be created)"
        )
    pids_words = f"{limits.pids} processes by a control group" if pids else "number of processes not limited"
    return Limited(limits, groups, f"{memory_words}; {pids_words}")


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
