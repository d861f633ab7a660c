# SPDX-License-Identifier: BSD-3-Clause
"""The command line of a guest, and what its planed is given: no QEMU is started."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typed_document import typed

from planebench.model.errors import UsageError
from planebench.testbed.hosting import machine as guest_document
from planebench.testbed.hosting import machine as machine_options
from planebench.testbed.hosting import qemu
from planebench.testbed.hosting.base import HostedPort, HostedRequest
from planebench.testbed.hosting.image import image_format

MACHINE = qemu.Guest(
    name="vnf0",
    version="7.2.22",
    accelerator="kvm",
    vcpus=2,
    memory_mb=300,
    boot=qemu.Disk(Path("/a,b/x.qcow2"), "qcow2"),
    nics=(
        HostedPort("v0", Path("/run/v0.sock"), "02:00:00:00:04:01"),
        HostedPort("v1", Path("/run/v1.sock"), "02:00:00:00:04:02"),
    ),
)
PORTS = (
    HostedPort("v0", Path("/run/v0.sock"), "02:00:00:00:04:01"),
    HostedPort("v1", Path("/run/v1.sock"), "02:00:00:00:04:02"),
)
DOCUMENT: dict[str, Any] = {
    "version": 1,
    "name": "vnf0",
    "nice": -20,
    "memory": {"hugepages": False, "size_mb": 129, "mbuf_count": 1023, "mbuf_data_bytes": 2176},
    "ports": [
        {
            "name": "v1",
            "kind": "virtio-user",
            "path": "/run/v1.sock",
            "ring_size": 512,
            "queues": 2,
            "mac": "02:00:00:00:04:02",
        },
        {"name": "v0", "kind": "virtio-user", "path": "/run/v0.sock", "backend": "planed"},
    ],
    "tasks": [{"name": "vnf0", "kind": "l2fwd", "ports": ["v0", "v1"]}],
    "workers": [{"name": "w", "cpu": 7, "tasks": ["vnf0"], "idle": "sleep"}],
}


def request(**more: Any) -> HostedRequest:
    made: dict[str, Any] = {
        "name": "vnf0",
        "ports": PORTS,
        "values": {},
        "document": typed(DOCUMENT),
        "files": (),
        "cpus": (3, 7),
        "control_cpus": frozenset({0, 1}),
        "workdir": Path("/run/x"),
        "planed": Path("/planed"),
    }
    return HostedRequest(**(made | more))


def words(machine: qemu.Guest) -> str:
    return " ".join(qemu.arguments(machine))


def test_a_guest_finds_its_nics_where_its_document_says() -> None:
    made = words(MACHINE)
    for number in (0, 1):
        nic = f"netdev=net{number},mac=02:00:00:00:04:0{number + 1},addr=0x{number + 2:x},"
        assert f"-chardev socket,id=net{number},path=/run/v{number}.sock,reconnect=1 " in made and nic in made
        assert qemu.pci_address(number) == f"0000:00:0{number + 2}.0"
    assert "file=/a,,b/x.qcow2,format=qcow2,snapshot=on" in made
    assert "size=300M,share=on -chardev" in made and "-S" not in made.split()


def test_devices_of_the_host_follow_its_nics() -> None:
    words = qemu.arguments(replace(MACHINE, devices=("0000:3b:02.0", "0000:3b:02.1")))
    assert words[-4:] == [
        *("-device", "vfio-pci,host=0000:3b:02.0,addr=0x12"),
        *("-device", "vfio-pci,host=0000:3b:02.1,addr=0x13"),
    ]


def test_interrupts_by_messages_only_with_kvm() -> None:
    assert "vectors" not in words(MACHINE)
    two = qemu.NicSettings("packed", 512, 2)
    assert "packed=on,mrg_rxbuf=off,rx_queue_size=512,tx_queue_size=512,mq=on,vectors=6," in words(
        replace(MACHINE, settings=two)
    )
    assert words(replace(MACHINE, settings=two, accelerator="tcg")).count("mq=on,vectors=0,") == 2


def test_newer_qemus_wait_in_milliseconds() -> None:
    assert "path=/run/v0.sock,reconnect-ms=100 " in words(replace(MACHINE, version="10.0.2"))
    assert "path=/run/v0.sock,reconnect=1 " in words(replace(MACHINE, version="9.1.3"))


def test_hugepages_are_there_from_the_start() -> None:
    assert "share=on,hugetlb=on,hugetlbsize=2M,prealloc=on" in words(replace(MACHINE, hugepages=True))


def test_planed_in_a_guest_is_given_nics_hugepages_and_cpus_of_the_guest() -> None:
    given = guest_document.guest_document(typed(DOCUMENT), PORTS, (3, 7), 1)
    made: Any = given.to_json()
    assert made["ports"] == [
        {"name": "v1", "kind": "ethdev", "device": "0000:00:03.0", "ring_size": 512, "queues": 2},
        {"name": "v0", "kind": "ethdev", "device": "0000:00:02.0"},
    ]
    assert made["workers"] == [{"name": "w", "cpu": 2, "tasks": ["vnf0"], "idle": "sleep"}]
    assert made["memory"] == {**DOCUMENT["memory"], "hugepages": True}
    assert made["tasks"] == DOCUMENT["tasks"] and "nice" not in made
    assert guest_document.hugepages(given) == 65
    more_mb = guest_document.least_memory_mb(given, 2**20 + 1) - guest_document.least_memory_mb(given, 0)
    assert more_mb == 2 * guest_document.FILE_COPIES


def test_options_decide_and_are_checked() -> None:
    assert machine_options.vcpu_count(request(), 1) == 3
    with pytest.raises(UsageError, match="vnf0: vcpus=1, but the VNF polls on 2 CPUs; give vcpus=2 or more"):
        machine_options.vcpu_count(request(values={"vcpus": 1}), 1)
    assert machine_options.memory_mb(request(values={"memory_mb": 301}), 200, 100) == 302
    with pytest.raises(UsageError, match="vnf0: memory_mb=99 is too small; give memory_mb=100 or more"):
        machine_options.memory_mb(request(values={"memory_mb": 99}), 200, 100)
    jumbo = machine_options.nic_settings(request(document=None, max_frame_bytes=9018, ring_size=64))
    assert jumbo.mergeable and jumbo.device_ring_size == 256
    assert not machine_options.nic_settings(request(max_frame_bytes=9018)).mergeable


def test_only_images_that_boot_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "x.vmdk"
    for start, expected in ((b"QFI\xfb", "qcow2"), (bytes(510) + b"\x55\xaa", "raw")):
        path.write_bytes(start)
        assert image_format(path) == expected
    for start in (b"", bytes(512), b"KDMV" + bytes(508)):
        path.write_bytes(start)
        with pytest.raises(UsageError, match="neither qcow2 nor a raw disk with a boot sector; convert it: `qemu-img"):
            image_format(path)
