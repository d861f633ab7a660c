# SPDX-License-Identifier: BSD-3-Clause
"""One trial on a topology that is not real: what is read when, and what becomes of a death."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from builders import make_point
from planed_answers import statistics

from planebench.analysis.ledger import ledger
from planebench.host.evidence import HostSample, ThreadSampler, sample_host
from planebench.measure import distance, runner
from planebench.measure.counts import Sending
from planebench.measure.distance import (
    NEAR_LIMIT_NS,
    REUSE_S,
    band_of,
    measure_distance,
    near_limit_ns,
)
from planebench.measure.live import LiveSettings
from planebench.measure.trial import TrialRequest, cycles_of_trial, failed_trial, run_trial
from planebench.model.errors import DiedError, StartError
from planebench.model.reasons import ReasonCode
from planebench.model.records import CoreDistance, Load, Point, SwitchCycles, Verdict, VerdictKind
from planebench.model.scenario import Direction
from planebench.planed.client import RpcError

NEAR, FAR = CoreDistance(60.0, "near"), CoreDistance(300.0, "far")
FLAT_OUT = Load("saturating")


KERNEL = {"n0:wire_full": 3, "n0:rx_dropped": 5}
"""What the kernel drops of its interfaces in a trial."""


class FakeLive:
    """Stands in for LiveTopology: writes down what it is asked, and answers as a saturated switch would."""

    def __init__(self, *, misdirected: int = 0, dies_in: str = "", forwarded: int = 900, dropped: int = 100) -> None:
        self.asked: list[Any] = []
        self.misdirected, self.dies_in, self.forwarded = misdirected, dies_in, forwarded
        self.placement = SimpleNamespace(
            elsewhere=False,
            switch_cpus_here=(0,),
            tester_cpus=(0,),
            shared=False,
            hosted=frozenset(),
            roaming=frozenset(),
        )
        self.memory = ()
        self.table_updates = None
        self.control, self.control_received = None, 0
        self.functional: tuple[str, ...] = ()
        self.clock, self.mhz, self.planed = "software", None, Path("planed")
        self.switch = SimpleNamespace(counters=self._counters)
        self._busy = self._drops = 0
        self.dropped = dropped
        self.nics, self.grown = Counter[str](), Counter[str]()
        """What the NICs count between two readings, and since the start."""

    def _note(self, what: str, *more: Any) -> None:
        self.asked.append((what, *more))
        if what == self.dies_in:
            raise DiedError("switch (pid 7) was killed by SIGKILL; its last log lines:\nout of luck")

    def _counters(self) -> SwitchCycles:
        self._note("counters")
        self._busy += 260_000_000
        self._drops += self.dropped
        return SwitchCycles(
            busy_cycles=self._busy, idle_cycles=0, packets=self._busy // 100, drops={"n1:tx_full": self._drops}
        )

    def resume(self) -> None:
        self._note("resume")

    def pause(self) -> None:
        self._note("pause")

    def check(self) -> None:
        self._note("check")

    def threads(self) -> tuple[Any, ...]:
        return ()

    def wire_drops(self) -> Counter[str]:
        return Counter()

    def sample(self, sampler: ThreadSampler) -> HostSample:
        return sample_host(sampler, (0,))

    def nic_counters(self) -> Counter[str]:
        self.grown += self.nics
        return Counter(self.grown)

    def vnf_drops(self) -> Counter[str]:
        return Counter()

    def send(self, sending: Sending, traffic: Any, watch: Any = None, **more: Any) -> Any:
        if watch:
            watch()
        flows, duration_s = sending.flows, sending.duration_s
        told = (sending.frame_size_bytes, duration_s, sending.pps, sending.probe_rate_pps)
        self._note("send", [flow.name for flow in flows], *told)
        if watch:
            watch()
        sent = {"intended_packets": None, "offered_packets": 1000, "duration_ns": int(duration_s * 1e9)}
        zero = dict.fromkeys(("unsent_late_packets", "unsent_ring_full_packets", "probes_sent"), 0)
        attempts = {"attempted_packets": 2000, "refused_packets": 1000}
        nothing = dict.fromkeys(("duplicate_packets", "reordered_packets", "corrupt_packets", "probes_received"), 0)
        come = [{"stream": 0, "forwarded_packets": self.forwarded, **nothing}]
        come += [{"stream": 1, "forwarded_packets": self.misdirected, **nothing}] if self.misdirected else []
        seen = {"foreign_packets": 0, "stale_packets": 0, "bursts": 9, "full_bursts": 0, "streams": come}
        gaps = dict.fromkeys(("gaps", "gap_sum_ns", "gap_max_ns", "busy_cycles"), 0) | {"gap_threshold_ns": 100_000}
        tasks = [
            {"name": f"gen-{flow.sender_port}", "kind": "generator", "drops": {}, "generator": sent | zero | attempts}
            for flow in flows
        ]
        tasks += [
            {"name": f"mon-{flow.receiver_port}", "kind": "monitor", "drops": {}, "monitor": seen} for flow in flows
        ]
        return statistics({"tsc_hz": 2_600_000_000, "tasks": tasks, "workers": [gaps]})


def request(point: Point | None = None, **changes: Any) -> TrialRequest:
    values = {"point": point or make_point(), "role": "r_plus", "load": FLAT_OUT, "duration_s": 0.1}
    return TrialRequest(**{**values, **changes})


def near() -> CoreDistance | None:
    return NEAR


def test_a_trial_is_resumed_sent_read_checked_and_paused() -> None:
    live = FakeLive()
    trial = run_trial(live, request(), near)  # type: ignore[arg-type]
    assert [asked[0] for asked in live.asked] == ["resume", "counters", "send", "counters", "check", "pause"]
    assert live.asked[2] == ("send", ["n0->n1"], 64, 0.1, None, 0)
    assert trial.verdict == Verdict(VerdictKind.VALID)
    assert (trial.intended_duration_ns, trial.offered_duration_ns) == (100_000_000, 100_000_000)
    assert trial.throughput_pps == pytest.approx(9000)
    assert (trial.evidence.distance_before, trial.evidence.distance_after) == (NEAR, NEAR)
    assert (trial.switch.busy_cycles, trial.switch.idle_cycles) == (260_000_000, 0)
    assert trial.started_at.endswith("Z")


class HostedLive(FakeLive):
    """A topology whose VNF is a process of its own: a sending with stamps clears the VNF's counters."""

    def __init__(self) -> None:
        super().__init__(dropped=0)
        self.placement.hosted, self.placement.all_vnf_cpus = frozenset({0}), (1,)
        self.rule_drops = 500

    def vnf_drops(self) -> Counter[str]:
        return Counter({"vnf0:rule": self.rule_drops})

    def send(self, sending: Sending, *args: Any, **more: Any) -> Any:
        self.rule_drops = (0 if sending.stamps else self.rule_drops) + 100
        return super().send(sending, *args, **more)

    def anatomy(self, *_: Any) -> tuple[Any, ...]:
        return ()


