# SPDX-License-Identifier: BSD-3-Clause
"""Chains predicted from hops and from other lengths: exact where times add up, and not where they do not."""

from __future__ import annotations

from typing import Any

import pytest
from builders import make_header, make_point, make_trial
from hypothesis import given, settings
from hypothesis import strategies as st

from planebench.analysis.compare import Derived
from planebench.analysis.node_capacity import Prediction, predictions
from planebench.model.header import Run
from planebench.model.records import Point, Trial

NEAR = (0.999, 1.0, 1.001)
INTO, BETWEEN, OUT = 0.10, 0.15, 0.12
"""Microseconds of a hop."""


def trials(point: Point, us: float, **how: Any) -> list[Trial]:
    return [
        make_trial(0, point, factor / us, repetition=number, start=number, **how) for number, factor in enumerate(NEAR)
    ]


def chain(length: int, **changes: Any) -> Point:
    return make_point("vpp", "loopback", chain_length=length, **changes)


def hops() -> list[list[Trial]]:
    return [
        trials(make_point("vpp", "p2v"), INTO),
        trials(make_point("vpp", "p2v", direction="reversed"), OUT),
        trials(make_point("vpp", "v2v"), BETWEEN),
    ]


def predicted(*parts: list[Trial]) -> dict[tuple[int, str], Prediction]:
    numbered = tuple(trial for part in parts for trial in part)
    found = predictions(Derived(Run(make_header(("vpp",)), numbered)))
    return {(it.point.chain_length, it.way): it for it in found}


def test_times_of_hops_add_up_to_that_of_a_chain() -> None:
    found = predicted(*hops(), trials(chain(3), INTO + 2 * BETWEEN + OUT))
    it = found[3, "hops"]
    assert it.pps == pytest.approx(1e6 / (INTO + 2 * BETWEEN + OUT), rel=1e-3)
    assert it.error == pytest.approx(0, abs=1e-3)
    assert it.against.answer == "same"


def test_a_chain_of_one_stands_for_both_ends() -> None:
    found = predicted(hops()[2], trials(chain(1), 0.3), trials(chain(3), 0.3 + 2 * BETWEEN))
    assert found[3, "first"].error == pytest.approx(0, abs=1e-3)
    assert (1, "first") not in found and (3, "hops") not in found


def test_both_directions_have_as_many_hops_in_as_out() -> None:
    both = {"direction": "bidirectional"}
    sides = [trials(make_point("vpp", name, **both), us) for name, us in (("p2v", 0.11), ("v2v", BETWEEN))]
    found = predicted(*sides, trials(chain(2, **both), 0.22 + BETWEEN))
    assert found[2, "hops"].error == pytest.approx(0, abs=1e-3)


def test_a_chain_that_is_slower_than_its_hops_is_told() -> None:
    it = predicted(*hops(), trials(chain(1), 2 * (INTO + OUT)))[1, "hops"]
    assert it.error == pytest.approx(1.0, rel=1e-2)
    assert it.against.answer == "different" and it.against.ratio < 1


def test_a_hop_that_the_tester_limits_makes_a_lower_bound() -> None:
    limited = trials(make_point("vpp", "v2v"), BETWEEN, verdict="tester-limited")
    found = predicted(*hops()[:2], limited, trials(chain(2), INTO + BETWEEN + OUT))
    assert found[2, "hops"].is_bound


def test_a_length_is_predicted_without_itself() -> None:
    lengths = [trials(chain(n), 0.2 + 0.1 * n) for n in (1, 2, 3)]
    outlier = trials(chain(4), 2.0)
    found = predicted(*lengths, outlier)
    assert found[4, "lengths"].pps == pytest.approx(1e6 / 0.6, rel=1e-2)  # its own 2.0 is not in it
    assert found[4, "lengths"].error == pytest.approx(2.0 / 0.6 - 1, rel=1e-2)


def test_without_a_hop_there_is_no_prediction() -> None:
    assert (2, "hops") not in predicted(*hops()[:2], trials(chain(2), 0.4))
    assert (1, "hops") in predicted(*hops()[:2], trials(chain(1), 0.4))


@settings(max_examples=25, deadline=None)
@given(st.floats(0.05, 1.0), st.floats(0.05, 1.0), st.integers(1, 5))
def test_leaving_one_out_of_a_straight_line_finds_it_again(start: float, step: float, left_out: int) -> None:
    found = predicted(*(trials(chain(n), start + step * n) for n in range(1, 6)))
    it = found[left_out, "lengths"]
    assert it.error == pytest.approx(0, abs=0.01)
    assert it.estimate is not None
    low, high = it.estimate.interval()
    assert low < it.pps < high
