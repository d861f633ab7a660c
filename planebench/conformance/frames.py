# SPDX-License-Identifier: BSD-3-Clause
"""Frames that are compared byte by byte: what a cross-connect has to carry, and what it has to survive. Pure.

No two frames are alike: each has its port and its number in it. Lengths here are without the FCS.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

FCS_BYTES = 4
PLAIN_SIZES = (64, 65, 66, 67, 71, 127, 128, 129, 255, 256, 513, 777, 1023, 1024, 1025, 1500, 1517, 1518)
"""With FCS, of frames of IPv4 and UDP: every switch has to carry these."""
RUNT_BYTES = (14, 15, 20, 33, 42, 59)
GIANT_BYTES = (1515, 1519, 1600, 2000)
PLAIN = "IPv4"

_PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, 1)
_RECORD = struct.Struct("<IIII")
_MULTICAST = bytes.fromhex("01005e7f0001")
_BROADCAST = b"\xff" * 6


@dataclass(frozen=True, slots=True)
class RawFrame:
    """``kind`` is for people; ``data`` goes out as it is."""

    kind: str
    data: bytes

    @property
    def words(self) -> str:
        """Return text such as ``IPv4 65 B``, FCS included."""
        return f"{self.kind} {len(self.data) + FCS_BYTES} B"


def mac(port: int) -> bytes:
    """Return the MAC address behind the port with this number."""
    return bytes((0x02, 0x70, 0x62, 0, port, 1))


def good_frames(port: int, peer: int, *, kernel: bool = False) -> list[RawFrame]:
    """Return the frames to send into a port: all plain sizes, then tags, other protocols and other addresses.

    ``kernel``: through kernel interfaces, where a packet socket takes the outer tag off, and DPDK's af_packet puts an
    802.1Q tag back whatever it was.
    """
    service_tag = b"\x81\x00" if kernel else b"\x88\xa8"
    there, here = mac(peer), mac(port)
    ether = there + here
    plain = [(PLAIN, ether, size) for size in PLAIN_SIZES]
    other = [
        ("VLAN-tagged", ether + b"\x81\x00\x00\x64", 68),
        ("VLAN-tagged", ether + b"\x81\x00\x00\x64", 1518),
        ("priority-tagged", ether + b"\x81\x00\xa0\x00", 100),
        ("double-tagged", ether + service_tag + b"\x00\x0a\x81\x00\x00\x14", 200),
        ("broadcast", _BROADCAST + here, 64),
        ("multicast", _MULTICAST + here, 300),
    ]
    addresses = bytes.fromhex("20010002000000000000000000000001200100020000000100000000000000ff")
    heads = [(kind, head, size, _ipv4(head, size)) for kind, head, size in (*plain, *other)]
    heads += [
        ("IPv4, TTL 1", ether, 90, _ipv4(ether, 90, ttl=1)),
        ("IPv4, wrong checksum", ether, 91, _ipv4(ether, 91, wrong=1)),
        ("IPv6", ether, 120, b"\x86\xdd" + struct.pack(">IHBB", 0x60000000, 120 - FCS_BYTES - 54, 59, 64) + addresses),
        ("ARP", _BROADCAST + here, 64, b"\x08\x06\x00\x01\x08\x00\x06\x04\x00\x01" + here + bytes((10, 0, 0, port))),
        ("not IP", ether, 64, b"\x88\xb5"),
        ("not IP", ether, 1001, b"\x88\xb5"),
        ("802.3 length", ether, 110, struct.pack(">H", 92)),
    ]
    return [
        RawFrame(kind, _filled(head + body, size, port, number))
        for number, (kind, head, size, body) in enumerate(heads)
    ]


def bad_frames(port: int, peer: int) -> list[RawFrame]:
    """Return runts, giants, and headers that contradict their frame: a switch need not carry them."""
    ether = mac(peer) + mac(port)
    whole = _filled(ether + _ipv4(ether, max(GIANT_BYTES) + FCS_BYTES), max(GIANT_BYTES) + FCS_BYTES, port, 0)
    found = [RawFrame("runt", whole[:size]) for size in RUNT_BYTES]
    found += [RawFrame("giant", whole[:size]) for size in GIANT_BYTES]
    lies = {
        "IPv4 length 65535": b"\x08\x00\x45\x00\xff\xff",
        "IPv4 length 0": b"\x08\x00\x45\x00\x00\x00",
        "IPv4 header length 60": b"\x08\x00\x4f\x00\x00\x2e",
        "IP version 15": b"\x08\x00\xf0\x00\x00\x2e",
        "VLAN tag and no more": b"\x81\x00",
        "source multicast": b"\x08\x00",
    }
    found += [RawFrame(kind, _filled(ether + head, 64, port, 1)) for kind, head in lies.items()]
    return [*found, RawFrame("source broadcast", mac(peer) + _BROADCAST + whole[12:60])]


def _filled(head: bytes, size: int, port: int, number: int) -> bytes:
    """Return a frame of ``head``, port and number, and a pattern up to the size."""
    length = size - FCS_BYTES
    marked = head + struct.pack(">HBB", 0x7062, port, number)
    pattern = bytes((at * 7 + port * 31 + number) & 0xFF for at in range(max(0, length - len(marked))))
    return (marked + pattern)[:length]


def _ipv4(head: bytes, size: int, ttl: int = 64, wrong: int = 0) -> bytes:
    """Return EtherType, header and UDP header without a checksum, for a frame of this size behind ``head``."""
    length = size - FCS_BYTES - len(head) - 2
    header = struct.pack(">BBHHHBBH4s4s", 0x45, 0, length, 1, 0, ttl, 17, 0, b"\xc6\x12\x00\x01", b"\xc6\x13\x00\x01")
    total = sum(struct.unpack(">10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    header = header[:10] + struct.pack(">H", (~total ^ wrong) & 0xFFFF) + header[12:]
    return b"\x08\x00" + header + struct.pack(">HHHH", 4660, 4661, length - 20, 0)


def write_pcap(path: Path, frames: Iterable[bytes]) -> None:
    """Write a classic pcap file of Ethernet frames."""
    records = (_RECORD.pack(0, number, len(data), len(data)) + data for number, data in enumerate(frames))
    path.write_bytes(_PCAP_HEADER + b"".join(records))


def read_pcap(path: Path) -> list[bytes]:
    """Return the whole frames of a pcap file that may still grow; none if there is no file."""
    try:
        data = path.read_bytes()
    except OSError:
        return []
    frames: list[bytes] = []
    at = len(_PCAP_HEADER)
    while at + _RECORD.size <= len(data):
        begin, captured = at + _RECORD.size, _RECORD.unpack_from(data, at)[2]
        at = begin + captured
        if at > len(data):
            break
        frames.append(data[begin:at])
    return frames


def difference(sent: Sequence[RawFrame], came: bytes) -> str:
    """Return how a frame that was not sent differs from the most similar one that was."""
    alike = [frame for frame in sent if len(frame.data) == len(came)]
    if not alike:
        return f"a frame of {len(came) + FCS_BYTES} B, a size that was not sent: {came[:32].hex()}"
    near = min(alike, key=lambda frame: sum(a != b for a, b in zip(frame.data, came, strict=True)))
    at = next(n for n, (a, b) in enumerate(zip(near.data, came, strict=True)) if a != b)
    where = "destination MAC" if at < 6 else "source MAC" if at < 12 else "EtherType" if at < 14 else "behind Ethernet"
    return (
        f"{near.words} changed from byte {at} on ({where}): {near.data[at : at + 8].hex()} is {came[at : at + 8].hex()}"
    )
