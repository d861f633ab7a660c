# SPDX-License-Identifier: BSD-3-Clause
"""A live topology: tester and switch up, connected, and paused between trials.

Several switches of a comparison live side by side, so that their trials can be interleaved; all but the one being
measured are stopped (SIGSTOP) and take no CPU.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from planebench.host.evidence import WatchedThread
from planebench.host.netns import VethWire
from planebench.host.patience import patient
from planebench.host.process import Process, Supervisor
from planebench.measure.anatomy import StampedVnf, read_anatomy
from planebench.measure.conditions import read_conditions
from planebench.measure.counts import arrived, lost, vnf_drops
from planebench.measure.sending import next_epoch, send
from planebench.measure.tester_process import eal_prefix, make_veth, start_tester
from planebench.measure.updates import updating, wait_for_session
from planebench.measure.vnf_processes import VnfProcesses
from planebench.model.anatomy import Anatomy
from planebench.model.conditions import Conditions
from planebench.model.errors import DiedError, StartError, UsageError
from planebench.model.header import Calibration
from planebench.model.records import Direction, WireName
from planebench.placement import LinkSettings, Placement, VethPair, assign_tasks, full_stage, switch_request, wire_stage
from planebench.planed import PlanedClient, RpcClosedError, RpcError
from planebench.scenarios import Flow, Topology, all_flows, build, flows
from planebench.switches.base import RunningSwitch, SwitchAdapter, SwitchRequest, memif_queue_of, offloads, queues_of
from planebench.traffic.document import profile_document, to_vnfs
from planebench.traffic.profile import PLAIN, TrafficProfile, Updates

CONNECT_DEADLINE_S = 15.0
APPLY_DEADLINE_S = 120.0
"""A routing table of a million lines takes its time."""
DROPPING_S = 2.0
"""How long a network function may drop the first frames: until others have opened the way, or addresses are known."""
LOOK_S = 1.0
ROUTED = " (--traffic fib sends to addresses of its routes)"
READY_RATE_PPS = 20_000
READY_DURATION_S = 0.01

Watch = Callable[[], None]


@dataclass(frozen=True, slots=True)
class LiveSettings:
    """What every live topology of a run has in common."""

    planed: Path
    ring_size: int
    hugepages: bool
    max_frame_bytes: int
    wire: WireName
    calibration: Calibration | None = None
    """What the tester can do alone, if it was measured."""


class LiveTopology:
    """Tester and switch of one label on one topology. Made by :meth:`start`; :meth:`stop` ends it in any state."""

    def __init__(
        self, topology: Topology, placement: Placement, links: LinkSettings, tester: Process, client: PlanedClient
    ) -> None:
        self.topology = topology
        self.placement = placement
        self.links = links
        self._tester = tester
        self._client = client
        self._switch: RunningSwitch | None = None
        self._switch_processes: tuple[Process, ...] = ()
        self._vnfs: VnfProcesses | None = None
        """VNFs side by side, where the switch does not forward in their place."""
        self._veth: VethWire | None = None
        self._epoch = 0
        self._tsc_hz = 0
        self._echo = False
        self._modes: tuple[frozenset[str], ...] = ()
        self._profiles: tuple[TrafficProfile, ...] = ()
        self.conditions: Conditions | None = None
        """As they were found when it came up."""

    @classmethod
    def start(
        cls,
        label: str,
        adapter: SwitchAdapter,
        topology: Topology,
        placement: Placement,
        settings: LiveSettings,
        supervisor: Supervisor,
        directions: Sequence[Direction] = ("bidirectional",),
        profiles: Sequence[TrafficProfile] = (),
    ) -> LiveTopology:
        """Bring tester and switch up, connect them, and see frames arrive in both directions. Left paused.

        Network functions may drop every frame of a flow, if one of ``directions``, which will be measured, can do
        without it; and drop plain frames, if frames of one of the ``profiles`` pass.
        Raises StartError, with the last log lines of what failed; then nothing is left running.
        """
        workdir = supervisor.workdir(f"{topology.scenario}{topology.chain_length}-{label.replace('#', '-')}")
        links = LinkSettings(
            workdir=workdir,
            wire=settings.wire,
            vnf_interface=adapter.vnf_interface,
            ring_size=settings.ring_size,
            hugepages=settings.hugepages,
            max_frame_bytes=settings.max_frame_bytes,
            name=eal_prefix(supervisor, label),
            nice=-20,
            queues=queues_of(adapter),
            memif_receive_queue=memif_queue_of(adapter),
            updates=_control_port(topology, adapter, profiles),
        )
        with contextlib.ExitStack() as undo:
            veth = make_veth(topology, links, placement, supervisor)
            if veth is not None:
                undo.callback(veth.close)
                pairs = {name: VethPair(*pair) for name, pair in veth.pairs.items()}
                links = replace(links, veths=pairs)
            netns_pid = veth.netns_pid if veth is not None else None
            tester, client = start_tester(topology, placement, links, settings.planed, supervisor, netns_pid)
            live = cls(topology, placement, links, tester, client)
            live._veth = veth
            live._modes = tuple(frozenset(flow.name for flow in flows(topology, mode)) for mode in directions)
            live._profiles = (PLAIN, *(profile for profile in profiles if not profile.plain))
            undo.callback(live.stop)
            live._attach(adapter, supervisor, settings.planed)
            undo.pop_all()
        return live

    def _attach(self, adapter: SwitchAdapter, supervisor: Supervisor, planed: Path | None = None) -> None:
        """Start the switch, then give the tester its VNF ports and tasks, and wait until frames pass."""
        self._tsc_hz = int(self._call("stats.get")["tsc_hz"])
        self._start_switch(adapter, supervisor)
        try:
            if self.topology.parallel and not offloads(adapter) and planed is not None:
                self._vnfs = VnfProcesses.start(self.topology, self.placement, self.links, planed, supervisor)
            self._apply(self.topology)
            self._wait_until_forwarding()
            wait_for_session(self._call, self.links.updates)
        except (RpcError, DiedError) as error:
            raise StartError(f"{adapter.name} on {self.topology.scenario}: {error}\n{self._logs()}") from error
        ports = partial(self._call, "ports.get")
        self.conditions = read_conditions(self.topology, self.links.wire, self._switch, ports)
        self.pause()

    def restart_switch(self, adapter: SwitchAdapter, supervisor: Supervisor) -> None:
        """Stop the switch and start it anew on the same ports, in the same folder. Left paused. Raises StartError."""
        self.resume()
        self.apply(wire_stage(self.topology, self.links))
        self.switch.stop()
        self._attach(adapter, supervisor)

    def renew_switch(self, adapter: SwitchAdapter, supervisor: Supervisor) -> None:
        """As :meth:`restart_switch` under traffic: who is at its ports stays, and connects anew. Not paused."""
        self.switch.stop()
        self._start_switch(adapter, supervisor)

    def _start_switch(self, adapter: SwitchAdapter, supervisor: Supervisor) -> None:
        known = len(supervisor.processes)
        self._switch = adapter.start(self.request, supervisor)
        self._switch_processes = tuple(supervisor.processes[known:])

    @property
    def request(self) -> SwitchRequest:
        """What the switch is started with."""
        return switch_request(self.topology, self.placement, self.links, netns_pid=self.netns_pid, tsc_hz=self._tsc_hz)

    @property
    def netns_pid(self) -> int | None:
        """The process that holds the network namespace of the wires; None where they are no kernel interfaces."""
        return self._veth.netns_pid if self._veth is not None else None

    @property
    def processes(self) -> tuple[Process, ...]:
        """The tester, then what was started for the switch, then VNFs that are processes of their own."""
        return (self._tester, *self._switch_processes, *(self._vnfs.processes if self._vnfs is not None else ()))

    def threads(self) -> tuple[WatchedThread, ...]:
        """Every thread that polls: the tester's workers, the switch's, and those of VNFs in processes of their own."""
        stats = self._call("stats.get")
        tester = [WatchedThread("tester", self._tester.pid, int(w["tid"]), str(w["name"])) for w in stats["workers"]]
        switch = [WatchedThread("switch", t.pid, t.tid, t.name) for t in self.switch.polling_threads()]
        return (*tester, *switch, *(self._vnfs.threads() if self._vnfs is not None else ()))

    def vnf_drops(self) -> Counter[str]:
        """What VNFs that are processes of their own have dropped so far, as in ``Trial.tester_drops``."""
        return Counter() if self._vnfs is None else self._vnfs.drops()

    @property
    def switch(self) -> RunningSwitch:
        """The running switch."""
        if self._switch is None:
            raise DiedError("the switch is not running")
        return self._switch

    def pause(self) -> None:
        """Stop every process of this topology where it stands."""
        for process in reversed(self.processes):
            process.pause()

    def resume(self) -> None:
        """Let them run on."""
        for process in self.processes:
            process.resume()

    def set_echo(self, echo: bool) -> None:
        """v2v only: have the far VNF send every frame back (METHODOLOGY section 2, v2v latency), or not. Not paused."""
        if echo != self._echo:
            self._apply(build(self.topology.scenario, self.topology.chain_length, echo=echo))
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
        profile: dict[str, Any] | None = None,
        stamps: bool = False,
        updates: Updates | None = None,
    ) -> dict[str, Any]:
        """Clear, send for ``duration_s`` (flat out if ``pps`` is None), wait for stragglers, read every counter once.

        ``profile`` and ``stamps`` as in measure.sending, ``updates`` as in a traffic profile: the control of a VNF
        sends so many meanwhile. ``watch`` is called just before and just after the sending.
        Returns ``stats.get`` of the tester. Raises DiedError when tester or switch is gone.
        """
        with updating(self._call, self.links.updates, updates):
            return send(
                self._call,
                self.next_epoch(),
                flows,
                frame_size_bytes,
                duration_s,
                pps,
                probe_rate_pps,
                sleep=self._sleep,
                watch=watch or (lambda: None),
                queues=self.links.queues,
                profile=profile,
                stamps=stamps,
                turns=self.turns,
            )

    def next_epoch(self) -> int:
        """By which frames of the next sending are known."""
        self._epoch = next_epoch(self._epoch)
        return self._epoch

    @property
    def turns(self) -> int:
        """How many take turns on the busiest core: a frame may wait for all of them."""
        return 1 if self._vnfs is None else 1 + max(Counter(self.placement.vnf_cpus).values())

    def profile(self, wanted: TrafficProfile, chain: str, *, flat_out: bool) -> dict[str, Any] | None:
        """A traffic profile as planed takes it; its files are in the folder of this topology. UsageError if bad."""
        document = profile_document(wanted, self.links.workdir, chain, flat_out=flat_out)
        return to_vnfs(document, wanted, self.topology, self.links.workdir) if self.topology.parallel else document

    def anatomy(self, sent: Sequence[Flow], stats: dict[str, Any]) -> tuple[Anatomy, ...]:
        """How the latency of the trial just sent with stamps splits; ``stats`` are its counters."""
        vnfs = build(self.topology.scenario, self.topology.chain_length, echo=self._echo).vnfs
        return read_anatomy(self._call, sent, [StampedVnf(vnf.name) for vnf in vnfs], stats)

    def _sleep(self, duration_s: float) -> None:
        """Stay off the CPUs for the time of the trial; in a long one, look every second whether all are alive."""
        deadline = time.monotonic() + duration_s
        while (left := deadline - time.monotonic()) > 0:
            time.sleep(left if left < 1.5 * LOOK_S else LOOK_S)
            self.check()

    def check(self) -> None:
        """Raise DiedError, with the last log lines, if tester or switch is gone."""
        if not self._tester.alive():
            raise DiedError(f"the tester died: {self._tester.obituary()}")
        if self._switch is not None:
            self._switch.check()
        if self._vnfs is not None:
            self._vnfs.check()

    def stop(self) -> None:
        """End switch, tester and wires. Never raises; safe to call twice."""
        self.resume()
        if self._vnfs is not None:
            self._vnfs.stop()
            self._vnfs = None
        if self._switch is not None:
            self._switch.stop()
            self._switch = None
        self._client.close()
        self._tester.terminate()
        if self._veth is not None:
            self._veth.close()
            self._veth = None

    def document(self) -> dict[str, Any]:
        """The whole document of the tester: every port and task."""
        return self._document(self.topology)

    def _document(self, topology: Topology) -> dict[str, Any]:
        workers = assign_tasks(self.placement, topology, self.links.queues, self.links.updates)
        return full_stage(topology, workers, self.links)

    def apply(self, document: dict[str, Any]) -> None:
        """Have the tester run another document, as one without the ports of VNFs. Not paused. DiedError, RpcError."""
        self._call("config.apply", document)

    def call(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask the tester. Not paused. DiedError, RpcError."""
        return self._call(method, params)

    def wait_until_forwarding(self) -> None:
        """Until frames cross in both directions. Not paused. StartError after CONNECT_DEADLINE_S."""
        self._wait_until_forwarding()

    def _apply(self, topology: Topology) -> None:
        timeout_s = APPLY_DEADLINE_S if any(vnf.settings for vnf in topology.vnfs) else CONNECT_DEADLINE_S
        self._call("config.apply", self._document(topology), timeout_s)

    def _call(
        self, method: str, params: dict[str, Any] | None = None, timeout_s: float = CONNECT_DEADLINE_S
    ) -> dict[str, Any]:
        try:
            return self._client.call(method, params, timeout_s=timeout_s)
        except RpcClosedError as error:
            self._tester.wait(0.2)
            self.check()
            raise DiedError(f"the tester does not answer: {error}\n{self._tester.log_tail()}") from error

    def _wait_until_forwarding(self) -> None:
        """Until a few frames cross in both directions: ports are up, flows are known to the switch."""
        wanted = all_flows(self.topology)
        begun = time.monotonic()
        within_s = patient(CONNECT_DEADLINE_S)
        deadline = begun + within_s
        missing = [flow.name for flow in wanted]
        while time.monotonic() < deadline:
            self.check()
            missing, dropped = self._try(wanted)
            if not missing:
                return
            if dropped and time.monotonic() > begun + patient(DROPPING_S):
                if any(mode.isdisjoint(missing) for mode in self._modes):
                    return
                raise StartError(f"no frame came through {', '.join(missing)}: {self._dropped_words(dropped)}")
        raise StartError(f"no frame came through {', '.join(missing)} within {within_s:g} s\n{self._logs()}")

    def _try(self, wanted: Sequence[Flow]) -> tuple[list[str], Mapping[str, Mapping[str, int]]]:
        """Flows of which no frame came, whatever was sent; and what functions dropped of the last frames sent."""
        missing, dropped = [flow.name for flow in wanted], {}
        for profile in self._profiles or (PLAIN,):
            size = max(64, profile.smallest_frame_bytes)
            try:
                frames = self.profile(profile, self.topology.chain, flat_out=False)
                stats = self.send(wanted, size, READY_DURATION_S, READY_RATE_PPS, profile=frames)
            except (UsageError, RpcError):
                continue  # its trials say what is wrong with it
            missing = [flow.name for flow in wanted if flow.name in missing and not self._came(stats, flow)]
            dropped = vnf_drops(stats)
            if not (missing and dropped):
                break
        return missing, dropped

    def _came(self, stats: dict[str, Any], flow: Flow) -> bool:
        """Whether frames arrived; of VNFs side by side whether all did, for each of them has its share."""
        return arrived(stats, flow) and not (self.topology.parallel and lost(stats, flow))

    def _dropped_words(self, dropped: Mapping[str, Mapping[str, int]]) -> str:
        """``vnf0 (firewall) dropped 200 frames: rule``: what a rule does is not the switch's doing."""
        kinds = {vnf.name: vnf.kind for vnf in self.topology.vnfs}
        return "; ".join(
            f"{name} ({kinds.get(name.partition('-')[0], '?')}) dropped {sum(reasons.values())} frames: "
            f"{', '.join(reasons)}; change its settings, or the traffic"
            f"{ROUTED if 'no_route' in reasons else ''}"
            for name, reasons in dropped.items()
        )

    def _logs(self) -> str:
        return "\n".join(f"{process.name}: {process.log_tail()}" for process in (*self._switch_processes, self._tester))


def _control_port(topology: Topology, adapter: SwitchAdapter, profiles: Sequence[TrafficProfile]) -> str:
    """The port of the VNF whose control sends FIB messages; empty where nobody wants updates, or takes them."""
    wanted = topology.parallel and offloads(adapter) and any(profile.updates for profile in profiles)
    return topology.vnfs[0].ports[0] if wanted else ""
