# SPDX-License-Identifier: BSD-3-Clause
"""Frames for a NAT, sound and hostile, from a seeded generator that knows only which addresses and ports there are."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from nf.nat44_packet import ACK, FIN, ICMP, RST, SYN, TCP, UDP, Endpoint, residue

_ETHER = bytes.fromhex("0200000001000200000000aa")


def ipv4(protocol: int, src: bytes, dst: bytes, payload: bytes, *, options: bytes = b"", fragment: int = 0) -> bytes:
    """An IPv4 packet; its checksum is right."""
    head = struct.pack(
        "!BBHHHBBH4s4s",
        0x45 + len(options) // 4,
        0,
        20 + len(options) + len(payload),
        7,
        fragment,
        64,
        protocol,
        0,
        src,
        dst,
    )
    value = -residue(head + options) % 0xFFFF
    return head[:10] + value.to_bytes(2, "big") + head[12:] + options + payload


def _sealed(segment: bytes, at: int, protocol: int, src: bytes, dst: bytes) -> bytes:
    pseudo = b"" if protocol == ICMP else src + dst + struct.pack("!HH", protocol, len(segment))
    value = -residue(pseudo + segment) % 0xFFFF
    if value == 0 and (protocol == UDP or not any(pseudo + segment)):
        value = 0xFFFF
    return segment[:at] + value.to_bytes(2, "big") + segment[at + 2 :]


def udp(src: Endpoint, dst: Endpoint, data: bytes = b"", *, checksum: bool = True, **ip: int | bytes) -> bytes:
    """A UDP datagram in IPv4."""
    segment = struct.pack("!HHHH", src[1], dst[1], 8 + len(data), 0) + data
    if checksum:
        segment = _sealed(segment, 6, UDP, src[0], dst[0])
    return ipv4(UDP, src[0], dst[0], segment, **ip)  # type: ignore[arg-type]


def tcp(src: Endpoint, dst: Endpoint, flags: int = ACK, data: bytes = b"", **ip: int | bytes) -> bytes:
    """A TCP segment in IPv4."""
    segment = struct.pack("!HHIIBBHHH", src[1], dst[1], 1, 2, 0x50, flags, 512, 0, 0) + data
    return ipv4(TCP, src[0], dst[0], _sealed(segment, 16, TCP, src[0], dst[0]), **ip)  # type: ignore[arg-type]


def icmp(src: bytes, dst: bytes, kind: int, rest: bytes, **ip: int | bytes) -> bytes:
    """An ICMP message in IPv4; ``rest`` follows the checksum."""
    message = _sealed(bytes((kind, 0, 0, 0)) + rest, 2, ICMP, src, dst)
    return ipv4(ICMP, src, dst, message, **ip)  # type: ignore[arg-type]


def echo(src: bytes, dst: bytes, kind: int, identifier: int, data: bytes = b"") -> bytes:
    """A query or a reply."""
    return icmp(src, dst, kind, struct.pack("!HH", identifier, 0) + data)


def frame(packet: bytes, *, tags: int = 0, padding: bool = True, ether_type: int = 0x0800) -> bytes:
    """A packet in Ethernet."""
    data = _ETHER + b"\x81\x00\x20\x05" * tags + ether_type.to_bytes(2, "big") + packet
    return data.ljust(60, b"\0") if padding else data


@dataclass(frozen=True, slots=True)
class World:
    """Who there is."""

    hosts: Sequence[bytes]
    host_ports: Sequence[int]
    remotes: Sequence[Endpoint]
    outside: Sequence[bytes]
    outside_ports: Sequence[int]


_FLAGS = (
    SYN,
    SYN,
    SYN | ACK,
    ACK,
    ACK,
    ACK,
    ACK,
    FIN | ACK,
    FIN | ACK,
    FIN | ACK,
    RST,
    RST | ACK,
    SYN | RST,
    SYN | FIN,
    0,
)


class Frames:
    """Random frames from inside (port 0) and outside (port 1)."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.rng = random.Random(seed)

    def __call__(self, port: int) -> bytes:
        """The next one that comes in by a port."""
        packet = self._inside() if port == 0 else self._outside()
        data = frame(packet, tags=self.rng.choice((0,) * 12 + (1, 2)), padding=self.rng.random() < 0.9)
        return self._spoil(data) if self.rng.random() < 0.08 else data

    def _host(self) -> Endpoint:
        return self.rng.choice(self.world.hosts), self.rng.choice(self.world.host_ports)

    def _ours(self) -> Endpoint:
        return self.rng.choice(self.world.outside), self.rng.choice(self.world.outside_ports)

    def _ip(self) -> dict[str, int | bytes]:
        """Now and then options: a record route that is full, and one word of nothing."""
        return {"options": self.rng.choice((b"\x07\x03\x04\x00", b"\x01" * 8))} if self.rng.random() < 0.05 else {}

    def _data(self) -> bytes:
        return self.rng.randbytes(self.rng.choice((0, 0, 1, 7, 18, 25, 300)))

    def _segment(self, src: Endpoint, dst: Endpoint) -> bytes:
        if self.rng.random() < 0.5:
            return udp(src, dst, self._data(), checksum=self.rng.random() > 0.1, **self._ip())
        return tcp(src, dst, self.rng.choice(_FLAGS), self._data(), **self._ip())

    def _inside(self) -> bytes:
        what = self.rng.random()
        host, remote = self._host(), self.rng.choice(self.world.remotes)
        if what < 0.70:
            return self._segment(host, remote)
        if what < 0.80:
            return self._segment(host, self._ours())
        if what < 0.88:
            to = self._ours()[0] if self.rng.random() < 0.1 else remote[0]
            return echo(host[0], to, self.rng.choice((8, 8, 8, 13, 0, 5)), host[1], self._data().ljust(12, b"\0"))
        if what < 0.94:
            return self._error(host[0], self._about(remote, host, 0))
        return self._error(host[0], self._about(self._ours(), host, 0))

    def _outside(self) -> bytes:
        what = self.rng.random()
        remote, ours = self.rng.choice(self.world.remotes), self._ours()
        if self.rng.random() < 0.02:
            ours = (self.rng.choice(self.world.hosts), ours[1])
        if what < 0.68:
            return self._segment(remote, ours)
        if what < 0.82:
            data = self.rng.choice((b"", self._data()))
            return echo(remote[0], ours[0], self.rng.choice((0, 0, 0, 14, 8, 4)), ours[1], data)
        return self._error(remote[0], self._about(ours, remote, 8))

    def _about(self, src: Endpoint, dst: Endpoint, query: int) -> bytes:
        """The packet that an error is about, whole or cut off (RFC 792, RFC 1812 s4.3.2.3)."""
        what = self.rng.random()
        if what < 0.4:
            packet = udp(src, dst, self._data(), checksum=self.rng.random() > 0.2, **self._ip())
        elif what < 0.8:
            packet = tcp(src, dst, ACK, self._data(), **self._ip())
        elif what < 0.97:
            kind = query if self.rng.random() < 0.9 else 3
            packet = echo(src[0], dst[0], kind, (src if query else dst)[1], self._data())
        else:
            packet = ipv4(132, src[0], dst[0], bytes(12))
        header = (packet[0] & 15) * 4
        return packet[: header + self.rng.choice((8, 8, 17, 18, 20, 1000, 1000, 7))]

    def _error(self, src: bytes, about: bytes) -> bytes:
        """An error to who sent the packet that it is about; now and then to another, or with a wrong sum."""
        router = self.rng.choice((src, src, b"\x0a\x63\x00\x01"))
        to = about[12:16] if self.rng.random() < 0.95 else self._ours()[0]
        kind = self.rng.choice((3, 3, 11, 12, 4))
        return icmp(router, to, kind, bytes(4) + about, **self._ip())

    def _spoil(self, data: bytes) -> bytes:
        what, at = self.rng.random(), self.rng.randrange(14, len(data))
        if what < 0.2:
            return data[: self.rng.randrange(len(data))]
        if what < 0.6:
            return data[:at] + bytes((data[at] ^ 1 << self.rng.randrange(8),)) + data[at + 1 :]
        src, dst = self._host(), self._ours()
        if what < 0.7:
            return frame(udp(src, dst, fragment=self.rng.choice((0x2000, 1, 0x2001, 0x3FFF))))
        if what < 0.8:
            return frame(ipv4(self.rng.choice((132, 136, 47, 2)), src[0], dst[0], bytes(40)))
        if what < 0.9:
            return frame(b"\x60" + bytes(5) + b"\x3b\x40" + bytes(32), ether_type=0x86DD)
        return frame(bytes(40), tags=self.rng.choice((0, 3)), ether_type=self.rng.choice((0x0806, 0x88CC)))
