# SPDX-License-Identifier: BSD-3-Clause
"""VNFs that are processes of their own: verdicts, what they dropped, where frames are sent, updates."""

from __future__ import annotations

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
    ControlTraffic,
    control_packets,
    control_traffic,
    fib_updates,
    not_answered,
    not_applied,
    updating,
    wait_for_session,
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
from planebench.planed.statistics import Statistics
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
    topology = build_chain("parallel", 3, chain=ROUTER)
    plain = Path(to_vnfs(None, PLAIN, topology, tmp_path)["dst_ips_file"]).read_text().split()
    assert (len(plain), len(set(plain))) == (65536, 1000)
    assert {text.rpartition(".")[0] for text in plain} == {"10.0.0", "10.0.1", "10.0.2", "10.0.3"}
    assert "10.0.3.231" in plain and "10.0.3.232" not in plain  # 999 and 1000
    few = parse_traffic("fib:count=20")
    document = profile_document(few, tmp_path, ROUTER, flat_out=True)
    assert len(Path(to_vnfs(document, few, topology, tmp_path)["dst_ips_file"]).read_text().split()) == 20


def test_the_testers_ceiling_is_of_plain_frames() -> None:
    class Known:
        tester_cpus = 1

        def ceiling_pps(self, *_: Any) -> float:
            return 1e7

    known: Any = Known()
    assert tester_ceiling_pps(known, Point("planed", "p2p", "unidirectional", 0, 64)) == 1e7
    assert tester_ceiling_pps(known, Point("planed", "parallel", "unidirectional", 2, 64)) is None


def source(*others: dict[str, Any], **changes: Any) -> Statistics:
    own = {"up": True, "updates_per_s": 64000.0, "duration_ns": 500_000_000, "sent": 32000, "acknowledged": 31000}
    control = {"name": "control-v0", "kind": "fib_source", "fib_source": {**own, "refused": 0, **changes}}
    return statistics({"tasks": [control, *others]})


def test_updates_are_counted_in_routes_a_second() -> None:
    found = fib_updates(source())
    assert found == FibUpdates(64000.0, 500_000_000, 32000, 31000, 0)
    assert found.per_s == 62000
    flat_out = fib_updates(source(updates_per_s=None))
    assert flat_out is not None and flat_out.intended_per_s is None
    assert fib_updates(statistics({"tasks": [{"name": "gen-n0", "kind": "generator"}]})) is None
    assert fib_updates(source(updates_per_s=0.0, sent=0, acknowledged=0)) is None


CONTROL = ControlTraffic("n1", "02:00:00:00:02:01", 500.0)


def controlled(replies: int) -> Statistics:
    """Return what the tester counted of 3 control packets."""
    latency = {"counts": [(2000, replies)], "overflow": 0}
    streams = [
        {"stream": 0, "forwarded_packets": 9, "latency": {"counts": [], "overflow": 0}},
        {"stream": 1, "forwarded_packets": replies, "latency": latency},
    ]
    return source(
        {"name": "gen-n1", "kind": "generator", "generator": {"offered_packets": 3}},
        {"name": "mon-n1", "kind": "monitor", "monitor": {"streams": streams}},
        **{"updates_per_s": 0.0, "sent": 3, "acknowledged": 3, "control_received": 3, "control_answered": 3},
    )


def test_replies_to_control_packets_are_counted_with_their_time() -> None:
    found = control_packets(controlled(3), CONTROL)
    assert (found.intended_per_s, found.sent, found.received, found.replies) == (500, 3, 3, 3)
    assert decode(found.histogram).sum() == 3
    assert not_answered(found) == ()
    updates = fib_updates(controlled(3), CONTROL)
    assert updates is not None and updates.intended_per_s == 500
    (lost,) = not_answered(control_packets(controlled(1), CONTROL))
    assert str(lost) == "suspect: 2 of 3 control packets have no reply; the VNF received 3"


def test_control_packets_go_to_the_vnf_whose_control_answers() -> None:
    topology, profile = build("parallel", 3), parse_traffic("fib:control=500")
    assert control_traffic(topology, "v0", profile) == CONTROL
    assert control_traffic(topology, "v0", PLAIN) is None
    load = CONTROL.load.to_json()
    assert load["task"] == "gen-n1" and load["profile"] == {"seed": 1, "dst_macs": [CONTROL.mac], "ttl": 1}


def test_updates_end_with_the_sending_whatever_happens() -> None:
    asked: list[tuple[str, dict[str, Any]]] = []

    def call(method: str, params: dict[str, Any]) -> dict[str, Any]:
        asked.append((method, params))
        return {}

    with pytest.raises(RuntimeError), updating(call, "v0", 64000.0):
        raise RuntimeError
    with updating(call, "v0", "flat_out"):
        pass
    rates = [{key: value for key, value in params.items() if key != "task"} for _, params in asked]
    assert rates == [{"updates_per_s": 64000.0}, {"updates_per_s": 0}, {"flat_out": True}, {"updates_per_s": 0}]
    assert {params["task"] for _, params in asked} == {"control-v0"}


def test_a_switch_that_does_not_answer_fib_messages_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planebench.measure.updates.SESSION_DEADLINE_S", 0.02)
    wait_for_session(lambda _: source(), "v0")
    wait_for_session(lambda _: {}, "")
    with pytest.raises(StartError, match="FIB messages of the VNF at port v0"):
        wait_for_session(lambda _: source(up=False), "v0")


def test_updates_that_were_not_applied_are_remarked() -> None:
    assert not_applied(FibUpdates(64000.0, SECOND_NS, 64000, 63500)) == ()
    assert not_applied(FibUpdates(None, SECOND_NS, 64000, 100)) == ()
    (few,) = not_applied(FibUpdates(64000.0, SECOND_NS, 60000, 60000))
    assert str(few) == "suspect: 60000 FIB updates per second were applied, not 64000"
    (refused,) = not_applied(FibUpdates(64000.0, SECOND_NS, 64000, 63000, 1000))
    assert refused.code is ReasonCode.UPDATES_MISSING and refused.values == {"refused": 1000, "sent": 64000}
