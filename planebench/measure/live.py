# SPDX-License-Identifier: BSD-3-Clause
"""A live topology: tester and switch are up, connected, and paused between trials.

Several switches of a comparison live side by side, so that their trials can be interleaved; all but the one being
measured are stopped (SIGSTOP) and take no CPU.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from planebench.host.evidence import HostSample, ThreadSampler, WatchedThread, sample_host
from planebench.host.facts import cpu_model
from planebench.host.netns import VethWire
from planebench.host.process import Process, Supervisor, stretched
from planebench.host.procfs import is_kernel_thread
from planebench.host.vfs import virtual_functions
from planebench.measure.conditions import KernelWires, PlacedOwner, misplaced, read_conditions, read_memory
from planebench.measure.counts import (
    READY_DURATION_S,
    READY_RATE_PPS,
    Sender,
    Sending,
    arrived,
    lost,
    nic_losses,
    untried,
    vnf_drops,
)
from planebench.measure.hosted import (
    HostedVnfs,
    end_documents,
    functional_reasons,
    ready_within_s,
    share_a_core,
    stamped,
)
from planebench.measure.latency import Readings, StampedVnf, begin_stamps, clock_readings, common_clock, read_anatomy
from planebench.measure.updates import ControlTraffic, control_traffic, updating, wait_for_session
from planebench.model.conditions import Conditions
from planebench.model.dimensions import ClockChoice, ClockName
from planebench.model.errors import DiedError, StartError, UsageError
from planebench.model.header import Calibration
from planebench.model.reasons import Reason
from planebench.model.records import Anatomy, FibUpdates, MemoryEvidence
from planebench.model.scenario import Direction
from planebench.model.scenarios import Flow, all_flows, build, echoing, flows
from planebench.model.server import OWN_CLOCK, CpuClock
from planebench.model.topology import END, Topology
from planebench.model.traffic import PLAIN, TrafficProfile, Updates
from planebench.model.wire import wire_arguments, wire_name, wire_named
from planebench.model.words import listed
from planebench.planed.client import Profile, RpcError, apply, get_ports, get_statistics
from planebench.planed.document import Document, Json
from planebench.planed.group import Member, PlanedGroup
from planebench.planed.process import PlanedProcess
from planebench.planed.statistics import Statistics
from planebench.switches.adapter import Adapter, RunningSwitch, TableUpdates, UpdatableSwitch
from planebench.switches.linked import link_cables, requests_of, start_switches
from planebench.switches.remote import RemoteSwitch
from planebench.testbed.hosting.exec import without_ports
from planebench.testbed.placement import Placement
from planebench.testbed.rates import line_rate_pps
from planebench.testbed.request import Ends, LinkSettings, SwitchRequest
from planebench.testbed.tester_config import assign_tasks, full_stage, switch_request, wire_stage
from planebench.testbed.traffic_files import profile_document, to_vnfs
from planebench.testbed.wires.base import cabled, is_kernel_interface, named_ends, needs_veth_pair, wire_kind

# Wait until frames cross a topology, not for a fixed time; if none do, find the reason.

DROPPING_S = 2.0
"""How long a network function may drop the first frames: until others have opened the way, or addresses are known."""
PAUSE_S = 0.1
"""Between two looks at VNFs that boot: they need the CPU more."""
ROUTED = " (--traffic fib sends to addresses of its routes)"


def wait_until_forwarding(
    live: LiveTopology,
    within_s: float,
    modes: Sequence[frozenset[str]],
    profiles: Sequence[TrafficProfile],
    *,
    boots: bool,
) -> None:
    """Wait until a few frames cross in both directions: ports are up, the switch knows the flows.

    ``modes`` are the flows of each direction mode that will be measured: where network functions drop every frame of a
    flow, one mode without that flow is enough. ``profiles``: what will be sent, plain frames first. ``boots``: VNFs
    boot, so the CPU is left to them between two tries.
    Raises StartError after ``within_s`` seconds, DiedError.
    """
    wanted = all_flows(live.topology)
    begun = time.monotonic()
    within_s = stretched(within_s)
    missing = [flow.name for flow in wanted]
    silent = set(missing)
    while time.monotonic() < begun + within_s:
        live.check()
        missing, dropped, unsent = _try(live, wanted, profiles)
        silent &= unsent
        if not missing:
            return
        if dropped and time.monotonic() > begun + stretched(DROPPING_S):
            if any(mode.isdisjoint(missing) for mode in modes):
                return
            raise StartError(f"no frame came through {', '.join(missing)}: {_words(live.topology, dropped)}")
        time.sleep(PAUSE_S if boots else 0)
    if silent:
        names = ", ".join(sorted(silent))
        raise StartError(f"the tester sent no frame in {names} within {within_s:g} s: its workers had no CPU time")
    remarks = f"{_cabling(live)}{_without_ports(live.topology)}"
    raise StartError(f"no frame came through {', '.join(missing)} within {within_s:g} s{remarks}\n{live.logs()}")


def _cabling(live: LiveTopology) -> str:
    """Return what may be wrong with cables that the user named; empty for wires that planebench made."""
    if not wire_kind(live.links.wire).cables(wire_arguments(live.links.wire)):
        return ""
    ends = live.links.ends
    down = [
        f"{port['name']} ({ends[port['name']].tester})"
        for port in get_ports(live.call)
        if port["name"] in ends and not port["link_up"]
    ]
    words = f"; no link at {listed(down)}" if down else ""
    return f"{words}; is the cabling as --wire says? `planebench wires` finds it"


def _without_ports(topology: Topology) -> str:
    """Return a remark for each VNF whose command has no placeholder for its ports; empty if there is none."""
    commands = {vnf.name: str(vnf.hosting_values.get("command", "")) for vnf in topology.vnfs if vnf.hosting == "exec"}
    return "".join(f"; {name}: {doubt}" for name, command in commands.items() if (doubt := without_ports(command)))


def _try(
    live: LiveTopology, wanted: Sequence[Flow], profiles: Sequence[TrafficProfile]
) -> tuple[list[str], Mapping[str, Mapping[str, int]], set[str]]:
    """Return the flows of which no frame arrived, what functions dropped of the last frames, and flows not sent in."""
    missing = [flow.name for flow in wanted]
    silent = set(missing)
    dropped: Mapping[str, Mapping[str, int]] = {}
    for profile in profiles or (PLAIN,):
        size = max(64, profile.smallest_frame_bytes)
        try:
            frames = live.profile(profile, live.topology.chain, flat_out=False)
            stats = live.send(wanted, size, READY_DURATION_S, READY_RATE_PPS, profile=frames)
        except (UsageError, RpcError):
            silent.clear()
            continue  # its trials say what is wrong with it
        silent &= set(untried(stats, wanted))
        missing = [flow.name for flow in wanted if flow.name in missing and not _came(live.topology, stats, flow)]
        # A VNF that boots does not answer; one that lets a frame through does.
        dropped = live.policy_drops(stats, hosted=len(missing) < len(wanted))
        if not (missing and dropped):
            break
    return missing, dropped, silent


def _came(topology: Topology, stats: Statistics, flow: Flow) -> bool:
    """Return whether frames arrived; for VNFs side by side whether all did, since each has its share."""
    return arrived(stats, flow) and not (topology.side_by_side and lost(stats, flow))


def _words(topology: Topology, dropped: Mapping[str, Mapping[str, int]]) -> str:
    """Return the cause in words: ``vnf0 (firewall) dropped 200 frames: rule``."""
    kinds = {vnf.name: vnf.kind for vnf in topology.vnfs}
    return "; ".join(
        f"{name} ({kinds.get(name.partition('-')[0], '?')}) dropped {sum(reasons.values())} frames: "
        f"{', '.join(reasons)}; change its settings, or the traffic"
        f"{ROUTED if 'no_route' in reasons else ''}"
        for name, reasons in dropped.items()
    )


CONNECT_DEADLINE_S = 15.0
APPLY_DEADLINE_S = 120.0
"""A routing table of a million lines takes its time."""
EMULATED_TURNS = 12
"""An emulated VNF stops while its code is translated or its CPU is in use: a frame may wait for this many turns."""

Watch = Callable[[], None]


@dataclass(frozen=True, slots=True)
class LiveSettings:
    """Settings that every live topology of a run has in common."""

    planed: Path
    ring_size: int
    hugepages: bool
    max_frame_bytes: int
    wire: str
    """``NAME`` or ``NAME:ARGUMENTS``."""
    calibration: Calibration | None = None
    """The calibration of the tester, if it was measured."""
    clock: ClockChoice = "auto"
    open_loop: bool | None = None
    """Saturating trials without a rate are sent at the line rate of the NICs; None: where there is one."""
    has_rate: bool = False
    """True if the user set a rate for saturating trials, which is then used in place of the line rate."""


class LiveTopology:
    """Tester and switch of one label on one topology. Made by :meth:`start`; :meth:`stop` ends it in any state."""

    def __init__(self, topology: Topology, placement: Placement, links: LinkSettings, tester: PlanedProcess) -> None:
        self.topology = topology
        self.placement = placement
        self.links = links
        self._tester = tester
        self._switch: RunningSwitch | None = None
        self._switch_processes: tuple[Process, ...] = ()
        self.hosted: HostedVnfs | None = None
        """VNFs that are no tasks of the tester; none where the switch forwards in their place."""
        self._veth: VethWire | None = None
        self.planed = Path("planed")
        self.cpu_clock = OWN_CLOCK
        """The clock at which the switch is measured."""
        self.sender = Sender(self.traffic, queues=links.queues, check=self.check_here)
        self._group = PlanedGroup([Member(self.call)])
        self._tsc_hz = 0
        self._echo = False
        self._modes: tuple[frozenset[str], ...] = ()
        self._profiles: tuple[TrafficProfile, ...] = ()
        self.conditions: Conditions | None = None
        """The conditions found at the start."""
        self.clock: ClockName = "software"
        """The clock of the latencies: that which all ports have."""
        self.functional: tuple[Reason, ...] = ()
        """Why its rates and latencies are not representative; empty if they are."""
        self.table_updates: FibUpdates | None = None
        """The changes of the switch's own table in the last sending, if there were any."""
        self.memory: tuple[MemoryEvidence, ...] = ()
        """The memory of all processes by NUMA node, as found at the start; empty on a machine with one node."""

    @classmethod
    def start(
        cls,
        label: str,
        adapter: Adapter,
        topology: Topology,
        placement: Placement,
        settings: LiveSettings,
        supervisor: Supervisor,
        directions: Sequence[Direction] = ("bidirectional",),
        profiles: Sequence[TrafficProfile] = (),
        cpu_clock: CpuClock = OWN_CLOCK,
    ) -> LiveTopology:
        """Start tester and switch, connect them, and wait for frames in both directions. Leaves them paused.

        Network functions may drop every frame of a flow, if one of ``directions``, which will be measured, can do
        without it; and drop plain frames, if frames of one of the ``profiles`` pass.
        Raises StartError, with the last log lines of what failed; then nothing is left running.
        """
        links = replace(
            link_settings(adapter, topology, settings, supervisor.topology_folder(label)),
            name=_eal_prefix(supervisor, label),
            nice=-20,
            memif_receive_queue=adapter.memif_send_queue,
            updates=_control_port(topology, adapter, profiles),
            clock=settings.clock,
        )
        links = _with_inside(links, adapter, topology, placement)
        with contextlib.ExitStack() as undo:
            veth = _make_veth(topology, links, placement, supervisor)
            if veth is not None:
                undo.callback(veth.close)
                links = replace(links, ends={**links.ends, **{name: Ends(*pair) for name, pair in veth.pairs.items()}})
            netns_pid = veth.netns_pid if veth is not None else None
            with supervisor.memory_on(placement.memory_node(placement.tester_cpus[0])):
                tester = _start_tester(topology, placement, links, settings.planed, supervisor, netns_pid)
            live = cls(topology, placement, links, tester)
            live._veth, live.planed, live.cpu_clock = veth, settings.planed, cpu_clock
            live._modes = tuple(frozenset(flow.name for flow in flows(topology, mode)) for mode in directions)
            live._profiles = (PLAIN, *(profile for profile in profiles if not profile.plain))
            undo.callback(live.stop)
            live._attach(adapter, supervisor)
            undo.pop_all()
        return live

    def _attach(self, adapter: Adapter, supervisor: Supervisor) -> None:
        """Start the switch, then give the tester its VNF ports and tasks, and wait until frames pass."""
        self._echo = False
        self._tsc_hz = get_statistics(self.call)["tsc_hz"]
        self._start_switch(adapter, supervisor)
        try:
            if self.links.inside is not None:  # the VNFs connect to the tester
                self._apply(self.topology)
            if self.topology.hosted_vnfs and not adapter.offloads:
                self.hosted = HostedVnfs.start(self.topology, self.placement, self.links, self.planed, supervisor)
                self._group = PlanedGroup([Member(self.call), *self.hosted.ends()])
            self._apply(self.topology)
            self.wait_until_forwarding()
            wait_for_session(self.call, self.links.updates)
        except (RpcError, DiedError) as error:
            raise StartError(f"{adapter.name} on {self.topology.scenario}: {error}\n{self.logs()}") from error
        ports = partial(get_ports, self.traffic)
        self.clock = self._common_clock()
        facts = self.hosted.facts if self.hosted is not None else ()
        self.conditions = read_conditions(
            self.topology, self.links.wire, self.switch, ports, facts, partial(self._xdp_mode, supervisor)
        )
        parts = self._placed()
        self.memory = read_memory(parts, switch_memory=wire_named(wire_name(self.links.wire)).switch_memory)
        self.functional = functional_reasons(self.topology, self.placement, facts, cpu_model())
        self.functional += misplaced(parts, self.memory)
        self.pause()

    def _placed(self) -> tuple[PlacedOwner, ...]:
        """Return the processes whose place matters: all on a machine with NUMA nodes, else VNFs that roam."""
        vnfs = self.hosted.placed() if self.hosted is not None else ()
        if not self.placement.nodes:
            return vnfs if self.placement.roaming else ()
        node = self.placement.memory_node
        switch = [thread.pid for thread in self.switch.polling_threads() if not is_kernel_thread(thread.pid)]
        return (
            PlacedOwner("tester", "the tester", (self._tester.process.pid,), node(self.placement.tester_cpus[0])),
            PlacedOwner("switch", "the switch", tuple(dict.fromkeys(switch)), node(self.placement.switch_cpu)),
            *vnfs,
        )

    def _common_clock(self) -> ClockName:
        """Return the clock that all ports at the ends of its paths have. Raise StartError if another one is wanted."""
        ends = self.topology.ends[:1] if self.topology.echo else self.topology.ends
        ports = get_ports(self.traffic)
        found = {port["name"]: port.get("clock", "software") for port in ports if port["name"] in ends}
        wanted = self.links.clock
        without = [name for name, clock in found.items() if clock != wanted]
        if wanted in ("kernel", "hardware") and without:
            raise StartError(
                f"clock {wanted}: port {without[0]} of {self.topology.scenario} has no stamps of that; choose --clock "
                "software"
            )
        return common_clock(found.values())

    def clock_readings(self) -> Readings:
        """Return what the clocks of devices read now, by port; the topology must not be paused."""
        return clock_readings(get_ports(self.call))

    def restart_switch(self, adapter: Adapter, supervisor: Supervisor) -> None:
        """Restart the switch on the same ports, in the same folder. Leaves it paused. Raises StartError."""
        self.resume()
        self.apply(wire_stage(self.topology, self.links))
        self._stop_hosted()
        self.switch.stop()
        self._attach(adapter, supervisor)

    def renew_switch(self, adapter: Adapter, supervisor: Supervisor) -> None:
        """Restart the switch, not paused, under traffic: peers stay at its ports and connect again."""
        self.switch.stop()
        self._start_switch(adapter, supervisor)

    def _start_switch(self, adapter: Adapter, supervisor: Supervisor) -> None:
        known = len(supervisor.processes)
        requests = requests_of(self.request, self.topology, self.links)
        with supervisor.memory_on(self.placement.memory_node(self.placement.switch_cpu)):
            self._switch = start_switches(adapter, requests, supervisor)
        self._switch_processes = tuple(supervisor.processes[known:])
        if self.links.vnf_interface == "vf":
            nic = self.links.ends[self.topology.ends[0]].switch
            functions = zip(self.topology.vnf_ports, virtual_functions(nic), strict=False)
            ends = {port: Ends(function, nic) for port, function in functions}
            self.links = replace(self.links, ends={**self.links.ends, **ends})

    def _stop_hosted(self) -> None:
        if self.hosted is not None:
            self.hosted.stop()
            self.hosted = None

    @property
    def request(self) -> SwitchRequest:
        """Return the start request of the switch."""
        return switch_request(self.topology, self.placement, self.links, netns_pid=self.netns_pid, tsc_hz=self._tsc_hz)

    @property
    def netns_pid(self) -> int | None:
        """Return the pid that holds the network namespace of the wires; None without kernel interfaces."""
        return self._veth.netns_pid if self._veth is not None else None

    @property
    def processes(self) -> tuple[Process, ...]:
        """Return the tester, then the processes of the switch, then those of hosted VNFs."""
        return (
            self._tester.process,
            *self._switch_processes,
            *(self.hosted.processes if self.hosted is not None else ()),
        )

    def threads(self) -> tuple[WatchedThread, ...]:
        """Return every polling thread here: workers of the tester with hosted ends, of the switch, of hosted VNFs."""
        pid, workers = self._tester.process.pid, get_statistics(self.call)["workers"]
        tester = [WatchedThread("tester", pid, worker["tid"], worker["name"]) for worker in workers]
        switch = watched(self.switch)
        hosted = self.hosted.threads() if self.hosted is not None else ()
        if self.topology.hosted_ends:
            hosted = tuple(replace(thread, owner="tester") for thread in hosted)
        return (*tester, *switch, *hosted)

    @property
    def _remote(self) -> RemoteSwitch | None:
        """Return the switch if it runs on another host."""
        return self._switch if isinstance(self._switch, RemoteSwitch) else None

    def sample(self, sampler: ThreadSampler, cpus: Iterable[int]) -> HostSample:
        """Return the kernel's counters now: of this host by ``sampler`` and ``cpus``, and of that of the switch."""
        here = sample_host(sampler, cpus)
        return here if self._remote is None else here + self._remote.sample()

    def _xdp_mode(self, supervisor: Supervisor) -> str:
        tester, control = self._tester.process.pid, self.placement.control_cpus
        return self._kernel_wires.xdp_mode(tester, self.switch.pids(), supervisor, control)

    @property
    def _kernel_wires(self) -> KernelWires:
        """Return the wires that are kernel interfaces."""
        cables = [port.name for port in self.topology.ports if is_kernel_interface(port, self.links)]
        ends = {cable: self.links.ends[cable] for cable in cables if cable in self.topology.wire_ports}
        if self.placement.elsewhere:
            ends = {cable: replace(end, switch="") for cable, end in ends.items()}
        return KernelWires(ends, self.netns_pid or os.getpid())

    def line_rate_pps(self, frame_size_bytes: float) -> float | None:
        """Return the rate that fills the slowest link of the tester's NICs; None if none reports a speed."""
        ports = self.conditions.ports if self.conditions is not None else ()
        speeds = [port.speed_mbps for port in ports if port.side == "wire" and port.speed_mbps]
        return line_rate_pps(frame_size_bytes, min(speeds) * 1_000_000) if speeds else None

    def wire_drops(self) -> Counter[str]:
        """Return what the kernel has dropped between tester and switch so far, as in ``Trial.tester_drops``."""
        here = self._kernel_wires.dropped()
        return here if self._remote is None else here + self._remote.wire_drops()

    def nic_counters(self) -> Counter[str]:
        """Return the extended statistics of the tester's NICs that speak of lost frames; empty on other wires."""
        if wire_kind(self.links.wire).replaces_nics:
            return Counter()
        return nic_losses(get_ports(self.call))

    def vnf_drops(self) -> Counter[str]:
        """Return what hosted VNFs have dropped so far, as in ``Trial.tester_drops``."""
        return Counter() if self.hosted is None else self.hosted.drops()

    def policy_drops(self, stats: Statistics, *, hosted: bool) -> Mapping[str, Mapping[str, int]]:
        """Return what network functions dropped by policy; ``hosted`` adds hosted VNFs, since they started."""
        theirs = self.hosted.policy_drops() if hosted and self.hosted is not None else {}
        return {**vnf_drops(stats), **theirs}

    @property
    def switch(self) -> RunningSwitch:
        """Return the running switch."""
        if self._switch is None:
            raise DiedError("the switch is not running")
        return self._switch

    def pause(self) -> None:
        """Stop every process of this topology by SIGSTOP."""
        for process in reversed(self.processes):
            process.pause()

    def resume(self) -> None:
        """Continue every process of this topology."""
        for process in self.processes:
            process.resume()

    def set_echo(self, echo: bool) -> None:
        """Set whether the far VNF returns every frame, in v2v only (METHODOLOGY section 2, v2v latency).

        The topology must not be paused.
        """
        if echo == self._echo:
            return
        topology = echoing(self.topology) if echo else self.topology
        self._apply(topology)
        if self.hosted is not None:
            self.hosted.apply_to_ends(end_documents(topology, self.placement, self.links))
            self._group = PlanedGroup([Member(self.call), *self.hosted.ends()])
        self._echo = echo

    def send(
        self,
        flows: Sequence[Flow],
        frame_size_bytes: int,
        duration_s: float,
        pps: float | None,
        probe_rate_pps: int = 0,
        watch: Watch | None = None,
        *,
        profile: Profile | None = None,
        stamps: bool = False,
        clocks: bool = False,
        stamp_all: bool = False,
        traffic: TrafficProfile = PLAIN,
    ) -> Statistics:
        """Clear, send as a :class:`Sending` says, wait for late frames, and return ``stats.get`` of the tester.

        ``watch`` is called just before and just after the sending. ``traffic`` says what changes meanwhile: routes, by
        the control of a VNF, which answers control packets too, or, where the switch has no FIB of VNFs, in its own
        table: then ``table_updates`` tells of them. Raises DiedError when tester or switch is gone.
        """
        control = self.control_traffic(traffic)
        sending = Sending(
            flows,
            frame_size_bytes,
            duration_s,
            pps,
            probe_rate_pps,
            profile,
            stamps,
            clocks,
            stamp_all,
            more=() if control is None else (control.load,),
        )
        if stamps:
            begin_stamps(self._stamped_vnfs(), self.sender.next_epoch, duration_s)
        begun = self._begin_table_updates(traffic.updates)
        try:
            with updating(self.call, self.links.updates, traffic.updates):
                return self.sender.send(sending, pollers_on_core=self.pollers_on_core, watch=watch or (lambda: None))
        finally:
            self.table_updates = None if begun is None else begun.end()

    def _begin_table_updates(self, updates: Updates | None) -> TableUpdates | None:
        """Begin to change the switch's own table; return None if nobody wants that, or the control of a VNF does it."""
        if updates is None or self.links.updates or not self.topology.side_by_side:
            return None
        return self.switch.begin_updates(updates) if isinstance(self.switch, UpdatableSwitch) else None

    @property
    def pollers_on_core(self) -> int:
        """Return how many pollers share the busiest core: a frame may wait for all of them."""
        switches = 2 if share_a_core(self.topology, self.placement) else 1
        if self.hosted is None:
            return switches
        most = switches + max(Counter(self.placement.all_vnf_cpus).values())
        return max(most, EMULATED_TURNS) if any(fact.emulated for fact in self.hosted.facts) else most

    def profile(self, wanted: TrafficProfile, chain: str, *, flat_out: bool) -> Profile | None:
        """Return a traffic profile for planed, its files in the folder of this topology. Raises UsageError if bad."""
        document = profile_document(wanted, self.links.workdir, chain, flat_out=flat_out)
        return to_vnfs(document, wanted, self.topology, self.links.workdir) if self.topology.side_by_side else document

    def control_traffic(self, profile: TrafficProfile) -> ControlTraffic | None:
        """Return the control packets of a profile; None if it has none, or nobody here would answer them."""
        return control_traffic(self.topology, self.links.updates, profile)

    def anatomy(self, sent: Sequence[Flow], stats: Statistics) -> tuple[Anatomy, ...]:
        """Return the latency breakdown of the trial just sent with stamps; ``stats`` are its counters.

        There is none where an end has a clock of its own.
        """
        if self.topology.hosted_ends and self.hosted is not None and not self.hosted.same_clock:
            return ()
        beside = self.topology.side_by_side
        return read_anatomy(self.traffic, sent, self._stamped_vnfs(), stats, side_by_side=beside)

    def _stamped_vnfs(self) -> list[StampedVnf]:
        """Return the VNFs in path order, each with the source of its stamps.

        There are none where the switch forwards in place of VNFs side by side. Hosted ends stamp as tasks of the tester
        do; one that echoes is read with them.
        """
        if self.topology.side_by_side and self.hosted is None:
            return []
        if self.topology.hosted_ends:
            return [StampedVnf(vnf.name) for vnf in echoing(self.topology).vnfs if self._echo and vnf.kind != END]
        vnfs = build(self.topology.scenario, self.topology.chain_length, echo=self._echo).vnfs
        hosted = {vnf.name: stamped(vnf) for vnf in (self.hosted.vnfs if self.hosted is not None else ())}
        return [hosted.get(vnf.name, StampedVnf(vnf.name)) for vnf in vnfs]

    def check(self) -> None:
        """Raise DiedError, with the last log lines, if tester or switch has exited."""
        self.check_here()
        if self._remote is not None:
            self._remote.check()

    def check_here(self) -> None:
        """Raise DiedError as :meth:`check`, but ask no other host: nothing goes there while a trial sends."""
        self._tester.check()
        if self._switch is not None and self._remote is None:
            self._switch.check()
        if self.hosted is not None:
            self.hosted.check()

    def stop(self) -> None:
        """End switch, tester and wires. Never raises; safe to call twice."""
        self.resume()
        self._stop_hosted()
        if self._switch is not None:
            self._switch.stop()
            self._switch = None
        self._tester.stop()
        if self._veth is not None:
            self._veth.close()
            self._veth = None

    def traffic(self, method: str, params: Json | None = None) -> Json:
        """Call a method of those that send and count, which answer as one: the tester, and ends that are hosted.

        The topology must not be paused. Raises DiedError, RpcError.
        """
        return self._group(method, params)

    def document(self) -> Document:
        """Return the document of the tester with every port and task."""
        return self._document(self.topology)

    def _document(self, topology: Topology) -> Document:
        links = self.links
        inside = links.inside.tasks if links.inside is not None else ()
        workers = assign_tasks(self.placement, topology, links.queues, links.updates, inside, one_wire=links.one_wire)
        return full_stage(topology, workers, self.links)

    def apply(self, document: Document) -> None:
        """Have the tester, not paused, run another document. Raises DiedError, RpcError."""
        apply(self.call, document)

    def call(self, method: str, params: Json | None = None, timeout_s: float = CONNECT_DEADLINE_S) -> Json:
        """Call a method of the tester, which must not be paused. Raises DiedError, RpcError."""
        return self._tester.call(method, params, timeout_s)

    def wait_until_forwarding(self) -> None:
        """Wait until frames cross in both directions; the topology must not be paused.

        Raises StartError after CONNECT_DEADLINE_S, or after the boot time of VNFs.
        """
        boots_s = ready_within_s(self.topology)
        within_s = max(CONNECT_DEADLINE_S, boots_s)
        wait_until_forwarding(self, within_s, self._modes, self._profiles, boots=boots_s > CONNECT_DEADLINE_S)

    def _apply(self, topology: Topology) -> None:
        timeout_s = APPLY_DEADLINE_S if any(vnf.settings for vnf in topology.vnfs) else CONNECT_DEADLINE_S
        apply(self.call, self._document(topology), timeout_s)

    def logs(self) -> str:
        """Return the last log lines of all processes, those of the tester last."""
        first, *others = self.processes
        return "\n".join(f"{process.name}: {process.log_tail()}" for process in (*others, first))


