# SPDX-License-Identifier: BSD-3-Clause
"""Valid scenarios, directions, frame sizes and chain lengths, and the parsers of what a user typed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from planebench.model.choices import unknown
from planebench.model.errors import UsageError
from planebench.model.records import Direction, ScenarioName
from planebench.vnfs.chain import CHAIN_LENGTH_MAX

SCENARIOS: tuple[ScenarioName, ...] = get_args(ScenarioName)
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)

VNF_COUNT_MAX = 63
"""VNFs side by side: as many as ic16 has."""

FRAME_SIZE_MIN_BYTES = 64
FRAME_SIZE_MAX_BYTES = 1518
FRAME_SIZE_JUMBO_BYTES = 9000


@dataclass(frozen=True, slots=True)
class ScenarioInfo:
    """A scenario for people: the path of a packet, and what the scenario tells."""

    name: ScenarioName
    path: str
    tells: str


SCENARIO_INFOS: tuple[ScenarioInfo, ...] = (
    ScenarioInfo("p2p", "wire -> switch -> wire", "bare forwarding baseline"),
    ScenarioInfo("p2v", "wire -> switch -> VNF", "first and last hop of a chain; cost of virtual I/O"),
    ScenarioInfo("v2v", "VNF -> switch -> VNF", "VNF-to-VNF hop, bounded by memory"),
    ScenarioInfo("loopback", "wire -> switch -> VNF 1 -> ... -> VNF N -> switch -> wire", "a whole service chain"),
    ScenarioInfo("parallel", "wire -> switch -> one of N VNFs, by MAC -> switch -> wire", "many VNFs on few cores"),
)


def parse_scenario(text: str) -> ScenarioName:
    """One of SCENARIOS, or UsageError. The length of a chain, or a number of VNFs, is not part of the name."""
    for name in SCENARIOS:
        if text == name:
            return name
    if text.startswith("loopback-"):
        raise UsageError(f'scenario "{text}": name it loopback, and give its chain length (1..{CHAIN_LENGTH_MAX})')
    if text.startswith("parallel-"):
        raise UsageError(f'scenario "{text}": name it parallel, and give its number of VNFs (1..{VNF_COUNT_MAX})')
    raise unknown("scenario", text, SCENARIOS)


def parse_direction(text: str) -> Direction:
    """One of DIRECTIONS, or UsageError."""
    for name in DIRECTIONS:
        if text == name:
            return name
    raise unknown("direction", text, DIRECTIONS)


def parse_frame_size(value: str | int) -> int:
    """Frame size in bytes, FCS included: 64..1518 or 9000; anything else is a UsageError."""
    size = _integer(value)
    if size is None or not (FRAME_SIZE_MIN_BYTES <= size <= FRAME_SIZE_MAX_BYTES or size == FRAME_SIZE_JUMBO_BYTES):
        raise UsageError(
            f'frame size "{value}" is not valid. Valid: {FRAME_SIZE_MIN_BYTES}..{FRAME_SIZE_MAX_BYTES} '
            f"and {FRAME_SIZE_JUMBO_BYTES} bytes, FCS included"
        )
    return size


def parse_chain_length(value: str | int) -> int:
    """Number of VNFs of a loopback chain: 1..5; anything else is a UsageError."""
    length = _integer(value)
    if length is None or not 1 <= length <= CHAIN_LENGTH_MAX:
        raise UsageError(f'chain length "{value}" is not valid. Valid: 1..{CHAIN_LENGTH_MAX}')
    return length


def parse_vnf_count(value: str | int) -> int:
    """Number of VNFs side by side: 1..63; anything else is a UsageError."""
    count = _integer(value)
    if count is None or not 1 <= count <= VNF_COUNT_MAX:
        raise UsageError(f'number of VNFs "{value}" is not valid. Valid: 1..{VNF_COUNT_MAX}')
    return count


def _integer(value: str | int) -> int | None:
    """Plain decimal digits only: int() alone would take "6_4", " 64 " and True."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if value.isascii() and value.isdigit() else None
