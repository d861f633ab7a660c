# SPDX-License-Identifier: BSD-3-Clause
"""Many VNFs behind one switch, on real packets: each gets its share and sends it on, whoever forwards."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from jobs_rig import eventually

from planebench.analysis.histogram import decode
from planebench.host import facts, procfs
from planebench.host.planed_program import find_planed
from planebench.host.process import Supervisor, high_priority
from planebench.host.programs import Found
from planebench.measure.counts import Sending
from planebench.measure.live import LiveSettings, LiveTopology
from planebench.measure.trial import TrialRequest, run_trial
from planebench.model.cpus import Cpus
from planebench.model.records import Load, Point, Trial
from planebench.model.scenarios import flows
from planebench.model.topology import MONITOR_MAC
from planebench.model.traffic import PLAIN, TrafficProfile
from planebench.planed.client import GeneratorLoad
from planebench.switches.planed import RunningPlaned
from planebench.switches.registry import get_adapter
from planebench.testbed.chain import build_chain
from planebench.testbed.placement import place
from planebench.testbed.traffic import parse_traffic

pytestmark = [pytest.mark.dataplane, pytest.mark.timeout(120)]

ROUTER = "l3fwd:fib=cuckoo:synthetic=5000"
PPS, DURATION_S, TRIES = 5000.0, 0.2, 60
SENT = 0.1
"""The share of slots that a trial must have used: a generator that shares its CPU is late for some."""


@contextmanager
def running(
    switch: str, count: int, chain: str, *profiles: TrafficProfile, scenario: str = "parallel"
) -> Iterator[LiveTopology]:
    planed, host, adapter = find_planed(), facts.collect(), get_adapter(switch)
    assert planed is not None
    if not isinstance(adapter.find(), Found):
        pytest.skip(f"{switch} is not here")
    placement = place(Cpus(host.cpus_allowed, host.siblings, host.numa_node), count, hosted=range(count))
    settings = LiveSettings(planed=planed, ring_size=256, hugepages=False, max_frame_bytes=1518, wire="virtio")
    topology = build_chain(scenario, count, chain=chain)
    with high_priority(), Supervisor(Path("/tmp")) as supervisor:
        it = LiveTopology.start(
            "it", adapter, topology, placement, settings, supervisor, ("unidirectional",), profiles=profiles or [PLAIN]
        )
        yield it
        it.stop()
        assert not any(process.alive() for process in supervisor.processes)


def measure(live: LiveTopology, profile: TrafficProfile = PLAIN) -> Trial:
    """One paced trial; again where a busy machine did not get all of it sent or through."""
    topology = live.topology
    point = Point(
        "it", topology.scenario, "unidirectional", topology.chain_length, 64, chain=topology.chain, traffic=profile.name
    )
    for _ in range(TRIES):
        request = TrialRequest(point, "search", Load("x", PPS), DURATION_S, profile=profile)
        trial = run_trial(live, request, lambda: None)
        (way,) = trial.directions
        if way.offered_packets > SENT * way.intended_packets and not way.lost_packets:
            break
    return trial


def stop(pid: int) -> None:
    """Stop a process, and wait until all its threads have: its pollers go on until its first thread gets the signal."""
    os.kill(pid, signal.SIGSTOP)
    assert eventually(lambda: all((procfs.stat_fields(tid) or "?")[0] == "T" for tid in procfs.threads(pid)))


def assert_exact(trial: Trial, vnfs: int) -> None:
    """Nothing lost, doubled or damaged, and every VNF had its turn."""
    (way,), (sent,) = trial.directions, trial.sent
    assert way.forwarded_packets == way.offered_packets > 0, trial.verdict.texts
    assert (way.duplicate_packets, way.corrupt_packets) == (0, 0)
    assert len(sent.dst_macs) == vnfs
    assert max(sent.dst_macs) - min(sent.dst_macs) <= 1
    assert not trial.tester_drops


@pytest.mark.parametrize("chain", ["", ROUTER], ids=["l2fwd", "l3fwd"])
def test_conventional_each_vnf_forwards_in_a_process_of_its_own(chain: str) -> None:
    with running("planed", 3, chain) as live:
        trial = measure(live)
        assert_exact(trial, 3)
        assert sum(thread.owner == "vnf" for thread in trial.evidence.threads) == 3
        assert len(live.processes) == 2 + 3
        assert trial.switch.packets == 2 * trial.forwarded_packets
        os.kill(live.processes[-1].pid, signal.SIGKILL)
        request = TrialRequest(trial.point, "search", Load("x", PPS), DURATION_S)
        (reason,) = run_trial(live, request, lambda: None).verdict.texts
        assert "vnf2" in reason and "was killed by SIGKILL" in reason


ROUTES, UPDATES, FLAT_OUT, CONTROL = (
    parse_traffic(f"fib:count=5k{more}") for more in ("", ":updates=12k", ":updates=flat_out", ":control=500")
)


@pytest.fixture(scope="module")
def offloaded() -> Iterator[LiveTopology]:
    with running("planed:offload=fib", 3, ROUTER, ROUTES, UPDATES, FLAT_OUT, CONTROL) as live:
        yield live


def test_offloaded_the_switch_forwards_by_the_fibs_of_all(offloaded: LiveTopology) -> None:
    trial = measure(offloaded, ROUTES)
    assert_exact(trial, 3)
    assert len(offloaded.processes) == 2 + 3
    assert trial.switch.packets == trial.forwarded_packets
    (sent,) = trial.sent
    assert sent.entries == 3 * 5000 and sent.entries_touched is not None
    assert trial.forwarded_packets / 2 < sent.entries_touched <= trial.forwarded_packets
    assert trial.updates is None


def test_updates_are_applied_while_frames_are_forwarded_and_none_is_lost(offloaded: LiveTopology) -> None:
    trial = measure(offloaded, UPDATES)
    assert_exact(trial, 3)
    assert trial.updates is not None
    assert trial.updates.intended_per_s == 12_000
    assert 0 < trial.updates.acknowledged <= trial.updates.sent
    assert trial.updates.refused == 0
    flat_out = measure(offloaded, FLAT_OUT)
    assert_exact(flat_out, 3)
    assert flat_out.updates is not None and flat_out.updates.intended_per_s is None
    assert flat_out.updates.acknowledged > 0


def test_control_packets_are_passed_to_the_vnf_and_answered_under_load(offloaded: LiveTopology) -> None:
    trial = measure(offloaded, CONTROL)
    assert_exact(trial, 3)
    control, updates = trial.control, trial.updates
    assert control is not None and updates is not None
    assert control.intended_per_s == updates.intended_per_s == 500
    assert 0 < control.sent <= round(500 * DURATION_S)
    assert control.sent == control.received == control.replies == updates.acknowledged
    assert updates.refused == 0
    assert control.sent - 1 <= decode(control.histogram).sum() <= control.sent
    assert trial.switch.packets is not None
    assert trial.switch.packets >= trial.forwarded_packets + 2 * control.sent


@pytest.mark.parametrize("count", [2, pytest.param(16, marks=pytest.mark.all)])
def test_every_vnf_is_alive_answers_under_load_and_changes_its_routes_in_turn(count: int) -> None:
    """Expired packets have an ICMP error each; after each round of changes, each VNF's routes lead where they shall."""
    profile = parse_traffic("fib:updates=4k")
    with running("planed:offload=fib", count, ROUTER, profile) as live:
        hosted = live.hosted
        assert hosted is not None and len(hosted.vnfs) == count
        live.resume()
        cpus = {next(iter(os.sched_getaffinity(thread.tid))) for thread in hosted.threads()}
        assert live.placement.switch_cpu not in cpus or len(os.sched_getaffinity(0)) == 1
        rng = random.Random(1)
        for _ in range(3):
            trial = measure(live, profile)
            assert_exact(trial, count)
            assert trial.updates is not None
            assert trial.updates.refused == 0 < trial.updates.sent == trial.updates.acknowledged
            live.resume()
            for vnf in range(1, count + 1):
                assert_routes(live, vnf, {rng.randrange(5000) for _ in range(20)})
            live.pause()
        live.resume()
        before = hosted.controls()
        assert all(it.sent > 2 + 2 for it in before.values()), "next hops and own address, then changes of all"
        expired = {"seed": 1, "dst_macs": list(live.topology.destinations), "ttl": 1}
        expiring = GeneratorLoad("gen-n1", 500, 64, 0, expired)
        frames = live.profile(profile, ROUTER, flat_out=False)
        ways = flows(live.topology, "unidirectional")
        sending = Sending(ways, 64, DURATION_S, PPS, profile=frames, more=(expiring,))
        stats = live.sender.send(sending, pollers_on_core=4)  # a control plane may sleep before it answers
        by_name = {task.name: task for task in stats.tasks}
        sent, monitor = by_name["gen-n1"].generator, by_name["mon-n1"].monitor
        assert sent is not None and monitor is not None and sent.offered_packets > count
        grown = {name: it.expired_answered - before[name].expired_answered for name, it in hosted.controls().items()}
        assert sum(grown.values()) == sent.offered_packets == monitor.foreign_packets
        assert max(grown.values()) - min(grown.values()) <= 1


