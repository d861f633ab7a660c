# SPDX-License-Identifier: BSD-3-Clause
"""Files, sockets, interfaces, network namespaces and processes that a program may leave behind on a machine.

A snapshot before, one after, and the difference. New entries that belong to a living process of somebody else are not
reported.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psutil

from planebench.host import procfs, reaper
from planebench.host.process import ROOT_PREFIX

FOLDERS: tuple[tuple[str, int], ...] = (
    ("/tmp", 1),
    ("/var/tmp", 1),
    ("/dev/shm", 1),
    ("/dev/hugepages", 2),
    ("/run", 2),
    ("/sys/class/net", 1),
)
"""Folders in which programs leave things, and the depth of the search. Named network namespaces are in /run."""
GRACE_S = 2.0
LOOK_S = 0.05


@dataclass(frozen=True, slots=True)
class Leftovers:
    """All entries in the usual places at one moment."""

    paths: Mapping[str, tuple[int, int]]
    """Inode and time of the last change in ns by path, which show whether it was changed."""

    @classmethod
    def take(cls) -> Self:
        """Return a snapshot; takes some ms."""
        return cls({path: mark for folder, depth in FOLDERS for path, mark in _below(folder, depth)})

    def touched(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Return the paths that have changed since the snapshot."""
        now = Leftovers.take().paths
        return tuple(path for path in paths if path in now and now[path] != self.paths.get(path))

    def left(self, ours: Path) -> tuple[str, ...]:
        """Return new files, interfaces and processes that are still there after GRACE_S.

        ``ours``: the private folder of the harness, which it removes itself and which identifies its processes.
        """
        deadline = time.monotonic() + GRACE_S
        while (found := self._new(ours)) and time.monotonic() < deadline:
            time.sleep(LOOK_S)
        return found

    def _new(self, ours: Path) -> tuple[str, ...]:
        known = procfs.processes_with(str(ours))
        processes = [pid for pid in known if reaper.__file__ not in procfs.command_line(pid)]
        new = sorted(Leftovers.take().paths.keys() - self.paths.keys() - {str(ours)})
        # The private folder of another harness has a reaper of its own.
        new = [path for path in new if not (path.startswith(f"{ours}/") or Path(path).name.startswith(ROOT_PREFIX))]
        # What a living process, not one of ours, names or has open is its own.
        others = [it for it in psutil.process_iter() if it.pid not in {os.getpid(), *known}] if new else []
        theirs = "\0".join(f"{procfs.words_of(it)} {_open_files(it)}" for it in others)
        return (
            *(f"process {pid}: {procfs.command_line(pid)}" for pid in processes),
            *(path for path in new if path not in theirs),
        )


def _below(folder: str, depth: int) -> Iterator[tuple[str, tuple[int, int]]]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:  # gone meanwhile
            continue
        yield entry.path, (status.st_ino, status.st_ctime_ns)
        if depth > 1 and entry.is_dir(follow_symlinks=False):
            yield from _below(entry.path, depth - 1)


def _open_files(process: psutil.Process) -> str:
    try:
        return f"{process.open_files()} {process.cwd()}"
    except psutil.Error:
        return ""
