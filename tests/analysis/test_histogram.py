# SPDX-License-Identifier: BSD-3-Clause
from collections import Counter

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from planebench.analysis.histogram import HIGHEST_NS, decode, encode, merge, percentile_ns, summarise
from planebench.model.errors import StoreError

values = st.lists(st.integers(1, HIGHEST_NS), min_size=1, max_size=60)
few = settings(max_examples=15, deadline=None)
"""The reference implementation walks all its buckets in Python."""


def _sparse(samples: list[int]) -> list[list[int]]:
    return [[value, count] for value, count in sorted(Counter(samples).items())]


@given(values, values)
@few
def test_the_merge_of_unequal_parts_is_the_whole(left: list[int], right: list[int]) -> None:
    whole = decode(encode(_sparse(left + right)))
    assert (merge([encode(_sparse(left)), encode(_sparse(right))]) == whole).all()


@given(values)
@few
def test_figures_agree_with_the_reference_implementation(samples: list[int]) -> None:
    reference = HdrHistogram(1, HIGHEST_NS, 3)
    for sample in samples:
        reference.record_value(sample)
    summary = summarise(decode(encode(_sparse(samples))))
    assert summary is not None
    assert summary.samples == reference.get_total_count()
    assert summary.mean == pytest.approx(reference.get_mean_value() / 1e3)
    assert summary.stddev == pytest.approx(reference.get_stddev() / 1e3, abs=1e-3)


@given(values, st.floats(0.001, 1.0))
@few
def test_a_percentile_is_the_nearest_rank_within_a_thousandth(samples: list[int], share: float) -> None:
    exact = sorted(samples)[max(0, -int(-share * len(samples) // 1) - 1)]
    found = percentile_ns(decode(encode(_sparse(samples))), share)
    assert exact <= found <= exact * 1.001 + 1


def test_known_figures() -> None:
    summary = summarise(decode(encode([[1000, 989], [5000, 10], [100_000, 1]])))
    assert summary is not None
    assert (summary.p50, summary.p90, summary.p99_9) == (1.0, 1.0, pytest.approx(5.0, rel=1e-3))
    assert summary.max == pytest.approx(100.0, rel=1e-3)
    assert summary.mean == pytest.approx((989 + 50 + 100) / 1000, rel=1e-3)


def test_overflow_counts_as_the_highest_value() -> None:
    summary = summarise(decode(encode([[1000, 98]], overflow=2)))
    assert summary is not None
    assert (summary.samples, summary.p50) == (100, 1.0)
    assert summary.p99 == summary.max == HIGHEST_NS / 1e3


def test_an_empty_histogram_has_no_figures() -> None:
    assert summarise(merge([])) is None
    assert summarise(decode(encode([]))) is None


@pytest.mark.parametrize("bucket", [[-1, 1], [5, -1]])
def test_negative_buckets_are_refused(bucket: list[int]) -> None:
    with pytest.raises(ValueError, match="not negative"):
        encode([bucket])


@pytest.mark.parametrize("text", ["", "rubbish", "AAAA", "HISTFAAAAAA=", "ü"])
def test_a_broken_histogram_is_named(text: str) -> None:
    with pytest.raises(StoreError, match="cannot be decoded"):
        decode(text)


def test_a_histogram_of_another_shape_is_refused() -> None:
    with pytest.raises(StoreError, match="buckets"):
        decode(HdrHistogram(1, 1000, 2).encode().decode())
