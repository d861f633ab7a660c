# SPDX-License-Identifier: BSD-3-Clause
from datetime import datetime, timedelta, timezone

import pytest

from planebench.model.text import SECONDS, SHARES, parse_number, parse_whole, utc_now, utc_text


@pytest.mark.parametrize(
    ("text", "value"),
    [("14.88M", 14.88e6), ("100k", 1e5), ("5e6", 5e6), ("1e-3", 1e-3), (".5", 0.5), (" 2G ", 2e9), ("0", 0)],
)
def test_numbers_with_units(text: str, value: float) -> None:
    assert parse_number(text) == value


@pytest.mark.parametrize("text", ["", "k", "1K", "1kk", "-1", "1 k", "1%", "90s", "nan", "inf", "1.2.3", "9e999"])
def test_what_is_not_a_number(text: str) -> None:
    assert parse_number(text) is None


def test_shares_and_times() -> None:
    assert (parse_number("50%", SHARES), parse_number("1.5h", SECONDS), parse_number("90", SECONDS)) == (0.5, 5400, 90)
    assert parse_number("1k", SECONDS) is None


def test_whole_numbers_are_exact() -> None:
    assert parse_whole("123456789012345678G") == 123456789012345678 * 10**9
    assert [parse_whole(text) for text in ("1.5", "1%", "-1", "", "1s")] == [None] * 5


def test_moments_are_utc() -> None:
    there = datetime(2026, 11, 21, 14, 33, 56, 7000, timezone(timedelta(hours=2)))
    assert (utc_text(there), utc_text(there, "milliseconds")) == ("2026-11-21T12:33:56Z", "2026-11-21T12:33:56.007Z")
    assert utc_now().endswith("Z")
