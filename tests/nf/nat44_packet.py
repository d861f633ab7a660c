# SPDX-License-Identifier: BSD-3-Clause
"""Packets as the judge of nat44 sees them: taken apart, and with other endpoints and every checksum summed anew."""

from __future__ import annotations

from dataclasses import dataclass

from nf import packet_model
from nf.packet_model import ICMP, TCP, UDP

FIN, SYN, RST, ACK = 1, 2, 4, 16
_CHECKSUM_AT = {ICMP: 2, TCP: 16, UDP: 6}

Endpoint = tuple[bytes, int]


@dataclass(frozen=True, slots=True)
class Packet:
    """Where an IPv4 packet and its transport segment lie in ``data``."""

    l3: int
    l4: int
    end: int
    protocol: int
    src: bytes
    dst: bytes
    ports: tuple[int, int]


def word(data: bytes, at: int) -> int:
    """16 bits in network byte order."""
    return data[at] << 8 | data[at + 1]


def residue(data: bytes) -> int:
    """The one's complement sum of 16-bit words, which is a number modulo 0xffff (RFC 1071)."""
    return int.from_bytes(data + b"\0" * (len(data) & 1), "big") % 0xFFFF


def parse(data: bytes) -> Packet | str:
    """The packet in a frame, or why it is none that a NAT translates."""
    try:
        p = packet_model.parse(data)
    except packet_model.FaultError as fault:
        return str(fault)
    if p.version == 6:
        return "ipv6"
    if p.fragment:
        return "fragment"
    if p.protocol not in (ICMP, TCP, UDP):
        return "protocol"
    ports = (word(data, p.l4 + 4),) * 2 if p.protocol == ICMP else (word(data, p.l4), word(data, p.l4 + 2))
    return Packet(p.l3, p.l4, p.end, p.protocol, p.source, p.destination, ports)


def segment_residue(data: bytes, p: Packet) -> int:
    """The sum that a transport checksum makes 0, with the pseudo header that is in the frame."""
    total = residue(data[p.l4 : p.end])
    if p.protocol != ICMP:
        total += residue(data[p.l3 + 12 : p.l3 + 20]) + p.protocol + p.end - p.l4
    return total % 0xFFFF


def rewrite(data: bytes, p: Packet, src: Endpoint | None, dst: Endpoint | None) -> bytes:
    """A packet with other endpoints. A transport checksum that was right is right; one that was wrong is as wrong."""
    out = bytearray(data)
    before = segment_residue(data, p)
    for at, (ip, port) in ((0, src or (p.src, p.ports[0])), (1, dst or (p.dst, p.ports[1]))):
        out[p.l3 + 12 + 4 * at : p.l3 + 16 + 4 * at] = ip
        if p.protocol != ICMP:
            out[p.l4 + 2 * at : p.l4 + 2 * at + 2] = port.to_bytes(2, "big")
    if p.protocol == ICMP and (src or dst):
        out[p.l4 + 4 : p.l4 + 6] = (src or dst or (b"", 0))[1].to_bytes(2, "big")
    out[p.l3 + 10 : p.l3 + 12] = b"\0\0"
    out[p.l3 + 10 : p.l3 + 12] = (-residue(out[p.l3 : p.l4]) % 0xFFFF).to_bytes(2, "big")
    at = p.l4 + _CHECKSUM_AT[p.protocol]
    if at + 2 > p.end or (p.protocol == UDP and word(data, at) == 0):
        return bytes(out)
    out[at : at + 2] = b"\0\0"
    value = (before - segment_residue(bytes(out), p)) % 0xFFFF
    if value == 0 and (p.protocol == UDP or (p.protocol == ICMP and not any(out[p.l4 : p.end]))):
        value = 0xFFFF
    out[at : at + 2] = value.to_bytes(2, "big")
    return bytes(out)


def parse_embedded(data: bytes, p: Packet) -> Packet | None:
    """The packet that an ICMP error is about, if the error is sound (RFC 5508 REQ-3)."""
    l3 = p.l4 + 8
    if residue(data[p.l4 : p.end]) != 0 or p.end - l3 < 20:
        return None
    l4 = l3 + (data[l3] & 15) * 4
    sound = data[l3] >> 4 == 4 and l4 >= l3 + 20 and l4 + 8 <= p.end and residue(data[l3:l4]) == 0
    if not sound or word(data, l3 + 6) & 0x1FFF or data[l3 + 9] not in (ICMP, TCP, UDP):
        return None
    ports = (word(data, l4 + 4),) * 2 if data[l3 + 9] == ICMP else (word(data, l4), word(data, l4 + 2))
    return Packet(l3, l4, p.end, data[l3 + 9], data[l3 + 12 : l3 + 16], data[l3 + 16 : l3 + 20], ports)


def rewrite_error(
    data: bytes, p: Packet, e: Packet, outer: tuple[bytes | None, bytes | None], **inner: Endpoint | None
) -> bytes:
    """An error whose embedded packet has other endpoints. ``outer``: its own new source and destination."""
    out = bytearray(rewrite(data, e, inner.get("src"), inner.get("dst")))
    for at, ip in zip((p.l3 + 12, p.l3 + 16), outer, strict=True):
        out[at : at + 4] = ip or out[at : at + 4]
    for at, begin, end in ((p.l3 + 10, p.l3, p.l4), (p.l4 + 2, p.l4, p.end)):
        out[at : at + 2] = b"\0\0"
        out[at : at + 2] = (-residue(out[begin:end]) % 0xFFFF).to_bytes(2, "big")
    return bytes(out)
