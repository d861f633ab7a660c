# SPDX-License-Identifier: BSD-3-Clause
"""Two planed processes and rings between them: a switch with ports a and b, and the guests behind these."""

from __future__ import annotations

import itertools
import os
import signal
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planed_rig import CPU, OTHER_CPU, Document, Planed, ethdev, load, stream, task, until

PACED: Document = {"rate_pps": 5_000}  # 100 frames in 20 ms, which any ring holds
FLAT_OUT: Document = {"flat_out": True}
FLOOD_S = 600.0
"""Longer than a test may take: what flows is ended, not waited for."""
_NAMES = itertools.count()

LAYOUTS = [
    f"packed_vq={packed},mrg_rxbuf={merge},in_order={order}"
    for packed in (0, 1)
    for merge in (0, 1)
    for order in (0, 1)
]
"""What a virtio driver can choose; each takes other functions in DPDK's driver."""


def device(name: str, path: Path, backend: str = "planed") -> Document:
    return {"name": name, "kind": "vhost-user", "path": str(path), "backend": backend}


def driver(name: str, path: Path, layout: str, queue_size: int) -> Document:
    devargs = f"net_virtio_user{next(_NAMES)},path={path},queues=1,queue_size={queue_size},{layout}"
    return ethdev(name, devargs)


def connect(
    switch: Planed,
    guest: Planed,
    layout: str,
    backends: tuple[str, str] = ("planed", "planed"),
    queue_size: int = 256,
) -> None:
    """A patch between a and b; the guest calls them v0 and v1."""
    paths = [switch.workdir / f"{name}.sock" for name in "ab"]
    switch.wires = tuple(device(name, path, backend) for name, path, backend in zip("ab", paths, backends, strict=True))
    switch.apply(switch.wires, [task("sw", "patch", "a", "b")], cpu=CPU)
    join(switch, guest, layout, queue_size)


def join(switch: Planed, guest: Planed, layout: str, queue_size: int = 256) -> None:
    paths = [Path(wire["path"]) for wire in switch.wires]
    guest.wires = tuple(driver(f"v{index}", path, layout, queue_size) for index, path in enumerate(paths))
    ends = [
        task(f"{kind[:3]}{index}", kind, f"v{index}", **({"stream": index} if kind == "generator" else {}))
        for index in (0, 1)
        for kind in ("monitor", "generator")
    ]
    guest.apply(guest.wires, ends, cpu=OTHER_CPU)
    guest.links_up()
    until(lambda: ports_up(switch), "the switch sees both drivers")


def ports_up(planed: Planed) -> bool:
    """Those of its wires."""
    names = {wire["name"] for wire in planed.wires}
    return all(port["link_up"] for port in planed.call("ports.get")["ports"] if port["name"] in names)


def ports(planed: Planed) -> Document:
    return {port["name"]: port for port in planed.call("stats.get")["ports"]}


def both_ways(guest: Planed, epoch: int = 1, frame_bytes: int = 64, **rate: Any) -> Document:
    return guest.send(*(load(f"gen{index}", frame_bytes, **rate) for index in (0, 1)), epoch=epoch)


