# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import pytest

from planebench.model.errors import UsageError
from planebench.model.scenario import SCENARIOS, Scenario
from planebench.model.scenarios import (
    DIRECTIONS,
    build,
    flows,
    parse_chain_length,
    parse_direction,
    parse_frame_size,
    parse_scenario,
)


def test_scenarios_are_found_and_in_their_order() -> None:
    assert list(SCENARIOS) == ["p2p", "p2v", "v2v", "loopback", "bridged", "bare", "parallel"]
    assert all(name == scenario.name for name, scenario in SCENARIOS.items())


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=list(SCENARIOS))
def test_what_a_scenario_says_of_itself_is_what_it_builds(scenario: Scenario) -> None:
    topology = build(scenario.name, int(scenario.has_vnfs))
    sides = {port.name: port.side for port in topology.ports}
    assert tuple(sides[end] for end in topology.ends) == scenario.ends
    assert scenario.wired == ("wire" in sides.values())
    assert bool(topology.vnfs) == (scenario.has_vnfs and not scenario.bare)
    assert {flow.name for mode in scenario.directions for flow in flows(topology, mode)}


def test_names_parse_to_themselves() -> None:
    assert list(map(parse_scenario, SCENARIOS)) == list(SCENARIOS)
    assert tuple(map(parse_direction, DIRECTIONS)) == DIRECTIONS


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("p2q", ['"p2q"', "did you mean", "p2p, p2v, v2v, loopback"]),
        ("", ['""', "p2p, p2v, v2v, loopback"]),
        ("P2P", ['"P2P"', "Valid: p2p"]),
        ("loopback-3", ["loopback-3", "chain length", "1..5"]),
    ],
)
def test_unknown_scenario_names_value_and_way_out(text: str, words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        parse_scenario(text)
    assert all(word in str(caught.value) for word in words)


def test_unknown_direction_names_the_valid_ones() -> None:
    with pytest.raises(UsageError, match=r'"bidirektional", did you mean bidirectional\? Valid: unidirectional, '):
        parse_direction("bidirektional")


@pytest.mark.parametrize("value", ["64", 64, "65", "256", "1517", "1518", "9000", 9000])
def test_valid_frame_sizes(value: str | int) -> None:
    assert parse_frame_size(value) == int(value)


@pytest.mark.parametrize(
    "value", ["63", 63, "1519", "8999", "9001", "0", "-64", "64.0", "6_4", " 64", "0x40", "", "²", True]
)
def test_invalid_frame_sizes_name_the_valid_ones(value: str | int) -> None:
    with pytest.raises(UsageError, match=r"64\.\.1518 and 9000") as caught:
        parse_frame_size(value)
    assert f'"{value}"' in str(caught.value)


def test_chain_lengths() -> None:
    assert [parse_chain_length(str(n)) for n in range(1, 6)] == [1, 2, 3, 4, 5]
    for bad in ("0", "6", "-1", "one", 0, 6):
        with pytest.raises(UsageError, match=rf'"{bad}".*1\.\.5'):
            parse_chain_length(bad)
