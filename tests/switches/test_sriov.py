# SPDX-License-Identifier: BSD-3-Clause
"""A NIC as the switch: VNFs side by side have its virtual functions, and frames come back by the same cable."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from planebench.host import device_settings, interfaces, journal, pci, pci_binding
from planebench.host.device_settings import device_journal
from planebench.host.journal import Journal
from planebench.host.programs import ProgramOutput
from planebench.measure.hosted import hosted_requests
from planebench.model.cpus import Cpus
from planebench.model.errors import DiedError, StartError, UsageError
from planebench.model.scenarios import build, flows
from planebench.switches import sriov
from planebench.switches.adapter import Situation, refusal_of
from planebench.switches.registry import get_adapter
from planebench.switches.sriov import RunningNic
from planebench.testbed.hosting import machine, qemu
from planebench.testbed.placement import place
from planebench.testbed.request import Ends, LinkSettings, SwitchRequest
from planebench.testbed.tester_config import assign_tasks, full_stage, switch_request, wire_stage
from planebench.testbed.wires.base import cabled, named_ends
from tests.sysfs_tree import Tree

TESTER, NIC = "0000:3b:00.0", "0000:af:00.0"
WIRE = f"pci:{TESTER}={NIC}"
COUNT = 3
FUNCTIONS = [f"0000:af:02.{number}" for number in range(COUNT)]
TOPOLOGY = build("parallel", COUNT)
CPUS = Cpus(tuple(range(8)))


def links(**more: Any) -> LinkSettings:
    ends = named_ends(cabled(TOPOLOGY, "vf"), WIRE)
    ends |= {f"v{number}": Ends(function, NIC) for number, function in enumerate(FUNCTIONS)}
    return LinkSettings(Path("/run/x"), WIRE, vnf_interface="vf", ends=ends, **more)


def request() -> SwitchRequest:
    return switch_request(TOPOLOGY, place(CPUS, COUNT, hosted=range(COUNT)), links())


class Ip:
    """The program ip: virtual functions have what they were given, and counters."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.given: dict[int, dict[str, Any]] = {}
        self.counters: dict[int, dict[str, Any]] = {}
        self.refuses = ""

    def __call__(self, argv: Sequence[str], timeout_s: float = 0.0) -> ProgramOutput:
        words = list(argv)
        if "show" in words:
            count = pci.nic(NIC, self.tree.root).vfs
            fresh: dict[str, Any] = {"address": "00:00:00:00:00:00", "spoofchk": True, "trust": False}
            told = {number: {"stats": counters} for number, counters in self.counters.items()}
            found = [
                {"vf": number, **fresh, **self.given.get(number, {}), **told.get(number, {})} for number in range(count)
            ]
            return ProgramOutput(0, json.dumps([{"ifname": "ens1", "vfinfo_list": found}]), "")
        if self.refuses and self.refuses in words:
            return ProgramOutput(2, "", "RTNETLINK answers: Operation not permitted")
        if "vf" in words:
            number, key, value = int(words[6]), words[7], words[8]
            given: Any = {"mac": {"address": value}}.get(key, {key: value == "on"})
            self.given.setdefault(number, {}).update(given)
        else:
            flags = "0x1003" if words[-1] == "up" else "0x1002"
            self.tree.set(f"sys/bus/pci/devices/{NIC}/net/ens1/flags", flags)
        return ProgramOutput(0, "", "")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """A server whose NIC at the switch's end can have virtual functions."""
    tree = Tree(tmp_path / "root")
    tree.device(TESTER, "ice", "40")
    tree.device(NIC, "ice", "41", sriov_totalvfs="64", sriov_numvfs="0")
    tree.interface(TESTER, "ens0", up=False)
    tree.interface(NIC, "ens1", up=False)
    tree.run(monkeypatch)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(interfaces, "ssh_connection", lambda: None)
    return tree