def link_settings(adapter: Adapter, topology: Topology, settings: LiveSettings, workdir: Path) -> LinkSettings:
    """Return what the links of a topology need, whoever its tester is."""
    return LinkSettings(
        workdir=workdir,
        wire=settings.wire,
        vnf_interface=adapter.vnf_interface,
        ring_size=settings.ring_size,
        hugepages=settings.hugepages,
        max_frame_bytes=settings.max_frame_bytes,
        queues=max(adapter.queues, topology.vnf_cores),
        ends=named_ends(cabled(topology, adapter.vnf_interface), settings.wire),
    )


def watched(switch: RunningSwitch) -> list[WatchedThread]:
    """Return the polling threads of a switch, to be sampled."""
    return [WatchedThread("switch", thread.pid, thread.tid, thread.name) for thread in switch.polling_threads()]


def _control_port(topology: Topology, adapter: Adapter, profiles: Sequence[TrafficProfile]) -> str:
    """Return the port of the VNF whose control sends FIB messages; empty if no updates are wanted or accepted."""
    wanted = topology.side_by_side and adapter.offloads and any(profile.has_control for profile in profiles)
    return topology.vnfs[0].ports[0] if wanted else ""


def _with_inside(links: LinkSettings, adapter: Adapter, topology: Topology, placement: Placement) -> LinkSettings:
    """Return the links with what the tester has in the place of a switch, and the wire between the two."""
    if links.vnf_interface != "vhost-user":  # kernel interfaces are made later, and no task forwards between them
        return links
    own = replace(links, wire="memif")
    inside = adapter.inside(switch_request(topology, placement, own))
    return links if inside is None else replace(own, inside=inside)


