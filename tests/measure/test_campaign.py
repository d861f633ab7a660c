# SPDX-License-Identifier: BSD-3-Clause
"""A whole campaign on simulated switches: order, searches, restarts, deaths, and going on after an interruption."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from builders import make_evidence, make_header, make_point, make_trial, planned_trials

from planebench.analysis.compare import Open
from planebench.analysis.results import derive_results
from planebench.measure.ahead import Pace, stages
from planebench.measure.campaign import PAUSE_MAX_S, Campaign, spent_s
from planebench.measure.live import LiveSettings
from planebench.measure.runner import Runner
from planebench.measure.sim.adapter import SimAdapter
from planebench.measure.sim.runner import SimRunner
from planebench.measure.trial import TrialRequest
from planebench.model.conditions import Conditions
from planebench.model.cpus import Cpus
from planebench.model.errors import StartError, UsageError
from planebench.model.header import Run
from planebench.model.plan import Plan
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import Trial, Verdict, VerdictKind
from planebench.model.switch import SwitchCost
from planebench.plan.estimate import estimate
from planebench.plan.expand import expand, switch_labels
from planebench.plan.override import override
from planebench.plan.passes import group_points, latency_steps
from planebench.plan.schema import load_plan
from planebench.store import RunWriter, read_run
from planebench.switches.registry import get_adapter
from planebench.testbed.rates import line_rate_pps

SETTINGS = LiveSettings(planed=Path("planed"), ring_size=256, hugepages=False, max_frame_bytes=1518, wire="virtio")


class Watcher:
    """Counts what it is told; interrupts after so many trials."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.trials = 0
        self.pace = Pace(())
        self.shares: list[float] = []
        """How much of the run was done when a trial began."""
        self.troubles: list[str] = []
        self.stop_after = stop_after

    def working_on(self, text: str) -> None:
        pass

    def trial_begins(self, request: TrialRequest) -> None:
        self.shares.append(self.pace.done / self.pace.steps)

    def trial_done(self, trial: Trial) -> None:
        self.trials += 1
        if self.trials == self.stop_after:
            raise KeyboardInterrupt

    def trouble(self, text: str) -> None:
        self.troubles.append(text)


def plan_of(switch: str, **options: Any) -> Plan:
    chosen = {"scenario": "p2p", "frame_size": "64", "direction": "unidirectional", "loads": "none", **options}
    quick = load_plan("quick")
    quick = replace(quick, throughput=replace(quick.throughput, repetitions=3))
    plan = override(replace(quick, latency=replace(quick.latency, of="r_plus")), switch=switch, **chosen)
    return with_repetitions_max(replace(plan, latency=replace(plan.latency, repetitions=1)), None)


def with_repetitions_max(plan: Plan, most: int | None) -> Plan:
    return replace(plan, throughput=replace(plan.throughput, repetitions_max=most))


def campaign(plan: Plan, writer: RunWriter, watcher: Watcher, trials: tuple[Trial, ...] = ()) -> Campaign:
    adapters = {label.label: get_adapter(label.adapter) for label in switch_labels(plan.switches)}
    watcher.pace = Pace(stages(plan, expand(plan)))
    return Campaign(
        plan=plan,
        points=expand(plan),
        adapters=adapters,
        cpus=Cpus((0, 1)),
        settings=SETTINGS,
        writer=writer,
        pace=watcher.pace,
        listener=watcher,
        supervisor=None,  # type: ignore[arg-type] # no process is started
        trials=list(trials),
    )


def run(plan: Plan, folder: Path, watcher: Watcher | None = None) -> tuple[Trial, ...]:
    with RunWriter.create(folder, make_header()) as writer:
        campaign(plan, writer, watcher or Watcher()).run()
    return read_run(writer.path).trials


def test_every_trial_is_warmed_up(tmp_path: Path) -> None:
    """The other switches of a topology had the core before it: R+, searches and latency are of a warm switch alike."""
    plan = plan_of("sim", search="bswlv", loads="0.5", max_r=1)
    warmups = set[tuple[str, float]]()

    class Asked(Watcher):
        def trial_begins(self, request: TrialRequest) -> None:
            warmups.add((request.role, request.warmup_s))

    run(plan, tmp_path, Asked())
    assert plan.throughput.warmup_s > 0
    assert warmups == {(role, plan.throughput.warmup_s) for role in ("r_plus", "search", "latency")}


