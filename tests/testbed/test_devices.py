# SPDX-License-Identifier: BSD-3-Clause
"""NICs and virtual functions that VNFs get: options, refusals, and the command lines that give them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planebench.host import interfaces, pci_binding
from planebench.host.device_settings import device_journal
from planebench.host.pci import Nic
from planebench.model.errors import UsageError
from planebench.testbed.hosting import base
from planebench.testbed.hosting.base import HostedPort, HostedRequest
from tests.sysfs_tree import Tree

FUNCTION = "0000:3b:02.0"
FILES = (Path("/dev/vfio/vfio"), Path("/dev/vfio/61"))


def request_of(tmp_path: Path, **more: Any) -> HostedRequest:
    (tmp_path / "vnf0").mkdir(exist_ok=True)
    made: dict[str, Any] = {
        "name": "vnf0",
        "ports": (HostedPort("v0", tmp_path / "v0.sock", "02:00:00:00:02:01"),),
        "values": {},
        "document": None,
        "files": (),
        "cpus": (1,),
        "control_cpus": frozenset({0}),
        "workdir": tmp_path,
        "planed": Path("/planed"),
    }
    return HostedRequest(**(made | more))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is asked to be bound; every device has an IOMMU."""
    asked: list[str] = []

    def bind(addresses: Sequence[str], *, for_guest: bool = False) -> pci_binding.Bound:
        asked.extend(addresses)
        return pci_binding.Bound(tuple(Nic(address, "vfio-pci", 0, "61") for address in addresses))

    monkeypatch.setattr(pci_binding, "bind", bind)
    return asked


def test_ports_that_are_devices_are_bound(tmp_path: Path, asked: list[str]) -> None:
    assert base.bind_ports(request_of(tmp_path), for_guest=True) == () and asked == []
    port = HostedPort("v0", tmp_path / "v0.sock", "02:00:00:00:02:01", FUNCTION)
    (bound,) = base.bind_ports(request_of(tmp_path, ports=(port,)), for_guest=True)
    assert asked == [bound.address] == [FUNCTION]


@pytest.mark.parametrize("for_guest", [False, True])
def test_a_device_without_an_iommu_is_not_given_away(
    for_guest: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = Tree(tmp_path / "root")
    tree.device(FUNCTION, "iavf", None)
    tree.run(monkeypatch)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(interfaces, "ssh_connection", lambda: None)
    journal = device_journal(tmp_path / "undo.json", tree.root)
    before = tree.drivers()
    why = pci_binding.refusal(replace(_nic(tree), interfaces=("x",)), [FUNCTION], tree.root, {}, for_guest=for_guest)
    assert ("it has no IOMMU, and without one neither QEMU nor a container" in (why or "")) is for_guest
    if for_guest:
        with pytest.raises(UsageError, match=f"NIC {FUNCTION} is not taken: it has no IOMMU"):
            pci_binding.bind([FUNCTION], journal, for_guest=True)
    assert tree.drivers() == before and not journal.state.exists()


def _nic(tree: Tree) -> Nic:
    from planebench.host import pci

    return pci.nic(FUNCTION, tree.root)