@pytest.mark.parametrize("anatomy", [False, True])
def test_what_hosted_vnfs_drop_in_a_trial_is_found_with_stamps_and_without(anatomy: bool) -> None:
    trial = run_trial(HostedLive(), request(anatomy=anatomy), near)  # type: ignore[arg-type]
    assert trial.tester_drops == {"vnf0:rule": 100}


def test_a_warm_up_of_the_same_load_goes_before_and_is_not_counted() -> None:
    live = FakeLive()
    wanted = request(load=Load("0.50", 5000.0), role="latency", warmup_s=0.05, probe_rate_pps=77)
    trial = run_trial(live, wanted, near)  # type: ignore[arg-type]
    sends = [asked[3:] for asked in live.asked if asked[0] == "send"]
    assert sends == [(0.05, 5000.0, 0), (0.1, 5000.0, 77)]
    assert [asked[0] for asked in live.asked].index("counters") > [asked[0] for asked in live.asked].index("send")
    assert trial.offered_duration_ns == 100_000_000


@pytest.mark.parametrize("direction", ["unidirectional", "bidirectional"])
def test_latency_of_v2v_is_that_of_the_way_there_and_back(direction: Direction) -> None:
    point = make_point("planed", "v2v", direction=direction)
    trial = run_trial(FakeLive(), request(point, role="latency", probe_rate_pps=77), near)  # type: ignore[arg-type]
    assert [d.name for d in trial.directions] == ["v0->v3"]


