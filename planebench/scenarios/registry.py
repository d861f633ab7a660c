# SPDX-License-Identifier: BSD-3-Clause
"""Valid scenarios, directions and frame sizes, and the parsers of what a user typed."""

from __future__ import annotations

from typing import get_args

from planebench.model.choices import unknown
from planebench.model.errors import UsageError
from planebench.model.scenario import (
    SCENARIOS,
    Direction,
    Scenario,
    ScenarioName,
    VnfLayout,
    scenarios_with,
    whole_number,
)

DIRECTIONS: tuple[Direction, ...] = get_args(Direction)

FRAME_SIZE_MIN_BYTES = 64
FRAME_SIZE_MAX_BYTES = 1518
FRAME_SIZE_JUMBO_BYTES = 9000


def parse_scenario(text: str) -> ScenarioName:
    """Return the name of a scenario; raise UsageError for another. The number of its VNFs is not part of the name."""
    if text in SCENARIOS:
        return text
    for name, scenario in SCENARIOS.items():
        if scenario.has_vnfs and text.startswith(f"{name}-"):
            count = f"its {scenario.count_name} (1..{scenario.vnfs_max})"
            raise UsageError(f'scenario "{text}": use {name}, and give {count}')
    raise unknown("scenario", text, SCENARIOS)


def parse_direction(text: str) -> Direction:
    """Return a direction; raise UsageError for another."""
    for name in DIRECTIONS:
        if text == name:
            return name
    raise unknown("direction", text, DIRECTIONS)


def parse_frame_size(value: str | int) -> int:
    """Return a frame size in bytes, FCS included, 64..1518 or 9000; raise UsageError for another."""
    size = whole_number(value)
    if size is None or not (FRAME_SIZE_MIN_BYTES <= size <= FRAME_SIZE_MAX_BYTES or size == FRAME_SIZE_JUMBO_BYTES):
        raise UsageError(
            f'frame size "{value}" is not valid. Valid: {FRAME_SIZE_MIN_BYTES}..{FRAME_SIZE_MAX_BYTES} '
            f"and {FRAME_SIZE_JUMBO_BYTES} bytes, FCS included"
        )
    return size


def parse_chain_length(value: str | int) -> int:
    """Return the number of VNFs of a chain; raise UsageError for another."""
    return _largest("chain").parse_count(value)


def parse_vnf_count(value: str | int) -> int:
    """Return the number of VNFs side by side; raise UsageError for another."""
    return _largest("side-by-side").parse_count(value)


def _largest(layout: VnfLayout) -> Scenario:
    return max((SCENARIOS[name] for name in scenarios_with(layout)), key=lambda scenario: scenario.vnfs_max)
