# SPDX-License-Identifier: BSD-3-Clause
"""Open loop: saturating trials at the line rate of the NICs, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from builders import make_trial

from planebench.measure import runner
from planebench.measure.campaign import carried_pps, on_the_line, saturating_trial
from planebench.measure.live import LiveSettings
from planebench.measure.runner import LiveRunner
from planebench.measure.trial import TrialRequest, trial_of
from planebench.model.conditions import PortConditions
from planebench.model.errors import UsageError
from planebench.model.records import DirectionCounts, Load, Point, VerdictKind
from planebench.plan.expand import expand
from planebench.plan.override import override
from planebench.plan.schema import load_plan
from planebench.testbed.rates import SATURATING, line_rate_pps

POINT = Point("planed", "p2p", "unidirectional", 0, 64)
SETTINGS = LiveSettings(Path("planed"), 256, False, 1518, "pci:a=b", open_loop=True)


def sent_at(
    *speeds: int | None,
    settings: LiveSettings = SETTINGS,
    load: Load = SATURATING,
    plan_pps: float | None = None,
    patch: Any,
) -> Any:
    """Return the trial of a runner whose NICs have these speeds: it records the load that was asked for.

    ``plan_pps``: the line rate of the plan.
    """
    ports = tuple(PortConditions(f"n{i}", "wire", "ethdev", "x", speed_mbps=speed) for i, speed in enumerate(speeds))
    live = SimpleNamespace(conditions=SimpleNamespace(ports=ports), placement=SimpleNamespace(elsewhere=True))
    patch.setattr(runner, "run_trial", lambda live, request, *_: trial_of(request))
    return LiveRunner(live, settings).run(TrialRequest(POINT, "r_plus", load, 1.0).on_line(plan_pps))  # type: ignore[arg-type]


def test_a_saturating_trial_fills_the_slowest_link(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = sent_at(25_000, 10_000, patch=monkeypatch)
    assert trial.load == Load("saturating", line_rate_pps(64))
    assert round(trial.load.pps_per_direction) == 14_880_952


def test_other_loads_and_closed_loops_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    fixed = Load("1Mpps", 1e6)
    assert sent_at(10_000, load=fixed, patch=monkeypatch).load == fixed
    closed = replace(SETTINGS, open_loop=False)
    assert sent_at(10_000, settings=closed, patch=monkeypatch).load == SATURATING


def test_nics_with_a_speed_have_an_open_loop_unless_it_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = replace(SETTINGS, open_loop=None)
    trial = sent_at(10_000, settings=usual, patch=monkeypatch)
    assert trial.load == Load("saturating", line_rate_pps(64))
    assert trial.line_rate_pps == line_rate_pps(64)
    assert sent_at(None, settings=usual, patch=monkeypatch).load == SATURATING
    closed = sent_at(10_000, settings=replace(SETTINGS, open_loop=False), patch=monkeypatch)
    assert closed.line_rate_pps == line_rate_pps(64), "searches need it"


def test_the_rate_of_the_user_replaces_the_line_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = sent_at(10_000, settings=replace(SETTINGS, has_rate=True), load=Load("saturating", 1e6), patch=monkeypatch)
    assert (trial.load, trial.line_rate_pps) == (Load("saturating", 1e6), None)


def test_a_nic_without_a_speed_makes_an_invalid_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = sent_at(None, patch=monkeypatch)
    assert trial.verdict.kind is VerdictKind.INVALID
    assert "give --line or --max-rate" in trial.verdict.reasons[0].text


def test_a_line_rate_of_the_plan_replaces_that_of_the_nics(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = sent_at(10_000, plan_pps=1e6, patch=monkeypatch)
    assert (trial.load, trial.line_rate_pps) == (Load("saturating", 1e6), 1e6)


def test_a_line_makes_an_open_loop_unless_it_is_closed() -> None:
    plan = override(load_plan("quick"), line="10G")
    assert plan.throughput.line_bps == 1e10
    assert plan.throughput.is_open_loop(has_line_rate=False)
    assert not override(plan, open_loop=False).throughput.is_open_loop(has_line_rate=False)
    with pytest.raises(UsageError, match="--max-rate and --line both"):
        override(load_plan("quick"), line="10G", max_rate="1M")


@pytest.mark.parametrize("rate", [{"max_rate": "14.88M"}, {"line": "10G"}, {"wire": "pci:0000:01:00.0=0000:01:00.1"}])
def test_a_wire_without_a_line_rate_needs_a_rate(rate: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"add --line, e\.g\. 10G, or --max-rate"):
        override(load_plan("quick"), open_loop=True)
    assert override(load_plan("quick"), open_loop=True, **rate).throughput.open_loop


def test_between_vnfs_and_in_a_closed_loop_there_is_no_line() -> None:
    plan = override(load_plan("quick"), line="10G", traffic="plain,closed-loop")
    sent = {}
    for point in expand(plan):
        trial = on_the_line(plan, saturating_trial(plan, point, 0))
        carried = carried_pps(plan, point)
        assert carried == trial.line_rate_pps
        sent[point.scenario, point.traffic] = trial.load.pps_per_direction is not None, trial.line_rate_pps is not None
    assert {key for key, lined in sent.items() if lined == (True, True)} == {
        (scenario, "") for scenario in ("p2p", "p2v", "loopback")
    }
    assert set(sent.values()) == {(True, True), (False, False)}


def test_rings_that_are_drained_later_are_not_in_the_rate_at_the_line_rate_either() -> None:
    counts = DirectionCounts("n0->n1", 1000, 1000, 1000, forwarded_by_tenth=(50, *(100,) * 9))
    trial = replace(make_trial(load=Load("saturating", 1000.0)), offered_duration_ns=10**9, directions=(counts,))
    assert trial.throughput_pps == 1000, "as with --max-rate"
    assert replace(trial, line_rate_pps=1000.0).throughput_pps == pytest.approx(1000)
    drained = replace(counts, forwarded_packets=1100)
    assert replace(trial, line_rate_pps=1000.0, directions=(drained,)).throughput_pps == pytest.approx(1000)
    assert replace(trial, directions=(drained,)).throughput_pps == 1100


def test_a_path_without_a_line_has_no_line_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """From VNF to VNF no wire is passed, so --open-loop is not about it."""
    point = replace(POINT, scenario="v2v")
    monkeypatch.setattr(runner, "run_trial", lambda live, request, *_: trial_of(request))
    live = SimpleNamespace(conditions=SimpleNamespace(ports=()), placement=SimpleNamespace(elsewhere=True))
    trial = LiveRunner(live, SETTINGS).run(TrialRequest(point, "r_plus", SATURATING, 1.0))  # type: ignore[arg-type]
    assert trial.load == SATURATING and trial.verdict.kind is not VerdictKind.INVALID