def test_frames_at_the_wrong_port_make_it_invalid() -> None:
    trial = run_trial(FakeLive(misdirected=5), request(), near)  # type: ignore[arg-type]
    reason = "5 frames arrived at a wrong port"
    assert (trial.verdict.kind, trial.verdict.texts) == (VerdictKind.INVALID, (reason,))


def test_a_nat_that_sends_back_is_named_as_what_may_be_behind_it() -> None:
    point = make_point("planed", "loopback", chain="separate:nat44:hairpin=true", chain_length=1)
    trial = run_trial(FakeLive(misdirected=5), request(point), near)  # type: ignore[arg-type]
    (reason,) = trial.verdict.texts
    assert trial.verdict.kind is VerdictKind.INVALID
    assert reason.startswith("5 frames arrived at a wrong port (nat44 sends packets for its own outside addresses back")


def test_a_file_that_is_called_like_a_function_is_none() -> None:
    """The advice on nat44 was given to whoever kept his rules in a folder of that name."""
    point = make_point("planed", "loopback", chain="firewall:rules=/home/me/nat44-lab/a.rules", chain_length=1)
    trial = run_trial(FakeLive(misdirected=5), request(point), near)  # type: ignore[arg-type]
    assert trial.verdict.texts == ("5 frames arrived at a wrong port",)


def test_a_change_of_band_is_seen() -> None:
    distances = iter((NEAR, FAR))
    trial = run_trial(FakeLive(), request(), lambda: next(distances))  # type: ignore[arg-type]
    assert trial.verdict.codes == ("distance-changed",)
    assert trial.band is None


@pytest.mark.parametrize("moment", ["resume", "send", "counters", "check", "pause"])
def test_a_death_at_any_moment_is_an_invalid_trial_with_its_log(moment: str) -> None:
    trial = run_trial(FakeLive(dies_in=moment), request(), near)  # type: ignore[arg-type]
    assert trial.verdict.kind is VerdictKind.INVALID
    assert trial.verdict.texts[0].endswith("its last log lines:\nout of luck")
    assert trial.offered_duration_ns == 0
    assert trial.throughput_pps == 0


def test_a_failed_trial_keeps_what_was_asked_and_counts_nothing() -> None:
    wanted = request(make_point("ovs-dpdk", "p2p", direction="bidirectional"), repetition=2, role="latency")
    trial = failed_trial(wanted, "it died")
    assert (trial.point, trial.role, trial.load, trial.repetition) == (wanted.point, "latency", FLAT_OUT, 2)
    assert [d.name for d in trial.directions] == ["n0->n1", "n1->n0"]
    assert (trial.forwarded_packets, trial.loss_ratio, trial.intended_duration_ns) == (0, 0.0, 100_000_000)


def test_cycles_are_those_of_the_trial_alone() -> None:
    before = SwitchCycles(busy_cycles=1000, idle_cycles=500, packets=50, drops={"full": 3, "runt": 1})
    after = SwitchCycles(busy_cycles=1800, idle_cycles=9999, packets=90, drops={"full": 5, "runt": 1, "new": 2})
    cycles = cycles_of_trial(before, after, 1000)
    assert cycles == SwitchCycles(800, 200, 40, {"full": 2, "runt": 0, "new": 2})
    assert cycles.busy_share == pytest.approx(0.8)
    assert cycles.cycles_per_packet == pytest.approx(20.0)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (SwitchCycles(), SwitchCycles(), SwitchCycles()),
        (SwitchCycles(busy_cycles=5), SwitchCycles(), SwitchCycles()),
        (SwitchCycles(), SwitchCycles(busy_cycles=5, packets=1), SwitchCycles()),
        (SwitchCycles(busy_cycles=0), SwitchCycles(busy_cycles=2000), SwitchCycles(2000, 0)),
        (SwitchCycles(packets=1), SwitchCycles(packets=4), SwitchCycles(packets=3)),
    ],
    ids=["nothing-known", "gone", "new", "busier-than-the-trial", "packets-alone"],
)
def test_unknown_cycles_stay_unknown(before: SwitchCycles, after: SwitchCycles, expected: SwitchCycles) -> None:
    assert cycles_of_trial(before, after, 1000) == expected