@pytest.fixture
def log(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Journal:
    log = device_journal(tmp_path / "undo.json", tree.root)
    monkeypatch.setattr(sriov, "device_journal", lambda: log)
    return log


@pytest.fixture
def ip(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> Ip:
    ip = Ip(tree)
    monkeypatch.setattr(device_settings, "run_tool", ip)
    monkeypatch.setattr(sriov, "run_tool", ip)
    return ip


def test_the_tester_has_one_port_where_its_frames_come_back() -> None:
    assert cabled(TOPOLOGY, "vf") == ("n0",) and cabled(TOPOLOGY, "vhost-user") == ("n0", "n1")
    placement = place(CPUS, COUNT, hosted=range(COUNT))
    assert [(port.name, port.device) for port in wire_stage(TOPOLOGY, links()).ports] == [("n0", TESTER)]
    document = full_stage(TOPOLOGY, assign_tasks(placement, TOPOLOGY, one_wire=True), links())
    assert [(port.name, port.device) for port in document.ports] == [("n0", TESTER)]
    assert [(task.name, task.ports) for task in document.tasks] == [("mon-n1", ("n0",)), ("gen-n0", ("n0",))]
    assert {task for worker in document.workers for task in worker.tasks} == {"mon-n1", "gen-n0"}
    (flow,) = flows(TOPOLOGY, "unidirectional")
    assert (f"gen-{flow.sender_port}", f"mon-{flow.receiver_port}") == ("gen-n0", "mon-n1")


def test_each_vnf_drives_its_virtual_function() -> None:
    asked = request()
    assert [(port.name, port.kind, port.address) for port in asked.ports] == [
        ("n0", "pci", NIC),
        *((f"v{number}", "vf", "") for number in range(COUNT)),
    ]
    first, *_ = hosted_requests(TOPOLOGY, place(CPUS, COUNT, hosted=range(COUNT)), links(), Path("/planed"))
    assert first.document is not None
    assert [(port.kind, port.device) for port in first.document.ports] == [("ethdev", FUNCTIONS[0])]
    assert [(port.mac, port.address) for port in first.ports] == [(TOPOLOGY.vnfs[0].mac, FUNCTIONS[0])]


def test_a_guest_has_the_function_where_its_document_says() -> None:
    first, *_ = hosted_requests(TOPOLOGY, place(CPUS, COUNT, hosted=range(COUNT)), links(), Path("/planed"))
    assert first.document is not None
    inside = machine.guest_document(first.document, first.ports, first.cpus, 1)
    assert [port.device for port in inside.ports] == [qemu.device_address(0)] == ["0000:00:12.0"]
    boot = qemu.Disk(Path("/disk"), "raw")
    guest = qemu.Guest("vnf0", "9.0", "kvm", 1, 64, boot, devices=FUNCTIONS[:1])
    assert qemu.arguments(guest)[-2:] == ["-device", f"vfio-pci,host={FUNCTIONS[0]},addr=0x12"]


def test_functions_are_made_with_the_macs_of_the_vnfs_and_removed(tree: Tree, log: Journal, ip: Ip) -> None:
    before = tree.drivers()
    with pci_binding.bound((TESTER, NIC), log):
        held = tree.drivers()
        switch = sriov.ADAPTER.start(request(), None)  # type: ignore[arg-type]
        assert tree.drivers()[NIC][0] == "ice" and tree.drivers()[TESTER][0] == "vfio-pci"
        assert pci_binding.virtual_functions(NIC, tree.root) == tuple(FUNCTIONS)
        assert [ip.given[number]["address"] for number in range(COUNT)] == [vnf.mac for vnf in TOPOLOGY.vnfs]
        assert (switch.pids(), switch.polling_threads()) == ((), ())
        switch.check()
        pci_binding.bind(FUNCTIONS[:1], log, for_guest=True)  # as a VNF does
        assert tree.drivers()[FUNCTIONS[0]][0] == "vfio-pci"
        switch.stop()
        switch.stop()
        assert tree.drivers() == held, "the next switch of the run finds the NIC as it was"
    assert tree.drivers() == before
    assert not log.state.exists()


def test_a_start_that_fails_leaves_the_nic_to_the_run(tree: Tree, log: Journal, ip: Ip) -> None:
    before, ip.refuses = tree.drivers(), "trust"
    with pci_binding.bound((TESTER, NIC), log):
        held = tree.drivers()
        with pytest.raises(StartError, match="Operation not permitted"):
            sriov.ADAPTER.start(request(), None)  # type: ignore[arg-type]
        assert tree.drivers() == held
    assert tree.drivers() == before


def test_more_vnfs_than_functions_are_one_sentence(tree: Tree, log: Journal, ip: Ip) -> None:
    tree.set(f"sys/bus/pci/devices/{NIC}/sriov_totalvfs", "2")
    with (
        pci_binding.bound((TESTER, NIC), log),
        pytest.raises(UsageError, match="3 were asked for, and it can have 1 to 2"),
    ):
        sriov.ADAPTER.start(request(), None)  # type: ignore[arg-type]


def test_a_killed_run_is_undone(tree: Tree, log: Journal, ip: Ip, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tree.drivers()
    pci_binding.bind((TESTER, NIC), log)
    sriov.ADAPTER.start(request(), None)  # type: ignore[arg-type]
    monkeypatch.setattr(journal, "is_alive", lambda owner: False)
    log.undo_abandoned()
    assert tree.drivers() == before


def test_the_nic_counts_what_it_gave_took_and_dropped(tree: Tree, log: Journal, ip: Ip) -> None:
    switch = RunningNic(NIC, {f"v{number}": vnf.mac for number, vnf in enumerate(TOPOLOGY.vnfs)}, log)
    assert switch.counters().packets is None and not switch.counters().drops, "this driver does not tell"
    for number in range(COUNT):
        ip.counters[number] = {"rx": {"packets": 10 + number, "dropped": number}, "tx": {"packets": 5}}
    counted = switch.counters()
    assert (counted.packets, counted.forwarded_packets) == (33, 15)
    assert counted.drops == {"v0:nic_dropped": 0, "v1:nic_dropped": 1, "v2:nic_dropped": 2}
    tree.set(f"sys/bus/pci/devices/{NIC}/sriov_numvfs", "0")
    tree.kernel(tree.root / f"sys/bus/pci/devices/{NIC}/sriov_numvfs")
    with pytest.raises(DiedError, match="has 0 of 3 virtual functions"):
        switch.check()


@pytest.mark.parametrize(
    ("situation", "words"),
    [
        (Situation("p2p", "pci"), "use scenario parallel"),
        (Situation("parallel", "virtio", 3), "no virtio wire; use --wire pci"),
        (Situation("parallel", "pci", 3, hosted=True), ""),
    ],
)
def test_where_it_can_be_measured(situation: Situation, words: str) -> None:
    why = refusal_of(get_adapter("sriov"), situation)
    assert words in why and bool(words) == bool(why)
