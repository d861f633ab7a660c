# SPDX-License-Identifier: BSD-3-Clause
"""Which topology a switch is asked about, for what it says of itself in the header."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import make_point

from planebench.analysis.conditions import differing_facts
from planebench.host.facts import HostFacts
from planebench.measure.header import _representative, make_header
from planebench.measure.live import LiveSettings
from planebench.measure.machine import Machine, run_cpus
from planebench.measure.survey import survey
from planebench.model.cpus import CoreKind


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


def test_the_kind_of_core_is_told() -> None:
    kinds = (CoreKind("IntelCore", frozenset((3, 4, 5))), CoreKind("IntelAtom", frozenset(range(3))))
    wanted = survey("quick", {"switch": "sim"})
    for found, of_pollers, of_host in ((kinds, "IntelCore", "IntelCore 3-5; IntelAtom 0-2"), ((), None, "")):
        facts = HostFacts(cpus_online=tuple(range(6)), cpus_allowed=tuple(range(6)), core_kinds=found)
        machine = Machine(facts, run_cpus(facts, 1, "virtio", "near"), simulated=True)
        header = make_header(wanted, machine, LiveSettings(Path("planed"), 256, False, 1518, "virtio"))
        assert (header.settings["core_kinds"], header.host["core_kinds"]) == (of_pollers, of_host)


def test_several_cores_of_the_tester_are_told_and_not_compared_with_one() -> None:
    facts = HostFacts(cpus_online=tuple(range(6)), cpus_allowed=tuple(range(6)))
    headers = []
    for cores in (1, 2):
        wanted = survey("quick", {"switch": "sim", "tester_cores": cores})
        machine = Machine(facts, run_cpus(facts, 1, "virtio", "near", tester_cores=cores), simulated=True)
        headers.append(make_header(wanted, machine, LiveSettings(Path("planed"), 256, False, 1518, "virtio")))
    one, two = headers
    assert ("tester_cores" in one.settings, two.settings["tester_cores"], two.plan.tester_cores) == (False, 2, 2)
    words = "cores of the tester, each with a queue pair of every port: not stated against 2"
    assert words in differing_facts(one, two)
