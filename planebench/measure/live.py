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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from planebench.host.evidence import HostSample, ThreadRef, ThreadSampler, sample_host
from planebench.host.facts import cpu_model
from planebench.host.netns import VethWire
from planebench.host.pci_binding import virtual_functions
from planebench.host.process import Process, Supervisor, on_failure, stretched
from planebench.host.procfs import cpu_time_s, is_kernel_thread
from planebench.measure.conditions import KernelWires, PlacedOwner, misplaced, read_conditions, read_memory
from planebench.measure.counts import (
    READY_DURATION_S,
    READY_RATE_PPS,
    Sender,
    Sending,
    arrived,
    lost,
    untried,
    vnf_drops,
)
from planebench.measure.distance import LastDistance
from planebench.measure.hosted import HostedVnfs, control_planes, functional_reasons, ready_within_s, share_a_core
from planebench.measure.latency import StampedVnf, common_clock, read_anatomy
from planebench.measure.updates import Changing, ControlTraffic, control_traffic, wait_until_settled
from planebench.model.conditions import Conditions
from planebench.model.dimensions import ClockChoice, ClockName, HostingFacts
from planebench.model.errors import DiedError, StartError, UsageError
from planebench.model.header import Calibration
from planebench.model.plan import NIC_RING_SIZE, OWN_RING, FrameCheck, RingSize, WireRingSize
from planebench.model.reasons import Reason
from planebench.model.records import Anatomy, FibUpdates, MemoryEvidence
from planebench.model.scenario import Direction
from planebench.model.scenarios import Flow, all_flows, flows
from planebench.model.server import OWN_CLOCK, CpuClock, mhz_of
from planebench.model.topology import END, Topology
from planebench.model.traffic import PLAIN, TrafficProfile
from planebench.model.wire import wire_arguments, wire_name, wire_named
from planebench.model.words import listed
from planebench.planed.client import Call, Profile, RpcError, apply, get_ports, get_statistics, start_traffic
from planebench.planed.document import Document
from planebench.planed.group import Member, PlanedGroup
from planebench.planed.process import PlanedProcess
from planebench.planed.statistics import Statistics
from planebench.switches.adapter import Adapter, RunningSwitch, TableUpdates, UpdatableSwitch
from planebench.switches.common import nic_counters
from planebench.switches.linked import requests_of, start_switches
from planebench.switches.remote import RemoteSwitch
from planebench.testbed.hosting.exec import without_ports
from planebench.testbed.placement import Placement, off_the_switch
from planebench.testbed.request import Ends, LinkSettings, SwitchRequest
from planebench.testbed.tester_config import assign_tasks, full_stage, switch_request, wire_stage
from planebench.testbed.traffic_files import profile_document, to_vnfs
from planebench.testbed.wires.base import cabled, is_kernel_interface, named_ends, veth_pairs, wire_kind
from planebench.testbed.wires.netmap import vale_ports

CONNECT_DEADLINE_S = 15.0
DROPPING_S = 2.0
"""How long a network function may drop the first frames: until others have opened the way, or addresses are known."""
PAUSE_S = 0.1
"""Between two looks at VNFs that boot: they need the CPU more."""
ROUTED = " (--traffic fib sends to addresses of its routes)"
APPLY_DEADLINE_S = 120.0
"""A routing table of a million lines takes its time."""
NAPPING_TURNS = 4
"""A control plane may sleep for 5 ms before it replies: so many turns of a core are waited for late replies."""
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
    wire_ring_size: WireRingSize | None = None
    calibration: Calibration | None = None
    """The calibration of the tester, if it was measured."""
    clock: ClockChoice = "auto"
    tester_cores: int = 1
    """Queue pairs of every port, at the least: the tester has a core for each."""
    check: FrameCheck = "full"
    open_loop: bool | None = None
    """Saturating trials without a rate are sent at the line rate of the NICs; None: where there is one."""
    has_rate: bool = False
    """True if the user set a rate for saturating trials, which is then used in place of the line rate."""
    last_distance: LastDistance = field(default_factory=LastDistance, compare=False)
    """Of the trial before, of any switch."""

    def wire_ring(self, own: RingSize = NIC_RING_SIZE) -> int:
        """Return the ring size of wires, of a switch that has ``own`` at a NIC."""
        return own if self.wire_ring_size == OWN_RING else self.wire_ring_size or self.ring_size


