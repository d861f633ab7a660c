# SPDX-License-Identifier: BSD-3-Clause
"""How much memory and how many processes a hosted VNF may have: by control groups of version 1 or 2 where we may make
them, else by a resource limit as far as that goes. What nothing enforces is said.

A group is made below the one that we are in: what limits us limits it too.
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
from planebench.model.errors import StartError
from planebench.model.hosting import HostingFacts
from planebench.model.option import Option, Value

CONTROLLERS = ("memory", "pids")
_MEMORY_FILES = ("memory.limit_in_bytes", "memory.max")
"""Of version 1 and 2. A group has one of them."""
_OOM_FILES = ("memory.oom_control", "memory.events")
PIDS = 128
PIDS_OPTION = Option("pids", "pids", "whole", "processes and threads it may have", str(PIDS), least=8)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a VNF may have."""

    memory_mb: int
    pids: int = PIDS


@dataclass(frozen=True, slots=True)
class Limited:
    """Limits in force for one VNF: by the control ``groups``, which go when it has ended."""

    limits: Limits
    groups: tuple[Path, ...]
    words: str
    """For people: what is limited, how, and what is not."""

    @property
    def prefix(self) -> tuple[str, ...]:
        """For before its command line: a command that puts itself under the limits and becomes the one behind it."""
        if not self.groups:
            return ("prlimit", f"--data={self.limits.memory_mb << 20}", "--")
        joins = "".join('echo 0 >"$1/cgroup.procs"; shift; ' for _ in self.groups)
        return ("/bin/sh", "-ec", f'{joins}exec "$@"', "sh", *map(str, self.groups))

    def why(self) -> str:
        """What to add to the last words of a VNF that was at its limit of memory; empty of another."""
        if not any(_killed_for_memory(group) for group in self.groups):
            return ""
        return f"\nit was at its limit of {self.limits.memory_mb} MiB of memory: give it more with memory_mb="

    def told(self, facts: HostingFacts) -> HostingFacts:
        """The facts with what is limited."""
        return replace(facts, details={**facts.details, "limits": self.words})

    def remove(self) -> None:
        """For the end, when nothing is in it any more. Never raises; safe to call twice."""
        for group in self.groups:
            reaper.remove_path(group)


def chosen(values: Mapping[str, Value], memory_mb: int) -> Limits:
    """What the options say; of memory ``memory_mb`` where they say nothing."""
    return Limits(int(str(values.get("memory_mb", memory_mb))), int(str(values.get("pids", PIDS))))


def limit(request: HostedRequest, limits: Limits, supervisor: Supervisor) -> Limited:
    """Put limits in force for a VNF. Control groups go with the supervisor, if not before. Raises StartError."""
    parents = list(dict.fromkeys(parent for parent in map(parent_group, CONTROLLERS) if parent is not None))
    groups = tuple(parent / group_name(request, supervisor) for parent in parents)
    for group in groups:
        supervisor.track_path(group)
        _make(group, limits)
    return Limited(limits, groups, _words(limits, bool(parent_group("memory")), bool(parent_group("pids"))))


def group_name(request: HostedRequest, supervisor: Supervisor) -> str:
    """One that no other VNF has, nor another harness."""
    return f"{supervisor.root.name}-{request.workdir.name}-{request.name}"


def parent_group(controller: str) -> Path | None:
    """Where a group with that controller can be made: ours, or the next above it that may have one. None: nowhere."""
    mounts, groups = read_text("/proc/self/mounts") or "", read_text("/proc/self/cgroup") or ""
    own = re.search(rf"^\d+:(?:[^:]*,)?{controller}(?:,[^:]*)?:(/.*)$", groups, re.MULTILINE)
    if own:
        mount = re.search(rf"^\S+ (\S+) cgroup (?:\S*,)?{controller}[, ]", mounts, re.MULTILINE)
        return _first_usable(mount[1], own[1]) if mount else None
    own = re.search(r"^0::(/.*)$", groups, re.MULTILINE)
    mount = re.search(r"^\S+ (\S+) cgroup2 ", mounts, re.MULTILINE)
    return _first_usable(mount[1], own[1], controller) if own and mount else None


def _first_usable(mount: str, path: str, passed_on: str | None = None) -> Path | None:
    """Our group, or the next above it that is there, may be written to and, of version 2, passes the controller on."""
    group = Path(mount) / path.lstrip("/")
    for folder in (group, *group.parents):
        if not folder.is_relative_to(mount):
            break
        below = (read_text(folder / "cgroup.subtree_control") or "").split()
        if os.access(folder / "cgroup.procs", os.W_OK) and (passed_on is None or passed_on in below):
            return folder
    return None


def _make(group: Path, limits: Limits) -> None:
    try:
        group.mkdir(exist_ok=True)
        _write([group / name for name in _MEMORY_FILES], limits.memory_mb << 20)
        _write([group / "pids.max"], limits.pids)
    except OSError as error:
        raise StartError(f"the control group {group} cannot be made: {error}") from error


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
        memory_words = f"{limits.memory_mb} MiB of private memory (RLIMIT_DATA: no control group can be made here)"
    elif not memory:
        memory_words = "memory not limited: no control group for it can be made here"
    pids_words = f"{limits.pids} processes by a control group" if pids else "number of processes not limited"
    return f"{memory_words}; {pids_words}"


def all_parents() -> tuple[Path, ...]:
    """Our group in each hierarchy of version 1; of version 2 alone, where a group with memory can be made."""
    mounts, groups = read_text("/proc/self/mounts") or "", read_text("/proc/self/cgroup") or ""
    found = []
    for controllers, path in re.findall(r"^\d+:([^:]+):(/.*)$", groups, re.MULTILINE):
        mount = re.search(rf"^\S+ (\S+) cgroup \S*{re.escape(controllers)} ", mounts, re.MULTILINE)
        found.append(_first_usable(mount[1], path) if mount else None)
    return tuple(parent for parent in (*found, parent_group("memory")) if parent is not None)
