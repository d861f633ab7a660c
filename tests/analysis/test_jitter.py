# SPDX-License-Identifier: BSD-3-Clause
import dataclasses
from collections.abc import Sequence

import pytest
from builders import make_header, make_latency_trial, make_trial

from planebench.analysis.histogram import decode, encode
from planebench.analysis.latency import merged_jitter, pdv, signed_jitter
from planebench.analysis.results import derive_results
from planebench.model.header import Run
from planebench.model.records import Trial
from planebench.model.results import JitterSummary, LatencySummary

NO_PROBE = encode([])


def _latency(*changes: dict[str, object]) -> LatencySummary:
    """The summary of latency trials whose records are changed."""
    made = make_latency_trial(samples_ns=[(1000, 10)])
    assert made.latency is not None
    trials: Sequence[Trial] = [
        dataclasses.replace(made, index=i + 1, latency=dataclasses.replace(made.latency, **c))  # type: ignore[arg-type]
        for i, c in enumerate(changes)
    ]
    (result,) = derive_results(Run(make_header(), (make_trial(), *trials)))
    return result.latency[0]


def test_merged_jitter_adds_the_histograms_up() -> None:
    found = merged_jitter([encode([(1000, 98)]), "", encode([(2000, 2)])])
    assert found == JitterSummary(mean=pytest.approx(1.02), p50=1.0, p99=2.0, max=2.0, samples=100)


@pytest.mark.parametrize("texts", [[], [""], ["", ""], [NO_PROBE]])
def test_unknown_jitter_is_none(texts: list[str]) -> None:
    assert merged_jitter(texts) is None


def test_pdv_is_the_delay_above_the_least() -> None:
    found = pdv(decode(encode([(1000, 50), (1500, 49), (2000, 1)])))
    assert found == JitterSummary(mean=pytest.approx(0.255), p50=0.0, p99=0.5, max=1.0, samples=100)


def test_equal_delays_do_not_vary_however_long() -> None:
    assert pdv(decode(encode([(123_456_789, 7)]))) == JitterSummary(0.0, 0.0, 0.0, 0.0, 7)
    assert pdv(decode(NO_PROBE)) is None


def test_the_summary_merges_what_its_trials_know() -> None:
    summary = _latency(
        {"ipdv": encode([(200, 3)]), "burst_rises": "", "probes_stamped": 4},
        {
            "ipdv": encode([(400, 1)]),
            "burst_rises": encode([(50, 2)]),
            "burst_falls": encode([(80, 1)]),
            "probes_stamped": 6,
        },
    )
    assert summary.ipdv == JitterSummary(0.25, 0.2, 0.4, 0.4, 4)
    assert summary.burst_jitter == JitterSummary(pytest.approx(0.06), 0.05, 0.08, 0.08, 3)
    assert summary.burst_signed == JitterSummary(pytest.approx(0.02 / 3), 0.05, 0.05, 0.05, 3)
    assert summary.pdv == JitterSummary(0.0, 0.0, 0.0, 0.0, 20)
    assert summary.probes_stamped == 10


def test_signed_differences_begin_with_the_largest_fall() -> None:
    found = signed_jitter([encode([(10, 2), (30, 1)]), ""], [encode([(40, 3)])])
    assert found == JitterSummary(pytest.approx(-0.07 / 6), -0.04, 0.03, 0.03, 6)
    assert signed_jitter([""], []) is None


def test_jitter_that_no_trial_knows_is_none() -> None:
    summary = _latency({}, {})
    assert (summary.ipdv, summary.burst_jitter, summary.probes_stamped) == (None, None, 0)


@pytest.mark.parametrize(
    ("clocks", "said"),
    [(("software",), "software"), (("hardware", "hardware"), "hardware"), (("hardware", "software"), "mixed")],
)
def test_a_mix_of_clocks_is_called_one(clocks: tuple[str, ...], said: str) -> None:
    assert _latency(*({"clock": clock} for clock in clocks)).clock == said
