# SPDX-License-Identifier: BSD-3-Clause
"""The interface between the harness and a switch: the methods of an adapter. Nothing else here knows a switch by name.

Adding a switch takes one file with an ``ADAPTER`` object: in planebench/switches with a line in ``registry.py``, or
anywhere else with an entry point (docs/adding-a-switch.md).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Protocol, Self, runtime_checkable

from planebench.host.evidence import ThreadRef
from planebench.host.memory import MB_PER_SWITCH
from planebench.host.process import Process, Supervisor
from planebench.host.programs import PATH_OPTION, Found, Installation, NotFound, build_of, installation, program_output
from planebench.model.errors import UsageError
from planebench.model.header import Build
from planebench.model.plan import NIC_RING_SIZE, RingSize
from planebench.model.records import FibUpdates, SwitchCycles
from planebench.model.scenario import Scenario, ScenarioName, scenario_named
from planebench.model.scenarios import QUEUES_MAX
from planebench.model.server import CpuClock, duty_of
from planebench.model.switch import USUAL_COST, Option, SwitchCost, Value, parse_values
from planebench.model.traffic import Updates
from planebench.model.wire import WireName
from planebench.planed.document import Document
from planebench.testbed.request import SwitchRequest, VnfInterface
from planebench.testbed.wires.base import wire_kind

WORKERS_OPTION = Option(
    "workers", "whole", "number of queue pairs per port, and of workers", "1", least=1, most=QUEUES_MAX
)
"""The option of every switch that has several queues. With fewer cores than workers, a worker has several queues,
unless it cannot (:attr:`Adapter.sends_on_one_queue`)."""


DUTY_OPTION = Option("duty", "share", "emulated clock, as a share of the CPU's: each poll is followed by a wait", "1")
"""The option of a switch that emulates a lower clock: a machine without a governor has no other way."""


STANDARD_FRAME_BYTES = 1518
"""The largest frame for which a switch keeps its defaults."""
JUMBO_FRAME_BYTES = 9018


@dataclass(frozen=True, slots=True)
class Situation:
    """The situation in which a switch would be measured. ``chain``: the network functions, as in a point."""

    scenario: ScenarioName
    wire: WireName
    chain_length: int = 0
    hugepages: bool = False
    max_frame_bytes: int = 1518
    chain: str = ""
    hosted: bool = False
    """Whether a VNF is no task of the tester: it comes to a vhost-user port."""
    vnf_cores: int = 1
    """The largest number of cores that a VNF has, each with a queue pair of every port."""
    switch_cores: int | None = None
    """The number of cores that the switch would have; None where nobody has placed it yet."""
    tester_cores: int = 1
    """The number of cores of the tester, each with a queue pair of every port."""

    @property
    def layout(self) -> Scenario:
        """Return what its scenario is."""
        return scenario_named(self.scenario)


@dataclass(frozen=True, slots=True)
class Traits:
    """The kind of a switch in the terms of conext19, Table 1. ``source``: who classified it."""

    architecture: Literal["modular", "self-contained"]
    paradigm: Literal["structured", "match/action"]
    models: tuple[Literal["rtc", "pipeline", "interrupt"], ...]
    """Run to completion, pipeline; ``interrupt`` (not in conext19): the kernel's softirq without own thread."""
    virtual_interface: str
    reprogrammability: Literal["low", "medium", "high"]
    languages: tuple[str, ...]
    purpose: str
    source: Literal["conext19", "planebench"] = "planebench"


class RunningSwitch:
    """A started switch. By itself it has no process here, no thread and no counters: a NIC, one on another host."""

    def pids(self) -> tuple[int, ...]:
        """Return every process of the switch: all are paused (SIGSTOP) while another switch is measured."""
        return ()

    def polling_threads(self) -> tuple[ThreadRef, ...]:
        """Return the threads that forward; none for a switch without threads of its own."""
        return ()

    def counters(self) -> SwitchCycles:
        """Return counters since the start, of which the harness takes differences; all are unknown if it has none.

        Raises DiedError if the switch has ended, or does not answer.
        """
        return SwitchCycles()

    def check(self) -> None:
        """Raise DiedError, with the last log lines, if a process of the switch is gone."""

    def stop(self) -> None:
        """Stop every process of the switch, paused or not. Never raises; safe to call twice."""


class TableUpdates(Protocol):
    """Changes of a switch's own table that have begun."""

    def end(self) -> FibUpdates:
        """Stop, and return what was sent and applied. Raises DiedError."""


@runtime_checkable
class UpdatableSwitch(Protocol):
    """A started switch whose own table can be changed while frames are sent."""

    def begin_updates(self, updates: Updates) -> TableUpdates:
        """Change entries at a rate, or as fast as they are applied; frames go where they went. Raises DiedError."""


