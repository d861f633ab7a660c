# SPDX-License-Identifier: BSD-3-Clause
"""A wire is one module: one that is added here runs as the others do, and nobody else knows a wire by name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import planebench
from planebench.conformance.suite import parse_wires
from planebench.measure.calibrate import loop_document
from planebench.measure.live import LiveSettings
from planebench.measure.sim.adapter import ADAPTER as SIM
from planebench.model.errors import UsageError
from planebench.model.scenarios import build
from planebench.model.wire import WIRES, parse_wire, register, split_wires, wire_arguments, wire_name
from planebench.plan.expand import expand
from planebench.plan.override import override
from planebench.plan.schema import load_plan
from planebench.planed.document import Port
from planebench.testbed.placement import Placement
from planebench.testbed.request import Ends, LinkSettings, LinkSide, SwitchPort
from planebench.testbed.tester_config import switch_request, wire_stage
from planebench.testbed.wires.base import WireKind, af_packet_port, named_ends

ROOT = Path(planebench.__file__).parent


class Bridge(WireKind):
    """The example of docs/design/adding.md: interfaces of the kernel that exist already."""

    name = "interfaces"
    order = 35
    title = "interfaces (of the kernel, as they are)"
    help = "Kernel interfaces that the user has connected; the tester has DPDK's af_packet driver."
    arguments = "TESTER=SWITCH,..."
    standard_frames_driver = "af_packet"
    ceilings = "measured"
    kernel_interfaces = True

    def planed_port(self, port: Port, cable: str, links: LinkSettings, side: LinkSide = "tester") -> Port:
        """Return the interface of a side."""
        return af_packet_port(port, getattr(links.ends[cable], side), links)

    def switch_port(self, port: SwitchPort, cable: str, links: LinkSettings) -> SwitchPort:
        """Return the switch's interface."""
        return replace(port, kind="af_packet", interface=links.ends[cable].switch)

    def cables(self, arguments: str) -> tuple[Ends, ...]:
        """Return the pairs of interfaces."""
        return tuple(Ends(tester, switch) for tester, _, switch in (c.partition("=") for c in arguments.split(",")))


@pytest.fixture
def interfaces() -> Iterator[str]:
    """The wire, with the arguments of a lab with two cables."""
    register(Bridge())
    yield "interfaces:e0=e2,e1=e3"
    del WIRES["interfaces"]


def links(wire: str) -> LinkSettings:
    topology = build("p2p")
    return LinkSettings(Path("/run/x"), wire, ends=named_ends(topology.wire_ports, wire))


def test_a_wire_takes_its_place_in_the_registry(interfaces: str) -> None:
    names = list(WIRES)
    assert names.index("veth") + 1 == names.index("interfaces")


def test_a_plan_has_it_with_its_arguments_and_a_point_without(interfaces: str) -> None:
    plan = override(load_plan("quick"), switch="sim", wire=interfaces)
    assert plan.wire == interfaces
    assert {point.wire for point in expand(plan)} == {"interfaces"}


def test_both_sides_get_the_devices_that_the_user_named(interfaces: str) -> None:
    topology, found = build("p2p"), links(interfaces)
    devices = [port.device.split(",")[1] for port in wire_stage(topology, found).ports]
    request = switch_request(topology, Placement(2, (0,), (), frozenset({1})), found)
    assert devices == ["iface=e0", "iface=e1"]
    assert [(port.kind, port.interface) for port in request.ports] == [("af_packet", "e2"), ("af_packet", "e3")]


def test_a_calibration_has_both_ends_of_the_first_cable(interfaces: str) -> None:
    settings = LiveSettings(Path("planed"), 256, False, 1518, interfaces)
    ends = named_ends(["loop"], interfaces)["loop"]
    document = loop_document(settings, Placement(2, (0,), (), frozenset({1})), "c", Path("/run/x"), ends)
    assert [port.device.split(",")[1] for port in document.ports] == ["iface=e0", "iface=e2"]


def test_a_topology_needs_as_many_cables_as_it_has_wires(interfaces: str) -> None:
    with pytest.raises(UsageError, match='wire "interfaces:e0=e2" names 1 cable, but 2 are needed'):
        links("interfaces:e0=e2")


def test_conformance_takes_it_only_where_it_is_named(interfaces: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SIM, "wires", SIM.wires | {"interfaces"})
    assert "interfaces" not in parse_wires("all", SIM)
    assert parse_wires(f"virtio,{interfaces},veth", SIM) == ("virtio", "veth", interfaces)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("interfaces", 'wire "interfaces" needs arguments: --wire interfaces:TESTER=SWITCH'),
        ("virtio:x", 'wire "virtio:x": virtio has no arguments; use --wire virtio'),
        ("virtoi", 'unknown wire "virtoi", did you mean virtio'),
    ],
)
def test_what_cannot_be_is_refused(interfaces: str, text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_wire(text)


def test_a_comma_may_belong_to_the_arguments(interfaces: str) -> None:
    assert split_wires("memif, interfaces:a=b,c=d,veth") == ["memif", "interfaces:a=b,c=d", "veth"]
    assert (wire_name(interfaces), wire_arguments(interfaces)) == ("interfaces", "e0=e2,e1=e3")


def _compares_a_wire(node: ast.AST) -> bool:
    """Return whether an expression compares a variable or an attribute of a wire with the name of one."""
    inner = list(ast.walk(node)) if isinstance(node, ast.Compare) else []
    named = any(isinstance(it, ast.Constant) and it.value in WIRES for it in inner)
    return named and any("wire" in str(getattr(it, "id", getattr(it, "attr", ""))) for it in inner)


def test_nobody_else_compares_the_name_of_a_wire() -> None:
    """Others ask a property of the wire. An adapter may name wires: they are what it supports."""
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(ROOT.rglob("*.py"))}
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, text in sources.items()
        if path.parent not in (ROOT / "testbed" / "wires", ROOT / "switches")
        and any(f'"{wire}"' in text for wire in WIRES)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.expr) and _compares_a_wire(node)
    ]
    assert not found
