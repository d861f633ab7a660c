# SPDX-License-Identifier: BSD-3-Clause
import pytest

from planebench.stats.intervals import median_ratio_interval, relative_spread


@pytest.mark.parametrize(
    ("values", "spread"), [((), 0.0), ((5.0,), 0.0), ((0.0, 0.0), 0.0), ((9.0, 10.0, 11.0), 0.2), ((10.0, 10.0), 0.0)]
)
def test_spread(values: tuple[float, ...], spread: float) -> None:
    assert relative_spread(values) == pytest.approx(spread)


def test_a_ratio_has_an_interval_from_two_values_on_and_none_over_zero() -> None:
    assert median_ratio_interval([1.0], [1.0, 2.0]) is None
    assert median_ratio_interval([0.0, 1.0], [1.0, 2.0]) is None
    interval = median_ratio_interval([10.0, 10.1, 10.2], [20.0, 20.2, 20.4])
    assert interval == median_ratio_interval([10.0, 10.1, 10.2], [20.0, 20.2, 20.4])
    assert interval is not None
    assert (interval.lower, interval.upper) == (pytest.approx(20.0 / 10.2), pytest.approx(20.4 / 10.0))