def _eal_prefix(supervisor: Supervisor, label: str) -> str:
    """Return an EAL file prefix that no other tester of this run has."""
    number = len(supervisor.processes)
    text = f"{supervisor.root.name}-t{number}-{label}".lower()
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in text)[:31]


def _make_veth(
    topology: Topology, links: LinkSettings, placement: Placement, supervisor: Supervisor
) -> VethWire | None:
    """Make the ports of a topology that are kernel interfaces; return None if there are none."""
    names = [port.name for port in topology.ports if needs_veth_pair(port, links)] + link_cables(topology, links)
    return VethWire.create(supervisor, names, cpus=placement.control_cpus) if names else None


def _start_tester(
    topology: Topology,
    placement: Placement,
    links: LinkSettings,
    planed: Path,
    supervisor: Supervisor,
    netns_pid: int | None,
) -> PlanedProcess:
    """Start the tester with its wire ports and connect to it. Raise StartError."""
    for name in topology.wire_ports:
        links.socket(name).unlink(missing_ok=True)  # of an earlier tester: DPDK's memif leaves it, and refuses it
    return PlanedProcess.start(
        wire_stage(topology, links),
        supervisor,
        planed=planed,
        name="tester",
        title="the tester",
        file="tester",
        workdir=links.workdir,
        cpus=placement.control_cpus | placement.polled_by_tester,
        netns_pid=netns_pid,
    )