def test_a_line_of_the_plan_is_filled_whatever_the_frame_size(tmp_path: Path) -> None:
    plan = plan_of("sim", line="1G", frame_size="64,1024", loads="0.50", repeat=1)
    trials = run(plan, tmp_path)
    assert {(t.role, t.line_rate_pps) for t in trials} == {
        (role, line_rate_pps(size, 1e9)) for role in ("r_plus", "latency") for size in (64, 1024)
    }
    for trial in trials:
        rate = trial.load.pps_per_direction
        if trial.role == "r_plus":
            assert (trial.verdict.kind, rate) == (VerdictKind.LINE_RATE, trial.line_rate_pps)
        else:
            assert rate == pytest.approx(line_rate_pps(trial.point.frame_size_bytes, 1e9) / 2, rel=0.01)
    closed = run(override(plan, open_loop=False, loads="none"), tmp_path / "closed")
    assert {trial.load.pps_per_direction for trial in closed} == {None}


def test_a_bit_rate_is_that_of_all_ends_that_send(tmp_path: Path) -> None:
    """Both ends send in bidirectional p2p; in v2v the second VNF sends everything back, so one does."""
    plan = plan_of("sim", scenario="p2p,v2v", direction="bidirectional", repeat=1)
    plan = replace(plan, latency=replace(plan.latency, total_bps=(1e9,)))
    sent = {t.point.scenario: t.load.pps_per_direction for t in run(plan, tmp_path) if t.role == "latency"}
    assert sent == {"p2p": pytest.approx(1e9 / (84 * 8) / 2), "v2v": pytest.approx(1e9 / (84 * 8))}


