# SPDX-License-Identifier: BSD-3-Clause
"""Scenario bridged: a chain behind two switches, the link between them, and what each of them is asked for."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from planebench.measure.hosted import functional_reasons
from planebench.model.cpus import Cpus
from planebench.model.records import SwitchCycles
from planebench.model.scenarios import build
from planebench.switches.adapter import Situation, refusal_of
from planebench.switches.linked import LinkedSwitches, requests_of
from planebench.switches.registry import ADAPTERS
from planebench.testbed.placement import place
from planebench.testbed.request import Ends, LinkSettings, SwitchRequest
from planebench.testbed.tester_config import switch_request
from planebench.testbed.wires.base import veth_pairs

LINKS = LinkSettings(Path("/run/x"))


def requests(count: int, links: LinkSettings = LINKS, cores: int = 1) -> tuple[SwitchRequest, ...]:
    topology = build("bridged", count)
    placement = place(Cpus(tuple(range(8)), switch_cores=cores), count)
    return requests_of(switch_request(topology, placement, links), topology, links)


@pytest.mark.parametrize(
    ("count", "first", "second"),
    [
        (1, [("n0", "v0"), ("v1", "m0")], [("m1", "n1")]),
        (2, [("n0", "v0"), ("v1", "m0")], [("m1", "v2"), ("v3", "n1")]),
        (3, [("n0", "v0"), ("v1", "v2"), ("v3", "m0")], [("m1", "v4"), ("v5", "n1")]),
    ],
)
def test_each_switch_has_its_half(count: int, first: list[tuple[str, str]], second: list[tuple[str, str]]) -> None:
    a, b = requests(count)
    assert list(a.cross_connects) == first and list(b.cross_connects) == second
    assert {port.name for port in a.ports} == {name for pair in first for name in pair}
    assert {port.name for port in b.ports} == {name for pair in second for name in pair}
    assert (a.workdir, b.workdir) == (Path("/run/x"), Path("/run/x/second"))


def test_the_tester_does_not_see_the_link() -> None:
    topology = build("bridged", 2)
    assert [port.name for port in topology.ports] == ["n0", "v0", "v1", "v2", "v3", "n1"]
    assert topology.ends == ("n0", "n1") and topology.scenario == "bridged"


def test_the_second_switch_listens_on_the_link() -> None:
    a, b = requests(2)
    near, far = (port for it in (a, b) for port in it.ports if port.name in ("m0", "m1"))
    assert (near.kind, far.kind) == ("virtio-user", "vhost-user")
    assert near.path == far.path == Path("/run/x/m0/sock")


def test_by_veth_the_link_is_a_pair() -> None:
    names = ("n0", "n1", "m0")
    links = LinkSettings(Path("/run/x"), wire="veth", ends={name: Ends(f"{name}-a", f"{name}-b") for name in names})
    topology = build("bridged", 2)
    assert veth_pairs(topology, links)[-1] == "m0" and veth_pairs(topology, LINKS) == []
    a, b = requests(2, links)
    near, far = (port for it in (a, b) for port in it.ports if port.name in ("m0", "m1"))
    assert (near.kind, near.interface, far.kind, far.interface) == ("af_packet", "m0-a", "af_packet", "m0-b")


def test_each_has_cores_of_its_own_or_says_that_it_has_not() -> None:
    a, b = requests(2)
    assert a.cpus == b.cpus
    topology = build("bridged", 2)
    (reason,) = functional_reasons(topology, place(Cpus(tuple(range(8))), 2), ())
    assert "two switches share CPU" in reason.text and "--switch-cores 2" in reason.text
    a, b = requests(2, cores=2)
    assert not set(a.cpus) & set(b.cpus)
    assert functional_reasons(topology, place(Cpus(tuple(range(8)), switch_cores=2), 2), ()) == ()
    a, b = requests(2, cores=3)
    assert (len(a.cpus), len(b.cpus)) == (2, 1)


def test_who_cannot_drive_the_link_says_so() -> None:
    able = {name for name, it in ADAPTERS.items() if not refusal_of(it, Situation("bridged", "virtio", 2))}
    assert {"planed", "testpmd", "ovs-dpdk"} <= able and not able & {"vpp", "bess", "snabb", "vale"}
    assert "use --wire veth" in refusal_of(ADAPTERS["bess"], Situation("bridged", "memif", 2))
    assert not refusal_of(ADAPTERS["vpp"], Situation("bridged", "veth", 2))
    for name in ("ovs-dpdk", "linux-bridge"):
        assert "devices of the same names" in refusal_of(ADAPTERS[name], Situation("bridged", "veth", 2))
    assert "has no link" in refusal_of(ADAPTERS["testpmd"], Situation("bridged", "pci", 2))


def test_counters_of_both_are_added_and_the_unknown_stays_unknown() -> None:
    a = SwitchCycles(busy_cycles=5, packets=7, drops={"v0:tx_full": 1}, counters={"x": 1})
    b = SwitchCycles(packets=9, drops={"v0:tx_full": 2, "m1:tx_full": 3}, counters={"x": 4})
    both = LinkedSwitches([SimpleNamespace(counters=lambda: a), SimpleNamespace(counters=lambda: b)]).counters()  # type: ignore[list-item]
    assert (both.busy_cycles, both.packets, both.counters) == (None, 16, {"x": 5})
    assert both.drops == {"v0:tx_full": 3, "m1:tx_full": 3}
