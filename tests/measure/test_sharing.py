# SPDX-License-Identifier: BSD-3-Clause
"""The finding on cores that another hyperthread uses."""

from __future__ import annotations

from pathlib import Path

import pytest

from planebench.measure.doctor import LOOKS, look_at_cores, sharing_findings
from planebench.model.records import CoreDistance


def _looks(*speeds: tuple[float, float]) -> list[CoreDistance]:
    return [CoreDistance(60.0, "near", pair) for pair in speeds]


def test_cores_that_are_alone_are_fine() -> None:
    assert sharing_findings((2, 5), _looks((4.0, 3.9), (3.95, 4.0))) == ()


@pytest.mark.parametrize(
    ("looks", "words"),
    [
        ([(4.0, 2.0), (4.0, 4.0)], "used the core of CPU 5 in 1 of 2 measurements, and left 50% of it"),
        (
            [(3.0, 4.0), (1.0, 2.0)],
            "used the core of CPU 2 in 2 of 2 measurements and CPU 5 in 1 of 2 measurements, and left 25% of it",
        ),
    ],
)
def test_shared_cores_are_named_with_a_way_out(looks: list[tuple[float, float]], words: str) -> None:
    (found,) = sharing_findings((2, 5), _looks(*looks))
    assert found.level == "warning" and words in found.text and "whole cores" in found.remedy


def test_nothing_is_said_where_nothing_is_known() -> None:
    assert sharing_findings((0, 1), []) == sharing_findings((0, 1), _looks((0.0, 0.0))) == ()


def test_cores_are_looked_at_until_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planebench.measure.doctor.LOOK_S", 0)
    asked: list[tuple[int, int]] = []

    def measure(planed: Path, a: int, b: int) -> CoreDistance | None:
        asked.append((a, b))
        return CoreDistance(60.0, "near", (4.0, 3.0)) if len(asked) != LOOKS + 3 else None

    monkeypatch.setattr("planebench.measure.doctor.measure_distance", measure)
    assert list(look_at_cores(Path("planed"), (3, 1, 2))) == _looks(*[(4.0, 3.0)] * LOOKS)
    assert set(asked) == {(3, 1)}
    assert list(look_at_cores(Path("planed"), (3, 1))) == _looks(*[(4.0, 3.0)] * 2), "until a measurement fails"
    assert list(look_at_cores(Path("planed"), (3,))) == [], "one CPU shares with nobody that can be compared"