def assert_conserved(switch: Planed, guest: Planed, epoch: int = 1, frame_bytes: int = 64, **rate: Any) -> None:
    """What was sent is what the patch received; what it forwarded is what came: once, intact, in order."""
    guest.send(*(load(f"gen{index}", frame_bytes, **rate) for index in (0, 1)), epoch=epoch, clear=switch)
    middle = switch.settled()["sw"]
    there = guest.settled()
    dropped = middle["drops"]["tx_full"]
    assert middle["rx_packets"] == middle["tx_packets"] + dropped
    assert middle["rx_packets"] == sum(there[f"gen{index}"]["tx_packets"] for index in (0, 1)) > 0
    assert middle["tx_packets"] == sum(there[f"mon{index}"]["rx_packets"] for index in (0, 1))
    for sender, receiver in ((0, 1), (1, 0)):
        came = stream(there[f"mon{receiver}"], sender)
        lost = middle["drops_by_port"]["ab"[receiver]]["tx_full"]
        assert came["forwarded_packets"] == there[f"gen{sender}"]["tx_packets"] - lost
        assert (came["duplicate_packets"], came["reordered_packets"], came["corrupt_packets"]) == (0, 0, 0)
        assert came["forwarded_bytes"] == came["forwarded_packets"] * frame_bytes
    if rate == PACED:
        assert dropped == 0
    counted = ports(switch)
    assert sum(port["rx_packets"] for port in counted.values()) == middle["rx_packets"]
    assert sum(port["tx_packets"] for port in counted.values()) == middle["tx_packets"]
    odd = ("rx_missed", "rx_errors", "tx_errors", "rx_nombuf")
    assert all(port[key] == 0 for port in counted.values() for key in odd)


@dataclass(frozen=True)
class Handles:
    """What a connection that is gone must not leave behind in the process."""

    files: int
    guest_mappings: int
    hugepages_kb: int


def handles(planed: Planed) -> Handles:
    process = Path("/proc") / str(planed.process.pid)
    return Handles(
        files=len(list((process / "fd").iterdir())),
        guest_mappings=(process / "maps").read_text().count("memfd:"),
        hugepages_kb=_status_kb(process, "HugetlbPages"),
    )


def resident_kb(planed: Planed) -> int:
    """Memory of its own: of programs and libraries the kernel maps sixteen pages at the first use of one."""
    return _status_kb(Path("/proc") / str(planed.process.pid), "RssAnon")


def _status_kb(process: Path, key: str) -> int:
    lines = (process / "status").read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{key}:")), 0)


def without_drivers(switch: Planed, *more: Document, **fault: Any) -> Handles:
    """A patch between a and b, and nobody there: its handles. More: ports that nobody uses."""
    switch.wires = tuple(device(name, switch.workdir / f"{name}.sock") for name in "ab")
    switch.apply([*switch.wires, *more], [task("sw", "patch", "a", "b", **fault)], cpu=CPU)
    return handles(switch)


def leave(planed: Planed, before: Handles) -> None:
    """The switch has seen the drivers go, and is as it was without any."""
    until(lambda: not any(port["link_up"] for port in ports(planed).values()), "the switch sees them go")
    until(lambda: handles(planed) == before, f"it has {before} again")
    assert planed.call("stats.get")["mbufs"]["in_use"] == 0


def flood(switch: Planed, guest: Planed) -> None:
    """Traffic both ways for longer than anybody waits; returns while it flows."""
    switch.call("stats.clear")
    guest.start_traffic(*(load(f"gen{index}", **FLAT_OUT) for index in (0, 1)), duration_s=FLOOD_S)
    until(lambda: switch.tasks()["sw"]["tx_packets"] > 1000, "frames flow")


def assert_adds_up(switch: Planed, guest: Planed, name: str = "sw") -> None:
    """Whatever the guests do: each frame that the patch has received was sent or dropped with a reason.

    Counters are read while they change, so they add up only at rest: ``guest`` is stopped meanwhile.
    """

    def adds_up() -> bool:
        stats = switch.call("stats.get")
        middle = next(it for it in stats["tasks"] if it["name"] == name)
        ports = [port for port in stats["ports"] if port["name"] in "ab"]
        return middle["rx_packets"] == middle["tx_packets"] + sum(middle["drops"].values()) and all(
            middle[key] == sum(port[key] for port in ports) for key in ("rx_packets", "tx_packets")
        )

    os.kill(guest.process.pid, signal.SIGSTOP)
    try:
        until(adds_up, "every frame is sent or dropped with a reason")
    finally:
        os.kill(guest.process.pid, signal.SIGCONT)


def wake_library(path: Path) -> None:
    """DPDK's vhost library looks for new listening sockets once a second, or when a known one has a caller."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.connect(str(path))