def test_a_share_of_r_plus_is_that_of_the_distance_of_the_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Far cores in every second repetition, with half of the throughput: half of it would be all that they carry."""
    measured = SimRunner.run

    def moved(self: SimRunner, request: TrialRequest) -> Trial:
        trial, far = measured(self, request), request.repetition % 2 == 1
        evidence = make_evidence("far" if far else "near")
        ways = tuple(
            replace(it, forwarded_packets=it.forwarded_packets // (1 + far), forwarded_by_tenth=())
            for it in trial.directions
        )
        return replace(trial, evidence=evidence, directions=ways if request.role == "r_plus" else trial.directions)

    monkeypatch.setattr(SimRunner, "run", moved)
    plan = plan_of("sim:capacity=10M", loads="0.5", repeat=4)
    plan = replace(plan, latency=replace(plan.latency, repetitions=4))
    sent = {t.repetition: t.load.pps_per_direction for t in run(plan, tmp_path) if t.role == "latency"}
    assert sent == {n: pytest.approx((5e6, 2.5e6)[n % 2], rel=0.02) for n in range(4)}


@pytest.mark.parametrize(("repeat", "second_pps"), [(1, 5e6), (2, 2.5e6)])
def test_a_share_waits_for_r_plus_with_cores_as_far_while_there_is_a_pass_to_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repeat: int, second_pps: float
) -> None:
    """The cores move away behind the first saturating trials, and R+ is half of that there."""
    measured = SimRunner.run

    def moved(self: SimRunner, request: TrialRequest) -> Trial:
        trial, far = measured(self, request), request.role == "latency" or request.repetition > 0
        ways = tuple(
            replace(it, forwarded_packets=it.forwarded_packets // 2, forwarded_by_tenth=()) for it in trial.directions
        )
        evidence = make_evidence("far" if far else "near")
        return replace(trial, evidence=evidence, directions=ways if request.repetition > 0 else trial.directions)

    monkeypatch.setattr(SimRunner, "run", moved)
    plan = plan_of("sim:capacity=10M,sim:capacity=10M", loads="0.5", repeat=repeat)
    plan = replace(plan, latency=replace(plan.latency, repetitions=1))
    sent = [t.load.pps_per_direction for t in run(plan, tmp_path) if t.role == "latency"]
    assert sent == [pytest.approx(5e6, rel=0.02), pytest.approx(second_pps, rel=0.02)]


def test_conditions_have_the_whole_key_of_their_topology(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Conditions("", "loopback", 1, "virtio", 0, "2026-11-21T12:00:00Z")
    monkeypatch.setattr(SimRunner, "conditions", found)
    plan = plan_of("sim", scenario="loopback", chain_length="1", hosting="process,separate", placement="far", repeat=1)
    with RunWriter.create(tmp_path, make_header()) as writer:
        campaign(plan, writer, Watcher()).run()
    got = {(it.switch, it.vnf_hosting, it.placement, it.cpu_clock, it.start) for it in read_run(writer.path).conditions}
    assert got == {("sim", "process", "far", "", 0), ("sim", "separate", "far", "", 0)}


def untimed(trials: tuple[Trial, ...]) -> list[Trial]:
    return [dataclasses.replace(t, started_at="") for t in trials]


def test_searches_follow_r_plus_and_the_switches_take_turns(tmp_path: Path) -> None:
    trials = run(plan_of("sim:noise=1%,sim", search="ndr", restarts=0), tmp_path)
    saturating = [t for t in trials if t.role == "r_plus"]
    assert [t.repetition for t in saturating] == [0, 0, 1, 1, 2, 2]
    searching = trials[len(saturating) :]
    assert {t.search for t in searching} == {"ndr"}
    both = min(sum(t.point.switch == label for t in searching) for label in ("sim", "sim#2"))
    for first, second in zip(searching[: 2 * both : 2], searching[1 : 2 * both : 2], strict=True):
        assert {first.point.switch, second.point.switch} == {"sim", "sim#2"}
    assert [t.index for t in trials] == list(range(len(trials)))


def test_on_nics_one_switch_is_up_at_a_time_and_started_once_a_round(tmp_path: Path) -> None:
    plan = plan_of("sim:noise=1%,sim", frame_size="64,256", loads="0.5", restarts=0, repeat=2)
    up = set[int]()

    class Looking(Watcher):
        def trial_done(self, trial: Trial) -> None:
            up.add(sum(bench.runner is not None for bench in it._benches.values()))

    with RunWriter.create(tmp_path, make_header()) as writer:
        nics = replace(SETTINGS, wire="pci:3b:00.0=af:00.0,3b:00.1=af:00.1")
        it = replace(campaign(plan, writer, Looking()), settings=nics)
        it.run()
    trials = read_run(writer.path).trials
    assert up == {1}
    turns = [trial.point.switch for trial in trials]
    assert Counter(turns)["sim"] == Counter(turns)["sim#2"]
    changes = sum(a != b for a, b in pairwise(turns))
    rounds = len({(trial.role, trial.repetition) for trial in trials})
    assert changes <= 2 * rounds


def test_searches_are_repeated_in_starts_of_their_own(tmp_path: Path) -> None:
    plan, watcher = plan_of("sim:noise=1%", search="bswlv", max_r=1, repeat=3, search_starts=2), Watcher()
    trials = run(plan, tmp_path, watcher)
    searching = [t for t in trials if t.role == "search"]
    assert {(t.repetition, t.start) for t in searching} == {(0, 0), (1, 1)}
    second = [t.role for t in trials if t.start == 1]
    assert second == sorted(second, key=("search", "r_plus").index), "before the saturating trials overload the switch"
    assert watcher.pace.done == watcher.pace.steps == len(trials)
    header = dataclasses.replace(make_header(), plan=plan)
    (result,) = derive_results(Run(header, trials))
    assert [s.repetition for s in result.searches] == [0, 1]
    assert all(s.complete for s in result.searches)


def test_the_progress_bar_ends_where_it_should(tmp_path: Path) -> None:
    plan = plan_of("sim,sim:stall_share=40%", search="bswlv,rfc2544", loads="0.5", max_r=3)
    watcher = Watcher()
    trials = run(plan, tmp_path, watcher)
    assert watcher.pace.done == watcher.pace.steps == len(trials)
    assert watcher.shares == sorted(set(watcher.shares)), "every trial advances it"


@pytest.mark.parametrize(("repeat", "restarts", "starts"), [(4, 1, [0, 0, 1, 1]), (3, 2, [0, 1, 2]), (2, 0, [0, 0])])
def test_r_plus_is_taken_over_several_starts(tmp_path: Path, repeat: int, restarts: int, starts: list[int]) -> None:
    plan = plan_of("sim", repeat=repeat, restarts=restarts, frame_size="64,1024", loads="0.1")
    trials = run(plan, tmp_path)
    for size in (64, 1024):
        mine = [t for t in trials if t.point.frame_size_bytes == size]
        assert [t.start for t in mine if t.role == "r_plus"] == starts, "one start serves all points of a topology"
        assert {t.start for t in mine if t.role == "latency"} == {0}, "its only repetition is in the first visit"


def test_passes_go_over_all_topologies_and_every_trial_has_its_own_start(tmp_path: Path) -> None:
    plan = plan_of("sim,sim", scenario="p2p,v2v,loopback", loads="0.5", search="rfc2544")
    trials = run(plan, tmp_path)
    saturating = [t for t in trials if t.role == "r_plus"]
    visits = [(t.repetition, t.point.scenario) for t in saturating]
    assert [repetition for repetition, _ in dict.fromkeys(visits)] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert (
        len({(a.point.scenario, b.point.scenario) for a, b in pairwise(saturating) if a.repetition < b.repetition}) > 0
    )
    assert all(a.point.scenario != b.point.scenario for a, b in pairwise(saturating) if a.repetition < b.repetition)
    assert all(t.start == t.repetition for t in saturating if t.point.scenario != "v2v")
    v2v = [(t.role, t.start) for t in trials if t.point.scenario == "v2v" and t.role != "search"]
    assert dict.fromkeys(v2v) == dict.fromkeys([("r_plus", 0), ("latency", 1), ("r_plus", 2), ("r_plus", 3)]), (
        "latency has a topology of its own"
    )
    assert {t.repetition for t in trials if t.role != "r_plus"} == {0}
    assert {t.start for t in trials if t.role == "search"} == {0}, "all trials of a search are of one start"


def test_latency_is_taken_in_the_pass_of_its_repetition(tmp_path: Path) -> None:
    plan = plan_of("sim", loads="0.5")
    trials = run(dataclasses.replace(plan, latency=dataclasses.replace(plan.latency, repetitions=5)), tmp_path)
    latency = [(t.repetition, t.start) for t in trials if t.role == "latency"]
    assert latency == [(0, 0), (1, 1), (2, 2), (3, 2), (4, 2)], "those beyond the passes are in the last one"


def test_latency_without_a_load_waits_for_the_next_pass(tmp_path: Path) -> None:
    plan = plan_of("sim", loads="0.5", repeat=2)
    begun = run(plan, tmp_path / "one")[:1]
    bad = Verdict(VerdictKind.INVALID, (Reason(ReasonCode.ERROR, "died"),))
    with RunWriter.create(tmp_path / "two", make_header()) as writer:
        watcher = Watcher()
        campaign(plan, writer, watcher, (dataclasses.replace(begun[0], verdict=bad),)).run()
    trials = read_run(writer.path).trials
    assert [(t.role, t.repetition) for t in trials] == [("r_plus", 1), ("latency", 0)]
    assert watcher.pace.done == watcher.pace.steps == planned_trials(plan, expand(plan))


def test_loads_of_latency_are_shares_of_what_is_carried_and_not_of_r_plus(tmp_path: Path) -> None:
    """A switch that loses two of a thousand frames at any load carries none, so it has no latency below that."""
    plan = plan_of("sim:loss=0.2%,sim:name=clean", scenario="p2p,v2v", loads="carried:0.10,0.90")
    with RunWriter.create(tmp_path, make_header()) as writer:
        watcher = Watcher()
        campaign(plan, writer, watcher).run()
    trials = read_run(writer.path).trials
    lossless = [t for t in trials if t.point.switch == "clean" and t.point.scenario == "p2p"]
    (found,) = [t for t in lossless if t.role == "search"]
    latency = {t.load.label: t.load.pps_per_direction for t in lossless if t.role == "latency"}
    pps = found.load.pps_per_direction
    assert pps == pytest.approx(0.9 * 10e6, rel=1e-6)
    assert latency == {"0.10 carried": pytest.approx(0.1 * pps), "0.90 carried": pytest.approx(0.9 * pps)}
    lossy = [t for t in trials if t.point.switch == "sim" and t.point.scenario == "p2p"]
    assert sum(t.role == "search" for t in lossy) == 5 and not any(t.role == "latency" for t in lossy)
    echoed = [t for t in trials if t.point.scenario == "v2v"]
    assert {(t.role, t.load.label) for t in echoed} == {("r_plus", "saturating"), ("latency", "1Mpps")}
    assert watcher.pace.done == watcher.pace.steps == len(trials)


def test_of_what_loads_are_shares_is_chosen_by_plan_and_by_option() -> None:
    quick = load_plan("quick")
    assert (quick.latency.of, quick.search.methods) == ("carried", ())
    assert override(quick, loads="0.5").latency.of == "carried"
    assert override(quick, loads="mrr:0.5").latency.of == override(quick, loads="r_plus:0.5").latency.of == "r_plus"
    assert override(quick, loads="pdr:curve").latency.of == "pdr"
    with pytest.raises(UsageError, match='"b2b"'):
        override(quick, loads="b2b:0.5")


def openly(*pairs: tuple[str, str], until: int, seen: list[int] | None = None) -> Callable[[Run], tuple[Open, ...]]:
    """Return a rule by which these pairs are open in p2p with 64 B until they have so many repetitions."""

    def decide(run: Run) -> tuple[Open, ...]:
        done = max(t.repetition for t in run.trials if t.role == "r_plus") + 1
        if seen is not None:
            seen.append(done)
        return tuple(Open(make_point(""), pair, 2) for pair in pairs if done < until)

    return decide


def sequential(switch: str, most: int = 8, **options: Any) -> Plan:
    return with_repetitions_max(plan_of(switch, **options), most)


def test_further_passes_have_only_what_is_open(tmp_path: Path) -> None:
    plan, looked = sequential("sim,sim,sim", scenario="p2p,v2v", frame_size="64,1024", loads="0.5"), list[int]()
    with RunWriter.create(tmp_path, make_header()) as writer:
        watcher = Watcher()
        at = campaign(plan, writer, watcher)
        at.decide = openly(("sim", "sim#3"), until=5, seen=looked)
        at.run()
    trials = read_run(writer.path).trials
    further = [t for t in trials if t.repetition >= 3]
    assert {(t.point.scenario, t.point.frame_size_bytes, t.role) for t in further} == {("p2p", 64, "r_plus")}
    assert Counter((t.point.switch, t.repetition, t.start) for t in further) == Counter(
        {("sim", 3, 3): 1, ("sim#3", 3, 3): 1, ("sim", 4, 4): 1, ("sim#3", 4, 4): 1}
    )
    assert looked == [3, 5], "looks are after 3, 5 and 8 passes; nothing was open at the second"
    assert watcher.pace.done == watcher.pace.steps == len(trials)


def test_what_is_decided_once_stays_decided(tmp_path: Path) -> None:
    plan, answers = sequential("sim,sim,sim"), [(("sim", "sim#2"),), (("sim", "sim#2"), ("sim", "sim#3"))]
    with RunWriter.create(tmp_path, make_header()) as writer:
        at = campaign(plan, writer, Watcher())
        at.decide = lambda run: tuple(Open(make_point(""), pair, None) for pair in answers.pop(0))
        at.run()
    counts = Counter(t.point.switch for t in read_run(writer.path).trials)
    assert counts == {"sim": 8, "sim#2": 8, "sim#3": 3}


def test_without_time_the_cheapest_comparisons_are_decided_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SimAdapter, "start_s", 0.0)
    plan = sequential("sim,sim", scenario="p2p,v2v", duration=1000)  # the clock does not count beside it
    points = [replace(point, switch="") for point in expand(plan) if point.switch == "sim"]
    each_s = estimate(plan, expand(plan)[:1], {"sim": SwitchCost(start_s=0.0)}) * 2 / 3
    for budget_s, topologies in ((1.5 * each_s, {"v2v"}), (2.5 * each_s, {"p2p", "v2v"}), (0.5 * each_s, set())):
        with RunWriter.create(tmp_path, make_header()) as writer:
            at = campaign(replace(plan, time_budget_s=budget_s), writer, Watcher())
            at.decide = lambda run: (Open(points[0], ("sim", "sim#2"), 9), Open(points[1], ("sim", "sim#2"), 1))
            at.run()
        assert {t.point.scenario for t in read_run(writer.path).trials if t.repetition == 3} == topologies


def test_a_real_difference_ends_a_run_early_and_an_open_one_does_not(tmp_path: Path) -> None:
    """The rule of the statistics: with start noise of 2 %, a factor of 1.2 is decided; 1.03 takes more passes."""
    plan = sequential("sim:start_noise=2%,sim:name=fast:capacity=12M:start_noise=2%", frame_size="64,128,256,512,1024")
    assert {t.repetition for t in run(plan, tmp_path / "far")} == {0, 1, 2}
    near = sequential(
        "sim:start_noise=2%,sim:name=near:capacity=10.3M:start_noise=2%", frame_size="64,128,256,512,1024"
    )
    assert max(t.repetition for t in run(near, tmp_path / "near")) > 2


def test_every_planned_trial_is_measured_once_whatever_the_host_does(tmp_path: Path) -> None:
    plan = plan_of("sim:disturbed_share=100%:far_share=50%:shared_share=50%", repeat=8, loads="0.5")
    trials = run(plan, tmp_path)
    assert [(t.role, t.repetition) for t in trials if t.role == "r_plus"] == [("r_plus", n) for n in range(8)]
    assert len(trials) == planned_trials(plan, expand(plan))
    assert VerdictKind.INVALID not in {t.verdict.kind for t in trials}


def test_the_switches_of_a_test_point_follow_each_other_in_an_order_that_differs(tmp_path: Path) -> None:
    """So a pair is measured within a second or two, and neither is always the first one."""
    labels = ("sim", "sim#2", "sim#3")
    plan = plan_of("sim,sim,sim", frame_size="64,128,256", loads="0.1,0.5", repeat=8)
    trials = run(replace(plan, latency=replace(plan.latency, repetitions=8)), tmp_path)
    rounds = [trials[n : n + 3] for n in range(0, len(trials), 3)]
    assert len(rounds) == 8 * 3 * (1 + 2)
    for trials_of_point in rounds:
        assert sorted(t.point.switch for t in trials_of_point) == sorted(labels)
        assert len({(t.point.frame_size_bytes, t.role, t.load.label, t.repetition) for t in trials_of_point}) == 1
    for role in ("r_plus", "latency"):
        assert {it[0].point.switch for it in rounds if it[0].role == role} == set(labels)


@pytest.mark.parametrize("stop_after", [1, 3, 4, 9, 30, -2, -1])
def test_an_interrupted_run_goes_on_exactly(tmp_path: Path, stop_after: int) -> None:
    """No noise: it differs by start. Further passes, searches and latency come in the order that they would have."""
    plan = sequential("sim,sim:capacity=9M", 5, search="ndr,rfc2544", loads="0.1,0.5", scenario="p2p,v2v")
    decide = openly(("sim", "sim#2"), until=5)
    with RunWriter.create(tmp_path / "whole", make_header()) as writer:
        at = campaign(plan, writer, Watcher())
        at.decide = decide
        at.run()
    whole = read_run(writer.path).trials
    assert len(whole) > 70 and max(t.repetition for t in whole) == 4
    stop_after = stop_after if stop_after > 0 else len(whole) + stop_after
    writer = RunWriter.create(tmp_path / "cut", make_header())
    with pytest.raises(KeyboardInterrupt):
        at = campaign(plan, writer, Watcher(stop_after))
        at.decide = decide
        at.run()
    writer.close()
    begun = read_run(writer.path).trials
    assert len(begun) == stop_after
    with RunWriter.reopen(writer.path) as again:
        watcher = Watcher()
        at = campaign(plan, again, watcher, begun)
        at.decide = decide
        at.run()
    trials = read_run(writer.path).trials
    assert untimed(trials[:stop_after]) == untimed(begun)
    assert watcher.trials == len(whole) - stop_after
    assert [(t.index, t.point, t.load, t.role, t.repetition, t.forwarded_packets) for t in trials] == [
        (t.index, t.point, t.load, t.role, t.repetition, t.forwarded_packets) for t in whole
    ]
    assert watcher.pace.done == watcher.pace.steps == len(trials)


def test_the_time_between_two_sessions_is_not_spent() -> None:
    times = ("10:00:00.000", "10:00:01.500", "12:00:00.000", "12:00:02.000")
    trials = [replace(make_trial(), started_at=f"2026-11-22T{time}Z", intended_duration_ns=10**9) for time in times]
    assert spent_s(trials) == 1.5 + 1 + PAUSE_MAX_S + 2


def test_a_long_start_is_spent() -> None:
    trials = [replace(make_trial(), started_at=f"2026-11-22T10:0{m}:00Z", intended_duration_ns=10**9) for m in (0, 5)]
    assert spent_s(trials) == 1 + PAUSE_MAX_S
    assert spent_s(trials, lambda point: 200.0) == 300


def test_a_complete_run_has_nothing_left_to_measure(tmp_path: Path) -> None:
    plan = plan_of("sim", search="ndr", loads="0.5")
    trials = run(plan, tmp_path)
    with RunWriter.create(tmp_path / "again", make_header()) as writer:
        watcher = Watcher()
        campaign(plan, writer, watcher, trials).run()
    assert watcher.trials == 0
    assert watcher.pace.done == watcher.pace.steps == len(trials)


@pytest.mark.parametrize("times", [1, 100])
def test_a_trial_in_which_nothing_was_sent_is_measured_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """It did not take place. A run that is interrupted after it goes on the same."""
    left = iter(range(times))
    measured = SimRunner.run
    silent = Verdict(VerdictKind.INVALID, (Reason(ReasonCode.NOTHING_SENT, "n0->n1: the generator sent no frames"),))

    def run_once(self: SimRunner, request: TrialRequest) -> Trial:
        trial = measured(self, request)
        return trial if next(left, None) is None else dataclasses.replace(trial, verdict=silent)

    monkeypatch.setattr(SimRunner, "run", run_once)
    plan = plan_of("sim", repeat=1, restarts=0)
    trials = run(plan, tmp_path)
    kinds = [trial.verdict.kind for trial in trials]
    assert kinds == [VerdictKind.INVALID] * min(times, 2) + [VerdictKind.VALID] * (times == 1)
    with RunWriter.create(tmp_path / "again", make_header()) as writer:
        watcher = Watcher()
        campaign(plan, writer, watcher, trials[:1]).run()
    assert watcher.trials == 1


def test_a_search_that_never_gets_a_trial_gives_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = SimRunner.run
    silent = Verdict(VerdictKind.INVALID, (Reason(ReasonCode.NOTHING_SENT, "n0->n1: the generator sent no frames"),))
    monkeypatch.setattr(SimRunner, "run", lambda self, it: dataclasses.replace(measured(self, it), verdict=silent))
    trials = run(plan_of("sim", search="ndr", repeat=1), tmp_path)
    assert 0 < len([t for t in trials if t.role == "search"]) <= 8


def test_a_switch_that_keeps_dying_is_given_up_and_the_others_go_on(tmp_path: Path) -> None:
    watcher = Watcher()
    trials = run(plan_of("sim:name=frail:dies_share=100%,sim", repeat=5, search="ndr"), tmp_path, watcher)
    frail = [t for t in trials if t.point.switch == "frail"]
    assert {t.verdict.kind for t in frail} == {VerdictKind.INVALID}
    assert "died 3 times" in frail[-1].verdict.texts[0]
    assert sum("died 3 times" in text for text in watcher.troubles) == 1
    assert {t.verdict.kind for t in trials if t.point.switch == "sim"} == {VerdictKind.VALID}


@pytest.mark.parametrize(
    ("failing", "started", "counted"),
    [((0,), 4, 3), ((1,), 4, 3), ((0, 2), 4, 2), ((1, 2), 3, 1), ((0, 1, 2, 3), 2, 0)],
)
def test_a_switch_that_failed_to_start_is_started_again_at_the_next_visit(
    failing: tuple[int, ...], started: int, counted: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until it fails twice in a row."""
    make, starts = SimAdapter.runner, 0

    def runner(self: SimAdapter, label: str, seed: int, past: Sequence[Trial]) -> Runner:
        nonlocal starts
        starts += 1
        if starts - 1 in failing:
            raise StartError(f"{label}: no answer within 20 s")
        return make(self, label, seed, past)

    monkeypatch.setattr(SimAdapter, "runner", runner)
    watcher = Watcher()
    trials = run(plan_of("sim", repeat=4, restarts=3), tmp_path, watcher)
    assert starts == started
    assert [t.verdict.kind for t in trials].count(VerdictKind.VALID) == counted
    assert len(trials) == 4
    assert len(watcher.troubles) == len([n for n in failing if n < started])
    assert all("no answer within 20 s" in text for text in watcher.troubles)
    assert ("2 times in a row" in str(watcher.troubles)) is (started < 4)


