# SPDX-License-Identifier: BSD-3-Clause
"""The p99 of the switch and the one with what the host did stand beside each other, each with its interval."""

from __future__ import annotations

import dataclasses
import math

import pytest
from builders import make_header, make_latency_trial, make_trial

from planebench.analysis.histogram import encode
from planebench.analysis.metrics.results import LATENCY
from planebench.analysis.results import derive_results
from planebench.model.header import Run
from planebench.model.results import LatencySummary, Result

STARTS = 4
WITH_HOST = [f"with_host_{name}{end}" for name in ("p50", "p99") for end in ("", "_low", "_high")]


def derived(host_us: float | None, probes: int = 10) -> Result:
    """One latency of four starts: 1000 probes around 4 us each, and as many as said that met the host."""
    trials = []
    for start in range(STARTS):
        trial = make_latency_trial(samples_ns=[(4000 + 10 * start, 1000)], start=start, repetition=start)
        assert trial.latency is not None
        host = "" if host_us is None else encode([(int(host_us * 1000) + start, probes)])
        latency = dataclasses.replace(trial.latency, probes_received=1000 + probes, host=host)
        trials += [make_trial(start=start, repetition=start), dataclasses.replace(trial, latency=latency)]
    trials = [dataclasses.replace(trial, index=index) for index, trial in enumerate(trials)]
    (result,) = derive_results(Run(make_header(), tuple(trials)))
    return result


def summary(host_us: float | None, probes: int = 10) -> LatencySummary:
    (it,) = derived(host_us, probes).latency
    return it


def test_the_figures_of_the_switch_are_without_the_probes_that_met_the_host() -> None:
    found, quiet = summary(85, probes=20), summary(None)
    for name in ("p50", "p99", "max", "samples", "p99_low", "p99_high", "pdv"):
        assert getattr(found, name) == getattr(quiet, name)


def test_with_the_host_a_percentile_is_of_all_probes_and_has_its_interval() -> None:
    found = summary(85, probes=20)
    assert found.with_host_p50 == pytest.approx(4.02, rel=1e-2)
    assert found.with_host_p99 == pytest.approx(85, rel=1e-2)
    low, high = found.with_host_p99_low, found.with_host_p99_high
    assert low is not None and high is not None
    assert low < 85 < high
    assert high / low < 1.1


def test_without_such_probes_nothing_is_known_with_the_host() -> None:
    assert {getattr(summary(None), name) for name in WITH_HOST} == {None}


def test_exports_have_all_of_it() -> None:
    columns = {column.name: column for column in LATENCY}
    assert set(WITH_HOST) <= set(columns)
    assert {columns[name].flat_name for name in WITH_HOST} == {f"{name}_us" for name in WITH_HOST}
    assert not math.isnan(summary(85).p99)