def test_bands() -> None:
    assert band_of(40.0).band == band_of(NEAR_LIMIT_NS - 0.1).band == "near"
    assert band_of(NEAR_LIMIT_NS).band == band_of(390.0).band == "far"


@pytest.mark.parametrize(
    ("distances", "limit_ns", "bands"),
    [
        ((), 160.0, []),
        ((45.0, 50.0, 62.0, 250.0, 261.0, 300.0), 62 * (250 / 62) ** 0.5, ["near"] * 3 + ["far"] * 3),
        ((110.0, 115.0, 118.0, 190.0, 195.0, 210.0), 118 * (190 / 118) ** 0.5, ["near"] * 3 + ["far"] * 3),
        ((60.0, 61.0, 62.0), 160.0, ["near"] * 3),
        ((250.0, 261.0, 300.0), 160.0, ["far"] * 3),
        ((140.0, 140.0, 150.0, 150.0), 150 * 1.6**0.5, ["near"] * 4),
        ((150.0, 150.0, 180.0, 180.0), 150 / 1.6**0.5, ["far"] * 4),
        ((60.0, 61.0, 62.0, 63.0, 900.0), 160.0, ["near"] * 4 + ["far"]),
    ],
    ids=["unknown", "two", "mesh", "near", "far", "below-the-limit", "across-the-limit", "one-accident"],
)
def test_near_and_far_are_clusters_of_the_machine(
    distances: tuple[float, ...], limit_ns: float, bands: list[str]
) -> None:
    assert near_limit_ns(distances) == pytest.approx(limit_ns)
    assert [band_of(median_ns, near_limit_ns(distances)).band for median_ns in distances] == bands


def test_one_cpu_is_at_no_distance_from_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distance, "run_tool", lambda *_, **__: pytest.fail("nothing to measure"))
    assert measure_distance("planed", 1, 1) == CoreDistance(0.0, "same")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ('echo "{\\"median_ns\\": 61.5}"', CoreDistance(61.5, "near")),
        ('test "$1 $2" = "--core-distance 0,1" && echo "{\\"median_ns\\": 261.5}"', CoreDistance(261.5, "far")),
        (
            'echo "{\\"median_ns\\": 61.5, \\"additions_per_cycle\\": [3.75, 2]}"',
            CoreDistance(61.5, "near", (3.75, 2.0)),
        ),
        ("echo nothing", None),
        ('echo "{}"', None),
        ("exit 1", None),
    ],
)
def test_distance_comes_from_planed_or_is_unknown(tmp_path: Any, script: str, expected: CoreDistance | None) -> None:
    planed = tmp_path / "planed"
    planed.write_text(f"#!/bin/sh\n{script}\n")
    planed.chmod(0o755)
    assert measure_distance(planed, 0, 1) == expected
    assert measure_distance(tmp_path / "absent", 0, 1) is None


def test_errors_of_a_start_are_deaths_too() -> None:
    class Refuses(FakeLive):
        def send(self, *_: Any, **__: Any) -> Any:
            raise StartError("planed refused traffic.start")

    trial = run_trial(Refuses(), request(), near)  # type: ignore[arg-type]
    assert (trial.verdict.kind, trial.verdict.texts) == (VerdictKind.INVALID, ("planed refused traffic.start",))


@pytest.mark.parametrize(("dropped", "open_packets"), [(100, 0), (60, 40), (130, -30), (0, 100)])
def test_what_no_counter_explains_makes_a_trial_suspect(dropped: int, open_packets: int) -> None:
    trial = run_trial(FakeLive(dropped=dropped), request(), near)  # type: ignore[arg-type]
    assert ledger(trial).unexplained_packets == open_packets
    assert trial.verdict.kind is VerdictKind.VALID
    assert ("unexplained-loss" in trial.verdict.codes) == (open_packets != 0)