def test_no_cell_twice_in_a_row(tmp_path: Path) -> None:
    trials = run(plan_of("sim,sim", frame_size="64,1024", repeat=4), tmp_path)
    for first, second in pairwise(trials):
        assert first.point != second.point


def test_going_on_starts_a_switch_once_and_not_again_for_a_restart_that_was_due(tmp_path: Path) -> None:
    plan = plan_of("sim", repeat=4, restarts=1, loads="none")
    writer = RunWriter.create(tmp_path, make_header())
    with pytest.raises(KeyboardInterrupt):
        campaign(plan, writer, Watcher(stop_after=2)).run()
    campaign(plan, writer, Watcher(), read_run(writer.path).trials).run()
    assert [t.start for t in read_run(writer.path).trials] == [0, 0, 1, 1]


def test_profiles_are_searched_and_measured_beside_plain_frames(tmp_path: Path) -> None:
    """A mix is one point, at its mean; what has no sizes of its own one a frame size."""
    plan = plan_of("sim", traffic="imix,flows-1k,plain", search="ndr", loads="0.5", restarts=0)
    trials = run(plan, tmp_path)
    wanted = {("imix", 362), ("flows-1k", 64), ("", 64)}
    for role in ("r_plus", "search", "latency"):
        assert {(t.point.traffic, t.point.frame_size_bytes) for t in trials if t.role == role} == wanted


