# SPDX-License-Identifier: BSD-3-Clause
"""The hosted VNFs of one topology, which are no tasks of the tester: started, counted and ended together.

There may be many more of them than cores (ic16's over-provisioning): whoever polls on a core takes turns with the
others there by the scheduler's slices. So they come up before any of them polls, and are asked at the same time.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from planebench.host.evidence import ThreadRef
from planebench.host.facts import is_emulated
from planebench.host.process import Supervisor, on_failure
from planebench.measure.conditions import PlacedOwner
from planebench.measure.counts import dropped, vnf_drops
from planebench.model.cpus import cpu_text
from planebench.model.dimensions import HostingFacts
from planebench.model.errors import DiedError, PlanebenchError, StartError
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.topology import Topology, Vnf
from planebench.planed.client import get_statistics
from planebench.planed.group import Member
from planebench.planed.process import PlanedProcess
from planebench.planed.statistics import AnswerError, FibSource, Statistics
from planebench.testbed.hosting.base import HostedPort, HostedRequest, Hosting, RunningVnf
from planebench.testbed.hosting.inside import hand_over_ports
from planebench.testbed.hosting.registry import HOSTINGS
from planebench.testbed.placement import Placement
from planebench.testbed.request import LinkSettings
from planebench.testbed.tester_config import port_macs, shares_cpu, vnf_documents

T = TypeVar("T")

SIDE_BY_SIDE = "separate"
"""Default hosting of VNFs side by side."""


def hosting_of(vnf: Vnf) -> Hosting:
    """Return the hosting of a hosted VNF."""
    return HOSTINGS[SIDE_BY_SIDE if vnf.hosting == "process" else vnf.hosting]


def ready_within_s(topology: Topology) -> float:
    """Return the time limit until frames must cross, boot included; 0 if all VNFs are tasks of the tester."""
    return max((hosting_of(vnf).ready_within_s for vnf in topology.hosted_vnfs), default=0.0)


def hosted_requests(
    topology: Topology, placement: Placement, links: LinkSettings, planed: Path
) -> tuple[HostedRequest, ...]:
    """Return the start request of each hosted VNF, in path order."""
    documents = vnf_documents(topology, placement, links)
    found = []
    for number, vnf, document in zip(topology.hosted_numbers, topology.hosted_vnfs, documents, strict=True):
        ports = zip(dict.fromkeys(vnf.ports), port_macs(vnf, number), strict=True)
        function = links.vnf_interface == "vf"
        found.append(
            HostedRequest(
                name=vnf.name,
                ports=tuple(
                    HostedPort(name, links.socket(name), mac, links.ends[name].tester if function else "")
                    for name, mac in ports
                ),
                values=vnf.hosting_values,
                document=document,
                files=vnf.files,
                cpus=placement.cpus_of_vnf(number),
                control_cpus=placement.control_cpus | placement.roaming,
                workdir=links.workdir,
                planed=planed,
                ring_size=links.ring_size,
                queues=links.queues,
                max_frame_bytes=links.max_frame_bytes,
                hugepages=links.hugepages,
                shares_cpu=shares_cpu(topology, placement, number),
            )
        )
    return tuple(found)


def control_planes(topology: Topology) -> Topology:
    """Return the VNFs side by side that are control planes; of a function in their place as many as it has MACs."""
    if topology.bare is None:
        return topology
    vnfs = tuple(Vnf(f"vnf{n}", (f"v{n}", f"v{n}"), mac=mac) for n, mac in enumerate(topology.macs))
    return replace(topology, vnfs=vnfs, bare=None, side_by_side=True)


def share_a_core(topology: Topology, placement: Placement) -> bool:
    """Return whether a topology has two switches on one core, where they take turns by the scheduler's slices."""
    return topology.link is not None and len(placement.switch_cpus) == 1