class Adapter(ABC):
    """The way to find and start one kind of switch: the base class of adapters.

    A subclass has at least ``name``, ``title``, ``remedy``, ``traits``, ``find``, ``settings`` and ``start``.
    ``self.values`` has the options that were given, by key.
    """

    name: str
    title: str
    """For people: ``Open vSwitch with DPDK``."""
    remedy: str
    """How to install it."""
    traits: Traits
    wires: frozenset[str] = frozenset({"virtio"})
    queued_wires: frozenset[str] = frozenset({"virtio", "vhost", "memif"})
    """The wires on which a switch with :data:`WORKERS_OPTION` may have several queue pairs."""
    vnf_interface: VnfInterface = "vhost-user"
    """The interface of its VNFs."""
    nic_ring_size: RingSize = NIC_RING_SIZE
    """The ring that it has at a NIC where nobody chooses: its default, or what a paper gave it."""
    max_frame_bytes: int = JUMBO_FRAME_BYTES
    """The largest frame that it carries."""
    options: tuple[Option, ...] = (PATH_OPTION,)
    """The options of ``with_options``."""
    one_per_namespace: bool = False
    """Whether it creates devices with fixed names, so that a network namespace can hold only one such switch."""
    sends_on_one_queue: bool = False
    """Whether a worker sends on one queue more than its ring holds, as soon as it receives from several: then several
    queues take as many cores."""
    one_queue_because: str = ""
    """Why a switch without :data:`WORKERS_OPTION` cannot have several queue pairs per port."""
    memif_send_queue: int = 0
    """Queue of a memif that its forwarding thread sends on; those before it are of threads that send nothing."""
    own_libraries: tuple[str, ...] = ("librte_",)
    """The beginnings of the names of shared libraries that are part of it as its build: those of DPDK."""
    start_s: float = USUAL_COST.start_s
    """Seconds to start it with the tester and stop it again, for the estimated time of a run."""
    trial_overhead_s: float = USUAL_COST.trial_overhead_s
    """Seconds that a trial takes beside sending."""
    hugepages_mb: int = MB_PER_SWITCH
    """The most MiB of hugepages that it takes with its tester."""
    stations: bool = False
    """Whether it can give frames to many VNFs by their MAC addresses."""
    takes_updates: bool = False
    """Whether its table of VNFs side by side can be changed under traffic: what ``start`` returns is an
    :class:`UpdatableSwitch`."""
    is_program: bool = True
    """Whether it is a program, which was built somehow."""
    functions: bool = False
    """Whether it can run the function of a VNF on its wires (scenario bare)."""

    def __init__(self, values: Mapping[str, Value] | None = None) -> None:
        self.values: Mapping[str, Value] = dict(values or {})

    def with_options(self, texts: Mapping[str, str]) -> Self:
        """Return an adapter with these options beside the present ones. UsageError for an unknown option or a bad
        value."""
        if WORKERS_OPTION.name in texts and not self.has_workers:
            why = self.one_queue_because and f": {self.one_queue_because}"
            raise UsageError(f"switch {self.name} forwards with one queue pair per port{why}; remove workers")
        return type(self)({**self.values, **parse_values(f"switch {self.name}", self.options, texts)})

    @property
    def queues(self) -> int:
        """Return the number of queue pairs of each port, 1 to ``QUEUES_MAX``: tester and VNFs use all of them."""
        return int(self.value(WORKERS_OPTION.name, 1))

    @property
    def has_workers(self) -> bool:
        """Return whether it may have several queue pairs per port, and a worker for each of them."""
        return WORKERS_OPTION in self.options

    def at_clock(self, clock: CpuClock) -> Self:
        """Return an adapter that emulates this clock; itself where the machine runs at it, or at its own.

        UsageError if the switch cannot emulate one.
        """
        duty = duty_of(clock)
        if duty is None:
            return self
        if DUTY_OPTION not in self.options:
            raise UsageError(f"switch {self.name} cannot emulate a clock; planed can, and --cpu-mhz sets that of CPUs")
        return self.with_options({DUTY_OPTION.name: str(duty)})

    @property
    def offloads(self) -> bool:
        """Return whether it forwards in the place of VNFs side by side, which then hold only their control."""
        return False

    @property
    def cost(self) -> SwitchCost:
        """Return the time that it adds to a run."""
        return SwitchCost(self.start_s, self.trial_overhead_s, self.offloads)

    def inside(self, request: SwitchRequest) -> Document | None:
        """Return the ports and tasks that the tester is to have in the place of a switch; None for a switch that is a
        process. Its wires are memifs, of which it uses the first."""
        return None

    def value(self, key: str, default: Any) -> Any:
        """Return the value of an option, or ``default`` if it was not given."""
        return self.values.get(key, default)

    def installation(self) -> Installation:
        """Return where the user says it is (option ``path``, PLANEBENCH_NAME). Raises UsageError."""
        return installation(self.name, self.values.get(PATH_OPTION.key))

    def build(self) -> Build | None:
        """Return how its program was built; None where it is not installed, or no program."""
        found = self.find() if self.is_program else None
        if not isinstance(found, Found):
            return None
        return build_of(found.binary, self.plugins(found), self.own_libraries)

    def plugins(self, found: Found) -> Sequence[Path]:
        """Return the files that the program loads by itself, and that are part of it as its build."""
        return ()

    def spawn(
        self,
        argv: Sequence[str],
        request: SwitchRequest,
        supervisor: Supervisor,
        *,
        cpus: frozenset[int] | None = None,
        env: Mapping[str, str] = MappingProxyType({}),
        pipe_stdin: bool = False,
    ) -> Process:
        """Start the switch's program in the folder and the network namespace of the request.

        One that creates devices with fixed names gets a namespace of its own where the request has none.
        ``cpus``: those of the request by default. ``env`` is added to our environment.
        """
        return supervisor.spawn(
            self.name,
            argv,
            cpus=cpus or request.control_cpus | {request.cpu},
            env=env,
            workdir=request.workdir,
            pipe_stdin=pipe_stdin,
            netns_pid=request.netns_pid,
            new_netns=self.one_per_namespace and request.netns_pid is None,
        )

    def found_by_version(self, name: str, places: Sequence[str], version: re.Pattern[str]) -> Found | NotFound:
        """Look for a program; the first group of ``version`` is the version in its ``--version``."""
        where = self.installation()
        binary = where.program(name, places)
        if binary is None:
            return NotFound(self.remedy)
        match = version.search("\n".join(program_output(binary, "--version").lines))
        if match is None:
            return NotFound(f"{binary} does not print a version of {self.title}: `{binary} --version`")
        return Found(match[1], binary)

    def refusal(self, situation: Situation) -> str:
        """Return why it cannot be measured in this situation, as a sentence; empty if it can.

        By default: its wires, and its largest frame.
        """
        if situation.layout.wired and situation.wire not in self.wires:
            return f"{self.name} has no {situation.wire} wire; use --wire {' or --wire '.join(sorted(self.wires))}"
        if situation.max_frame_bytes > self.max_frame_bytes:
            return f"{self.name} carries frames up to {self.max_frame_bytes} bytes, not {situation.max_frame_bytes}"
        return ""

    @abstractmethod
    def find(self) -> Found | NotFound:
        """Look for the switch on this machine; cheap, starts nothing but ``--version``.

        Raises UsageError if the user names a program that is not this switch.
        """

    @abstractmethod
    def settings(self, request: SwitchRequest) -> dict[str, str]:
        """Return its part of the fairness manifest (planebench.switches.common), for the run header."""

    @abstractmethod
    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningSwitch:
        """Start and connect everything; return when the switch's own ports exist.

        Raises UsageError, NotInstalledError, or StartError with log lines.
        """


