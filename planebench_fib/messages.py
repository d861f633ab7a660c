# SPDX-License-Identifier: BSD-3-Clause
"""FIB update messages, version 2: bytes and back. docs/fib-messages.md is the authority; dataplane/fib/fib_message.h
is the same in C, and tests/fib/vectors.json holds both to it.
"""

from __future__ import annotations

import enum
import ipaddress
import struct
from dataclasses import dataclass, field
from typing import NamedTuple

from planebench_fib.exceptions import Error, UsageError

ETHER_TYPE = 0x88B5
FORWARDER_MAC = bytes.fromhex("02f1b0000000")
"""Where messages go; any other address will do."""
MAGIC = 0xF1B0
VERSION = 2
WINDOW = 64
"""Messages that may be unanswered."""
HOP_NUMBERS = 4096
MEMBERS_MAX = 16
"""Of a group."""
VLAN_MAX = 4094
FRAME_BYTES_MIN = 60

_ETHERNET = struct.Struct("!6s6sH")
_HEADER = struct.Struct("!HBBIIHH")
_ACK = struct.Struct("!BBHIH4xQQ")
_ROUTE = struct.Struct("!BBH")
_HOP = struct.Struct("!BBHBxH6s6s")
_GROUP, _MEMBER = struct.Struct("!BBH"), struct.Struct("!HBx")
OVERHEAD_BYTES = _ETHERNET.size + _HEADER.size
FRAME_BYTES_MAX = 1514
FRAME_BYTES_NEEDED = OVERHEAD_BYTES + _GROUP.size + MEMBERS_MAX * _MEMBER.size
"""Of the longest record."""
_NO_MAC = bytes(6)


class MessageType(enum.IntEnum):
    """The message type, the byte after the version. The highest bit marks an answer. NOTICE: the answer to no message,
    when a wire goes down or comes up."""

    NOTICE = 0
    HELLO = 1
    ROUTES = 2
    NEXT_HOPS = 3
    FLUSH = 4
    END_OF_RIB = 5
    KEEPALIVE = 6
    NEXT_HOP_GROUPS = 7


RECORDED = frozenset((MessageType.ROUTES, MessageType.NEXT_HOPS, MessageType.NEXT_HOP_GROUPS))
"""The types whose messages have records."""

_IS_ACK = 0x80


class Op(enum.IntEnum):
    """The operation of a record."""

    ADD = 1
    REPLACE = 2
    DELETE = 3


class HopKind(enum.IntEnum):
    """The kind of a next hop. FORWARD: by a wire to a MAC address. LOCAL: to the VNF. BLACKHOLE: dropped."""

    FORWARD = 1
    LOCAL = 2
    BLACKHOLE = 3


class Code(enum.IntEnum):
    """The result of a message, or of its first record that failed."""

    OK = 0
    BUSY = 1
    SEQUENCE = 2
    MALFORMED = 3
    NO_SESSION = 4
    QUOTA = 5
    FULL = 6
    NO_NEXT_HOP = 7
    EXISTS = 8
    ABSENT = 9
    BUSY_HOP = 10
    VERSION = 11


class MessageError(Error):
    """Bytes that are not a FIB update message, or not an answer to one."""


class VersionError(MessageError):
    """A FIB update message of another version."""


class Prefix(NamedTuple):
    """A prefix. ``address`` is in network order, 4 or 16 bytes, with zeros behind ``length`` bits."""

    address: bytes
    length: int

    def __str__(self) -> str:
        return f"{ipaddress.ip_address(self.address)}/{self.length}"


PrefixLike = str | ipaddress.IPv4Network | ipaddress.IPv6Network | tuple[bytes, int]


def prefix_of(value: PrefixLike) -> Prefix:
    """Return a prefix. Raises UsageError for a text that is not one, or has bits behind its length."""
    if isinstance(value, Prefix):
        return value  # whoever has many makes them so
    try:
        if isinstance(value, (tuple, str)):
            value = ipaddress.ip_network(value)
    except ValueError as error:
        raise UsageError(f"'{value}' is not a prefix: {error}") from None
    return Prefix(value.network_address.packed, value.prefixlen)


