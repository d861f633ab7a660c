# SPDX-License-Identifier: BSD-3-Clause
"""The conditions under which a switch runs, read from a live topology: planed's ports.get, the scheduler, cpufreq."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from planebench.host import af_xdp
from planebench.host.device_settings import device_journal, fixed
from planebench.host.evidence import Owner, ThreadRef, thread_conditions
from planebench.host.interfaces import interfaces_of
from planebench.host.journal import Journal
from planebench.host.memory import MemoryMap, bytes_by_node, memory_of
from planebench.host.process import Supervisor
from planebench.measure.distance import core_mhz
from planebench.model.conditions import Conditions, PortConditions, ThreadConditions
from planebench.model.cpus import range_text
from planebench.model.dimensions import HostingFacts
from planebench.model.errors import PlanebenchError
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import MemoryEvidence
from planebench.model.results import CORE_MHZ, WANTED_MHZ
from planebench.model.text import utc_now
from planebench.model.topology import Topology
from planebench.model.wire import wire_name, wire_named
from planebench.model.words import listed
from planebench.planed.statistics import PortState
from planebench.switches.adapter import RunningSwitch
from planebench.switches.remote import RemoteSwitch
from planebench.testbed.placement import Placement
from planebench.testbed.request import Ends


def read_conditions(
    topology: Topology,
    wire: str,
    switch: RunningSwitch,
    ports: Callable[[], Sequence[PortState]],
    hosting: tuple[HostingFacts, ...] = (),
    xdp_mode: Callable[[], str] = str,
) -> Conditions:
    """Return the present conditions of a running, not paused switch.

    ``ports`` asks the tester (``ports.get``). ``hosting`` are the facts of the hosted VNFs. ``xdp_mode`` asks the
    kernel for the mode of AF_XDP sockets.

    Never raises: what cannot be read is unknown, and what would be read after it, with the reason in ``problem``. The
    caller fills in label and start.
    """
    found: tuple[PortConditions, ...] = ()
    threads: tuple[ThreadConditions, ...] | None = None
    mode, problem, what = "", "", "ports of the tester"
    try:
        found = port_conditions(ports(), topology, nics=not wire_named(wire).replaces_nics)
        what = "threads of the switch"
        threads = switch.thread_conditions() if isinstance(switch, RemoteSwitch) else threads_of(switch)
        what = "mode of the AF_XDP sockets"
        mode = xdp_mode()
    except (PlanebenchError, OSError, ValueError) as error:
        problem = f"{what}: {error}"
    return Conditions(
        switch="",
        scenario=topology.scenario,
        chain_length=topology.chain_length,
        wire=wire_name(wire),
        start=0,
        measured_at=utc_now(),
        chain=topology.chain,
        ports=found,
        threads=threads,
        hosting=hosting,
        af_xdp=mode,
        problem=problem,
    )


def threads_of(switch: RunningSwitch) -> tuple[ThreadConditions, ...]:
    """Return how this host schedules the polling threads of a switch. Raises DiedError."""
    read = [thread_conditions(thread.pid, thread.tid, thread.name) for thread in switch.polling_threads()]
    return tuple(thread for thread in read if thread is not None)


def port_conditions(
    ports: Sequence[PortState], topology: Topology, *, nics: bool = False
) -> tuple[PortConditions, ...]:
    """Return the ports of ``ports.get`` of the tester, in the order of the topology. Unknown values are None.

    ``nics``: the wires are NICs, so that the speeds of their links are real."""
    told = {port.name: port for port in ports}
    found = []
    for port in topology.ports:
        if (state := told.get(port.name)) is None:
            continue
        virtio = state.virtio
        found.append(
            PortConditions(
                name=port.name,
                side=port.side,
                # vhost-user, virtio-user; for a DPDK device its driver
                kind=state.driver or state.kind if state.kind == "ethdev" else state.kind,
                driver=state.driver,
                queues=state.queues,
                ring_sizes=None if virtio is None else tuple(size for size in virtio.ring_sizes if size),
                features=None if virtio is None else virtio.features,
                speed_mbps=state.speed_mbps if nics and port.side == "wire" else None,
            )
        )
    return tuple(found)


# Read what the kernel knows of wires that are its interfaces: dropped frames, and the mode of AF_XDP sockets.

ASK_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class KernelWires:
    """The interfaces of the wires of a live topology, in the network namespace of process ``pid``.

    An end without a name is on another host.
    """

    ends: Mapping[str, Ends]
    pid: int

    def dropped(self) -> Counter[str]:
        """Return the frames that found the receive ring of the other end full: of the switch, and of the tester.

        They are counted by the interface that sends. Keys are as in ``Trial.tester_drops``: frames in ``n0:wire_full``
        were sent by the tester, those in ``n0:rx_dropped`` by the switch.
        """
        found: Counter[str] = Counter()
        counts = interfaces_of(self.pid)
        for cable, end in self.ends.items():
            for name, reason in ((end.tester, "wire_full"), (end.switch, "rx_dropped")):
                if name in counts:
                    found[f"{cable}:{reason}"] = counts[name].tx_dropped
        return found

    def xdp_mode(self, tester: int, switch: Collection[int], supervisor: Supervisor, cpus: frozenset[int]) -> str:
        """Return the mode of the AF_XDP sockets of both sides, given by their processes; empty without any.

        As ``copy, native``; ``tester ...; switch ...`` if the sides differ. Raises StartError.
        """
        sides = {
            "tester": (af_xdp.socket_modes(tester), [end.tester for end in self.ends.values()]),
            "switch": (
                [found for pid in switch for found in af_xdp.socket_modes(pid)],
                [end.switch for end in self.ends.values()],
            ),
        }
        if not any(sockets for sockets, _ in sides.values()):
            return ""
        names = [name for end in self.ends.values() for name in end.of(None) if name]
        argv = [sys.executable, "-I", str(Path(af_xdp.__file__)), *names]  # in the namespace of the interfaces
        done = supervisor.spawn("xdp-mode", argv, cpus=cpus, netns_pid=self.pid)
        done.finish(ASK_TIMEOUT_S, f"the XDP programs of {', '.join(names)} cannot be read")
        attached = {str(name): str(mode) for name, mode in json.loads(done.log_tail().splitlines()[-1]).items()}
        words = {
            side: af_xdp.mode_words(sockets, [attached[name] for name in names if name in attached])
            for side, (sockets, names) in sides.items()
            if sockets
        }
        if len(words) == len(sides) and len(set(words.values())) == 1:
            return next(iter(words.values()))
        return "; ".join(f"{side} {text}" for side, text in words.items())


# The check of a live topology against its placement: threads and memory, as the kernel reports them.

MISPLACED_SHARE = 0.01
"""More of the memory of a process than this on other nodes is a reason not to accept a trial."""


@dataclass(frozen=True, slots=True)
class PlacedOwner:
    """One owner of memory and threads, and where they should be: a node, None for any, and CPUs, empty for any."""

    owner: Owner
    name: str
    pids: Sequence[int]
    node: int | None = None
    threads: Sequence[ThreadRef] = ()
    cpus: frozenset[int] = field(default_factory=frozenset)
    roams: bool = False
    """The scheduler may move each thread over all of the CPUs; else each has one or some of them."""


def read_memory(parts: Sequence[PlacedOwner], *, switch_memory: bool) -> tuple[MemoryEvidence, ...]:
    """Return the memory of each part by node; memory that two of them map belongs to one.

    It belongs to the driver's end, tester or VNF, not to the switch; with ``switch_memory``, which is that of the wire,
    what switch and tester share belongs to the switch.
    """
    found = {part.name: [it for pid in part.pids for it in memory_of(pid)] for part in parts}
    mapped: defaultdict[str, set[Owner]] = defaultdict(set)
    for part in parts:
        for it in found[part.name]:
            mapped[it.shared].add(part.owner)
    evidence = []
    for part in parts:
        own: list[MemoryMap] = []
        seen, driver = set[str](), "tester" if switch_memory else "switch"
        for it in found[part.name]:
            others = mapped[it.shared] - {part.owner} if it.shared else set()
            theirs = part.owner == "switch" and "vnf" in others
            theirs |= part.owner == driver and bool(others & {"switch", "tester"})
            if not theirs and it.shared not in seen - {""}:  # each file once
                seen.add(it.shared)
                own.append(it)
        if found[part.name]:
            evidence.append(MemoryEvidence(part.owner, part.name, part.node, tuple(bytes_by_node(own).items())))
    return tuple(evidence)


def misplaced(parts: Sequence[PlacedOwner], memory: Iterable[MemoryEvidence]) -> tuple[Reason, ...]:
    """Return a reason for each part whose memory or threads are elsewhere than planned; empty if none is."""
    reasons = []
    for it in memory:
        if it.misplaced_share > MISPLACED_SHARE:
            nodes = [str(node) for node, _ in it.bytes_by_node if node != it.node]
            text = (
                f"{it.misplaced_share:.0%} of the memory of {it.name} is on NUMA node{'s' if len(nodes) > 1 else ''} "
                f"{listed(tuple(nodes))}, not on node {it.node} as planned"
            )
            reasons.append(Reason(ReasonCode.MISPLACED, text, {"share": it.misplaced_share}))
    for part in parts:
        for thread in part.threads if part.cpus else ():
            allowed = frozenset[int]()
            with suppress(OSError):  # it is gone
                allowed = frozenset(os.sched_getaffinity(thread.tid))
            if not allowed <= part.cpus or (part.roams and allowed and allowed != part.cpus):
                text = (
                    f"thread {thread.name} of {part.name} may run on CPU {range_text(allowed)}, not on CPU "
                    f"{range_text(part.cpus)} as planned"
                )
                reasons.append(Reason(ReasonCode.MISPLACED, text))
    return tuple(reasons)


# The clock of a switch's cores in a trial: further counters of the switch.


def clocked_cpus(placement: Placement) -> frozenset[int]:
    """Return the CPUs whose clock belongs to the server: those of switch and VNFs, without those of the tester."""
    return frozenset({*placement.switch_cpus, *placement.all_vnf_cpus} - set(placement.tester_cpus))


@contextmanager
def held_clock(
    mhz: int, placement: Placement, planed: Path, journal: Journal | None = None
) -> Iterator[dict[str, int]]:
    """Keep the CPUs of a server at a clock, and yield counters: the clock asked for, and at the end that found.

    Of the clocks before and after, and of all CPUs, it is the one that is furthest off. Raises StartError if the system
    refuses.
    """
    found, cpus = {WANTED_MHZ: mhz}, clocked_cpus(placement)
    with fixed(cpus, mhz, journal or device_journal()):
        read = [*core_mhz(planed, cpus)]
        yield found
        read += core_mhz(planed, cpus)
    if read:
        found[CORE_MHZ] = max(read, key=lambda one: abs(one - mhz))