def functional_reasons(
    topology: Topology, placement: Placement, facts: Iterable[HostingFacts], cpu_model: str = ""
) -> tuple[Reason, ...]:
    """Return why rates and latencies of a topology are not meaningful; empty if they are.

    ``cpu_model`` is that of this machine, which may be emulated as a whole: a guest of QEMU (docs/wires.md).
    A hosted VNF of a chain that shares its CPU takes turns by the scheduler's slices of milliseconds. Of VNFs side by
    side sharing is what is measured.
    """
    texts = [
        f"{fact.vnf} is emulated: its instructions run on no CPU of this machine" for fact in facts if fact.emulated
    ]
    if is_emulated(cpu_model):
        texts.insert(0, "this machine is emulated: its CPUs are programs of another machine")
    if share_a_core(topology, placement):
        texts.append(f"two switches share CPU {placement.switch_cpu}; give each its own with --switch-cores 2")
    for number in sorted(placement.hosted) if not topology.side_by_side else ():
        if others := placement.cpu_neighbours(number):
            cpus = cpu_text(placement.cpus_of_vnf(number))
            texts.append(f"{topology.vnfs[number].name} shares CPU {cpus} with {' and '.join(others)}")
    return tuple(Reason(ReasonCode.EMULATED_OR_SHARED, text) for text in texts)


