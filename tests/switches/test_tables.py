# SPDX-License-Identifier: BSD-3-Clause
"""Every wire, every kind of port and every option of every adapter, in each table that is keyed by one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from planebench.measure.live import LiveSettings, link_settings
from planebench.measure.runner import SelfMeasured
from planebench.model.conditions import MANIFEST_KEYS, UNKNOWN
from planebench.model.cpus import Cpus
from planebench.model.scenario import ScenarioName
from planebench.model.scenarios import build
from planebench.model.switch import Option
from planebench.switches import bess, common, fastclick, grout, ovs, snabb, t4p4s, testpmd, vpp, vpp_counters
from planebench.switches.adapter import Adapter
from planebench.switches.planed import switch_document
from planebench.switches.registry import ADAPTERS
from planebench.testbed.placement import place
from planebench.testbed.request import Ends, SwitchRequest
from planebench.testbed.tester_config import switch_request

NICS = "pci:0000:01:00.0=0000:02:00.0,0000:01:00.1=0000:02:00.1"
REAL = {name: adapter for name, adapter in ADAPTERS.items() if not isinstance(adapter, SelfMeasured)}
CASES: tuple[tuple[ScenarioName, int], ...] = (("p2p", 0), ("loopback", 1))


def request_of(adapter: Adapter, wire: str, scenario: ScenarioName, chain_length: int) -> SwitchRequest:
    """What the adapter is asked to start."""
    topology = build(scenario, chain_length)
    settings = LiveSettings(Path("planed"), 256, False, 1518, NICS if wire == "pci" else wire)
    links = link_settings(adapter, topology, settings, Path("/w"))
    unnamed = {port.name: Ends(f"{port.name}-tester", f"{port.name}-switch") for port in topology.ports}
    placement = place(Cpus(tuple(range(4)), switch_cores=adapter.queues), chain_length)
    return switch_request(topology, placement, replace(links, ends={**unnamed, **links.ends}))


def _vpp(adapter: Any, request: SwitchRequest) -> None:
    vpp.commands(request)
    paths = vpp.VppPaths(Path("/w"), "x")
    text = vpp.startup_conf(request, paths, Path("/p"))
    assert all(plugin in text for plugin in ("memif", "vhost", "af_packet", "af_xdp"))
    assert vpp.interface_names(request).keys() == {port.name for port in request.ports}
    assert {port.kind for port in request.ports} <= vpp_counters.TX_ERRORS.keys()


def _bess(adapter: Any, request: SwitchRequest) -> None:
    client: Any = SimpleNamespace(call=lambda *_: None)
    by_hop = adapter.value("serve", "queues") == "hops"
    bess.RunningBess(SimpleNamespace(pid=1), client, request, by_hop).configure()  # type: ignore[arg-type]


def _testpmd(adapter: Any, request: SwitchRequest) -> None:
    testpmd._arguments(Path("/t"), request, common.paired_ports(request), "x", adapter.value("burst", 32))


def _fastclick(adapter: Any, request: SwitchRequest) -> None:
    adapter.graph(request, common.paired_ports(request), Path("/c"))
    fastclick.ADAPTER.eal_arguments(request, common.paired_ports(request), "x")


def _ovs(adapter: Any, request: SwitchRequest) -> None:
    ovs.configuration(request, "x")
    ovs.flows_of(request)


def _kernel(adapter: Any, request: SwitchRequest) -> None:
    for port in request.ports:
        assert port.interface


STARTED: Mapping[str, Callable[[Any, SwitchRequest], object]] = {
    "planed": lambda adapter, request: switch_document(request, "x", adapter.values),
    "ovs-dpdk": _ovs,
    "testpmd": _testpmd,
    "vpp": _vpp,
    "bess": _bess,
    "fastclick": _fastclick,
    "snabb": lambda adapter, request: snabb.script_arguments(request),
    "t4p4s": lambda adapter, request: t4p4s.arguments(request, request.ports, "x"),
    "grout": lambda adapter, request: grout.commands(request),
    "linux-bridge": _kernel,
    "xdp": _kernel,
    "vale": _kernel,
    "sriov": lambda adapter, request: [port.address for port in request.ports if port.kind == "pci"],
}
"""What each adapter makes of a request to start, without starting anything."""


def check(adapter: Adapter, request: SwitchRequest) -> None:
    settings = adapter.settings(request)
    assert all(settings.get(key, "").strip() for key in MANIFEST_KEYS)
    assert settings["nic_driver"] not in (UNKNOWN, "-"), "the driver of its wires"
    STARTED[adapter.name](adapter, request)


def values_of(option: Option) -> list[str]:
    """Texts of an option: each of its choices, or what it takes at least and at most."""
    if option.choices:
        return list(option.choices)
    if option.kind == "flag":
        return ["true", "false"]
    if option.kind == "whole":
        return [str(n) for n in (option.least, option.most) if n is not None]
    return []


def test_every_adapter_has_its_entry_here() -> None:
    assert STARTED.keys() == REAL.keys()


@contextmanager
def saying(what: str) -> Iterator[None]:
    """Add to an error for what it was raised."""
    try:
        yield
    except Exception as error:
        error.add_note(what)
        raise


@pytest.mark.parametrize("name", REAL)
def test_every_wire_is_in_every_table(name: str) -> None:
    adapter = REAL[name]
    # VNFs on virtual functions are side by side.
    cases = CASES[:1] if adapter.vnf_interface == "vf" else CASES
    for wire, (scenario, chain_length) in product(sorted(adapter.wires), cases):
        with saying(f"wire {wire}, {scenario}"):
            check(adapter, request_of(adapter, wire, scenario, chain_length))


@pytest.mark.parametrize("name", REAL)
def test_every_option_is_in_every_table(name: str) -> None:
    for option, text in ((it.name, text) for it in REAL[name].options for text in values_of(it)):
        adapter = REAL[name].with_options({option: text})
        wires = adapter.queued_wires & adapter.wires if adapter.queues > 1 else adapter.wires
        for wire in sorted(wires):
            with saying(f"wire {wire}, {option}={text}"):
                check(adapter, request_of(adapter, wire, "p2p", 0))
