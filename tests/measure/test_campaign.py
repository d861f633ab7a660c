# SPDX-License-Identifier: BSD-3-Clause
"""A whole campaign on simulated switches: order, searches, restarts, deaths, and going on after an interruption."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from builders import make_header

from planebench.measure.campaign import Campaign
from planebench.measure.live import LiveSettings
from planebench.measure.trial import TrialRequest
from planebench.model.plan import Plan
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import Trial, Verdict, VerdictKind
from planebench.model.status import Stage
from planebench.placement import Cpus
from planebench.plans.estimate import planned_trials
from planebench.plans.expand import expand, switch_labels
from planebench.plans.latency_steps import latency_steps
from planebench.plans.load import load_plan
from planebench.plans.order import group_points
from planebench.plans.override import override
from planebench.search import TRIES_MAX
from planebench.store import RunWriter, read_run
from planebench.switches.registry import get_adapter

SETTINGS = LiveSettings(planed=Path("planed"), ring_size=256, hugepages=False, max_frame_bytes=1518, wire="virtio")


class Watcher:
    """Counts what it is told; interrupts after so many trials."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.steps = self.trials = self.further = 0
        self.troubles: list[str] = []
        self.stop_after = stop_after

    def working_on(self, text: str) -> None:
        pass

    def trial_begins(self, request: TrialRequest) -> None:
        pass

    def trial_done(self, trial: Trial) -> None:
        self.trials += 1
        if self.trials == self.stop_after:
            raise KeyboardInterrupt

    def advance(self, steps: int) -> None:
        self.steps += steps

    def extend(self, stages: Sequence[Stage]) -> None:
        self.further += sum(stage.steps for stage in stages)

    def trouble(self, text: str) -> None:
        self.troubles.append(text)


def plan_of(switch: str, **options: Any) -> Plan:
    chosen = {"scenario": "p2p", "frame_size": "64", "direction": "unidirectional", "loads": "none", **options}
    return override(load_plan("quick"), switch=switch, **chosen)


def campaign(plan: Plan, writer: RunWriter, watcher: Watcher, trials: tuple[Trial, ...] = ()) -> Campaign:
    adapters = {label.label: get_adapter(label.adapter) for label in switch_labels(plan.switches)}
    return Campaign(
        plan=plan,
        points=expand(plan),
        adapters=adapters,
        cpus=Cpus((0, 1)),
        settings=SETTINGS,
        writer=writer,
        listener=watcher,
        supervisor=None,  # type: ignore[arg-type] # no process is started
        trials=list(trials),
    )


def run(plan: Plan, folder: Path, watcher: Watcher | None = None) -> tuple[Trial, ...]:
    with RunWriter.create(folder, make_header()) as writer:
        campaign(plan, writer, watcher or Watcher()).run()
    return read_run(writer.path).trials


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


def test_the_progress_bar_ends_where_it_should(tmp_path: Path) -> None:
    plan = plan_of("sim,sim:stall_share=40%", search="bswlv,curve", loads="0.5", max_r=3)
    watcher = Watcher()
    run(plan, tmp_path, watcher)
    assert watcher.steps == planned_trials(plan, expand(plan))


@pytest.mark.parametrize(("repeat", "restarts", "starts"), [(4, 1, [0, 0, 1, 1]), (3, 2, [0, 1, 2]), (2, 0, [0, 0])])
def test_r_plus_is_taken_over_several_starts(tmp_path: Path, repeat: int, restarts: int, starts: list[int]) -> None:
    plan = plan_of("sim", repeat=repeat, restarts=restarts, frame_size="64,1024", loads="0.1")
    trials = run(plan, tmp_path)
    for size in (64, 1024):
        mine = [t for t in trials if t.point.frame_size_bytes == size]
        assert [t.start for t in mine if t.role == "r_plus"] == starts, "one start serves all points of a topology"
        assert {t.start for t in mine if t.role == "latency"} == {restarts}


@pytest.mark.parametrize("stop_after", [1, 3, 4, 9, 30])
def test_an_interrupted_run_ends_as_one_that_was_not(tmp_path: Path, stop_after: int) -> None:
    plan = plan_of("sim,sim:capacity=9M", search="ndr,curve", loads="0.1,0.5")  # no noise: it differs by start
    whole = run(plan, tmp_path / "whole")
    writer = RunWriter.create(tmp_path / "cut", make_header())
    with pytest.raises(KeyboardInterrupt):
        campaign(plan, writer, Watcher(stop_after)).run()
    writer.close()
    begun = read_run(writer.path).trials
    assert len(begun) == stop_after
    with RunWriter.reopen(writer.path) as again:
        watcher = Watcher()
        campaign(plan, again, watcher, begun).run()
    trials = read_run(writer.path).trials
    assert untimed(trials[:stop_after]) == untimed(begun)
    for point in expand(plan):
        mine, theirs = ([t for t in ts if t.point == point] for ts in (trials, whole))
        assert [(t.load, t.role, t.repetition, t.forwarded_packets) for t in mine] == [
            (t.load, t.role, t.repetition, t.forwarded_packets) for t in theirs
        ]