def mac_of(value: str | bytes) -> bytes:
    """Return the six bytes of ``02:00:00:00:00:01``, or of bytes. Raises UsageError."""
    try:
        mac = value if isinstance(value, bytes) else bytes(int(part, 16) for part in value.split(":"))
    except ValueError:
        mac = b""
    if len(mac) != len(_NO_MAC):
        raise UsageError(f"'{value!r}' is not a MAC address: write six bytes, e.g. 02:00:00:00:00:01")
    return mac


@dataclass(frozen=True, slots=True)
class RouteRecord:
    """One route. ``hop`` means nothing for DELETE."""

    op: Op
    prefix: Prefix
    hop: int = 0

    def __str__(self) -> str:
        where = "" if self.op is Op.DELETE else f" by next hop {self.hop}"
        return f"{self.op.name} of route {self.prefix}{where}"

    def encode(self) -> bytes:
        """Return 8 or 20 bytes."""
        return encode_route(self.op, self.prefix, self.hop)


def encode_route(op: Op, prefix: Prefix, hop: int) -> bytes:
    """Return the record of a route, 8 or 20 bytes."""
    return _ROUTE.pack(op, prefix.length, hop) + prefix.address


@dataclass(frozen=True, slots=True)
class HopRecord:
    """One next hop. ``source`` all zero: the VNF's own MAC address. ``vlan`` 0: without a tag."""

    op: Op
    number: int
    kind: HopKind = HopKind.FORWARD
    wire: int = 0
    destination: bytes = _NO_MAC
    source: bytes = _NO_MAC
    vlan: int = 0

    def __str__(self) -> str:
        if self.op is Op.DELETE:
            return f"DELETE of next hop {self.number}"
        vlan = f" in VLAN {self.vlan}" if self.vlan else ""
        where = f" by wire {self.wire}{vlan} to {self.destination.hex(':')}" if self.kind is HopKind.FORWARD else ""
        return f"next hop {self.number}, {self.kind.name}{where}"

    def encode(self) -> bytes:
        """Return 20 bytes."""
        if self.op is Op.DELETE:
            return _HOP.pack(self.op, 0, self.number, 0, 0, _NO_MAC, _NO_MAC)
        return _HOP.pack(self.op, self.kind, self.number, self.wire, self.vlan, self.destination, self.source)


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """One next hop that is a group: REPLACE of its ``members``, pairs of a next hop's number and a weight."""

    number: int
    members: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        members = ", ".join(f"{number} (weight {weight})" for number, weight in self.members)
        return f"next hop {self.number}, group of {members}"

    def encode(self) -> bytes:
        """Return 68 bytes."""
        members = b"".join(_MEMBER.pack(*member) for member in self.members)
        head = _GROUP.pack(Op.REPLACE, len(self.members), self.number)
        return head + members.ljust(MEMBERS_MAX * _MEMBER.size, b"\0")


Record = RouteRecord | HopRecord | GroupRecord


@dataclass(frozen=True, slots=True)
class Message:
    """A message from the VNF. ``family`` is 4 or 6 for ROUTES, 0 for any other."""

    type: MessageType
    session: int
    sequence: int
    family: int = 0
    records: tuple[Record, ...] = field(default=())

    def encode(self, source: bytes, destination: bytes = FORWARDER_MAC) -> bytes:
        """Return the frame, padded to the minimum length, without FCS."""
        records = [record.encode() for record in self.records]
        return encode_frame(self.type, self.session, self.sequence, self.family, records, source, destination)


def encode_frame(
    kind: MessageType,
    session: int,
    sequence: int,
    family: int,
    records: list[bytes],
    source: bytes,
    destination: bytes = FORWARDER_MAC,
) -> bytes:
    """Return the frame of records that are bytes already."""
    header = _HEADER.pack(MAGIC, VERSION, kind, session, sequence, len(records), family)
    frame = b"".join((_ETHERNET.pack(destination, source, ETHER_TYPE), header, *records))
    return frame.ljust(FRAME_BYTES_MIN, b"\0")


def record_bytes(kind: MessageType, family: int) -> int:
    """Return the length of one record of a message."""
    if kind is MessageType.NEXT_HOPS:
        return _HOP.size
    if kind is MessageType.NEXT_HOP_GROUPS:
        return _GROUP.size + MEMBERS_MAX * _MEMBER.size
    return _ROUTE.size + (4 if family == 4 else 16)


