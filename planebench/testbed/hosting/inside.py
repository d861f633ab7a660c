# SPDX-License-Identifier: BSD-3-Clause
"""VNFs that are a process, enclosed in namespaces or not."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from planebench.host import procfs
from planebench.host.evidence import ThreadRef
from planebench.host.process import Process, on_failure
from planebench.model.dimensions import HostingFacts
from planebench.model.errors import PlanebenchError, StartError
from planebench.planed.client import apply, get_statistics
from planebench.planed.document import Document
from planebench.planed.process import PlanedProcess
from planebench.testbed.hosting.base import HostedRequest, RunningVnf

APPLY_DEADLINE_S = 120.0
"""Enough for a FIB of a million routes while other VNFs load theirs."""
ASK_DEADLINE_S = 60.0
"""A worker parks when it runs next, twice per call: with 63 on a core each takes a fifth of a second."""
DYING_S = 1.0
"""A process closes its socket a moment before it is dead."""
DOCUMENT = "document.json"
RPC = "rpc"
"""The control socket of a planed, in its own folder."""
BWRAP = "bwrap"
"""The program of a container, which is around its processes, and by default its process 1."""


def folder_of(request: HostedRequest) -> Path:
    """Make and return the folder of what we write for and of a VNF, such as its log; it is not seen from inside."""
    folder = request.workdir / request.name
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def own_folder(request: HostedRequest) -> Path:
    """Make and return the VNF's own folder, the only one that is writable from inside."""
    folder = folder_of(request) / "own"
    folder.mkdir(mode=0o700, exist_ok=True)
    return give(request, folder)


def give(request: HostedRequest, path: Path) -> Path:
    """Give a file or folder, which only we can have made, to the user of the VNF; return it."""
    if request.uid is not None:
        os.chown(path, request.uid, request.uid, follow_symlinks=False)
    return path


def hand_over_ports(request: HostedRequest) -> None:
    """Let the user of the VNF connect to its ports: who restarts there makes new sockets. Their folders stay ours."""
    for port in request.ports:
        if request.uid is not None and not port.address:
            os.chown(port.socket.parent, -1, request.uid)
            port.socket.parent.chmod(0o750)
            with contextlib.suppress(FileNotFoundError):  # nobody is there yet
                give(request, port.socket).chmod(0o600)


def document_of(request: HostedRequest) -> Document:
    """Return the document. Raises StartError without one: only VNFs of the user have none."""
    if request.document is None:
        raise StartError(f"{request.name} has no document for planed; give HostedRequest.document")
    return request.document


def planed_arguments(request: HostedRequest) -> list[str]:
    """Write the document without polling, and return planed's arguments: the document and the control socket."""
    config, socket = folder_of(request) / DOCUMENT, own_folder(request) / RPC
    document_of(request).idle().write(config)  # those that are up must not take the CPU of those that come
    give(request, config)
    socket.unlink(missing_ok=True)  # of one that was killed
    return ["--config", str(config), "--rpc", str(socket)]


def attach(
    request: HostedRequest, process: Process, title: str, report: Callable[[], str] | None = None
) -> PlanedProcess:
    """Connect to the planed of a VNF, which may be one of many on its CPU. Raises StartError."""
    asked = {"connect_s": ASK_DEADLINE_S, "timeout_s": ASK_DEADLINE_S, "dying_s": DYING_S}
    planed = PlanedProcess(process, own_folder(request) / RPC, title, report=report, **asked)
    if request.uid not in (None, planed.client.peer_uid):  # its folder is its own: it may have put a link there
        planed.stop()
        raise StartError(f"{title}: another process answers at its control socket")
    return planed


class HostedPlaned(RunningVnf):
    """A planed that is up and does not poll yet. One thread at a time may call it."""

    def __init__(self, request: HostedRequest, process: Process, facts: HostingFacts) -> None:
        super().__init__(process, facts)
        self._document = document_of(request)
        with on_failure(self.stop):
            self._planed = self.planed = attach(request, process, self._title, self._last_words)

    def forward(self) -> None:
        try:
            apply(self._planed.call, self._document, APPLY_DEADLINE_S)
        except PlanebenchError as error:
            raise StartError(f"{self._title}: {error}\n{self.process.log_tail()}") from error

    def threads(self) -> tuple[ThreadRef, ...]:
        """Return planed's workers by their ids outside of the container. Raises DiedError."""
        if not self._threads:
            outside = ids_outside(self.process.pid)
            workers = get_statistics(self._planed.call).workers
            self._threads = tuple(ThreadRef(*outside[it.tid], it.name, "vnf") for it in workers)
        return self._threads


class RunningCommand(RunningVnf):
    """A command of the user, which starts by itself."""

    def __init__(self, request: HostedRequest, process: Process, facts: HostingFacts, doubt: str = "") -> None:
        """Take a command that was started. ``doubt``: what its words may lack; empty without a doubt."""
        super().__init__(process, facts)
        self._cpus = frozenset(request.cpus)
        self._doubt = doubt

    def threads(self) -> tuple[ThreadRef, ...]:
        """Return the threads of the command that may run on CPUs of the VNF only."""
        if not self._threads:
            for pid, tid in sorted(ids_outside(self.process.pid).values()):
                with contextlib.suppress(OSError):  # it is gone
                    if os.sched_getaffinity(tid) <= self._cpus:
                        watched = ThreadRef(pid, tid, procfs.threads(pid).get(tid, ""), "vnf")
                        self._threads = (*self._threads, watched)
        return self._threads

    def _last_words(self) -> str:
        return "; ".join(filter(None, (self._doubt, super()._last_words())))


def ids_outside(pid: int) -> dict[int, tuple[int, int]]:
    """Return process and thread id here of each thread of a process and of those below it, by thread id in their
    innermost namespace."""
    return {
        ids[-1]: (one, tid)
        for one in (pid, *procfs.descendants(pid))
        if procfs.read_text(f"/proc/{one}/comm") != BWRAP
        for tid in procfs.threads(one)
        if (ids := procfs.ids_of_thread(tid))  # none of a thread that has just ended
    }
