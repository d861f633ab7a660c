# SPDX-License-Identifier: BSD-3-Clause
"""VNFs that are processes of their own: verdicts, what they dropped, where frames are sent, updates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import verdict_of
from planed_answers import statistics

from planebench.analysis.capacity import tester_ceiling_pps
from planebench.analysis.histogram import decode
from planebench.measure.counts import dropped, lost
from planebench.measure.updates import (
    Changing,
    ControlTraffic,
    control_packets,
    control_traffic,
    not_answered,
    not_applied,
    wait_until_settled,
)
from planebench.model.errors import StartError
from planebench.model.reasons import ReasonCode
from planebench.model.records import (
    DirectionCounts,
    Evidence,
    FibUpdates,
    Point,
    SwitchCycles,
    ThreadEvidence,
    VerdictKind,
)
from planebench.model.scenarios import Flow, build
from planebench.model.traffic import PLAIN
from planebench.planed.statistics import FibSource, Statistics
from planebench.testbed.chain import build_chain
from planebench.testbed.traffic import parse_traffic
from planebench.testbed.traffic_files import profile_document, to_vnfs

SECOND_NS = 1_000_000_000
LOST_MOST = DirectionCounts("n0->n1", 1000, 1000, 50, attempted_packets=1100, refused_packets=100, monitor_bursts=50)
IDLE = SwitchCycles(busy_cycles=1, idle_cycles=99)
ROUTER = "l3fwd:fib=cuckoo:synthetic=1000"


def shared(switch_ns: int, *vnfs_ns: int, wait_ns: int) -> Evidence:
    switch = ThreadEvidence("switch", "w0", 1, switch_ns, wait_ns, 9)
    vnfs = [ThreadEvidence("vnf", f"w{n}", 1, ns, SECOND_NS - ns, 9) for n, ns in enumerate(vnfs_ns)]
    return Evidence(threads=(switch, *vnfs))


def test_waiting_for_the_vnfs_on_the_same_core_is_what_is_measured() -> None:
    evidence = shared(250_000_000, 250_000_000, 500_000_000, wait_ns=750_000_000)
    verdict = verdict_of("r_plus", True, SECOND_NS, [LOST_MOST], evidence, IDLE)
    assert verdict.kind is VerdictKind.VALID
    assert verdict.texts == ()


def test_somebody_else_on_that_core_is_remarked() -> None:
    evidence = shared(250_000_000, 250_000_000, wait_ns=750_000_000)
    verdict = verdict_of("r_plus", True, SECOND_NS, [LOST_MOST], evidence, IDLE)
    assert verdict.codes[0] == "cpu-wait"


def test_accounts_are_read_one_after_the_other() -> None:
    off = 15_000_000  # of 63 VNFs: less than 64 readings
    evidence = shared(SECOND_NS // 64, *[SECOND_NS // 64] * 63, wait_ns=SECOND_NS * 63 // 64 + off)
    carried = replace(LOST_MOST, forwarded_packets=1000, refused_packets=0)
    verdict = verdict_of("latency", False, SECOND_NS, [carried], evidence, IDLE)
    assert (verdict.kind, verdict.codes) == (VerdictKind.VALID, ())


def test_a_wait_that_began_long_before_the_trial_is_counted_when_it_ends() -> None:
    turn = 128_000_000  # of 33 sharers with slices of 4 ms
    evidence = shared(SECOND_NS // 33, *[SECOND_NS // 33] * 32, wait_ns=SECOND_NS * 32 // 33 + turn)
    carried = replace(LOST_MOST, forwarded_packets=1000, refused_packets=0)
    assert verdict_of("latency", False, SECOND_NS, [carried], evidence, IDLE).codes == ()
    taken = shared(SECOND_NS // 40, *[SECOND_NS // 40] * 32, wait_ns=SECOND_NS * 39 // 40 + turn)
    assert verdict_of("latency", False, SECOND_NS, [carried], taken, IDLE).codes[0] == "cpu-wait"


def test_without_vnfs_of_its_own_a_switch_that_is_idle_was_not_saturated() -> None:
    evidence = Evidence(threads=(ThreadEvidence("switch", "w0", 1, SECOND_NS, 0, 0),))
    assert verdict_of("r_plus", True, SECOND_NS, [LOST_MOST], evidence, IDLE).kind is VerdictKind.TESTER_LIMITED
    with_vnf = replace(evidence, threads=(*evidence.threads, ThreadEvidence("vnf", "w1", 0, SECOND_NS, 0, 0)))
    assert verdict_of("r_plus", True, SECOND_NS, [LOST_MOST], with_vnf, IDLE).kind is VerdictKind.VALID
    took_all = replace(LOST_MOST, forwarded_packets=1000, refused_packets=0)
    assert verdict_of("r_plus", True, SECOND_NS, [took_all], with_vnf, IDLE).kind is VerdictKind.TESTER_LIMITED


def test_drops_of_a_vnf_are_told_by_its_port_and_its_name() -> None:
    task = {
        "name": "vnf7",
        "kind": "l3fwd",
        "drops": {"tx_full": 3, "no_route": 2},
        "drops_by_port": {"v7": {"tx_full": 3}},
    }
    port = {"name": "v7", "rx_missed": 0, "rx_nombuf": 0, "rx_errors": 1, "tx_errors": 0}
    assert dropped(statistics({"tasks": [task], "ports": [port]})) == {
        "v7:tx_full": 3,
        "vnf7:no_route": 2,
        "v7:rx_errors": 1,
    }


def test_what_was_sent_and_did_not_come_is_lost() -> None:
    sent = {"offered_packets": 10, "intended_packets": 10, **dict.fromkeys(SENT, 0)}
    stream = {
        "stream": 0,
        "forwarded_packets": 7,
        **dict.fromkeys(("duplicate_packets", "reordered_packets", "corrupt_packets"), 0),
    }
    monitor = {"streams": [stream], "bursts": 1, "full_bursts": 0}
    tasks = [{"name": "gen-n0", "generator": sent}, {"name": "mon-n1", "monitor": monitor}]
    assert lost(statistics({"tasks": tasks}), Flow("n0", "n1", 0)) == 3


SENT = ("unsent_late_packets", "unsent_ring_full_packets", "attempted_packets", "refused_packets", "offered_bytes")


def test_frames_go_to_every_vnf_in_turn(tmp_path: Path) -> None:
    topology = build("parallel", 3)
    made = to_vnfs(None, PLAIN, topology, tmp_path)
    assert made == {"seed": 1, "dst_macs": ["02:00:00:00:02:01", "02:00:00:00:02:02", "02:00:00:00:02:03"]}
    mix = parse_traffic("imix")
    document = profile_document(mix, tmp_path, "", flat_out=True)
    assert to_vnfs(document, mix, topology, tmp_path) == {**(document or {}), "dst_macs": made["dst_macs"]}


def test_destinations_are_of_the_routers_own_fib(tmp_path: Path) -> None:
    topology, bare = (build_chain(scenario, 3, chain=ROUTER) for scenario in ("parallel", "bare"))
    for text, of_one, of_all in (("fib:count=all", 1000, 3000), ("fib:count=20", 20, 60), ("fib:count=2k", 1000, 3000)):
        profile = parse_traffic(text)
        document = profile_document(profile, tmp_path, ROUTER, flat_out=True)
        each = to_vnfs(document, profile, topology, tmp_path)["dst_ips"]
        assert each == {"first": "10.0.0.0", "count": of_one, "of_each_mac": True}
        one_table = to_vnfs(document, profile, bare, tmp_path)["dst_ips"]
        assert one_table == {"first": "10.0.0.0", "count": of_all, "of_each_mac": False}
    assert to_vnfs(None, PLAIN, topology, tmp_path)["dst_ips"]["count"] == 1000
    assert not list(tmp_path.iterdir())


def test_the_testers_ceiling_is_of_plain_frames() -> None:
    class Known:
        tester_cpus = 1

        def ceiling_pps(self, *_: Any) -> float:
            return 1e7

    known: Any = Known()
    assert tester_ceiling_pps(known, Point("planed", "p2p", "unidirectional", 0, 64)) == 1e7
    assert tester_ceiling_pps(known, Point("planed", "parallel", "unidirectional", 2, 64)) is None


class Planes:
    """Two control planes, and what they were asked."""

    def __init__(self, **changes: Any) -> None:
        self.sent, self.changes = 100, changes
        self.asked: list[Mapping[str, Mapping[str, Any]]] = []

    def controls(self) -> dict[str, FibSource]:
        counts = {"sent": self.sent, "acknowledged": self.sent, "up": True, "control_received": self.sent // 2}
        return {name: FibSource(**{**counts, **self.changes}) for name in ("vnf0", "vnf1")}

    def set_rates(self, wanted: Mapping[str, Mapping[str, Any]]) -> None:
        self.asked.append(wanted)


def changed(text: str, planes: Planes, sent: int) -> FibUpdates:
    changing = Changing(planes, parse_traffic(text))
    planes.sent += sent
    found = changing.end()
    assert changing.control_received == 2 * (sent // 2)
    return found


def test_control_planes_change_routes_in_turn_and_all_are_counted() -> None:
    planes = Planes()
    found = changed("fib:updates=64000", planes, 3000)
    assert (found.intended_per_s, found.sent, found.acknowledged, found.refused) == (64000.0, 6000, 6000, 0)
    begin, end = planes.asked
    assert begin == {"vnf0": {"updates_per_s": 32000, "ahead": 1.0}, "vnf1": {"updates_per_s": 32000, "ahead": 0.5}}
    assert end == {"vnf0": {"updates_per_s": 0}, "vnf1": {"updates_per_s": 0}}
    planes.sent += 1  # of both, so that the one that was first is first again
    assert changed("fib:updates=flat_out", planes, 10).intended_per_s is None
    assert planes.asked[2] == {"vnf0": {"flat_out": True}, "vnf1": {"flat_out": True}}


CONTROL = ControlTraffic("n1", ("02:00:00:00:02:01", "02:00:00:00:02:02"), 500.0)


def controlled(replies: int) -> Statistics:
    """Return what the tester counted of 3 control packets."""
    latency = {"counts": [(2000, replies)], "overflow": 0}
    streams = [
        {"stream": 0, "forwarded_packets": 9, "latency": {"counts": [], "overflow": 0}},
        {"stream": 1, "forwarded_packets": replies, "latency": latency},
    ]
    tasks = [
        {"name": "gen-n1", "kind": "generator", "generator": {"offered_packets": 3}},
        {"name": "mon-n1", "kind": "monitor", "monitor": {"streams": streams}},
    ]
    return statistics({"tasks": tasks})


def test_replies_to_control_packets_are_counted_with_their_time() -> None:
    found = control_packets(controlled(3), CONTROL, 3)
    assert (found.intended_per_s, found.sent, found.received, found.replies) == (500, 3, 3, 3)
    assert decode(found.histogram).sum() == 3
    assert not_answered(found) == ()
    updates = changed("fib:control=500", Planes(), 3)
    assert (updates.intended_per_s, updates.sent) == (500, 6)
    (lost,) = not_answered(control_packets(controlled(1), CONTROL, 3))
    assert str(lost) == "suspect: 2 of 3 control packets have no reply; the VNF received 3"


def test_control_packets_go_to_every_vnf_in_turn() -> None:
    topology, profile = build("parallel", 2), parse_traffic("fib:control=500")
    assert control_traffic(topology, profile) == CONTROL
    assert control_traffic(topology, PLAIN) is None
    load = CONTROL.load.to_json()
    routers = {"first": "224.0.0.5", "count": 1}
    assert load["task"] == "gen-n1"
    assert load["profile"] == {"seed": 1, "dst_macs": list(CONTROL.macs), "ttl": 1, "dst_ips": routers}


def test_a_switch_that_does_not_answer_fib_messages_is_not_ready() -> None:
    assert wait_until_settled(Planes()).keys() == {"vnf0", "vnf1"}
    for changes in ({"up": False}, {"acknowledged": 99}):
        with pytest.raises(StartError, match="FIB messages of vnf0, vnf1"):
            wait_until_settled(Planes(**changes), 0.02)


def test_updates_that_were_not_applied_are_remarked() -> None:
    assert not_applied(FibUpdates(64000.0, SECOND_NS, 64000, 63500)) == ()
    assert not_applied(FibUpdates(None, SECOND_NS, 64000, 100)) == ()
    (few,) = not_applied(FibUpdates(64000.0, SECOND_NS, 60000, 60000))
    assert str(few) == "suspect: 60000 FIB updates per second were applied, not 64000"
    (refused,) = not_applied(FibUpdates(64000.0, SECOND_NS, 64000, 63000, 1000))
    assert refused.code is ReasonCode.UPDATES_MISSING and refused.values == {"refused": 1000, "sent": 64000}
