# SPDX-License-Identifier: BSD-3-Clause
"""VNFs that are a process, enclosed in namespaces or not: planed behind a unix socket, or a command of the user's."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

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
"""Enough for a FIB of a million routes while other VNFs load theirs."""
ASK_DEADLINE_S = 60.0
"""A worker parks when it runs next, twice per call: with 63 on a core each takes a fifth of a second."""
DYING_S = 1.0
"""A process closes its socket a moment before it is dead."""


class Sandbox:
    """The surroundings of a VNF's process that were made for it: here none."""

    def why(self) -> str:
        """Return a reason for the end of the VNF, to follow its last log lines; empty if none is known."""
        return ""

    def remove(self) -> None:
        """Remove the surroundings when nothing runs in them any more. Never raises; safe to call twice."""


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
    config, socket = folder_of(request) / "document.json", rpc_of(request)
    document_of(request).idle().write(config)  # those that are up must not take the CPU of those that come
    socket.unlink(missing_ok=True)  # of one that was killed
    return ["--config", str(config), "--rpc", str(socket)]


def rpc_of(request: HostedRequest) -> Path:
    """Return planed's control socket."""
    return folder_of(request) / "rpc"


def attach(process: Process, socket: Path, title: str, report: Callable[[], str] | None = None) -> PlanedProcess:
    """Connect to the planed of a VNF, which may be one of many on its CPU. Raises StartError."""
    asked = {"connect_s": ASK_DEADLINE_S, "timeout_s": ASK_DEADLINE_S, "dying_s": DYING_S}
    return PlanedProcess(process, socket, title, report=report, **asked)


class RunningProcess:
    """A VNF that is one process: planed, a command of the user, or QEMU. By default it starts to forward by itself."""

    same_clock = True

    def __init__(
        self,
        process: Process,
        facts: HostingFacts,
        sandbox: Sandbox,
        threads: tuple[WatchedThread, ...] = (),
        planed: PlanedProcess | None = None,
        inside: Callable[[Document], Document] = lambda document: document,
    ) -> None:
        self.name = facts.vnf
        self.inside = inside
        self.facts = facts
        self.planed = planed
        self._process = process
        self._sandbox = sandbox
        self._threads = threads

    @property
    def processes(self) -> tuple[Process, ...]:
        return (self._process,)

    def threads(self) -> tuple[WatchedThread, ...]:
        return self._threads

    def forward(self) -> None: ...

    def check(self) -> None:
        if not self._process.alive():
            raise DiedError(f"{self._title} died: {self._last_words()}")

    def ask_to_end(self) -> None:
        if self._process.alive():
            self._process.ask_to_end()

    def kill(self) -> None:
        self._process.kill()
        self._clean()

    def stop(self) -> None:
        self._process.terminate()
        self._clean()

    def _clean(self) -> None:
        if self.planed is not None:
            self.planed.close()
        self._sandbox.remove()

    @property
    def _title(self) -> str:
        return f"{self.name} ({self.facts.hosting})"

    def _last_words(self) -> str:
        return self._process.exit_report() + self._sandbox.why()


class RunningPlaned(RunningProcess):
    """A planed that is up and does not poll yet. One thread at a time may call it."""

    def __init__(self, request: HostedRequest, process: Process, facts: HostingFacts, sandbox: Sandbox) -> None:
        super().__init__(process, facts, sandbox)
        self._document = document_of(request)
        try:
            self._planed = self.planed = attach(process, rpc_of(request), self._title, self._last_words)
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
            workers = get_statistics(self._planed.call)["workers"]
            self._threads = tuple(WatchedThread("vnf", *outside[it["tid"]], it["name"]) for it in workers)
        return self._threads


class RunningCommand(RunningProcess):
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
            self._threads = tuple(
                WatchedThread("vnf", pid, tid, procfs.threads(pid).get(tid, ""))
                for pid, tid in sorted(found)
                if set() < _affinity(tid) <= self._cpus
            )
        return self._threads

    def _last_words(self) -> str:
        return "; ".join(filter(None, (self._doubt, super()._last_words())))


BWRAP = "bwrap"
"""By default process 1 of a container of bubblewrap is bwrap again."""


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


def _affinity(tid: int) -> frozenset[int]:
    """Return the CPUs that a thread may run on; none if it is gone."""
    try:
        return frozenset(os.sched_getaffinity(tid))
    except OSError:
        return frozenset()
