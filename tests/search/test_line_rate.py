# SPDX-License-Identifier: BSD-3-Clause
"""The line rate as the highest load of searches, and the verdict of a switch that keeps up with it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from builders import make_point, sim_spec

from planebench.analysis.search.task import LINE_SHARE
from planebench.measure.sim.runner import SimRunner
from planebench.measure.trial import TrialRequest
from planebench.model.reasons import ReasonCode
from planebench.model.records import Load, VerdictKind
from planebench.model.results import SearchResult
from planebench.model.scenario import Direction
from planebench.testbed.rates import SATURATING, line_rate_pps

LINE_PPS = line_rate_pps(64)
RATES = ("ndr", "pdr", "rfc2544", "bswlv")


@pytest.mark.parametrize("method", RATES)
@pytest.mark.parametrize("direction", ["unidirectional", "bidirectional"])
def test_a_switch_that_keeps_up_is_found_at_the_line_rate(method: str, direction: Direction, rig: Callable) -> None:
    senders = 2 if direction == "bidirectional" else 1
    found: SearchResult = rig("sim:capacity=40M:line=10G", point=make_point("sim", direction=direction)).finish(method)
    assert found.lower_pps == pytest.approx(LINE_SHARE * senders * LINE_PPS, rel=1e-6)
    assert found.upper_pps is None
    assert found.verdict.kind is VerdictKind.LINE_RATE
    assert found.verdict.reasons[0].code is ReasonCode.LINE_RATE
    assert not [text for text in found.deviations if "highest load" in text]


@pytest.mark.parametrize("method", ("ndr", "rfc2544"))
def test_a_slower_switch_is_searched_below_the_line_rate(method: str, rig: Callable) -> None:
    bench = rig("sim:capacity=10M:line=10G")
    found = bench.finish(method)
    assert found.lower_pps <= 10e6 <= found.upper_pps
    assert found.verdict.kind is VerdictKind.VALID
    loads = [trial.load.pps_per_direction for trial in bench.trials]
    assert max(loads) <= LINE_PPS + 1
    assert any(load == pytest.approx(LINE_SHARE * LINE_PPS, rel=1e-6) for load in loads)


def test_the_highest_load_of_the_user_replaces_the_line_rate(rig: Callable) -> None:
    found = rig("sim:capacity=40M:line=10G", max_load_pps=5e6).finish("ndr")
    assert found.lower_pps == 5e6
    assert found.verdict.kind is VerdictKind.VALID
    assert any("is set to 5 Mpps" in text for text in found.deviations)


def test_without_a_speed_searches_begin_above_what_was_forwarded(rig: Callable) -> None:
    found = rig("sim:capacity=10M").finish("ndr")
    assert any("1.25 x" in text for text in found.deviations)


def test_a_tester_that_cannot_fill_the_links_is_the_limit(rig: Callable) -> None:
    found = rig("sim:capacity=40M:line=10G:max_rate=8M").finish("ndr")
    assert found.verdict.kind is VerdictKind.TESTER_LIMITED
    assert found.lower_pps == pytest.approx(0.98 * 8e6, rel=0.001)


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ("sim:capacity=40M:line=10G", VerdictKind.LINE_RATE),
        ("sim:capacity=10M:line=10G", VerdictKind.VALID),
        ("sim:capacity=40M:line=10G:max_rate=12M", VerdictKind.TESTER_LIMITED),
        # Slower than the links, but fast enough to saturate the switch.
        ("sim:capacity=5M:line=10G:max_rate=12M", VerdictKind.VALID),
    ],
)
def test_a_saturating_trial_is_an_open_loop_at_the_line_rate(spec: str, kind: VerdictKind) -> None:
    trial = SimRunner(sim_spec(spec)).run(TrialRequest(make_point("sim"), "r_plus", SATURATING, 1.0))
    assert trial.load == Load("saturating", LINE_PPS)
    assert trial.line_rate_pps == LINE_PPS
    assert trial.verdict.kind is kind, trial.verdict
