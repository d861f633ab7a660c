# SPDX-License-Identifier: BSD-3-Clause
"""What explains a wide interval: near and far cores, or a core that was shared at times."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders import make_evidence, make_header, make_trial

from planebench.analysis.results import derive_results
from planebench.analysis.starts import strata
from planebench.model.header import Run
from planebench.model.records import Evidence, Trial
from planebench.model.results import Stratum


def test_near_and_far_are_told_apart_and_both_are_in_the_figure() -> None:
    trials = [
        make_trial(i, mpps=mpps, band=band, start=i, repetition=i)
        for i, (mpps, band) in enumerate(((9.0, "far"), (36.0, "near"), (9.0, "far"), (36.0, "near"), (18.0, None)))
    ]
    (result,) = derive_results(Run(make_header(), tuple(trials)))
    assert result.throughput_pps == pytest.approx(18e6)
    assert result.strata == (Stratum("near", pytest.approx(36e6), 2), Stratum("far", pytest.approx(9e6), 2))


def _with_core(index: int, mpps: float, switch: float, tester: float) -> Trial:
    evidence: Evidence = make_evidence(additions_per_cycle=(switch, tester))
    return replace(make_trial(index, mpps=mpps, start=index), evidence=evidence)


def test_a_core_alone_and_shared_are_told_apart_where_the_distance_is_one() -> None:
    found = strata([_with_core(0, 10.0, 4.0, 4.0), _with_core(1, 10.2, 4.0, 2.0), _with_core(2, 10.1, 4.0, 3.9)])
    alone, shared = (f"core of the tester {how}" for how in ("alone", "shared"))
    assert [(it.name, it.trials) for it in found] == [(shared, 1), (alone, 2)], "the highest first"


def test_what_was_alike_explains_nothing() -> None:
    assert strata([make_trial(0), make_trial(1)]) == strata([make_trial(0, mpps=0), make_trial(1, band="far")]) == ()
    assert strata([]) == ()
