# SPDX-License-Identifier: BSD-3-Clause
"""Offloads of guests through a patch and a bridge: what is passed on, and what is done for a guest that accepts none.

The segments themselves are compared byte by byte in ``dataplane/virtio/offload_test.c``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from offload_rig import ALL, NOTHING, TCP4, Guest, checksum, tcp_frame
from planed_rig import CPU, Document, Planed, task
from vring_rig import assert_conserved, device, join, ports

pytestmark = pytest.mark.dataplane

Make = Callable[..., list[Guest]]


@pytest.fixture
def make(planed: Planed) -> Iterator[Make]:
    """A switch of one task, with a guest at each port that accepts what is said."""
    with ExitStack() as open_guests:

        def make_them(kind: str, *accepts: int) -> list[Guest]:
            names = "abc"[: len(accepts)]
            planed.wires = tuple({**device(name, planed.workdir / f"{name}.sock"), "offloads": True} for name in names)
            planed.apply(planed.wires, [task("sw", kind, *names)], cpu=CPU)
            guests = [Guest(Path(wire["path"]), some) for wire, some in zip(planed.wires, accepts, strict=True)]
            for guest in guests:
                open_guests.callback(guest.driver.close)
            planed.links_up()
            return guests

        yield make_them


def assert_segments(frames: list[tuple[tuple[int, ...], bytes]], sent: bytes) -> None:
    """Ten, each whole, with the payload of the one."""
    assert [header for header, _ in frames] == [NOTHING] * 10
    assert b"".join(data[54:] for _, data in frames) == sent[54:]
    for number, (_, data) in enumerate(frames):
        ip, tcp = data[14:34], data[34:]
        assert checksum(ip) == 0
        assert checksum(ip[12:20] + struct.pack("!HH", 6, len(tcp)) + tcp) == 0
        length, ip_id = struct.unpack_from("!HH", ip, 2)
        assert (length, ip_id) == (1040, 7 + number)
        assert struct.unpack_from("!I", tcp, 4) == (5 + 1000 * number,)
        assert tcp[13] == (0x19 if number == 9 else 0x10)  # FIN and PSH are the last one's


def counted(planed: Planed) -> Document:
    return dict(planed.settled()["sw"])


def test_a_patch_passes_on_what_the_other_end_accepts(planed: Planed, make: Make) -> None:
    """The whole frame, and a header with the length that its headers have."""
    a, b = make("patch", ALL, ALL)
    frame = tcp_frame(2, 1)
    for sender, receiver in ((a, b), (b, a)):
        sender.send(frame, TCP4)
        assert receiver.received(1) == [((1, 1, 54, 1000, 34, 16, 1), frame)]
    assert (counted(planed)["tx_packets"], counted(planed)["patch"]) == (2, {"segments_added": 0})
    features = [set(port["virtio"]["features"]) for port in planed.call("ports.get")["ports"]]
    assert features == [{"version_1", "csum", "guest_csum", "guest_tso4", "host_tso4"}] * 2


def test_a_patch_segments_for_a_guest_that_accepts_nothing(planed: Planed, make: Make) -> None:
    """And the other way nothing is lost: frames without offloads go to one that has them."""
    a, b = make("patch", ALL, 0)
    frame = tcp_frame(2, 1)
    a.send(frame, TCP4)
    assert_segments(b.received(10), frame)
    b.send(frame[:64])
    assert a.received(1) == [(NOTHING, frame[:64])]
    a.send(frame[:500], (1, 0, 0, 0, 34, 16, 0))
    ((header, whole),) = b.received(1)
    assert header == NOTHING
    assert (whole[:50], whole[52:]) == (frame[:50], frame[52:500])
    assert whole[50:52] != frame[50:52]
    sw = counted(planed)
    assert (sw["rx_packets"], sw["tx_packets"], sw["patch"]) == (3, 12, {"segments_added": 9})


def test_a_bridge_floods_to_each_what_it_accepts(planed: Planed, make: Make) -> None:
    """One guest gets the frame, the other its segments; then it is known where the sender is."""
    a, b, c = make("bridge", ALL, ALL, 0)
    frame = tcp_frame(9, 1)
    a.send(frame, TCP4)
    assert b.received(1) == [((1, 1, 54, 1000, 34, 16, 1), frame)]
    assert_segments(c.received(10), frame)
    c.send(tcp_frame(1, 3, b"x"), (0, 0, 0, 0, 0, 0, 0))
    assert len(a.received(1)) == 1
    a.send(known := tcp_frame(3, 1), TCP4)
    assert_segments(c.received(10), known)
    sw = counted(planed)
    did = sw["bridge"]
    assert (did["forwarded"], did["flooded"], did["segments_added"]) == (2, 1, 18)
    assert did["forwarded"] + did["flood_copies"] + did["segments_added"] == sw["tx_packets"] == 22


def test_a_header_that_lies_is_a_drop_with_a_name(planed: Planed, make: Make) -> None:
    """It is never passed on; the port goes on."""
    a, b = make("patch", ALL, ALL)
    frame = tcp_frame(2, 1)
    lies = {
        "gso_type": (1, 4, 0, 1000, 34, 16, 0),  # TCP over IPv6 was not negotiated
        "checksum": (1, 0, 0, 0, 0xFFFF, 0xFFFF, 0),
        "headers": (1, 1, 0, 1000, 38, 16, 0),
        "gso_size": (1, 1, 0, 1, 34, 16, 0),
    }
    for lie in lies.values():
        a.send(frame, lie)
    a.send(frame, TCP4)
    assert len(b.received(1)) == 1
    sw, port = counted(planed), ports(planed)["a"]
    assert (sw["rx_packets"], sw["tx_packets"]) == (1, 1)
    assert (port["refused_offloads"], port["rx_errors"]) == (dict.fromkeys(lies, 1), 4)
    assert "refused_offloads" in ports(planed)["b"]
    planed.call("stats.clear")
    assert (ports(planed)["a"]["refused_offloads"], ports(planed)["a"]["rx_errors"]) == ({}, 0)


def test_a_driver_may_accept_none(planed: Planed, other: Planed) -> None:
    """DPDK's virtio-user, as a tester has it: every frame comes, once, intact."""
    planed.wires = tuple({**device(name, planed.workdir / f"{name}.sock"), "offloads": True} for name in "ab")
    planed.apply(planed.wires, [task("sw", "patch", "a", "b")], cpu=CPU)
    join(planed, other, "packed_vq=1,mrg_rxbuf=1,in_order=0")
    assert_conserved(planed, other, frame_bytes=1518, rate_pps=5_000)
    features = [set(port["virtio"]["features"]) for port in planed.call("ports.get")["ports"]]
    assert not any({"csum", "guest_csum"} & some for some in features)
