# SPDX-License-Identifier: BSD-3-Clause
"""Switches on NICs: each names its own by their addresses, probes no other, and keeps the pairs of ports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from planebench.model.errors import UsageError
from planebench.model.scenarios import build
from planebench.switches import bess, common, fastclick, ovs, t4p4s, testpmd, vpp
from planebench.switches.adapter import Situation
from planebench.switches.common import manifest
from planebench.switches.planed import switch_document
from planebench.switches.registry import get_adapter
from planebench.testbed.placement import Placement
from planebench.testbed.request import LinkSettings, SwitchRequest
from planebench.testbed.tester_config import switch_request, wire_stage
from planebench.testbed.wires.base import named_ends, wire_kind

# The NIC of the second wire has the lower address: DPDK numbers it first.
WIRE = "pci:3b:00.0=0000:af:00.1,0000:3b:00.1=0000:5e:00.0"


def links(scenario: str, wire: str = WIRE) -> LinkSettings:
    topology = build(scenario, int(scenario == "loopback"))
    return LinkSettings(Path("/run/x"), wire, ends=named_ends(topology.wire_ports, wire))


def request(scenario: str) -> SwitchRequest:
    topology = build(scenario, int(scenario == "loopback"))
    return switch_request(topology, Placement(3, (0,), (), frozenset({0})), links(scenario))


LOOPBACK = request("loopback")
PORTS = common.paired_ports(LOOPBACK)
OWN = ["-a", "0000:af:00.1", "-a", "0000:5e:00.0"]


def following(arguments: list[str]) -> list[str]:
    """The allow-list of an EAL command line."""
    return [word for n, word in enumerate(arguments) if word == "-a" or (n and arguments[n - 1] == "-a")]


def test_the_tester_drives_the_first_address_of_each_cable_and_the_switch_the_second() -> None:
    document = wire_stage(build("p2p"), links("p2p"))
    assert [(port.kind, port.device) for port in document.ports] == [
        ("ethdev", "0000:3b:00.0"),
        ("ethdev", "0000:3b:00.1"),
    ]
    found = [(port.kind, port.address) for port in request("p2p").ports]
    assert found == [("pci", "0000:af:00.1"), ("pci", "0000:5e:00.0")]


def test_rings_of_nics_and_of_vnfs_are_both_in_the_manifest() -> None:
    nics = tuple(replace(port, ring_size=512) if port.kind == "pci" else port for port in LOOPBACK.ports)
    assert manifest(replace(LOOPBACK, ports=nics), function="x", burst="32")["ring_size"] == "256, 512"


def test_planed_has_an_ethdev_of_the_address() -> None:
    ports = switch_document(LOOPBACK, "x").ports
    assert [(port.kind, port.device) for port in ports if port.kind == "ethdev"] == [
        ("ethdev", "0000:af:00.1"),
        ("ethdev", "0000:5e:00.0"),
    ]


def test_dpdk_numbers_nics_by_address_and_then_virtual_devices() -> None:
    assert [port.name for port in PORTS] == ["n0", "v0", "v1", "n1"]
    assert [port.name for port in common.dpdk_order(PORTS)] == ["n1", "n0", "v0", "v1"]


def test_testpmd_gets_its_ports_in_pairs() -> None:
    arguments = testpmd._arguments(Path("/bin/t"), LOOPBACK, PORTS, "pb-x")
    assert following(arguments) == OWN
    assert "--no-pci" not in arguments
    assert "--portlist=1,2,3,0" in arguments
    assert [word for word in arguments if word.startswith("--vdev")] == [
        "--vdev=net_vhost1,iface=/run/x/v0/sock,queues=1",
        "--vdev=net_vhost2,iface=/run/x/v1/sock,queues=1",
    ]


def test_fastclick_names_its_ports_by_their_numbers() -> None:
    arguments = fastclick.ADAPTER.eal_arguments(LOOPBACK, PORTS, "pb-x")
    assert following(arguments) == OWN and "--no-pci" not in arguments
    graph = fastclick.ADAPTER.graph(LOOPBACK, PORTS, Path("/run/x/c"))
    for number, name in enumerate(("n1", "n0", "v0", "v1")):
        assert f"{name}_in :: FromDPDKDevice({number}," in graph


def test_t4p4s_has_pairs_of_numbers_compiled_in() -> None:
    arguments = t4p4s.arguments(request("p2v"), common.paired_ports(request("p2v")), "pb-x")
    assert following(arguments) == OWN[:2] and "--no-pci" not in arguments
    assert "numbers both NICs before" in t4p4s.ADAPTER.refusal(Situation("loopback", "pci", 1))
    assert not t4p4s.ADAPTER.refusal(Situation("p2v", "pci"))


def test_ovs_opens_addresses() -> None:
    commands = ovs.configuration(LOOPBACK, "pb-x")
    assert any(f"dpdk-extra={' '.join(OWN)} --no-telemetry" in text for text in commands[0])
    (n0,) = (command for command in commands if command[:3] == ["set", "Interface", "n0"])
    assert n0[4:6] == ["type=dpdk", "options:dpdk-devargs=0000:af:00.1"]


def test_vpp_names_its_nics_as_we_do() -> None:
    conf = vpp.startup_conf(LOOPBACK, vpp.VppPaths(Path("/run/x"), "p"), Path("/p"))
    assert "plugin dpdk_plugin.so { enable }" in conf
    assert "dpdk { dev 0000:af:00.1 { name n0 num-rx-desc 256 num-tx-desc 256 } dev 0000:5e:00.0 { name n1" in conf
    lines = vpp.commands(LOOPBACK)
    assert "test l2patch rx n0 tx VirtualEthernet0/0/0" in lines


def test_a_switch_without_nics_probes_no_pci_device_at_all() -> None:
    plain = switch_request(build("v2v"), Placement(3, (0,), (), frozenset({0})), LinkSettings(Path("/run/x")))
    assert common.allow_list(plain.ports) == ["--no-pci"]
    assert "dpdk" not in vpp.startup_conf(plain, vpp.VppPaths(Path("/x"), "p"), Path("/p"))


@pytest.mark.parametrize(("switch", "why"), [("bess", "probes every NIC"), ("snabb", "drivers of its own")])
def test_a_switch_that_cannot_keep_to_its_own_nics_is_refused(switch: str, why: str) -> None:
    assert why in get_adapter(switch).refusal(Situation("p2p", "pci"))


def test_bess_that_takes_eal_arguments_gets_an_allow_list() -> None:
    patched = get_adapter("bess").with_options({"eal_env": "BESS_EAL"})
    assert not patched.refusal(Situation("p2p", "pci"))
    assert bess.eal_arguments(LOOPBACK, "pb-x")[: len(OWN)] == list(OWN)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("3b:00.0", '"3b:00.0" is no cable'),
        ("3b:00.0=eth0", "'eth0' is not a PCI address"),
    ],
)
def test_arguments_that_cannot_be_are_refused_in_a_sentence(arguments: str, words: str) -> None:
    from planebench.model.wire import parse_wire

    with pytest.raises(UsageError, match=words):
        parse_wire(f"pci:{arguments}")


def test_a_nic_at_two_ends_of_cables_is_refused_in_a_sentence() -> None:
    """Once a run looks at its devices: two hosts may each have a NIC of this address."""
    arguments = "3b:00.0=af:00.0,3b:00.1=0000:3b:00.0"
    with pytest.raises(UsageError, match=r"0000:3b:00\.0 is named twice"):
        wire_kind(f"pci:{arguments}").devices(arguments, None)