class HostedVnfs:
    """The hosted VNFs of one topology. Made by :meth:`start`; :meth:`stop` ends them in any state."""

    def __init__(
        self, topology: Topology, placement: Placement, links: LinkSettings, planed: Path, supervisor: Supervisor
    ) -> None:
        self._hostings = tuple(map(hosting_of, topology.hosted_vnfs))
        self._requests = hosted_requests(topology, placement, links, planed)
        self._numbers = topology.hosted_numbers
        self._placement, self._supervisor = placement, supervisor
        self._ends = {
            it.name: it.document for it in self._requests if it.document and it.ports[0].name in topology.ends
        }
        """The documents of those with generators and monitors, by name."""
        self._pool = ThreadPoolExecutor(max_workers=max(len(self._requests), 1), thread_name_prefix="vnf")
        self._threads: dict[str, tuple[ThreadRef, ...]] = {}
        self._running: dict[str, RunningVnf] = {}

    @classmethod
    def start(
        cls, topology: Topology, placement: Placement, links: LinkSettings, planed: Path, supervisor: Supervisor
    ) -> HostedVnfs:
        """Start all hosted VNFs at the same time and have them forward.

        The switch must listen already. Raises StartError.
        """
        made = cls(topology, placement, links, planed, supervisor)
        requests = made._requests
        try:
            with on_failure(made.stop):
                started: list[Future[None]] = [made._pool.submit(made._start, n) for n in range(len(requests))]
                wait(started)  # those that came up are ended even if another fails
                for future in started:
                    future.result()
                list(made._pool.map(lambda vnf: vnf.forward(), made.vnfs))
                made._let_roam()
        except PlanebenchError as error:
            raise StartError(f"VNFs of {topology.scenario}-{len(requests)}: {error}") from error
        return made

    def _start(self, number: int) -> None:
        request = self._requests[number]
        with self._supervisor.memory_on(self._placement.vnf_memory_node(self._numbers[number])):
            self._running[request.name] = self._hostings[number].start(request, self._supervisor)

    def _let_roam(self) -> None:
        """Let the scheduler move the VNFs that are placed at random. What the kernel refuses, `misplaced` finds."""
        for part in self.placed() if self._placement.roaming else ():
            for thread in part.threads:
                with suppress(OSError):
                    os.sched_setaffinity(thread.tid, part.cpus)

    def placed(self) -> tuple[PlacedOwner, ...]:
        """Return each VNF with its processes and threads, and where they should be."""
        self.threads()
        found, roaming = [], self._placement.roaming
        for number, request in zip(self._numbers, self._requests, strict=True):
            vnf, threads = self._running[request.name], self._threads[request.name]
            # Of processes that forward, which the launched ones may have enclosed.
            pids = dict.fromkeys(thread.pid for thread in threads) or [vnf.process.pid]
            cpus, node = roaming or frozenset(request.cpus), self._placement.vnf_memory_node(number)
            found.append(PlacedOwner("vnf", vnf.name, tuple(pids), node, threads, cpus, bool(roaming)))
        return tuple(found)

    @property
    def vnfs(self) -> tuple[RunningVnf, ...]:
        """Return the running VNFs in path order."""
        return tuple(self._running[request.name] for request in self._requests if request.name in self._running)

    def threads(self) -> tuple[ThreadRef, ...]:
        """Return the forwarding threads; those of a VNF do not change."""
        missing = [vnf for vnf in self.vnfs if vnf.name not in self._threads]
        found = self._pool.map(lambda vnf: vnf.threads(), missing)
        self._threads.update({vnf.name: threads for vnf, threads in zip(missing, found, strict=True)})
        return tuple(thread for vnf in self.vnfs for thread in self._threads[vnf.name])

    def ends(self) -> tuple[Member, ...]:
        """Return the ends, which send and count together with the tester."""
        found = ((vnf, self._ends[vnf.name]) for vnf in self.vnfs if vnf.name in self._ends)
        return tuple(
            Member(vnf.planed.call, [task.name for task in document.tasks])
            for vnf, document in found
            if vnf.planed is not None
        )

    def drops(self) -> Counter[str]:
        """Return all drops since the start, as ``v0:tx_full`` and ``vnf0:no_route``. Raises DiedError.

        Drops of user VNFs are unknown, and those of ends are in their counters of each trial.
        """
        total: Counter[str] = Counter()
        for found in self._read(dropped):
            total.update(found)
        return total

    def policy_drops(self) -> dict[str, dict[str, int]]:
        """Return what each VNF dropped by policy since it started, by reason. Raises DiedError."""
        return {name: reasons for found in self._read(vnf_drops) for name, reasons in found.items()}

    def controls(self) -> dict[str, FibSource]:
        """Return the counters of VNFs that are control planes, by name. Raises DiedError."""
        found = self._read(lambda stats: next(it.fib_source for it in stats.tasks if it.fib_source is not None))
        return dict(zip((vnf.name for vnf in self.vnfs), found, strict=True))

    def set_rates(self, wanted: Mapping[str, Mapping[str, Any]]) -> None:
        """Have control planes change routes at rates, by name. Raises DiedError, RpcError."""

        def ask(vnf: RunningVnf) -> None:
            if vnf.planed is not None and vnf.name in wanted:
                vnf.planed.call("fib_source.rate", {"task": vnf.name, **wanted[vnf.name]})

        list(self._pool.map(ask, self.vnfs))

    def check(self) -> None:
        """Raise DiedError, with the last log lines, if a VNF has exited."""
        for vnf in self.vnfs:
            vnf.check()

    def restart(self, name: str, *, kill: bool = False) -> RunningVnf:
        """End a VNF, or ``kill`` it as in a crash, and start it again as before. Its ports at the switch stay."""
        vnf = self._running.pop(name)
        self._threads.pop(name, None)
        if kill:
            vnf.kill()
        else:
            vnf.stop()
        self._start(next(n for n, request in enumerate(self._requests) if request.name == name))
        self._running[name].forward()
        self._let_roam()
        return self._running[name]

    def hand_over_ports(self) -> None:
        """Let the VNFs connect again to a switch that has restarted, and has made new sockets."""
        for request in self._requests:
            hand_over_ports(request)

    def stop(self) -> None:
        """End all VNFs: all are asked to end before any is waited for. Never raises; safe to call twice."""
        self._pool.shutdown(wait=True)
        for vnf in self.vnfs:
            vnf.ask_to_end()
        for vnf in self.vnfs:
            vnf.stop()
        self._running.clear()

    def _read(self, reader: Callable[[Statistics], T]) -> list[T]:
        """Read the counters of each VNF that has some. Raises DiedError if a guest does not answer as planed does."""
        asked = [(vnf.name, vnf.planed) for vnf in self.vnfs if vnf.planed is not None and vnf.name not in self._ends]

        def read(one: tuple[str, PlanedProcess]) -> T:
            name, planed = one
            try:
                return reader(get_statistics(planed.call))
            except AnswerError as error:
                raise DiedError(f"{name}: {error}") from error

        # At the same time: in sequence, 63 VNFs on a core would take 63 turns.
        return list(self._pool.map(read, asked))
