# SPDX-License-Identifier: BSD-3-Clause
"""VNFs side by side, each a planed process: started together, counted together, paused and ended with their topology.

There may be many more of them than cores (ic16's over-provisioning): whoever polls on a core takes turns with the
others there by the scheduler's slices. So they come up before any of them polls, and are asked at the same time.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from planebench.host.evidence import WatchedThread
from planebench.host.process import Process, Supervisor
from planebench.measure.counts import dropped
from planebench.model.errors import DiedError, PlanebenchError, StartError
from planebench.placement import LinkSettings, Placement, vnf_documents, waiting
from planebench.planed import PlanedClient, RpcClosedError
from planebench.scenarios import Topology

T = TypeVar("T")
Document = Mapping[str, Any]

APPLY_DEADLINE_S = 120.0
"""A FIB of a million routes, while the others fill theirs."""
ASK_DEADLINE_S = 60.0
"""A worker is parked when it runs next: with 63 on a core that is a fifth of a second, and twice for each question."""


class VnfProcesses:
    """The VNFs of one topology. Made by :meth:`start`; :meth:`stop` ends them in any state."""

    def __init__(self, processes: Sequence[Process], clients: Sequence[PlanedClient]) -> None:
        self.processes = tuple(processes)
        self._clients = tuple(clients)
        self._pool = ThreadPoolExecutor(max_workers=max(len(processes), 1), thread_name_prefix="vnf")
        self._threads: tuple[WatchedThread, ...] | None = None

    @classmethod
    def start(
        cls, topology: Topology, placement: Placement, links: LinkSettings, planed: Path, supervisor: Supervisor
    ) -> VnfProcesses:
        """All of them, connected to the switch, which listens already, and polling. Raises StartError."""
        documents = vnf_documents(topology, placement, links)
        cpus = frozenset({*placement.control_cpus, *placement.vnf_cpus})
        made: list[Process] = []
        clients: list[PlanedClient] = []
        try:
            for document, vnf in zip(documents, topology.vnfs, strict=True):
                made.append(_spawn(vnf.name, waiting(document), planed, links.workdir, cpus, supervisor))
            for vnf, process in zip(topology.vnfs, made, strict=True):
                clients.append(_connect(links.workdir / f"{vnf.name}.rpc", process))
        except BaseException:
            _end(made)
            raise
        vnfs = cls(made, clients)
        try:
            vnfs._together(lambda number: vnfs._call(number, "config.apply", documents[number], APPLY_DEADLINE_S))
        except PlanebenchError as error:
            vnfs.stop()
            raise StartError(f"VNFs of {topology.scenario}-{len(made)}: {error}") from error
        return vnfs

    def threads(self) -> tuple[WatchedThread, ...]:
        """The threads that poll; they stay the same."""
        if self._threads is None:
            stats = self._together(lambda number: self._call(number, "stats.get"))
            self._threads = tuple(
                WatchedThread("vnf", process.pid, int(worker["tid"]), str(worker["name"]))
                for process, found in zip(self.processes, stats, strict=True)
                for worker in found["workers"]
            )
        return self._threads

    def drops(self) -> Counter[str]:
        """What they dropped since they started, as ``v0:tx_full`` and ``vnf0:no_route``. Raises DiedError."""
        total: Counter[str] = Counter()
        for stats in self._together(lambda number: self._call(number, "stats.get")):
            total.update(dropped(stats))
        return total

    def check(self) -> None:
        """Raise DiedError, with the last log lines, if one is gone."""
        for process in self.processes:
            if not process.alive():
                raise DiedError(f"a VNF died: {process.obituary()}")

    def stop(self) -> None:
        """End them. Never raises; safe to call twice."""
        self._pool.shutdown(wait=True)
        for client in self._clients:
            client.close()
        _end(self.processes)

    def _together(self, ask: Callable[[int], T]) -> list[T]:
        """One answer of each, asked at the same time: one after the other, 63 on a core would take 63 turns."""
        return list(self._pool.map(ask, range(len(self.processes))))

    def _call(
        self, number: int, method: str, params: Document | None = None, timeout_s: float = ASK_DEADLINE_S
    ) -> dict[str, Any]:
        process = self.processes[number]
        try:
            return self._clients[number].call(method, None if params is None else dict(params), timeout_s=timeout_s)
        except RpcClosedError as error:
            process.wait(0.2)
            raise DiedError(f"a VNF does not answer: {error}; {process.obituary()}") from error


def _spawn(
    name: str, document: Document, planed: Path, workdir: Path, cpus: frozenset[int], supervisor: Supervisor
) -> Process:
    config, socket = workdir / f"{name}.json", workdir / f"{name}.rpc"
    config.write_text(json.dumps(document, indent=1), encoding="utf-8")
    argv = [str(planed), "--config", str(config), "--rpc", str(socket)]
    return supervisor.spawn(name, argv, cpus=cpus, workdir=workdir)


def _connect(socket: Path, process: Process) -> PlanedClient:
    def give_up() -> None:
        if not process.alive():
            raise StartError(f"{process.name} did not come up: {process.obituary()}")

    return PlanedClient(socket, deadline_s=ASK_DEADLINE_S, give_up=give_up)


def _end(processes: Sequence[Process]) -> None:
    """All are asked before any is waited for."""
    for process in processes:
        if process.alive():
            process.ask_to_end()
    for process in processes:
        process.terminate()