class LiveTopology:
    """Tester and switch of one label on one topology. Made by :meth:`start`; :meth:`stop` ends it in any state."""

    def __init__(self, topology: Topology, placement: Placement, links: LinkSettings, tester: PlanedProcess) -> None:
        self.topology = topology
        self.placement = placement
        self.links = links
        self._cpus = {*placement.switch_cpus_here, *placement.tester_cpus}
        """Those that poll here; of VNFs only of hosted ones."""
        if placement.hosted:
            self._cpus.update(placement.all_vnf_cpus, placement.roaming)
        self._tester = tester
        self.call: Call = tester.call
        """Calls a method of the tester, which must not be paused. Raises DiedError, RpcError."""
        self.traffic: Call = tester.call
        """The same of those that send and count, which answer as one: the tester, and ends that are hosted."""
        self.switch = RunningSwitch()
        """The running switch; one without processes before its start and after its end."""
        self._remote: RemoteSwitch | None = None
        """The same if it runs on another host."""
        self._switch_processes: tuple[Process, ...] = ()
        self.hosted: HostedVnfs | None = None
        """VNFs that are no tasks of the tester; where the switch forwards in their place, their control planes."""
        self._veth: VethWire | None = None
        self.netns_pid: int | None = None
        """The process that holds the network namespace of the wires; None without kernel interfaces."""
        self._nics = not wire_kind(links.wire).replaces_nics
        self._kernel_wires = KernelWires({}, os.getpid())
        """The wires that are kernel interfaces."""
        self.planed = Path("planed")
        self.mhz: int | None = None
        """The clock at which CPUs are kept in a trial; None for their own."""
        self.sampled = False
        """Sendings without time stamps are checked by samples."""
        self.sender = Sender(self.traffic, queues=links.queues, check=partial(self.check, here=True), ran=self._ran)
        self._cpu_s: dict[int, float | None] = {}
        """The CPU time of tester and switch when :meth:`_ran` was last asked."""
        self.pollers_on_core = 1
        """How many pollers share the busiest core: a frame may wait for all of them."""
        self._tsc_hz = 0
        self._modes: tuple[frozenset[str], ...] = ()
        self._profiles: tuple[TrafficProfile, ...] = ()
        self.conditions: Conditions | None = None
        """The conditions found at the start."""
        self.clock: ClockName = "software"
        """The clock of the latencies: that which all ports have."""
        self.functional: tuple[Reason, ...] = ()
        """Why its rates and latencies are not representative; empty if they are."""
        self.control: ControlTraffic | None = None
        """The control packets of the last sending, if there were any."""
        self.control_received = 0
        """Control packets that VNFs received in it."""
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
        *,
        connected: bool = True,
    ) -> LiveTopology:
        """Start tester and switch, and leave them paused. They are connected too, unless :meth:`connect` is to follow.

        Network functions may drop every frame of a flow, if one of ``directions``, which will be measured, can do
        without it; and drop plain frames, if frames of one of the ``profiles`` pass.
        Raises StartError, with the last log lines of what failed; then nothing is left running.
        """
        prefix = f"{supervisor.root.name}-t{len(supervisor.processes)}-{label}".lower()  # no other tester of this run
        links = replace(
            link_settings(adapter, topology, settings, supervisor.topology_folder(label)),
            name="".join(c if c.isalnum() or c in "-_" else "-" for c in prefix)[:31],
            nice=-20,
            memif_receive_queue=adapter.memif_send_queue,
            controls="" if not topology.routes else "alive" if adapter.offloads else "idle" if topology.bare else "",
            clock=settings.clock,
        )
        if links.controls:
            placement = off_the_switch(placement, topology.chain_length)
        if links.vnf_interface == "vhost-user":  # kernel interfaces are made later, and no task forwards between them
            own = replace(links, wire="memif")
            inside = adapter.inside(switch_request(topology, placement, own))
            links = links if inside is None else replace(own, inside=inside)
        links.make_folders([*(port.name for port in topology.ports), *(topology.link or ())])
        with contextlib.ExitStack() as undo:
            veth: VethWire | None = None
            if names := veth_pairs(topology, links):
                veth = VethWire.create(supervisor, names, cpus=placement.control_cpus)
                undo.callback(veth.close)
                links = replace(links, ends={**links.ends, **{name: Ends(*pair) for name, pair in veth.pairs.items()}})
            netns_pid = veth.netns_pid if veth is not None else None
            for name in topology.wire_ports:
                links.socket(name).unlink(missing_ok=True)  # of an earlier tester: memif of DPDK leaves and refuses it
            with supervisor.memory_on(placement.memory_node(placement.tester_cpus[0])):
                tester = PlanedProcess.start(
                    wire_stage(topology, links),
                    supervisor,
                    planed=settings.planed,
                    name="tester",
                    title="the tester",
                    workdir=links.workdir,
                    cpus=placement.control_cpus | placement.polled_by_tester,
                    netns_pid=netns_pid,
                )
            live = cls(topology, placement, links, tester)
            live._veth, live.netns_pid, live.planed, live.mhz = veth, netns_pid, settings.planed, mhz_of(cpu_clock)
            live.sampled = settings.check == "sampled"
            cables = [port.name for port in topology.ports if is_kernel_interface(port, links)]
            ends = {cable: links.ends[cable] for cable in cables if cable in topology.wire_ports}
            if placement.elsewhere:
                ends = {cable: replace(end, switch="") for cable, end in ends.items()}
            live._kernel_wires = KernelWires(ends, netns_pid or os.getpid())
            live._modes = tuple(frozenset(flow.name for flow in flows(topology, mode)) for mode in directions)
            live._profiles = (PLAIN, *(profile for profile in profiles if not profile.plain))
            undo.callback(live.stop)
            live._tsc_hz = get_statistics(live.call).tsc_hz
            live.start_switch(adapter, supervisor)
            live.pause()
            undo.pop_all()
        if connected:
            live.connect(adapter, supervisor)
        return live

    def connect(self, adapter: Adapter, supervisor: Supervisor) -> None:
        """Connect tester and switch, and wait for frames in both directions. Leaves them paused.

        Raises StartError, with the last log lines of what failed; then nothing is left running.
        """
        with on_failure(self.stop):
            self.resume()
            self._attach(adapter, supervisor)

    def _attach(self, adapter: Adapter, supervisor: Supervisor) -> None:
        """Give the tester its VNF ports and tasks, and wait until frames pass through the switch, which is up."""
        topology, placement = self.topology, self.placement
        self._join_ends()
        self.pollers_on_core = 2 if share_a_core(topology, placement) else 1
        facts: tuple[HostingFacts, ...] = ()
        try:
            if self.links.inside is not None:  # the VNFs connect to the tester
                self._apply()
            if self.links.controls:
                of_vnfs = control_planes(topology)
                self.hosted = HostedVnfs.start(of_vnfs, placement, self.links, self.planed, supervisor)
            elif topology.hosted_vnfs and not adapter.offloads:
                self.hosted = HostedVnfs.start(topology, placement, self.links, self.planed, supervisor)
                self._join_ends()
                facts = tuple(vnf.facts for vnf in self.hosted.vnfs)
                self.pollers_on_core += max(Counter(placement.all_vnf_cpus).values())
                if any(fact.emulated for fact in facts):
                    self.pollers_on_core = max(self.pollers_on_core, EMULATED_TURNS)
            self._apply()
            self.wait_until_forwarding()
            if self.links.controls == "alive" and self.hosted is not None:
                wait_until_settled(self.hosted)
        except (RpcError, DiedError) as error:
            raise StartError(f"{adapter.name} on {topology.scenario}: {error}\n{self.logs()}") from error
        clocks = {port.name: port.clock for port in get_ports(self.traffic) if port.name in topology.ends}
        wanted = self.links.clock
        without = [name for name, clock in clocks.items() if clock != wanted]
        if wanted in ("kernel", "hardware") and without:
            raise StartError(
                f"clock {wanted}: port {without[0]} of {topology.scenario} has no stamps of that; choose --clock "
                "software"
            )
        self.clock = common_clock(clocks.values())
        self.conditions = read_conditions(
            topology,
            self.links.wire,
            self.switch,
            partial(get_ports, self.traffic),
            facts,
            lambda: self._kernel_wires.xdp_mode(
                self._tester.process.pid, self.switch.pids(), supervisor, placement.control_cpus
            ),
        )
        # The processes whose place matters: all on a machine with NUMA nodes, else VNFs that roam.
        placed = self.hosted.placed() if self.hosted is not None and not self.links.controls else ()
        if placement.nodes:
            node = placement.memory_node
            switch = [thread.pid for thread in self.switch.polling_threads() if not is_kernel_thread(thread.pid)]
            placed = (
                PlacedOwner("tester", "the tester", (self._tester.process.pid,), node(placement.tester_cpus[0])),
                PlacedOwner("switch", "the switch", tuple(dict.fromkeys(switch)), node(placement.switch_cpu)),
                *placed,
            )
        elif not placement.roaming:
            placed = ()
        self.memory = read_memory(placed, switch_memory=wire_named(wire_name(self.links.wire)).switch_memory)
        self.functional = functional_reasons(topology, placement, facts, cpu_model()) + misplaced(placed, self.memory)
        self.pause()

    def _join_ends(self) -> None:
        """Have hosted ends, if there are any, send and count together with the tester."""
        ends = self.hosted.ends() if self.hosted is not None else ()
        self.traffic = self.sender.call = PlanedGroup([Member(self.call), *ends]) if ends else self.call

    def restart_switch(self, adapter: Adapter, supervisor: Supervisor) -> None:
        """Restart the switch on the same ports, in the same folder. Leaves it paused. Raises StartError."""
        self.resume()
        self.apply(wire_stage(self.topology, self.links))
        self._stop_hosted()
        self.switch.stop()
        self.start_switch(adapter, supervisor)
        self._attach(adapter, supervisor)

    def start_switch(self, adapter: Adapter, supervisor: Supervisor) -> None:
        """Start the switch, which is stopped; peers stay at its ports and connect again. Raises StartError."""
        known = len(supervisor.processes)
        requests = requests_of(self.request, self.topology, self.links)
        with supervisor.memory_on(self.placement.memory_node(self.placement.switch_cpu)):
            switch = start_switches(adapter, requests, supervisor)
        self.switch, self._remote = switch, switch if isinstance(switch, RemoteSwitch) else None
        self._switch_processes = tuple(supervisor.processes[known:])
        if self.hosted is not None:
            self.hosted.hand_over_ports()
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
    def processes(self) -> tuple[Process, ...]:
        """Return the tester, then the processes of the switch, then those of hosted VNFs."""
        vnfs = self.hosted.vnfs if self.hosted is not None else ()
        return (self._tester.process, *self._switch_processes, *(vnf.process for vnf in vnfs))

    def _ran(self) -> bool:
        """Return whether tester and switch, if it is here and polls, had a CPU since this was last asked."""
        own = {it.pid for it in self._switch_processes}
        polling = own & {it.pid for it in self.switch.polling_threads()} if own else own
        before, self._cpu_s = self._cpu_s, {pid: cpu_time_s(pid) for pid in (self._tester.process.pid, *polling)}
        return all(now != before.get(pid) or now is None for pid, now in self._cpu_s.items())

    def threads(self) -> tuple[ThreadRef, ...]:
        """Return every polling thread here: workers of the tester with hosted ends, of the switch, of hosted VNFs."""
        pid, workers = self._tester.process.pid, get_statistics(self.call).workers
        tester = [ThreadRef(pid, worker.tid, worker.name, "tester") for worker in workers]
        switch = self.switch.polling_threads()
        if self.hosted is None or self.links.controls:  # a control plane sleeps
            return (*tester, *switch)
        hosted = self.hosted.threads()
        if self.topology.hosted_ends:
            hosted = tuple(replace(thread, owner="tester") for thread in hosted)
        return (*tester, *switch, *hosted)

    def sample(self, sampler: ThreadSampler) -> HostSample:
        """Return the kernel's counters now: of this host by ``sampler`` and its CPUs, and of that of the switch."""
        here = sample_host(sampler, self._cpus)
        return here if self._remote is None else here + self._remote.sample()

    def wire_drops(self) -> Counter[str]:
        """Return what the kernel has dropped between tester and switch so far, as in ``Trial.tester_drops``."""
        here = self._kernel_wires.dropped() if self._kernel_wires.ends else Counter[str]()
        return here if self._remote is None else here + self._remote.wire_drops()

    def nic_counters(self) -> Counter[str]:
        """Return the extended statistics of the tester's NICs that speak of lost frames; empty on other wires."""
        if not self._nics:
            return Counter()
        return Counter(nic_counters({port.name: port.xstats for port in get_ports(self.call)}))

    def vnf_drops(self) -> Counter[str]:
        """Return what hosted VNFs have dropped so far, as in ``Trial.tester_drops``."""
        return Counter() if self.hosted is None or self.links.controls else self.hosted.drops()

    def pause(self) -> None:
        """Stop every process of this topology by SIGSTOP."""
        if self._remote is not None:
            self._remote.pause()
        for process in reversed(self.processes):
            process.pause()

    def resume(self) -> None:
        """Continue every process of this topology."""
        for process in self.processes:
            process.resume()
        if self._remote is not None:
            self._remote.resume()

    def send(
        self, sending: Sending, traffic: TrafficProfile = PLAIN, watch: Watch | None = None, *, counted: bool = True
    ) -> Statistics:
        """Clear, send, wait for late frames, and return ``stats.get`` of the tester.

        ``traffic`` says what changes meanwhile, and ``table_updates`` tells of it: routes, by the control planes of
        VNFs, which answer control packets too, or, where the switch has no FIB of VNFs, in its own table. ``watch`` is
        called just before and just after the sending. Raises DiedError when tester or switch is gone.
        """
        alive = self.hosted if self.links.controls == "alive" else None
        self.control = control = None if alive is None else control_traffic(self.topology, traffic)
        looked = sending.probe_rate_pps or sending.stamps or sending.clocks or sending.stamp_all
        more = () if control is None else (control.load,)
        sending = replace(sending, more=more, sampled=self.sampled and not looked)
        for vnf in self._stamped_vnfs() if sending.stamps else ():
            if vnf.call is not None:  # clears its counters
                start_traffic(vnf.call, self.sender.next_epoch, sending.duration_s, stamps=True)
        begun: TableUpdates | None = None
        self.table_updates, self.control_received = None, 0
        if alive is not None and traffic.has_control:
            begun = Changing(alive, traffic)
        elif traffic.updates is not None and self.topology.side_by_side and isinstance(self.switch, UpdatableSwitch):
            begun = self.switch.begin_updates(traffic.updates)
        try:
            pollers = self.pollers_on_core if control is None else max(self.pollers_on_core, NAPPING_TURNS)
            return self.sender.send(sending, pollers_on_core=pollers, watch=watch, counted=counted)
        finally:
            if begun is not None:
                self.table_updates = begun.end()
            if isinstance(begun, Changing):
                self.control_received = begun.control_received

    def profile(self, wanted: TrafficProfile, chain: str, *, flat_out: bool) -> Profile | None:
        """Return a traffic profile for planed, its files in the folder of this topology. Raises UsageError if bad."""
        document = profile_document(wanted, self.links.workdir, chain, flat_out=flat_out)
        return to_vnfs(document, wanted, self.topology, self.links.workdir) if self.topology.side_by_side else document

    def anatomy(self, sent: Sequence[Flow], stats: Statistics) -> tuple[Anatomy, ...]:
        """Return the latency breakdown of the trial just sent with stamps; ``stats`` are its counters.

        There is none where an end has a clock of its own.
        """
        vnfs = self.hosted.vnfs if self.hosted is not None else ()
        if self.topology.hosted_ends and not all(vnf.same_clock for vnf in vnfs):
            return ()
        beside = self.topology.side_by_side
        return read_anatomy(self.traffic, sent, self._stamped_vnfs(), stats, side_by_side=beside)

    def _stamped_vnfs(self) -> list[StampedVnf]:
        """Return the VNFs in path order, each with the source of its stamps.

        There are none where the switch forwards in place of VNFs side by side.
        """
        if self.topology.side_by_side and self.links.controls:
            return []
        vnfs = [vnf for vnf in self.topology.vnfs if vnf.kind != END]
        found = {vnf.name: StampedVnf(vnf.name) for vnf in vnfs}
        for vnf in self.hosted.vnfs if self.hosted is not None else ():
            if vnf.planed is None:
                found[vnf.name] = StampedVnf(vnf.name, clock="none")
            else:
                found[vnf.name] = StampedVnf(vnf.name, vnf.planed.call, "tester" if vnf.same_clock else "own")
        return [found[vnf.name] for vnf in vnfs]

    def check(self, *, here: bool = False) -> None:
        """Raise DiedError, with the last log lines, if tester or switch has exited.

        ``here``: ask no other host, as nothing goes there while a trial sends.
        """
        self._tester.check()
        if not (here and self._remote is not None):
            self.switch.check()
        if self.hosted is not None:
            self.hosted.check()

    def stop(self) -> None:
        """End switch, tester and wires. Never raises; safe to call twice."""
        for process in self.processes:
            process.resume()
        self._stop_hosted()
        self.switch.stop()
        self.switch, self._remote = RunningSwitch(), None
        self._tester.stop()
        if self._veth is not None:
            self._veth.close()
            self._veth = self.netns_pid = None

    def document(self) -> Document:
        """Return the document of the tester with every port and task."""
        links = self.links
        inside = links.inside.tasks if links.inside is not None else ()
        workers = assign_tasks(self.placement, self.topology, links.queues, inside, one_wire=links.one_wire)
        return full_stage(self.topology, workers, links)

    def apply(self, document: Document) -> None:
        """Have the tester, not paused, run another document. Raises DiedError, RpcError."""
        apply(self.call, document)

    def wait_until_forwarding(self) -> None:
        """Wait until a few frames cross in both directions: ports are up, the switch knows the flows.

        Where network functions drop every frame of a flow, one direction mode that will be measured without that flow
        is enough. VNFs that boot have the CPU between two tries. The topology must not be paused.
        Raises StartError after CONNECT_DEADLINE_S, or after the boot time of VNFs, DiedError.
        """
        boots_s = ready_within_s(self.topology)
        within_s = stretched(max(CONNECT_DEADLINE_S, boots_s))
        wanted, begun = all_flows(self.topology), time.monotonic()
        missing = [flow.name for flow in wanted]
        silent, late = set(missing), False
        while not late:
            late = time.monotonic() >= begun + within_s  # also after the harness was stopped a last try is made
            self.check()
            missing, dropped, unsent = _try(self, wanted, self._profiles)
            silent &= unsent
            if not missing:
                return
            if dropped and time.monotonic() > begun + stretched(DROPPING_S):
                if any(mode.isdisjoint(missing) for mode in self._modes):
                    return
                kinds = {vnf.name: vnf.kind for vnf in self.topology.vnfs}
                words = [
                    f"{name} ({kinds.get(name.partition('-')[0], '?')}) dropped {sum(reasons.values())} frames: "
                    f"{', '.join(reasons)}; change its settings, or the traffic"
                    f"{ROUTED if 'no_route' in reasons else ''}"
                    for name, reasons in dropped.items()
                ]
                raise StartError(f"no frame came through {', '.join(missing)}: {'; '.join(words)}")
            time.sleep(PAUSE_S if boots_s > CONNECT_DEADLINE_S else 0)
        if silent:
            names = ", ".join(sorted(silent))
            raise StartError(f"the tester sent no frame in {names} within {within_s:g} s: its workers had no CPU time")
        remarks = ""
        if wire_kind(self.links.wire).cables(wire_arguments(self.links.wire)):  # the user named them
            ends = self.links.ends
            down = [
                f"{port.name} ({ends[port.name].tester})"
                for port in get_ports(self.call)
                if port.name in ends and not port.link_up
            ]
            remarks = f"; no link at {listed(down)}" if down else ""
            remarks += "; is the cabling as --wire says?"
        for vnf in self.topology.vnfs:
            if vnf.hosting == "exec" and (doubt := without_ports(str(vnf.hosting_values.get("command", "")))):
                remarks += f"; {vnf.name}: {doubt}"
        raise StartError(f"no frame came through {', '.join(missing)} within {within_s:g} s{remarks}\n{self.logs()}")

    def _apply(self) -> None:
        timeout_s = APPLY_DEADLINE_S if any(vnf.settings for vnf in self.topology.vnfs) else CONNECT_DEADLINE_S
        apply(self.call, self.document(), timeout_s)

    def logs(self) -> str:
        """Return the last log lines of all processes, those of the tester last."""
        first, *others = self.processes
        remote = [] if self._remote is None else [self._remote.logs()]
        return "\n".join([*remote, *(f"{process.name}: {process.log_tail()}" for process in (*others, first))])


