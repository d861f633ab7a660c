# SPDX-License-Identifier: BSD-3-Clause
"""Which topology a switch is asked about, for what it says of itself in the header."""

from __future__ import annotations

import pytest
from builders import make_point

from planebench.running.header import _representative


@pytest.mark.parametrize(
    ("scenarios", "sides", "ports"),
    [
        (("p2p",), {"wire"}, 2),
        (("v2v",), {"vnf"}, 2),
        (("p2p", "v2v"), {"wire", "vnf"}, 2),
        (("p2p", "p2v", "v2v"), {"wire", "vnf"}, 2),
        (("p2p", "loopback"), {"wire", "vnf"}, 4),
        ((), {"vnf"}, 2),
    ],
)
def test_both_kinds_of_ports_are_shown_where_the_run_has_both(
    scenarios: tuple[str, ...], sides: set[str], ports: int
) -> None:
    topology = _representative([make_point("planed", scenario) for scenario in scenarios])
    assert {port.side for port in topology.ports} == sides
    assert len(topology.ports) == ports


def test_the_longest_chain_is_shown() -> None:
    chains = [make_point("planed", "loopback", chain_length=length) for length in (1, 3, 2)]
    assert len(_representative(chains).ports) == 8
