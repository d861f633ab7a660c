# SPDX-License-Identifier: BSD-3-Clause
"""A sending in which the tester sent nothing tells nothing of a switch. The tester here is a script, no program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from planed_answers import statistics, whole

from planebench.conformance import rig as exchange
from planebench.conformance.enduring import VnfProcess
from planebench.conformance.model import Case, CheckResult
from planebench.conformance.rig import FRAMES, SENDING_MAX_S, SENDING_S, TESTER_SILENT, Rig
from planebench.conformance.suite import CASE_CHECKS, check_on_rig
from planebench.measure.counts import Sending
from planebench.measure.live import LiveSettings
from planebench.model.cpus import Cpus
from planebench.model.records import SwitchCycles
from planebench.model.scenarios import Flow
from planebench.planed.statistics import Statistics
from planebench.switches.testpmd import ADAPTER

WAYS = ("n0->n1", "n1->n0")


@dataclass(frozen=True)
class Sent:
    """What one generator does in one sending."""

    attempted: int = FRAMES
    taken: int = FRAMES


ALL, NOTHING, REFUSED = Sent(), Sent(0, 0), Sent(FRAMES, 0)
Script = dict[str, Sequence[Sent]]


@dataclass
class ScriptedTester:
    """Stands in for a live topology: a switch that forwards everything, and a tester that sends as ``script`` says."""

    script: Script
    then: Sent = ALL
    """What a generator does after its script."""
    sendings: list[tuple[float, float]] = field(default_factory=list)
    """Duration and frames of each; infinitely many flat out."""
    counted: int = 0
    """By the switch."""

    def __post_init__(self) -> None:
        self._next: dict[str, Iterator[Sent]] = {
            way: chain(self.script.get(way, ()), repeat(self.then)) for way in WAYS
        }
        self._stats: dict[str, Any] = {}
        self.switch = SimpleNamespace(counters=lambda: SwitchCycles(packets=self.counted, drops={"n0:tx_full": 0}))
        self.topology = SimpleNamespace(chain="")
        self.links = SimpleNamespace(wire="virtio", queues=2, workdir=Path("/nowhere"))

    def send(self, sending: Sending) -> Statistics:
        duration_s, pps = sending.duration_s, sending.pps
        self.sendings.append((duration_s, float("inf") if pps is None else round(pps * duration_s)))
        sent = {flow: next(self._next[flow.name]) for flow in sending.flows}
        self.counted += sum(it.taken for it in sent.values())
        tasks = [task for flow, it in sent.items() for task in (_generator(flow, it), _monitor(flow, it))]
        self._stats = {"tsc_hz": 10**9, "tasks": tasks}
        return statistics(self._stats)

    def call(self, method: str, params: object = None) -> dict[str, Any]:
        assert method == "stats.get"
        return whole(self._stats)

    def profile(self, *args: object, **more: object) -> None:
        return None

    def nothing(self, *args: object) -> None:
        pass

    check = wait_until_forwarding = apply = nothing


def _generator(flow: Flow, sent: Sent) -> dict[str, Any]:
    generator = {
        "intended_packets": FRAMES,
        "offered_packets": sent.taken,
        "offered_bytes": 64 * sent.taken,
        "unsent_late_packets": FRAMES - sent.attempted,
        "unsent_ring_full_packets": sent.attempted - sent.taken,
        "attempted_packets": sent.attempted,
        "refused_packets": sent.attempted - sent.taken,
        "duration_ns": 4_800_000,
        "probes_sent": 0,
        "probes_stamped": 0,
    }
    return {"name": f"gen-{flow.sender_port}", "kind": "generator", "generator": generator}


def _monitor(flow: Flow, sent: Sent) -> dict[str, Any]:
    zeros = dict.fromkeys(("corrupt_packets", "duplicate_packets", "reordered_packets"), 0)
    stream = {"stream": flow.stream, "forwarded_packets": sent.taken, "forwarded_bytes": 64 * sent.taken, **zeros}
    counts = dict.fromkeys(("foreign_packets", "stale_packets", "bursts", "full_bursts", "received_packets"), 0)
    return {"name": f"mon-{flow.receiver_port}", "kind": "monitor", "monitor": {"streams": [stream], **counts}}


def rig_of(tester: ScriptedTester) -> Rig:
    settings = LiveSettings(Path("planed"), 256, False, 1518, "virtio")
    rig = Rig(ADAPTER, Case("p2p", "p2p"), Cpus((0, 1)), settings, None)  # type: ignore[arg-type] # starts nothing
    rig._live = tester  # type: ignore[assignment]
    return rig


def checked(rig: Rig, name: str) -> CheckResult:
    return check_on_rig(next(check for check in CASE_CHECKS if check.name == name), rig)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planebench.conformance.rig.CALM_S", 0.0)
    monkeypatch.setattr("planebench.conformance.rig.SETTLE_S", 0.0)


def test_a_sending_without_frames_is_repeated_twice_as_long_with_as_many_frames() -> None:
    tester = ScriptedTester({"n0->n1": [NOTHING] * 3})
    rig = rig_of(tester)
    assert checked(rig, "forwards").outcome == "pass"
    assert rig.lossless
    durations = [duration_s for duration_s, _ in tester.sendings]
    assert durations[:4] == [SENDING_S, 2 * SENDING_S, 4 * SENDING_S, 8 * SENDING_S]
    assert set(durations[4:]) == {8 * SENDING_S}, "later ones are not too short again"
    assert {frames for _, frames in tester.sendings} == {FRAMES}


def test_a_direction_that_is_silent_in_turn_with_the_other_is_repeated_and_what_came_is_counted() -> None:
    tester = ScriptedTester({"n0->n1": [ALL, NOTHING], "n1->n0": [ALL, ALL, NOTHING]})
    assert checked(rig_of(tester), "forwards").outcome == "pass"
    assert len(tester.sendings) == 1 + 1 + 6 + 2
    again = ScriptedTester({"n0->n1": [NOTHING], "n1->n0": [ALL, NOTHING]})
    assert checked(rig_of(again), "counters").outcome == "remark", "batch size and the like are not counted"
    assert again.counted == (1 + 1 + 3 * 2) * FRAMES


@pytest.mark.parametrize("check", ["forwards", "wiring", "intact", "order", "counters", "overload", "pause"])
def test_a_tester_that_sends_nothing_is_told_as_such(check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planebench.conformance.enduring.PAUSE_S", 0.0)
    tester = ScriptedTester({}, then=NOTHING)
    tester.pause = tester.resume = tester.nothing  # type: ignore[attr-defined]
    tester.switch.pids = lambda: ()
    rig = rig_of(tester)
    result = checked(rig, check)
    names = "n0->n1" if check == "forwards" else "n0->n1 and n1->n0"
    assert (result.outcome, result.expected, result.came) == ("fail", f"the tester to send in {names}", TESTER_SILENT)
    assert rig.lossless, "nothing is known of the switch"
    assert max(duration_s for duration_s, _ in tester.sendings) == SENDING_MAX_S


def test_frames_of_which_the_port_takes_none_are_lost() -> None:
    rig = rig_of(ScriptedTester({}, then=REFUSED))
    result = checked(rig, "forwards")
    assert (result.outcome, result.expected, result.came) == ("fail", "n0->n1: all 96 frames", "0 (96 offered)")
    assert not rig.lossless


def test_the_account_of_a_flood_is_of_the_last_sending_alone() -> None:
    tester = ScriptedTester({"n0->n1": [NOTHING, ALL], "n1->n0": [ALL, ALL]})
    assert checked(rig_of(tester), "overload").outcome == "pass"
    assert len(tester.sendings) == 2


def test_frames_of_a_vnf_process_are_sent_again_in_the_same_way() -> None:
    tester = ScriptedTester({"n0->n1": [NOTHING]})
    rig = rig_of(tester)
    vnf = VnfProcess.__new__(VnfProcess)
    vnf.rig, vnf.call = rig, tester.call  # type: ignore[assignment]
    vnf.sender = tester  # type: ignore[assignment]
    counts = vnf.count(rig.ways[0])
    assert (counts.offered, counts.lost, len(tester.sendings)) == (FRAMES, 0, 2)


def test_raw_frames_that_the_tester_does_not_send_are_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    tester = ScriptedTester({})
    tester.document = lambda: None  # type: ignore[attr-defined]
    tester._stats = {"ports": [{"name": "fn0", "rx_packets": 31}, {"name": "fn1", "rx_packets": 0}]}
    tester.links.queues = 1
    rig = rig_of(tester)
    monkeypatch.setattr(exchange, "_document", lambda *args: None)
    monkeypatch.setattr(exchange, "write_pcap", lambda *args: None)
    monkeypatch.setattr(exchange, "is_kernel_interface", lambda *args: False)
    with pytest.raises(exchange.Failure) as caught:
        exchange.exchange_good(rig)
    assert (caught.value.expected, caught.value.came) == ("the tester to send at n1", TESTER_SILENT)