def link_settings(adapter: Adapter, topology: Topology, settings: LiveSettings, workdir: Path) -> LinkSettings:
    """Return what the links of a topology need, whoever its tester is."""
    queues = max(adapter.queues, topology.vnf_cores)
    apart = wire_kind(settings.wire).queues_differ and not topology.vnf_ports
    return LinkSettings(
        workdir=workdir,
        wire=settings.wire,
        vnf_interface=adapter.vnf_interface,
        ring_size=settings.ring_size,
        wire_ring_size=settings.wire_ring(adapter.nic_ring_size),
        hugepages=settings.hugepages,
        max_frame_bytes=settings.max_frame_bytes,
        queues=max(queues, settings.tester_cores),
        switch_queues=queues if apart else 0,
        ends={
            **(vale_ports(topology.cross_connects) if adapter.vnf_interface == "netmap" else {}),
            **named_ends(cabled(topology, adapter.vnf_interface), settings.wire),
        },
    )


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
            stats = live.send(Sending(wanted, size, READY_DURATION_S, READY_RATE_PPS, profile=frames))
        except (UsageError, RpcError):
            silent.clear()
            continue  # its trials say what is wrong with it
        silent &= set(untried(stats, wanted))
        if live.topology.side_by_side:  # each VNF has its share of the frames
            came = {flow.name for flow in wanted if arrived(stats, flow) and not lost(stats, flow)}
        else:
            came = {flow.name for flow in wanted if arrived(stats, flow)}
        missing = [name for name in missing if name not in came]
        # A VNF that boots does not answer; one that lets a frame through does.
        answering = live.hosted if len(missing) < len(wanted) else None
        dropped = {**vnf_drops(stats), **(answering.policy_drops() if answering is not None else {})}
        if not (missing and dropped):
            break
    return missing, dropped, silent