def test_counters_of_nics_that_grew_explain_losses_or_are_named() -> None:
    """What drivers count nowhere else is a drop; of others the trial says that they grew."""
    live = FakeLive(dropped=60)
    live.nics = Counter({"n0:rx_phy_discard_packets": 30})
    trial = run_trial(live, request(), near)  # type: ignore[arg-type]
    assert trial.tester_drops["n0:rx_phy_discard_packets"] == 30
    assert ledger(trial).unexplained_packets == 10
    live = FakeLive(dropped=60)
    live.nics = Counter({"n0:rx_crc_errors": 40})
    trial = run_trial(live, request(), near)  # type: ignore[arg-type]
    assert ledger(trial).unexplained_packets == 40 and "n0:rx_crc_errors" not in trial.tester_drops
    assert trial.evidence.nic_counters == {"n0:rx_crc_errors": 40}
    (remark,) = [reason.text for reason in trial.verdict.reasons if reason.code is ReasonCode.UNEXPLAINED_LOSS]
    assert remark.endswith("; counters of NICs: n0:rx_crc_errors 40")


@pytest.mark.parametrize(("own", "told"), [("n0:tx_dropped", {"n0:wire_full": 3}), ("n0:tx_full", KERNEL)])
def test_what_a_switch_says_of_its_own_interface_is_not_counted_again(own: str, told: dict[str, int]) -> None:
    class OnInterfaces(FakeLive):
        def wire_drops(self) -> Counter[str]:
            self.looks = getattr(self, "looks", -1) + 1
            return Counter({key: self.looks * count for key, count in KERNEL.items()})

        def _counters(self) -> SwitchCycles:
            return replace(super()._counters(), drops={own: self._drops})

    assert run_trial(OnInterfaces(), request(), near).tester_drops == told  # type: ignore[arg-type]


def test_a_trial_says_who_asked_for_it_and_after_how_many_starts() -> None:
    trial = run_trial(FakeLive(), request(start=2, search="ndr", role="search"), near)  # type: ignore[arg-type]
    assert (trial.start, trial.search, trial.role) == (2, "ndr", "search")
    lost = failed_trial(request(start=2, search="ndr"), "gone")
    assert (lost.start, lost.search) == (2, "ndr")


def test_a_refused_call_is_no_death_and_nothing_runs_on() -> None:
    live = FakeLive()

    def refuse(*_: Any, **__: Any) -> Any:
        raise RpcError("traffic.start", -32602, "duration_ns: 7 is not valid")

    live.send = refuse  # type: ignore[method-assign]
    trial = run_trial(live, request(), near)  # type: ignore[arg-type]
    assert trial.verdict.kind is VerdictKind.INVALID
    assert "duration_ns: 7 is not valid" in trial.verdict.texts[0]
    assert live.asked[-1] == ("pause",)


def test_a_distance_stands_for_the_next_trial_on_the_same_cpus_only_for_a_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[CoreDistance | None] = []

    def run(live: Any, asked: TrialRequest, distance: Any, calibration: Any, before: CoreDistance | None) -> Any:
        given.append(before)
        return SimpleNamespace(evidence=SimpleNamespace(distance_after=found[0]))

    monkeypatch.setattr(runner, "run_trial", run)
    settings = LiveSettings(Path("planed"), 256, False, 1518, "virtio", has_rate=True)
    found: list[CoreDistance | None] = [NEAR]

    def on(switch: int, tester: int) -> CoreDistance | None:
        placement = SimpleNamespace(elsewhere=False, switch_cpu=switch, tester_cpus=(tester,), share_l3=None)
        runner.LiveRunner(SimpleNamespace(placement=placement), settings).run(request())  # type: ignore[arg-type]
        return given.pop()

    assert on(2, 3) is None and on(2, 3) is NEAR
    assert on(2, 4) is None, "other CPUs"
    settings.last_distance.at_s -= REUSE_S
    assert on(2, 4) is None, "too old"
    found[0] = None
    assert on(2, 4) is NEAR and on(2, 4) is None, "a trial that failed measured nothing"


def test_a_trial_takes_the_distance_that_was_measured_just_now() -> None:
    before = CoreDistance(300.0, "far")
    trial = run_trial(FakeLive(), request(), near, before=before)  # type: ignore[arg-type]
    assert trial.evidence.distance_before is before
    assert trial.evidence.distance_after == near()
