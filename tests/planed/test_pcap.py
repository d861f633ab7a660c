# SPDX-License-Identifier: BSD-3-Clause
"""Frames on disk: what the generator writes, read by a decoder that is not ours; and a capture with known damage,
which the monitor must find, all of it and nothing else."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import dpkt
import pytest
from planed_rig import Planed, ethdev, load, stream, task, until, vhost, virtio

pytestmark = pytest.mark.dataplane

COUNT = 200
EPOCH = 0
"""That of a monitor which no traffic.start has given another: the frames of a file come at once."""
UDP_PORT, MAGIC = 0x7062, 0x7062
FCS_BYTES = 4
OUR_BYTES = struct.Struct("!HBBHIQ")
_DEVICES = itertools.count()

Frames = list[bytes]


def write_frames(planed: Planed, path: Path, frame_bytes: int, *, stream: int = 0, epoch: int = EPOCH) -> int:
    """Have the generator write a capture file; the number of frames."""
    port = ethdev("e0", f"net_pcap_w{next(_DEVICES)},tx_pcap={path}")
    planed.apply([port], [task("gen", "generator", "e0", stream=stream)])
    sent = planed.send(load("gen", frame_bytes, rate_pps=COUNT * 100), epoch=epoch, duration_s=0.01)["gen"]
    planed.apply()  # closes the file
    return int(sent["tx_packets"])


def read_frames(path: Path) -> Frames:
    with path.open("rb") as file:
        return [bytes(frame) for _, frame in dpkt.pcap.Reader(file)]


def save(path: Path, frames: Sequence[bytes]) -> Path:
    with path.open("wb") as file:
        writer = dpkt.pcap.Writer(file, snaplen=65535)
        for frame in frames:
            writer.writepkt(frame, ts=0)
    return path


def monitor_file(planed: Planed, path: Path, count: int) -> dict[str, int]:
    """Replay a capture into a monitor; what it counted in all, and of stream 0."""
    port = ethdev("e0", f"net_pcap_r{next(_DEVICES)},rx_pcap={path}")
    planed.apply([port], [task("mon", "monitor", "e0")])
    until(lambda: planed.tasks()["mon"]["rx_packets"] == count, f"{count} frames are read from the file")
    return counted(planed.settled()["mon"])


def counted(monitor: dict[str, object]) -> dict[str, int]:
    whole = monitor["monitor"]
    assert isinstance(whole, dict)
    keys = ("received_packets", "foreign_packets", "stale_packets", "corrupt_packets")
    of_stream = ("forwarded_packets", "duplicate_packets", "reordered_packets")
    return {key: whole[key] for key in keys} | {key: stream(monitor)[key] for key in of_stream}


@pytest.mark.parametrize("frame_bytes", [64, 65, 256, 1024, 1518])
def test_another_decoder_reads_what_the_generator_writes(planed: Planed, tmp_path: Path, frame_bytes: int) -> None:
    sent = write_frames(planed, tmp_path / "out.pcap", frame_bytes, stream=5, epoch=0x1234)
    frames = read_frames(tmp_path / "out.pcap")
    assert len(frames) == sent > 0
    for number, frame in enumerate(frames):
        assert len(frame) == frame_bytes - FCS_BYTES
        ethernet = dpkt.ethernet.Ethernet(frame)
        assert (ethernet.src, ethernet.dst) == (b"\x02\0\0\0\0\x05", b"\x02\0\0\0\x01\x05")
        ip = ethernet.data
        assert (ip.v, ip.hl, ip.p, ip.len) == (4, 5, dpkt.ip.IP_PROTO_UDP, len(frame) - 14)
        assert (ip.src, ip.dst) == (bytes([198, 18, 5, 1]), bytes([198, 19, 5, 1]))
        assert (ip.udp.dport, ip.udp.ulen) == (UDP_PORT, len(frame) - 34)
        assert OUR_BYTES.unpack_from(ip.udp.data) == (MAGIC, 5, 0, 0x1234, number, 0)
        assert ip.udp.data[18:] == bytes((i * 7 + (i >> 8) * 13 + 1) & 0xFF for i in range(60, len(frame)))
        checksums = ip.sum, ip.udp.sum
        assert checksums[1] != 0
        ip.sum = ip.udp.sum = 0  # dpkt fills in zeros when it writes
        assert frame == bytes(ethernet)
        again = dpkt.ethernet.Ethernet(bytes(ethernet)).data
        assert (again.sum, again.udp.sum) == checksums


def test_probes_carry_a_rising_clock(planed: Planed, tmp_path: Path) -> None:
    path = tmp_path / "out.pcap"
    planed.apply([ethdev("e0", f"net_pcap_w{next(_DEVICES)},tx_pcap={path}")], [task("gen", "generator", "e0")])
    wanted = load("gen", rate_pps=20_000) | {"probe_rate_pps": 1000}
    sent = planed.send(wanted, epoch=EPOCH, duration_s=0.05)["gen"]["generator"]
    planed.apply()
    ours = [OUR_BYTES.unpack_from(dpkt.ethernet.Ethernet(frame).data.udp.data) for frame in read_frames(path)]
    clocks = [clock for _, _, flags, _, _, clock in ours if flags == 1]
    assert len(clocks) == sent["probes_sent"] > 0
    assert clocks == sorted(set(clocks)) and clocks[0] > 0
    assert all(clock == 0 for _, _, flags, _, _, clock in ours if flags == 0)


@pytest.fixture(scope="module")
def frames(running: Planed, tmp_path_factory: pytest.TempPathFactory) -> Frames:
    """At least 100 frames of 64 bytes, numbers from 0."""
    path = tmp_path_factory.mktemp("frames") / "out.pcap"
    for _ in range(20):
        if write_frames(running, path, 64) >= 100:
            return read_frames(path)[:100]
    raise AssertionError("no hundred frames sent in 20 tries")


def flip(frame: bytes, at: int, bit: int = 1) -> bytes:
    return frame[:at] + bytes([frame[at] ^ bit]) + frame[at + 1 :]


def swap(frames: Frames, a: int, b: int) -> Frames:
    frames[a], frames[b] = frames[b], frames[a]
    return frames


WHOLE = {
    "received_packets": 100,
    "forwarded_packets": 100,
    "foreign_packets": 0,
    "stale_packets": 0,
    "corrupt_packets": 0,
    "duplicate_packets": 0,
    "reordered_packets": 0,
}
NULL_FRAME = bytes(60)

EDITS: list[tuple[str, Callable[[Frames], Frames], dict[str, int]]] = [
    ("untouched", lambda f: f, {}),
    ("first-lost", lambda f: f[1:], {"received_packets": 99, "forwarded_packets": 99}),
    ("last-lost", lambda f: f[:-1], {"received_packets": 99, "forwarded_packets": 99}),
    ("three-lost", lambda f: f[:10] + f[13:], {"received_packets": 97, "forwarded_packets": 97}),
    ("twice-in-a-row", lambda f: [*f[:11], f[10], *f[11:]], {"received_packets": 101, "duplicate_packets": 1}),
    ("again-at-the-end", lambda f: [*f, f[0], f[50], f[0]], {"received_packets": 103, "duplicate_packets": 3}),
    ("all-twice", lambda f: [*f, *f], {"received_packets": 200, "duplicate_packets": 100}),
    ("neighbours-swapped", lambda f: swap(f, 20, 21), {"reordered_packets": 1}),
    ("one-late-by-nine", lambda f: [*f[:10], *f[11:20], f[10], *f[20:]], {"reordered_packets": 1}),
    ("one-early-by-nine", lambda f: [*f[:10], f[19], *f[10:19], *f[20:]], {"reordered_packets": 9}),
    ("backwards", lambda f: f[::-1], {"reordered_packets": 99}),
    ("payload-bit", lambda f: [flip(f[0], 59), *f[1:]], {"forwarded_packets": 99, "corrupt_packets": 1}),
    ("ip-header-bit", lambda f: [*f[:5], flip(f[5], 22), *f[6:]], {"forwarded_packets": 99, "corrupt_packets": 1}),
    ("udp-checksum", lambda f: [*f[:5], flip(f[5], 40), *f[6:]], {"forwarded_packets": 99, "corrupt_packets": 1}),
    ("sequence-bit", lambda f: [*f[:5], flip(f[5], 51), *f[6:]], {"forwarded_packets": 99, "corrupt_packets": 1}),
    ("cut-short", lambda f: [*f[:5], f[5][:-1], *f[6:]], {"forwarded_packets": 99, "corrupt_packets": 1}),
    ("mac-addresses-are-free", lambda f: [b"\x02" * 12 + frame[12:] for frame in f], {}),
    ("foreign", lambda f: [NULL_FRAME, *f, NULL_FRAME], {"received_packets": 102, "foreign_packets": 2}),
    (
        "everything-at-once",
        lambda f: [*f[:30], f[31], f[30], *f[32:60], flip(f[60], 50), *f[62:], f[7], NULL_FRAME],
        {
            "received_packets": 101,
            "forwarded_packets": 98,
            "foreign_packets": 1,
            "corrupt_packets": 1,
            "duplicate_packets": 1,
            "reordered_packets": 1,
        },
    ),
]


@pytest.mark.parametrize(("edit", "changes"), [case[1:] for case in EDITS], ids=[case[0] for case in EDITS])
def test_the_monitor_finds_exactly_the_damage(
    planed: Planed, frames: Frames, tmp_path: Path, edit: Callable[[Frames], Frames], changes: dict[str, int]
) -> None:
    edited = edit(list(frames))
    wanted = WHOLE | changes
    assert wanted["received_packets"] == len(edited)
    assert monitor_file(planed, save(tmp_path / "in.pcap", edited), len(edited)) == wanted


def test_frames_of_another_epoch_are_stale(planed: Planed, tmp_path: Path) -> None:
    sent = write_frames(planed, tmp_path / "out.pcap", 64, epoch=9)
    wanted = WHOLE | {"received_packets": sent, "forwarded_packets": 0, "stale_packets": sent}
    assert monitor_file(planed, tmp_path / "out.pcap", sent) == wanted


def test_damage_is_found_behind_a_switch(planed: Planed, other: Planed, frames: Frames, tmp_path: Path) -> None:
    """File -> patch -> virtio wire -> monitor: a port that drops, duplicates, reorders and corrupts known frames."""
    edited = swap([*frames[:40], flip(frames[40], 30), *frames[42:], frames[3]], 70, 71)
    path = save(tmp_path / "in.pcap", edited)
    wire = planed.workdir / "pcap.sock"
    planed.apply([vhost("n0", wire)], [task("mon", "monitor", "n0")])
    other.apply([virtio("v0", wire)])
    planed.links_up()
    other.links_up()
    planed.start_traffic(epoch=EPOCH)
    source = ethdev("e0", f"net_pcap_r{next(_DEVICES)},rx_pcap={path}")
    other.apply([virtio("v0", wire), source], [task("sw", "patch", "e0", "v0")])
    until(lambda: planed.tasks()["mon"]["rx_packets"] == len(edited), "every frame has crossed")
    assert counted(planed.settled()["mon"]) == WHOLE | {
        "received_packets": 100,
        "forwarded_packets": 98,
        "corrupt_packets": 1,
        "duplicate_packets": 1,
        "reordered_packets": 1,
    }