def assert_routes(live: LiveTopology, vnf: int, numbers: set[int]) -> None:
    """These routes of a VNF are there, and lead to the monitor; that of its own address leads to itself."""
    switch = live.switch
    assert isinstance(switch, RunningPlaned)

    def lookup(address: str) -> dict[str, Any]:
        params = {"task": "fib_offload", "vnf": vnf, "address": address}
        hop: dict[str, Any] = switch.call("fib_offload.lookup", params)["hop"]
        return hop

    for number in numbers:
        found = lookup(f"10.0.{number >> 8}.{number & 255}")
        assert (found["kind"], found["wire"], found["mac"]) == ("forward", "n1", MONITOR_MAC)
    assert lookup(f"198.18.4.{vnf}")["kind"] == "local"
    assert lookup("10.0.19.136")["kind"] == "none"  # 5000


def test_without_routes_the_offload_switches_in_the_place_of_vnfs_by_mac() -> None:
    with running("planed:offload=fib", 3, "") as live:
        assert live.hosted is None
        assert_exact(measure(live), 3)


def test_beside_one_process_with_all_routes_as_many_are_idle() -> None:
    with running("planed", 3, ROUTER, scenario="bare") as live:
        assert live.hosted is not None and len(live.processes) == 2 + 3
        trial = measure(live, ROUTES)
        assert_exact(trial, 3)
        assert trial.sent[0].entries == 3 * 5000


