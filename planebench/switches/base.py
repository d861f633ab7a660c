# SPDX-License-Identifier: BSD-3-Clause
"""The seam between the harness and a switch: what an adapter must do. Nothing else here knows a switch by name.

Adding a switch = one file with an ``ADAPTER`` object: in this folder with a line in ``registry.py``, or anywhere else
with an entry point (docs/adding-a-switch.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, Self, runtime_checkable

from planebench.host.process import Supervisor
from planebench.host.programs import PATH_OPTION, Found, Installation, NotFound, installation
from planebench.model.option import Option, Value, parse_values
from planebench.model.records import ScenarioName, SwitchCycles, WireName
from planebench.model.scenario import scenario_named

__all__ = [
    "PATH_OPTION",
    "Adapter",
    "Configurable",
    "Found",
    "Installation",
    "MultiQueue",
    "NotFound",
    "Option",
    "RunningSwitch",
    "Situation",
    "Station",
    "SwitchAdapter",
    "SwitchPort",
    "SwitchRequest",
    "ThreadRef",
    "Traits",
    "memif_queue_of",
    "offloads",
    "queues_of",
    "refusal_of",
]

VnfInterface = Literal["vhost-user", "veth"]


@dataclass(frozen=True, slots=True)
class SwitchPort:
    """A port the switch has to open.

    ``virtio-user``: the switch is the virtio driver and connects to ``path`` (the emulated NIC: the tester listens).
    ``memif``: the switch is the memif client (slave), interface id 0, and connects to the socket ``path``.
    ``vhost-user``: the switch is the device and listens on ``path`` (a VNF's interface).
    ``af_packet``: the kernel interface ``interface``: a veth wire, or a VNF's interface of a switch in the kernel.
    """

    name: str
    kind: Literal["virtio-user", "memif", "vhost-user", "af_packet"]
    path: Path | None = None
    interface: str | None = None
    ring_size: int = 256


@dataclass(frozen=True, slots=True)
class Station:
    """A VNF behind one port: frames to its ``mac`` that come in by the first wire are for it.

    ``routes``: of its synthetic FIB (docs/design/fib-offload.md), for a switch that forwards in its place.
    """

    port: str
    mac: str
    routes: int = 0


@dataclass(frozen=True, slots=True)
class SwitchRequest:
    """Everything a switch is started with. ``cross_connects`` pairs port names; traffic flows both ways.

    Or there are ``stations``, and no cross-connects: a frame goes to the station whose MAC it has, and what has
    ``monitor_mac`` leaves by the last wire.
    """

    ports: tuple[SwitchPort, ...]
    cross_connects: tuple[tuple[str, str], ...]
    cpu: int
    """The core the switch forwards on; the first of them, if it has several."""
    control_cpus: frozenset[int]
    """Where everything of the switch that does not forward may run."""
    workdir: Path
    """Private, short (sockets live here), removed by the harness."""
    hugepages: bool
    max_frame_bytes: int = 1518
    netns_pid: int | None = None
    """Process whose network namespace the switch must live in (kernel interfaces)."""
    queues: int = 1
    """Queue pairs of each port: as many as a :class:`MultiQueue` adapter asked for."""
    more_cpus: tuple[int, ...] = ()
    """Further cores to forward on, for a switch that has queues for them."""
    tsc_hz: int | None = None
    """TSC frequency as the tester measured it, for a switch that counts in ns; None where there is no tester yet."""
    stations: tuple[Station, ...] = ()
    monitor_mac: str = ""
    updates: str = ""
    """The port of a station whose control sends FIB messages; empty: nobody does."""

    @property
    def cpus(self) -> tuple[int, ...]:
        """All cores it forwards on."""
        return (self.cpu, *self.more_cpus)


@dataclass(frozen=True, slots=True)
class Situation:
    """Where a switch would be measured: what :meth:`SwitchAdapter.refusal` is asked about.

    ``chain``: the network functions, as in a point.
    """

    scenario: ScenarioName
    wire: WireName
    chain_length: int = 0
    hugepages: bool = False
    max_frame_bytes: int = 1518
    chain: str = ""
    hosted: bool = False
    """Whether a VNF is no task of the tester: it comes to a vhost-user port."""

    @property
    def side_by_side(self) -> bool:
        """Whether the VNFs are side by side, found by their MAC addresses."""
        return scenario_named(self.scenario).side_by_side

    @property
    def wired(self) -> bool:
        """Whether a port of the switch is a wire."""
        return scenario_named(self.scenario).wired


@dataclass(frozen=True, slots=True)
class Traits:
    """What kind of switch it is, in the terms of conext19, Table 1. ``source``: who says so."""

    architecture: Literal["modular", "self-contained"]
    paradigm: Literal["structured", "match/action"]
    models: tuple[Literal["rtc", "pipeline", "interrupt"], ...]
    """Run to completion, pipeline; ``interrupt`` is ours: the kernel's softirq, no thread of the switch's own."""
    virtual_interface: str
    reprogrammability: Literal["low", "medium", "high"]
    languages: tuple[str, ...]
    purpose: str
    source: Literal["conext19", "planebench"] = "planebench"


@dataclass(frozen=True, slots=True)
class ThreadRef:
    """A thread that polls packets."""

    pid: int
    tid: int
    name: str


class RunningSwitch(Protocol):
    """A started switch."""

    def pids(self) -> tuple[int, ...]:
        """Every process of the switch: all are paused (SIGSTOP) while another switch is measured."""

    def polling_threads(self) -> tuple[ThreadRef, ...]:
        """The threads that forward; none for a switch that has no thread of its own."""

    def counters(self) -> SwitchCycles:
        """Counters since the start; the harness takes differences. Raises DiedError."""

    def check(self) -> None:
        """Raise DiedError, with the last log lines, if a process of the switch is gone."""

    def stop(self) -> None:
        """Stop every process of the switch, paused or not. Never raises; safe to call twice."""


class SwitchAdapter(Protocol):
    """How the harness finds and starts one kind of switch. Most derive from :class:`Adapter`, which has defaults."""

    name: str
    title: str
    """For people: ``Open vSwitch with DPDK``."""
    remedy: str
    """How to get it."""
    traits: Traits
    wires: frozenset[str]
    vnf_interface: VnfInterface
    """What its VNFs are connected by."""

    @property
    def options(self) -> tuple[Option, ...]:
        """What ``with_options`` takes."""

    def find(self) -> Found | NotFound:
        """Look for the switch on this machine; cheap, starts nothing but ``--version``. Raises UsageError where the
        user names a program that is none."""

    def refusal(self, situation: Situation) -> str:
        """Why it cannot be measured so, as a sentence; empty if it can."""

    def settings(self, request: SwitchRequest) -> dict[str, str]:
        """Its part of the fairness manifest (planebench.switches.manifest): goes into the run header."""

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningSwitch:
        """Start and connect everything; return when the switch's own ports exist. Raises StartError with log lines."""


class Adapter:
    """What adapters have in common: options, where the switch is, wires that it has not. Derive from it.

    A subclass has at least ``name``, ``title``, ``remedy``, ``traits``, ``find``, ``settings`` and ``start``.
    ``self.values`` has the options that were given, by key.
    """

    name: str
    title: str
    remedy: str
    traits: Traits
    wires: frozenset[str] = frozenset({"virtio"})
    vnf_interface: VnfInterface = "vhost-user"
    options: tuple[Option, ...] = (PATH_OPTION,)
    memif_send_queue: int = 0
    """Queue of a memif that its forwarding thread sends on; those before it are of threads that send nothing."""
    stations: bool = False
    """Whether it can give frames to many VNFs by their MAC addresses (scenario parallel)."""

    def __init__(self, values: Mapping[str, Value] | None = None) -> None:
        self.values: Mapping[str, Value] = dict(values or {})

    def with_options(self, texts: Mapping[str, str]) -> Self:
        """An adapter with these options, the others as they are. UsageError names an unknown one, or a bad value."""
        return type(self)({**self.values, **parse_values(f"switch {self.name}", self.options, texts)})

    @property
    def offloads(self) -> bool:
        """Whether it forwards in the place of VNFs side by side, which then hold only their control."""
        return False

    def value(self, key: str, default: Any) -> Any:
        """The value of an option, or ``default`` where it was not given."""
        return self.values.get(key, default)

    def installation(self) -> Installation:
        """What the user says about where it is: the option ``path``, PLANEBENCH_NAME, switches.toml. UsageError."""
        return installation(self.name, self.values.get(PATH_OPTION.key))

    def refusal(self, situation: Situation) -> str:
        """Only what its wires tell."""
        if situation.wire in self.wires:
            return ""
        return f"{self.name} has no {situation.wire} wire; it has {', '.join(sorted(self.wires))}"


@runtime_checkable
class Configurable(Protocol):
    """An adapter with options of its own: ``NAME:key=value`` on the command line and in plans."""

    def with_options(self, texts: Mapping[str, str]) -> SwitchAdapter:
        """An adapter with these options. UsageError names an unknown one, or a bad value, and what is valid."""


@runtime_checkable
class MultiQueue(Protocol):
    """An adapter whose switch wants several queue pairs on each port: tester and VNFs then use all of them alike."""

    @property
    def queues(self) -> int:
        """1 to ``QUEUES_MAX``."""


def refusal_of(adapter: SwitchAdapter, situation: Situation) -> str:
    """``adapter.refusal``; of VNFs side by side only an adapter that says it has stations is asked, of VNFs that are
    hosted one that has vhost-user ports for them, and does not forward in their place."""
    if situation.side_by_side and not getattr(adapter, "stations", False):
        return f"{adapter.name} is set up for pairs of ports, not to give frames to many VNFs by their MAC addresses"
    if situation.hosted and adapter.vnf_interface != "vhost-user":
        return f"VNFs of {adapter.name} are connected by {adapter.vnf_interface}; in VMs and containers by vhost-user"
    if situation.hosted and offloads(adapter):
        return f"{adapter.name} forwards in the place of its VNFs, which then run in nothing"
    return adapter.refusal(situation)


def offloads(adapter: SwitchAdapter) -> bool:
    """Whether the switch forwards in the place of its VNFs."""
    return bool(getattr(adapter, "offloads", False))


def memif_queue_of(adapter: SwitchAdapter) -> int:
    """The queue of a memif wire that the tester receives on."""
    return adapter.memif_send_queue if isinstance(adapter, Adapter) else 0


def queues_of(adapter: SwitchAdapter) -> int:
    """How many queue pairs each port of its topology has."""
    return adapter.queues if isinstance(adapter, MultiQueue) else 1
