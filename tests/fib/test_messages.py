# SPDX-License-Identifier: BSD-3-Clause
"""Bytes and back. dataplane/fib/client/fib_vectors_test.c holds C to the same conversation, vectors.json."""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planebench_fib.exceptions import UsageError
from planebench_fib.messages import (
    Ack,
    Code,
    GroupRecord,
    HopKind,
    HopRecord,
    Message,
    MessageError,
    MessageType,
    Op,
    Prefix,
    Record,
    RouteRecord,
    VersionError,
    decode_ack,
    decode_message,
    mac_of,
    prefix_of,
)

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())
MAC = mac_of(VECTORS["mac"])


def record_of(kind: str, given: dict[str, Any]) -> Record:
    op = Op[given["op"]]
    if kind == "ROUTES":
        return RouteRecord(op, prefix_of(given["prefix"]), given["hop"])
    if op is Op.DELETE:
        return HopRecord(op, given["number"])
    if "members" in given:
        return GroupRecord(given["number"], tuple((number, weight) for number, weight in given["members"]))
    return HopRecord(
        op, given["number"], HopKind[given["kind"]], given["wire"], mac_of(given["destination"]), vlan=given["vlan"]
    )


def message_of(given: dict[str, Any]) -> Message:
    records = tuple(record_of(given["type"], record) for record in given["records"])
    return Message(MessageType[given["type"]], given["session"], given["sequence"], given["family"], records)


@pytest.mark.parametrize("turn", VECTORS["conversation"], ids=lambda turn: turn["what"])
def test_vectors(turn: dict[str, Any]) -> None:
    message, frame, answer = message_of(turn["message"]), bytes.fromhex(turn["frame"]), bytes.fromhex(turn["answer"])
    assert message.encode(MAC) == frame
    assert decode_message(frame) == message
    ack = decode_ack(answer)
    assert ack == Ack(
        message.type, message.session, message.sequence, **{**turn["ack"], "code": Code[turn["ack"]["code"]]}
    )
    assert ack.encode(frame[:6], MAC) == answer
    assert len(answer) == 60


macs = st.binary(min_size=6, max_size=6)
prefixes = st.one_of(
    st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 32)).map(
        lambda p: ipaddress.ip_network((p[0].to_bytes(4), p[1]), strict=False)
    ),
    st.tuples(st.integers(0, 2**128 - 1), st.integers(0, 128)).map(
        lambda p: ipaddress.ip_network((p[0].to_bytes(16), p[1]), strict=False)
    ),
)


@given(prefixes, st.sampled_from(Op), st.integers(0, 65535))
def test_routes_come_back(prefix: ipaddress.IPv4Network | ipaddress.IPv6Network, op: Op, hop: int) -> None:
    record = RouteRecord(op, prefix_of(prefix), hop)
    message = Message(MessageType.ROUTES, 1, 2**32 - 1, prefix.version, (record, record))
    assert decode_message(message.encode(MAC)) == message
    assert str(record.prefix) == str(prefix)
    assert prefix_of(str(prefix)) == prefix_of((record.prefix.address, record.prefix.length)) == record.prefix


@given(st.integers(0, 65535), st.sampled_from(HopKind), st.integers(0, 255), macs, macs, st.integers(0, 65535))
def test_hops_come_back(number: int, kind: HopKind, wire: int, destination: bytes, source: bytes, vlan: int) -> None:
    record = HopRecord(Op.REPLACE, number, kind, wire, destination, source, vlan)
    message = Message(MessageType.NEXT_HOPS, 2**32 - 1, 0, 0, (record,) * 3)
    assert decode_message(message.encode(MAC)) == message


members = st.lists(st.tuples(st.integers(0, 65535), st.integers(1, 255)), min_size=1, max_size=16)


@given(st.integers(0, 65535), members.map(tuple))
def test_groups_come_back(number: int, members: tuple[tuple[int, int], ...]) -> None:
    message = Message(MessageType.NEXT_HOP_GROUPS, 1, 2, 0, (GroupRecord(number, members),) * 3)
    assert decode_message(message.encode(MAC)) == message


@given(st.binary(max_size=100), st.integers(0, 11))
def test_any_bytes_are_a_message_or_an_error(data: bytes, turn: int) -> None:
    frame = bytes.fromhex(VECTORS["conversation"][turn]["frame"])
    for damaged in (data, frame[:30] + data, data + frame[len(data) :], frame[:18] + data):
        for decode in (decode_message, decode_ack):
            try:
                decode(damaged)
            except MessageError as error:
                assert str(error)


def test_damage_is_named() -> None:
    frame = bytes.fromhex(VECTORS["conversation"][2]["frame"])
    with pytest.raises(MessageError, match="20 bytes is too short"):
        decode_message(frame[:20])
    with pytest.raises(MessageError, match="3 records do not fit into 53 bytes"):
        decode_message(frame[:53])
    with pytest.raises(VersionError, match="version 9; this is version 2"):
        decode_message(frame[:16] + b"\x09" + frame[17:])
    with pytest.raises(MessageError, match="type 0x02 in 60 bytes is not an answer"):
        decode_ack(frame)
    with pytest.raises(MessageError, match="EtherType 0x0800"):
        decode_message(frame[:12] + b"\x08\x00" + frame[14:])


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("10.0.0.1/8", "has host bits set"),
        ("ten", "not a prefix"),
        ((bytes(5), 8), "not a prefix"),
        ("::/129", "::/129"),
    ],
)
def test_what_is_not_a_prefix(value: Any, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        prefix_of(value)


def test_prefixes_and_addresses() -> None:
    assert prefix_of("198.51.100.7") == Prefix(bytes([198, 51, 100, 7]), 32)
    assert mac_of("02:00:00:00:01:ff") == bytes.fromhex("0200000001ff")
    with pytest.raises(UsageError, match="six bytes"):
        mac_of("02:00")