def test_open_vswitch_gives_each_vnf_its_share_also_while_its_flows_change() -> None:
    profile = parse_traffic("fib:count=5k:updates=1k")
    with running("ovs-dpdk", 2, ROUTER, profile) as live:
        assert_exact(measure(live), 2)
        trial = measure(live, profile)
        assert_exact(trial, 2)
        assert trial.updates is not None and trial.updates.intended_per_s == 1000
        assert (trial.updates.acknowledged, trial.updates.refused) == (trial.updates.sent, 0)
        assert trial.updates.sent > 0


@pytest.mark.parametrize(("switch", "chain"), [("planed", ROUTER), ("planed", ""), ("ovs-dpdk", "")])
def test_one_process_on_the_wires_does_what_all_vnfs_do(switch: str, chain: str) -> None:
    with running(switch, 3, chain, scenario="bare") as live:
        assert_exact(measure(live), 3)


def test_an_emulated_nic_gives_each_vnf_its_frames_and_counts_what_it_does_not_take() -> None:
    """The NIC is a task of the tester. With a VNF stopped, exactly what its ring does not hold is lost, and counted."""
    with running("planed:nic=veb", 2, ROUTER) as live:
        assert live.switch.pids() == ()
        assert_exact(measure(live), 2)
        assert live.hosted is not None
        live.resume()
        stop(live.hosted.vnfs[1].process.pid)
        frames = live.profile(PLAIN, ROUTER, flat_out=False)
        after = live.send(Sending(flows(live.topology, "unidirectional"), 64, 0.5, 8 * PPS, profile=frames))
        os.kill(live.hosted.vnfs[1].process.pid, signal.SIGCONT)
        (veb,) = [task for task in after.tasks if task.name == "veb"]
        (sent,) = [task.generator.offered_packets for task in after.tasks if task.generator is not None]
        (received,) = [task.rx_packets for task in after.tasks if task.monitor is not None]
        assert veb.rx_packets == sent + received
        full, other = (veb.drops_by_port[port]["tx_full"] for port in ("vf1", "vf0"))
        assert full > other, "the other one may be late on a busy machine"
        assert veb.rx_packets - veb.tx_packets == full + other
        assert sent // 2 - 256 <= full <= sent // 2 + 1