def test_a_complete_run_has_nothing_left_to_measure(tmp_path: Path) -> None:
    plan = plan_of("sim", search="ndr", loads="0.5")
    trials = run(plan, tmp_path)
    with RunWriter.create(tmp_path / "again", make_header()) as writer:
        watcher = Watcher()
        campaign(plan, writer, watcher, trials).run()
    assert watcher.trials == 0
    assert watcher.steps == planned_trials(plan, expand(plan))


def test_disturbed_trials_are_repeated_up_to_the_limit_and_all_kept(tmp_path: Path) -> None:
    trials = run(plan_of("sim:disturbed_share=100%", repeat=2), tmp_path)
    retries = load_plan("quick").throughput.retries
    assert len(trials) == 2 * (1 + retries)
    assert {t.verdict.kind for t in trials} == {VerdictKind.DISTURBED}


def test_a_search_that_never_gets_a_trial_gives_up(tmp_path: Path) -> None:
    trials = run(plan_of("sim:disturbed_share=100%", search="ndr", repeat=1), tmp_path)
    searching = [t for t in trials if t.role == "search"]
    assert len(searching) <= TRIES_MAX + load_plan("quick").throughput.retries


def test_a_switch_that_keeps_dying_is_given_up_and_the_others_go_on(tmp_path: Path) -> None:
    watcher = Watcher()
    trials = run(plan_of("sim:name=frail:dies_share=100%,sim", repeat=5, search="ndr"), tmp_path, watcher)
    frail = [t for t in trials if t.point.switch == "frail"]
    assert {t.verdict.kind for t in frail} == {VerdictKind.INVALID}
    assert "died 3 times" in frail[-1].verdict.texts[0]
    assert sum("died 3 times" in text for text in watcher.troubles) == 1
    assert {t.verdict.kind for t in trials if t.point.switch == "sim"} == {VerdictKind.VALID}


def test_search_trials_of_the_other_band_do_not_count(tmp_path: Path) -> None:
    plan = plan_of("sim:far_share=50%:far_ratio=50%", search="ndr", band="near")
    trials = run(plan, tmp_path)
    bands = [t.band for t in trials if t.role == "search"]
    assert {"near", "far"} <= set(bands), "those of the other band are measured and kept"


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


def test_latency_that_stayed_disturbed_is_not_tried_for_ever(tmp_path: Path) -> None:
    plan = plan_of("sim", repeat=1, restarts=0, loads="0.5")
    trials = run(plan, tmp_path)
    bad = Verdict(VerdictKind.DISTURBED, (Reason(ReasonCode.TEXT, "a build ran beside it"),))
    tries = [t for t in trials if t.role == "latency"] * (1 + plan.throughput.retries)
    disturbed = tuple(dataclasses.replace(t, verdict=bad) for t in tries)
    with RunWriter.create(tmp_path / "again", make_header()) as writer:
        watcher = Watcher()
        campaign(plan, writer, watcher, (*(t for t in trials if t.role == "r_plus"), *disturbed)).run()
    assert watcher.trials == 0


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
    assert set(steps.values()) == {plan.latency.repetitions} == {3}
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
    assert watcher.steps == planned_trials(plan, points)


def test_latency_that_failed_with_the_switch_is_measured_again(tmp_path: Path) -> None:
    """The switch had died; it may be mended when the run is resumed."""
    plan = plan_of("sim", repeat=1, restarts=0, loads="0.5")
    trials = run(plan, tmp_path)
    died = Verdict(VerdictKind.INVALID, (Reason(ReasonCode.TEXT, "the switch died"),))
    begun = tuple(dataclasses.replace(t, verdict=died) if t.role == "latency" else t for t in trials)
    with RunWriter.create(tmp_path / "again", make_header()) as writer:
        campaign(plan, writer, Watcher(), begun).run()
    (again,) = read_run(writer.path).trials
    assert (again.role, again.verdict.kind) == ("latency", VerdictKind.VALID)
