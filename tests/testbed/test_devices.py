# SPDX-License-Identifier: BSD-3-Clause
"""NICs and virtual functions that VNFs get: options, refusals, and the command lines that give them."""

from __future__ import annotations

import os
import resource
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from planebench.host import interfaces, pci_binding
from planebench.host.device_settings import device_journal
from planebench.host.pci import Nic
from planebench.model.errors import UsageError
from planebench.model.switch import parse_values
from planebench.testbed.hosting import base, bubblewrap, container, machine, qemu
from planebench.testbed.hosting.base import HostedPort, HostedRequest
from planebench.testbed.hosting.inside import VnfLimits
from planebench.testbed.hosting.qemu import Accelerator
from planebench.testbed.hosting.registry import HOSTINGS
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


@pytest.mark.parametrize("hosting", ["vm", "image", "container", "exec"])
def test_every_hosting_that_isolates_takes_devices(hosting: str, tmp_path: Path, asked: list[str]) -> None:
    values = parse_values(hosting, HOSTINGS[hosting].options, {"devices": "pci_0000_3b_02_0+pci_0000_3b_02_1"})
    passed = base.passed_devices(request_of(tmp_path, values=values))
    assert len(passed) == 2 and asked == ["pci_0000_3b_02_0", "pci_0000_3b_02_1"]


def test_ports_come_before_other_devices(tmp_path: Path, asked: list[str]) -> None:
    port = HostedPort("v0", tmp_path / "v0.sock", "02:00:00:00:02:01", FUNCTION)
    base.passed_devices(request_of(tmp_path, ports=(port,), values={"devices": ["pci_0000_af_00_0"]}))
    assert asked == [FUNCTION, "pci_0000_af_00_0"]
    base.bind_ports(request_of(tmp_path, ports=(port,)))
    assert asked[2:] == [FUNCTION]


def test_a_container_of_podman_has_their_files_and_may_lock_memory(tmp_path: Path) -> None:
    request, limits = request_of(tmp_path), VnfLimits(64)

    def words(store: str, files: Sequence[Path] = ()) -> list[str]:
        (tmp_path / store).mkdir()
        made = container.run_words(request, Path("/planed"), limits, "group", tmp_path / store, files)
        return [word for word in made if str(tmp_path / store) not in word]

    locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    plain, given = words("one"), words("two", FILES)
    assert [word for word in given if word not in plain] == [
        "--device=/dev/vfio/vfio",
        "--device=/dev/vfio/61",
        f"--ulimit=memlock={locked}:{locked}",
    ]
    assert "--cap-drop=all" in given and not [word for word in plain if "device" in word or "memlock" in word]


def test_a_container_of_bubblewrap_has_their_files(tmp_path: Path) -> None:
    request = request_of(tmp_path)
    plain = bubblewrap.planed_container(Path("bwrap"), request, Path("/planed"))
    given = bubblewrap.planed_container(Path("bwrap"), request, Path("/planed"), FILES)
    files = [word for file in FILES for word in ("--dev-bind", str(file), str(file))]
    assert given == [*plain[:-2], *files, "--as-pid-1", "--"]


def test_a_guest_has_places_for_so_many(tmp_path: Path, asked: list[str]) -> None:
    last = qemu.device_address(qemu.DEVICES_MAX - 1)
    assert last == "0000:00:1e.0", "the next is the chip set"
    request = request_of(tmp_path, values={"devices": [f"pci_0000_3b_02_{n}" for n in range(qemu.DEVICES_MAX + 1)]})
    with pytest.raises(UsageError, match="vnf0: 14 devices, but a guest has places for 13"):
        machine.start(
            request,
            SimpleNamespace(version="7.2", binary=Path("/qemu")),  # type: ignore[arg-type]
            None,  # type: ignore[arg-type]
            hosting="vm",
            accelerator=Accelerator("tcg", "tcg"),
            vcpus=1,
            memory_mb=64,
            boot=qemu.Disk(Path("/x"), "raw"),
            details={},
        )


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