def test_parts_share_topologies_and_what_both_want_is_measured_once(tmp_path: Path) -> None:
    """Killed in the middle of the second part, it goes on there."""
    options = {"scenario": "p2p,v2v", "frame_size": "64", "direction": "unidirectional,bidirectional"}
    plan = override(load_plan("conext19"), switch="sim,sim:capacity=9M", **options)
    points = expand(plan)
    whole = run(plan, tmp_path / "whole")
    steps = Counter((s.step.point, s.step.load) for g in group_points(points) for s in latency_steps(plan, g))
    assert Counter(t.point for t in whole if t.role == "r_plus") == dict.fromkeys(points, plan.throughput.repetitions)
    assert Counter((t.point, t.load.label) for t in whole if t.role == "latency") == steps
    assert set(steps.values()) == {plan.latency.repetitions} == {5}
    first_latency = next(n for n, t in enumerate(whole) if t.role == "latency")
    writer = RunWriter.create(tmp_path / "cut", make_header())
    with pytest.raises(KeyboardInterrupt):
        campaign(plan, writer, Watcher(first_latency + 2)).run()
    watcher = Watcher()
    campaign(plan, writer, watcher, read_run(writer.path).trials).run()
    writer.close()
    trials = read_run(writer.path).trials
    assert Counter((t.point, t.role, t.load.label) for t in trials) == Counter(
        (t.point, t.role, t.load.label) for t in whole
    )
    assert watcher.pace.done == watcher.pace.steps == len(trials)


def test_latency_that_failed_with_the_switch_is_measured_again(tmp_path: Path) -> None:
    """The switch had died; it may be mended when the run is resumed."""
    plan = plan_of("sim", repeat=1, restarts=0, loads="0.5")
    trials = run(plan, tmp_path)
    died = Verdict(VerdictKind.INVALID, (Reason(ReasonCode.ERROR, "the switch died"),))
    begun = tuple(dataclasses.replace(t, verdict=died) if t.role == "latency" else t for t in trials)
    with RunWriter.create(tmp_path / "again", make_header()) as writer:
        campaign(plan, writer, Watcher(), begun).run()
    (again,) = read_run(writer.path).trials
    assert (again.role, again.verdict.kind) == ("latency", VerdictKind.VALID)