def refusal_of(adapter: Adapter, situation: Situation) -> str:
    """Return why a switch cannot be measured in a situation; empty if it can.

    Checked before ``adapter.refusal``: bare takes one that runs network functions, VNFs side by side need stations,
    hosted VNFs need vhost-user ports and a switch that does not forward in their place. Ports have as many queue pairs
    as workers of the switch and cores of a VNF and of the tester need, those of the tester not over a wire whose ends
    may differ. Two switches have a link between them.
    """
    name, layout = adapter.name, situation.layout
    if layout.bare:
        return adapter.refusal(situation) if adapter.functions else f"{name} cannot do what VNFs do; bare has none"
    if layout.side_by_side and not adapter.stations:
        return f"{name} connects ports in pairs; it cannot forward to several VNFs by MAC address"
    if situation.hosted and adapter.vnf_interface in ("veth", "netmap"):
        return f"{name} connects VNFs by {adapter.vnf_interface}, but VMs and containers need vhost-user"
    if situation.hosted and adapter.offloads:
        return f"{name} forwards in place of its VNFs, so they cannot run in a process, container or VM"
    if situation.vnf_cores > 1 and not adapter.has_workers:
        return f"{name} has one queue pair per port; a VNF of {situation.vnf_cores} cores needs as many"
    tester_cores = situation.tester_cores
    if wire_kind(situation.wire).queues_differ and not (layout.has_vnfs or layout.ends_in_vnfs):
        tester_cores = 1
    if tester_cores > 1 and not adapter.has_workers:
        return f"{name} has one queue pair per port; a tester of {tester_cores} cores needs as many"
    queues = max(adapter.queues, situation.vnf_cores, tester_cores)
    cores = situation.switch_cores
    if adapter.sends_on_one_queue and cores is not None and cores < queues:
        return (
            f"a worker of {name} sends on one queue, so with {queues} queues on {cores} core{'s' * (cores > 1)}"
            f" frames are lost that it has no ring for; give --switch-cores {queues}, or one queue"
        )
    if queues > 1 and layout.wired and situation.wire in adapter.wires - adapter.queued_wires:
        known = ", ".join(sorted(adapter.wires & adapter.queued_wires))
        return f"{name} has one queue pair on the {situation.wire} wire; several need --wire {known}"
    if layout.two_switches:
        wire = wire_kind(situation.wire)
        if wire.makes_veth_pairs(""):
            if adapter.one_per_namespace:
                return f"two of {name} would have devices of the same names in the one network namespace of the wires"
        elif wire.needs_arguments:
            return f"two switches are processes of one machine here; --wire {wire.name} has no link between them"
        elif adapter.vnf_interface != "vhost-user" or adapter.refusal(replace(situation, wire="virtio")):
            return f"{name} cannot drive the virtio link to a second switch; use --wire veth"
    return adapter.refusal(situation)
