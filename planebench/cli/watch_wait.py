# SPDX-License-Identifier: BSD-3-Clause
"""Waiting for a run to go on without taking CPU time: inotify on its folder, a pidfd on its process."""

from __future__ import annotations

import contextlib
import os
import select
from pathlib import Path
from types import TracebackType
from typing import Self

from inotify_simple import INotify, flags

LOOK_S = 1.0
"""How often to look where the kernel does not tell: no inotify left, a process of another namespace."""

_EVENTS = flags.MOVED_TO | flags.DELETE_SELF | flags.MOVE_SELF
"""status.json and finished.json come by a rename; a line in trials.jsonl wakes nobody."""


class Changes:
    """Wakes when the run of a folder tells something, when the folder goes, and when the process does."""

    def __init__(self, folder: Path) -> None:
        self._stack = contextlib.ExitStack()
        self._inotify: INotify | None = None
        self._pid: int | None = None
        self._poll = select.poll()
        with contextlib.suppress(OSError):
            self._inotify = self._stack.enter_context(INotify(nonblocking=True))
            self._inotify.add_watch(folder, _EVENTS)
            self._poll.register(self._inotify, select.POLLIN)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def wait(self, pid: int | None) -> None:
        """Sleep until something may have changed. ``pid`` is the process of the run, which ``--resume`` may change."""
        sure = self._watch_process(pid) and self._inotify is not None
        self._poll.poll(None if sure else LOOK_S * 1000)
        if self._inotify is not None:
            with contextlib.suppress(OSError):
                self._inotify.read(timeout=0)

    def _watch_process(self, pid: int | None) -> bool:
        """Return whether the end of the process will wake us."""
        if pid is None or pid == self._pid:
            return pid is not None
        try:
            fd = os.pidfd_open(pid)
        except OSError:
            return False
        self._stack.callback(os.close, fd)
        self._poll.register(fd, select.POLLIN)
        self._pid = pid
        return True