def decode_record(kind: MessageType, data: bytes) -> Record:
    """Return the record in some bytes. Raises MessageError if an op or kind is unknown."""
    try:
        if kind is MessageType.NEXT_HOPS:
            op, hop_kind, number, wire, vlan, destination, source = _HOP.unpack(data)
            if op == Op.DELETE:  # the rest means nothing
                return HopRecord(Op.DELETE, number)
            return HopRecord(Op(op), number, HopKind(hop_kind), wire, destination, source, vlan)
        if kind is MessageType.NEXT_HOP_GROUPS:
            op, count, number = _GROUP.unpack_from(data)
            if Op(op) is not Op.REPLACE or not 1 <= count <= MEMBERS_MAX:
                raise ValueError(f"op {op}, {count} members")
            return GroupRecord(number, tuple(_MEMBER.iter_unpack(data[_GROUP.size :]))[:count])
        op, length, hop = _ROUTE.unpack_from(data)
        return RouteRecord(Op(op), Prefix(data[_ROUTE.size :], length), hop)
    except ValueError as error:
        raise MessageError(f"a record of {kind.name}: {error}") from None


def _decode_header(frame: bytes) -> tuple[int, int, int, int, int]:
    """Return type, session, sequence, count and family."""
    if len(frame) < OVERHEAD_BYTES:
        raise MessageError(f"a frame of {len(frame)} bytes is too short for a FIB update message")
    _to, _from, ether_type = _ETHERNET.unpack_from(frame)
    magic, version, kind, session, sequence, count, family = _HEADER.unpack_from(frame, _ETHERNET.size)
    if (ether_type, magic) != (ETHER_TYPE, MAGIC):
        raise MessageError(f"EtherType {ether_type:#06x} and magic {magic:#06x} are not a FIB update message's")
    if version != VERSION:
        raise VersionError(f"FIB update messages of version {version}; this is version {VERSION}")
    return kind, session, sequence, count, family


def decode_message(frame: bytes) -> Message:
    """Return the message in a frame of a VNF. Raises MessageError for any other frame."""
    kind, session, sequence, count, family = _decode_header(frame)
    try:
        message_type = MessageType(kind or _IS_ACK)
    except ValueError:
        raise MessageError(f"type {kind:#04x} is not a message of a VNF") from None
    size = record_bytes(message_type, family) if count else 0
    if count and message_type not in RECORDED:
        raise MessageError(f"{message_type.name} has no records, this one has {count}")
    if len(frame) < OVERHEAD_BYTES + count * size:
        raise MessageError(f"{count} records do not fit into {len(frame)} bytes")
    starts = range(OVERHEAD_BYTES, OVERHEAD_BYTES + count * size, size or 1)
    records = tuple(decode_record(message_type, frame[start : start + size]) for start in starts)
    return Message(message_type, session, sequence, family, records)


@dataclass(frozen=True, slots=True)
class Ack:
    """An answer from the forwarder. ``wires_up``: a bit for each of the VNF's wires. ``applied``: records of the
    message from its first on. ``routes``, ``quota``: the VNF's."""

    type: MessageType
    session: int
    sequence: int
    code: Code
    wires_up: int
    applied: int
    next_sequence: int
    window: int
    routes: int
    quota: int

    def encode(self, source: bytes, destination: bytes) -> bytes:
        """Return the frame as a forwarder sends it, for tests of clients."""
        header = _HEADER.pack(MAGIC, VERSION, self.type | _IS_ACK, self.session, self.sequence, 0, 0)
        ack = _ACK.pack(
            self.code, self.wires_up, self.applied, self.next_sequence, self.window, self.routes, self.quota
        )
        return _ETHERNET.pack(destination, source, ETHER_TYPE) + header + ack


def decode_ack(frame: bytes) -> Ack:
    """Return the answer in a frame of the forwarder. Raises MessageError for any other frame."""
    kind, session, sequence, _count, _family = _decode_header(frame)
    if not kind & _IS_ACK or len(frame) < OVERHEAD_BYTES + _ACK.size:
        raise MessageError(f"type {kind:#04x} in {len(frame)} bytes is not an answer")
    code, *rest = _ACK.unpack_from(frame, OVERHEAD_BYTES)
    try:
        return Ack(MessageType(kind & ~_IS_ACK), session, sequence, Code(code), *rest)
    except ValueError as error:
        raise MessageError(f"an answer: {error}") from None
