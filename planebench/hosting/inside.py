# SPDX-License-Identifier: BSD-3-Clause
"""VNFs that are a process, enclosed in namespaces or not: planed behind a unix socket, or a command of the user's."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from planebench.host import procfs
from planebench.host.evidence import WatchedThread
from planebench.host.process import Process
from planebench.hosting.base import HostedRequest
from planebench.model.errors import DiedError, PlanebenchError, StartError
from planebench.model.hosting import HostingFacts
from planebench.planed.document import Document
from planebench.planed.process import PlanedProcess
from planebench.planed.requests import apply, get_statistics

APPLY_DEADLINE_S = 120.0
"""A FIB of a million routes, while the others fill theirs."""
ASK_DEADLINE_S = 60.0
"""A worker is parked when it runs next: with 63 on a core that is a fifth of a second, and twice for each question."""
DYING_S = 1.0
"""A process closes its socket a moment before it is dead."""


class Sandbox(Protocol):
    """Describe what is around the process of a VNF, and made for it."""

    def why(self) -> str:
        """Return what it knows about the VNF's end, to add to its last words; else empty."""

    def remove(self) -> None:
        """For the end, when nothing is in it any more. Never raises; safe to call twice."""


class NoSandbox:
    """Nothing is around it."""

    def why(self) -> str:
        """It knows nothing."""
        return ""

    def remove(self) -> None:
        """There is nothing to remove."""


def folder_of(request: HostedRequest) -> Path:
    """The VNF's own folder, the only one that it may write to from inside; made here."""
    folder = request.workdir / request.name
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def document_of(request: HostedRequest) -> Document:
    """The document. Raises StartError without one: only the user's own VNFs have none."""
    if request.document is None:
        raise StartError(f"{request.name} has no document for planed; give HostedRequest.document")
    return request.document


def planed_arguments(request: HostedRequest) -> list[str]:
    """Return what planed is started with: the document before anything polls, and its socket. Writes the document."""
    config, socket = folder_of(request) / "document.json", rpc_of(request)
    document_of(request).idle().write(config)  # those that are up must not take the CPU of those that come
    socket.unlink(missing_ok=True)  # of one that was killed
    return ["--config", str(config), "--rpc", str(socket)]


def rpc_of(request: HostedRequest) -> Path:
    """planed's socket."""
    return folder_of(request) / "rpc"


def attach(process: Process, socket: Path, title: str, report: Callable[[], str] | None = None) -> PlanedProcess:
    """Connect to the planed of a VNF, which may be one of many on its CPU. Raise StartError."""
    asked = {"connect_s": ASK_DEADLINE_S, "timeout_s": ASK_DEADLINE_S, "dying_s": DYING_S}
    return PlanedProcess(process, socket, title, report=report, **asked)


class RunningProcess:
    """A VNF that is a process: what planed and a command of the user's have in common."""

    same_clock = True

    def __init__(self, request: HostedRequest, process: Process, facts: HostingFacts, sandbox: Sandbox) -> None:
        self.name = request.name
        self.facts = facts
        self._process = process
        self._sandbox = sandbox
        self._threads: tuple[WatchedThread, ...] | None = None

    @property
    def processes(self) -> tuple[Process, ...]:
        """The one that was started; what is inside of it goes with it."""
        return (self._process,)

    def check(self) -> None:
        """Raise DiedError, with its last log lines, if it is gone."""
        if not self._process.alive():
            raise DiedError(f"{self._title} died: {self._last_words()}")

    def ask_to_end(self) -> None:
        """SIGTERM; does not wait."""
        if self._process.alive():
            self._process.ask_to_end()

    def kill(self) -> None:
        """SIGKILL, as when it crashes. Never raises."""
        self._process.kill()
        self._sandbox.remove()

    def stop(self) -> None:
        """End it, paused or not. Never raises; safe to call twice."""
        self._process.terminate()
        self._sandbox.remove()

    @property
    def _title(self) -> str:
        return f"{self.name} ({self.facts.hosting})"

    def _last_words(self) -> str:
        return self._process.exit_report() + self._sandbox.why()


class RunningPlaned(RunningProcess):
    """A planed that has come up, and does not poll yet. One thread at a time may ask it. Raises StartError."""

    def __init__(self, request: HostedRequest, process: Process, facts: HostingFacts, sandbox: Sandbox) -> None:
        super().__init__(request, process, facts, sandbox)
        self._document = document_of(request)
        try:
            self._planed = attach(process, rpc_of(request), self._title, self._last_words)
        except BaseException:
            super().stop()
            raise
        self.planed: PlanedProcess | None = self._planed

    def forward(self) -> None:
        """Have it poll. Raises StartError with planed's own words if it refuses."""
        try:
            apply(self._planed.call, self._document, APPLY_DEADLINE_S)
        except PlanebenchError as error:
            raise StartError(f"{self._title}: {error}") from error

    def threads(self) -> tuple[WatchedThread, ...]:
        """planed's workers, by the ids that they have outside. Raises DiedError."""
        if self._threads is None:
            outside = ids_outside(self._process.pid)
            workers = get_statistics(self._planed.call)["workers"]
            ids = [(*outside[worker["tid"]], worker["name"]) for worker in workers]
            self._threads = tuple(WatchedThread("vnf", pid, tid, name) for pid, tid, name in ids)
        return self._threads

    def kill(self) -> None:
        """SIGKILL, as when it crashes. Never raises."""
        self._planed.close()
        super().kill()

    def stop(self) -> None:
        """End it, paused or not. Never raises; safe to call twice."""
        self._planed.close()
        super().stop()


class RunningCommand(RunningProcess):
    """A command of the user's. It begins by itself."""

    def __init__(self, request: HostedRequest, process: Process, facts: HostingFacts, sandbox: Sandbox) -> None:
        super().__init__(request, process, facts, sandbox)
        self.planed: PlanedProcess | None = None
        self._cpus = frozenset(request.cpus)

    def forward(self) -> None:
        """Nothing to do."""

    def threads(self) -> tuple[WatchedThread, ...]:
        """Its threads that may run on the VNF's CPUs and on no other."""
        if self._threads is None:
            found = ids_outside(self._process.pid, besides=(BWRAP,)).values()
            self._threads = tuple(
                WatchedThread("vnf", pid, tid, procfs.threads(pid).get(tid, ""))
                for pid, tid in sorted(found)
                if set() < _affinity(tid) <= self._cpus
            )
        return self._threads


BWRAP = "bwrap"
"""Process 1 of a container of bubblewrap is bwrap again, if it is not told otherwise."""


def ids_outside(pid: int, besides: tuple[str, ...] = ()) -> dict[int, tuple[int, int]]:
    """Map the threads of the program that a process is or holds in namespaces: id of a thread there -> process and
    thread id here.

    ``besides``: names of processes there that are no part of it.
    """
    return {
        procfs.ids_of_thread(tid)[-1]: (one, tid)
        for one in procfs.innermost((pid, *procfs.descendants(pid)))
        if procfs.read_text(f"/proc/{one}/comm") not in besides
        for tid in procfs.threads(one)
    }


def _affinity(tid: int) -> frozenset[int]:
    """Return where a thread may run; nowhere if it is gone."""
    try:
        return frozenset(os.sched_getaffinity(tid))
    except OSError:
        return frozenset()
