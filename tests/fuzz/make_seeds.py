# SPDX-License-Identifier: BSD-3-Clause
"""Writes the named inputs of tests/fuzz/{vring,vhost_listener,frontend,memif,offload,nf,frame,capture,fib_message}:
what a fuzzer would be long to find out.

    python tests/fuzz/make_seeds.py

The bytes are those that dataplane/test/hostile.c, dataplane/virtio/vhost_listener_fuzz.c, offload_fuzz.c,
dataplane/nf/nf_fuzz.c, dataplane/tester/frame_fuzz.c, capture_fuzz.c and
dataplane/fib/fib_message_fuzz.c read. Files named by a hash are libFuzzer's (scripts/fuzz.sh --keep).
"""

from __future__ import annotations

import struct
from pathlib import Path

SPLIT, PACKED, MERGEABLE, IN_ORDER = 1, 3, 5, 16
SIZE_8, SIZE_64, SIZE_512 = 3, 6, 9
NEXT, INDIRECT, BACKWARDS = 1, 4, 2
SENDER, RECEIVER = 1, 0
HOP, MBUFS, PARTLY_SENDER, PARTLY_RECEIVER, NOBODY = 5, 3, 1, 2, 0
OFFLOADS, OFFLOADS_ACCEPTED = 6, 7
ALL = 7 << 3
"""64 buffers a poll."""

POKE, INDEX, ENTRY, SLOT, TABLE, CHAIN, BURST, ANEW, CALLS, OFFER = 0, 1, 2, 3, 4, 5, 7, 8, 9, 10
B72, B64, B512, B1024, B12, B0, B4096, BEYOND = 0, 1, 3, 7, 10, 11, 13, 14
ROOM, TABLE_AT, LATE, TABLE_LATE, BORDER, OUTSIDE = 10 << 4, 7 << 4, 12 << 4, 9 << 4, 2 << 4, 15 << 4
ROOM_AT = 0x1000
"""Where ROOM is in the memory."""


def word(value: int) -> tuple[int, int]:
    return value & 0xFF, value >> 8


def offer(who: int, what: int, flags: int = 0, slot: int = 0) -> tuple[int, ...]:
    return who, OFFER, slot, what, flags


def burst(who: int, what: int, times: int, slot: int = 0) -> tuple[int, ...]:
    return who, BURST | (times - 2) // 6 << 4, slot, what, 0


def chain(who: int, what: int, length: int, slot: int = 0) -> tuple[int, ...]:
    return who, CHAIN, (length - 1) // 3, slot, what, 0


def table(who: int, what: int, entries: int) -> tuple[int, ...]:
    return who, TABLE, entries - 1, what, 0


def turn(how: int, *changes: tuple[int, ...]) -> bytes:
    return bytes([how, len(changes) - 1, *(byte for change in changes for byte in change)])


def start(a: int, b: int, size: int = SIZE_64, base: int = 0, isa: int = 0) -> bytes:
    return bytes([isa, a, size, base, b, size, base])


def seeds() -> dict[str, bytes]:
    """By name: one for each thing that a ring can do, and each lie."""
    found = {}
    for name, kind in (("split", SPLIT), ("packed", PACKED)):
        plain = turn(HOP | ALL, burst(RECEIVER, ROOM | B512, 32), burst(SENDER, ROOM | B72, 32))
        merged = turn(HOP | ALL, burst(RECEIVER, ROOM | B64, 62), burst(SENDER, ROOM | B512, 8))
        through = turn(MBUFS | ALL, burst(RECEIVER, ROOM | B1024, 62), burst(SENDER, ROOM | B1024, 50))
        chained = turn(HOP | ALL, chain(RECEIVER, ROOM | B12, 7), chain(SENDER, ROOM | B64, 4))
        indirect = turn(
            HOP, table(SENDER, ROOM | B64, 4), offer(RECEIVER, B1024), offer(SENDER, TABLE_AT | B64, INDIRECT)
        )
        asked = [(SENDER, POKE, *word(ROOM_AT + at), value) for at, value in ((0, 1), (6, 34), (8, 16))]
        for how, ends in ((OFFLOADS, "done"), (OFFLOADS_ACCEPTED, "accepted")):
            sent = turn(how | ALL, burst(RECEIVER, ROOM | B512, 32), *asked, burst(SENDER, ROOM | B72, 32))
            found[f"{name}_offloads_{ends}"] = start(kind, kind | MERGEABLE) + sent * 3
        for isa in range(3):
            found[f"{name}_plain_isa{isa}"] = start(kind, kind, isa=isa) + plain * 5
            found[f"{name}_in_order_isa{isa}"] = start(kind | IN_ORDER, kind | IN_ORDER, isa=isa) + plain * 5
        found[f"{name}_legacy"] = start(kind & ~1, kind & ~1) + plain + through
        found[f"{name}_mergeable"] = start(kind, kind | MERGEABLE) + merged * 3
        found[f"{name}_mbufs"] = start(kind, kind | MERGEABLE, SIZE_512) + through * 4
        found[f"{name}_chained"] = start(kind, kind) + chained * 9
        found[f"{name}_indirect"] = start(kind, kind) + indirect * 4
        found[f"{name}_wraps"] = start(kind, kind, SIZE_8, 0xFF) + plain * 6
        found[f"{name}_partly"] = start(kind, kind) + turn(PARTLY_SENDER | ALL, burst(SENDER, B72, 32)) + plain * 2
        found[f"{name}_nobody"] = start(kind, kind) + turn(NOBODY | ALL, burst(SENDER, B72, 62))
        found[f"{name}_oversize"] = start(kind, kind) + turn(HOP, chain(SENDER, B4096, 19)) + plain
        found[f"{name}_border"] = start(kind, kind) + turn(
            HOP, offer(RECEIVER, BORDER | B1024), offer(SENDER, BORDER | B72)
        )
        lies = {
            "outside": offer(SENDER, OUTSIDE | B64),
            "beyond": offer(SENDER, BEYOND),
            "endless": offer(SENDER, 15 | ROOM),
            "backwards": offer(SENDER, B72, BACKWARDS),
            "empty": offer(SENDER, B0),
            "index": (SENDER, INDEX, *word(0x9000)),
            "head": (SENDER, ENTRY, *word(0x7FFF), 32, SENDER, INDEX, *word(1)),
            "loop": offer(SENDER, B64, 0x90),
            "long": chain(SENDER, B12, 382),
            "table": offer(SENDER, LATE | B64, INDIRECT),
            "odd_table": offer(SENDER, TABLE_AT | B72, INDIRECT),
            "long_table": offer(SENDER, B4096, INDIRECT),
        }
        for lie, change in lies.items():
            end = bytes([HOP | ALL, 1 if lie == "head" else 0, *change]) + turn(HOP | ALL, (SENDER, INDEX, *word(3)))
            found[f"{name}_lie_{lie}"] = start(kind, kind, SIZE_512) + plain + end
        elsewhere = (SENDER, ANEW, 0x1F, *word(0x300), *word(0x2300), *word(0x2800), *word(32), *word(0))
        found[f"{name}_anew"] = start(kind, kind) + turn(HOP | ALL, elsewhere, burst(SENDER, B72, 8)) + plain
        found[f"{name}_calls"] = start(kind, kind) + turn(HOP, (SENDER, CALLS | 1 << 4), (RECEIVER, CALLS)) + plain
    return found


NF_SUBJECTS, NF_TEMPLATES, NF_BURST = 12, 26, 8
NF_SIDE, NF_TICK, NF_RIGHT = 8, 16, 32
NF_SECOND = (3, 30)
"""A step of time of a second or so."""


def nf_seeds() -> dict[str, bytes]:
    """By name: every template through every subject, out and back, without checksums (UDP has none then) and with right
    ones; then a second later, in pieces."""
    found = {}
    bursts = [range(at, min(at + NF_BURST, NF_TEMPLATES)) for at in range(0, NF_TEMPLATES, NF_BURST)]
    for subject in range(NF_SUBJECTS):
        data = bytes([subject])
        for side in (0, NF_SIDE, 0 | NF_RIGHT, NF_SIDE | NF_RIGHT, 0 | NF_RIGHT):
            for burst_ in bursts:
                data += bytes([len(burst_) - 1 | side, 1, 4])
                data += bytes(byte for template in burst_ for byte in (template, 0))
        for side in (0, NF_SIDE):
            for burst_ in bursts:
                data += bytes([len(burst_) - 1 | side | NF_TICK, *NF_SECOND])
                data += bytes(byte for template in burst_ for byte in (template, 32, 34 + template))
        found[f"subject_{subject}"] = data
    return found


OWN = bytes.fromhex("7062 01 01 0007 00000003 0000000000000009")
"""A tester frame's magic, stream, flags (a probe), epoch, number and time."""


def checked(data: bytes, at: int, pseudo: bytes = b"") -> bytes:
    """With its checksum (RFC 1071) at an offset."""
    total = -int.from_bytes(pseudo + data + bytes(len(data) % 2), "big") % 0xFFFF
    return data[:at] + (total or 0xFFFF).to_bytes(2, "big") + data[at + 2 :]


def tester_frame(version: int, tcp: bool, tags: int = 0, options: int = 0, more: int = 0) -> bytes:
    """A frame with our bytes in it, all sums right."""
    body = OWN + bytes(more)
    segment = b"\xc0\0\x70\x62" + (
        bytes(8) + bytes([0x50 + options, 2, 1, 0, 0, 0, 0, 0]) + b"\x01" * (4 * options)
        if tcp
        else struct.pack("!HH", 8 + len(body), 0)
    )
    segment, protocol = segment + body, 6 if tcp else 17
    ends = bytes((198, 18, 0, 1, 198, 19, 0, 1)) if version == 4 else b"\x20\x01" + bytes(30)
    segment = checked(segment, 16 if tcp else 6, ends + struct.pack("!HH", protocol, len(segment)))
    if version == 4:
        words = 5 + options
        head = struct.pack("!BBHIBBH", 0x40 | words, 0, 4 * words + len(segment), 0, 64, protocol, 0)
        packet = checked(head + ends + b"\x01" * (4 * options), 10) + segment
    else:
        packet = struct.pack("!IHBB", 6 << 28, len(segment), protocol, 64) + ends + segment
    kind = b"\x08\x00" if version == 4 else b"\x86\xdd"
    return bytes(12) + b"\x81\x00\x00\x05" * tags + kind + packet


FRAMES = {
    f"ipv{version}_{'tcp' if tcp else 'udp'}_tags{tags}_options{options}": tester_frame(version, tcp, tags, options, 7)
    for version in (4, 6)
    for tcp in (False, True)
    for tags in (0, 2)
    for options in (0, 1)
}


def frame_seeds() -> dict[str, bytes]:
    """By name: frames as they are (an even first byte), and how plain ones are made and damaged."""
    found = {name: b"\0" + data for name, data in FRAMES.items()}
    found["plain"] = bytes([1, 3, 0, 0])
    found["probe"] = bytes([9, 3, 0, 5, 0, 0])
    found["long"] = bytes([5, 0xFF, 0x1F, 3, 0, 0])
    found["damaged"] = bytes([1, 3, 0, 1, 55, 0, 1])
    found["cut"] = bytes([3, 3, 0, 0, 41, 0])
    return found


def capture_seeds() -> dict[str, bytes]:
    """By name: pcap of both byte orders, in us and in ns, and pcapng; frames that are taken, and others."""
    others = [bytes(60), tester_frame(4, False)[:30], bytes(12) + b"\x86\xdd\x60" + bytes(5) + b"\x2c" + bytes(60)]
    frames = [*FRAMES.values(), *others]
    found = {}
    for name, order, magic in (
        ("us_little", "<", 0xA1B2C3D4),
        ("us_big", ">", 0xA1B2C3D4),
        ("ns_little", "<", 0xA1B23C4D),
        ("ns_big", ">", 0xA1B23C4D),
    ):
        data = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65535, 1)
        for number, frame in enumerate(frames):
            data += struct.pack(order + "IIII", 1000 - number % 3, number, len(frame), len(frame)) + frame
        found[name] = b"\1" + data
    found["short_room"] = b"\0" + found["us_little"][1:]
    found["snapped"] = b"\1" + found["us_little"][1:41] + struct.pack("<II", 40, 200) + frames[0][:40]
    found["other_link"] = b"\1" + found["us_little"][1:21] + b"\x65\0\0\0"
    blocks = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
    blocks += struct.pack("<IIHHII", 1, 20, 1, 0, 65535, 20)
    for number, frame in enumerate(frames):
        padded = frame + bytes(-len(frame) % 4)
        size = 32 + len(padded)
        blocks += struct.pack("<IIIIIII", 6, size, 0, 0, number, len(frame), len(frame)) + padded
        blocks += struct.pack("<I", size)
    found["pcapng"] = b"\1" + blocks
    return found


FIB_ROUTES, FIB_HOPS, FIB_FLUSH, FIB_END, FIB_HELLO = 0, 2, 5, 6, 7
FIB_SIX = 8
FIB_ADD, FIB_REPLACE, FIB_DELETE = 0, 1, 2
FIB_HOLD, FIB_GRACE = 0x3F, 0x7F
"""Time until a VNF is silent, and until its routes are flushed, with its link down."""


def fib_frame(type_: int, *records: tuple[int, ...], more: int = 0) -> bytes:
    return bytes([1, len(records), type_ | more, *(byte for record in records for byte in record)])


def fib_hop(number: int, op: int = FIB_REPLACE, first: int = 0) -> tuple[int, ...]:
    return (next(how for how in range(first, 256) if how % 3 == op and how >> 2 & 3 == number),)


def fib_route(length: int, value: int, bits: int = 32, op: int = FIB_REPLACE, hop: int = 1) -> tuple[int, ...]:
    return (*fib_hop(hop, op), length, *(() if length < 8 else (value,)), *(() if length < bits else (value,)))


def fib_seeds() -> dict[str, bytes]:
    """By name: a session that does all there is to do, and what ends at a limit."""
    hops = fib_frame(FIB_HOPS, fib_hop(1), fib_hop(2))
    four = fib_frame(FIB_ROUTES, *(fib_route(length, 1) for length in (0, 7, 8, 24, 31, 32)))
    six = fib_frame(FIB_ROUTES, *(fib_route(length, 1, 128) for length in (0, 64, 65, 127, 128)), more=FIB_SIX)
    many = b"".join(fib_frame(FIB_ROUTES, *(fib_route(length, value) for length in range(8, 23))) for value in range(3))
    codes = fib_frame(FIB_ROUTES, fib_route(8, 1, op=FIB_ADD)) + fib_frame(FIB_ROUTES, fib_route(9, 3, op=FIB_DELETE))
    return {
        "session": hops + four + six + fib_frame(FIB_FLUSH) + hops + four,
        "codes": hops + four + codes + fib_frame(FIB_HOPS, fib_hop(1, FIB_DELETE)),
        "hop_change": hops + four + hops + fib_frame(FIB_HOPS, fib_hop(2, FIB_DELETE)),
        "quota": hops + many,
        "quota_hops": b"".join(fib_frame(FIB_HOPS, *map(fib_hop, range(4))) for _ in range(3)),
        "dead": (hops + many + fib_frame(FIB_FLUSH)) * 4 + hops + many,
        "restart": hops + four + fib_frame(FIB_HELLO, more=0x40) + hops + six + fib_frame(FIB_END) + bytes([0, 7]),
        "restarts": b"".join(fib_frame(FIB_HELLO, more=n << 6) + hops + four + six for n in (1, 2, 3, 0, 1, 2)),
        "vlans": fib_frame(FIB_HOPS, fib_hop(1, first=0x10), fib_hop(2, first=0xD0))
        + fib_frame(FIB_ROUTES, fib_route(8, 1), fib_route(9, 1, hop=2)),
        "silence": hops + four + bytes([0, FIB_HOLD]) * 3 + hops + bytes([0, FIB_GRACE]) * 2 + hops,
    }


DOOR_ANY, DOOR_RAW, DOOR_STATE, DOOR_FILE, DOOR_ADDRESS, DOOR_WRITE, DOOR_RING, DOOR_TABLE = 0, 1, 3, 4, 5, 6, 7, 8
DOOR_FEATURES, DOOR_ALL_FEATURES, DOOR_PROTOCOL, DOOR_STATUS = 2, 152, 12, 22
DOOR_NUM, DOOR_BASE, DOOR_GET_BASE, DOOR_ENABLE = 3, 13, 23, 33
DOOR_MEMORY, DOOR_SMALL, DOOR_EVENT, DOOR_PIPE = 0, 2, 4, 5


def door_number(value: int, how: int = 0) -> tuple[int, ...]:
    return how, *word(value)


def door_any(request: int, size: int, *files: int) -> bytes:
    return bytes([DOOR_ANY, request, size, len(files), *bytes(size), *files])


def door_table(count: int, odd: int = 0, *more: int) -> bytes:
    return bytes([DOOR_TABLE, count - 1, odd, *more])


def door_state(what: int, ring: int, value: int) -> bytes:
    return bytes([what, ring, *word(value)])


def door_seeds() -> dict[str, bytes]:
    """By name: sessions as drivers have them, and one for each kind of message that is refused."""
    split = bytes([DOOR_FEATURES, *door_number(0)])
    packed = bytes([DOOR_ALL_FEATURES, *door_number(0)])
    rings = b"".join(bytes([DOOR_RING, ring]) for ring in range(4))
    session = split + door_table(1) + rings
    stops = b"".join(door_state(DOOR_GET_BASE, ring, 0) for ring in range(4))
    found = {
        "split": session + stops + rings,
        "packed": packed + door_table(2) + rings + stops + rings,
        "tables": session + door_table(4) + door_table(1) + session,
        "acknowledged": bytes([DOOR_PROTOCOL, *door_number(8)]) + session,
        "small_file": session + door_table(2, 1, DOOR_SMALL),
        "behind_its_file": session + door_table(1, 4, *door_number(0xFFFF, 1)),
        "overlap": session + door_table(2, 8 | 16, *door_number(0, 3)),
        "pipe_to_call": session + bytes([DOOR_FILE + 130 + 10, 0, DOOR_PIPE]),
        "far_ring": session + bytes([DOOR_ADDRESS, 1, *door_number(0xFFF0, 2) * 3, 1]),
        "sizes": session + b"".join(door_state(DOOR_NUM, 0, size) for size in (1, 3, 32768, 0)),
        "beyond": session + door_state(DOOR_ENABLE, 31, 1) + door_state(DOOR_ENABLE, 32, 1),
        "many_files": session + door_any(5, 8, *[DOOR_MEMORY] * 16),
        "raw_header": session + bytes([DOOR_RAW, 11, 0, 0, 0, *struct.pack("<III", 5, 1, 2**31)]),
    }
    return found | {f"request_{request}": session + door_any(request, 8, DOOR_EVENT) for request in range(42)}


DEVICE_FEATURES = 1 << 35 | 1 << 32 | 1 << 30 | 1 << 22
SET_UP, ENABLE, BASE = (8, 10, 9, 13, 12), 18, 11


def device_answer(request: int, number: int = 0, odd: int = 0, *more: int) -> bytes:
    return bytes([odd, request, *struct.pack("<Q", number)[:5], *more])


def frontend_seeds() -> dict[str, bytes]:
    """By name: devices that answer as they should, with and without acknowledgements, and one answer that is odd."""
    begin = device_answer(1, DEVICE_FEATURES)
    acknowledged = begin + device_answer(15, 9) + device_answer(17, 2)
    acknowledged += b"".join(map(device_answer, (2, 5, *SET_UP * 4, *[ENABLE] * 8, *[BASE] * 4)))
    silent = begin + device_answer(15, 1) + device_answer(17, 2) + begin + device_answer(BASE) * 4
    return {
        "acknowledged": acknowledged,
        "silent": silent,
        "few_queues": begin + device_answer(15, 1) + device_answer(17, 1),
        "old": device_answer(1, 1 << 30),
        "flags": begin + device_answer(15, 1, 1, 1),
        "huge": begin + device_answer(15, 1, 0xC2, 0xFF, 0xFF),
        "cut": begin + device_answer(15, 1, 4, 13),
        "files": device_answer(1, DEVICE_FEATURES, 0x20) + device_answer(15, 9, 0x20),
        "refused": begin + device_answer(15, 9) + device_answer(17, 2) + device_answer(2, 1),
    }


MEMIF_SERVER, MEMIF_CLIENT = 0, 1
MEMIF_SAID = 7


def memif_seeds() -> dict[str, bytes]:
    """By name: ends that are connected and polled, with and without lies, and messages that are odd."""
    said = bytes([MEMIF_SERVER, *[0] * MEMIF_SAID])
    head, flags, length, offset, too_long = 0, 2, 4, 5, 6
    lies = [bytes([field << 2, what, 1, 1]) for field in range(4) for what in (head, flags, length, offset, too_long)]
    polls = b"".join(bytes([4 | ring, 60, 0]) for ring in range(4))
    return {
        "server": said + polls * 8,
        "client": bytes([MEMIF_CLIENT]) + polls * 8,
        "server_lies": said + b"".join(polls[:3] + lie for lie in lies),
        "client_lies": bytes([MEMIF_CLIENT]) + b"".join(polls[:3] + lie for lie in lies),
        "type": bytes([MEMIF_SERVER, 1, 5]),
        "file": bytes([MEMIF_SERVER, 0, 8]),
        "ring": bytes([MEMIF_SERVER, 0, 0, 2, 7, 255]),
    }


OFFLOAD_ALL, MADE, HEADER_LIES = 0x3F, 0x80, 0x40


def offload_seeds() -> dict[str, bytes]:
    """By name: frames of each kind to receivers that accept everything and nothing, in pieces, damaged, and lies."""

    def made(kind: int, size: int, gso_size: int, *more: int, changes: int = 0) -> bytes:
        return bytes([MADE | kind, changes, *word(size), *word(gso_size - 1), *more, 0])

    kinds = b"".join(made(kind, 2999, 1000) for kind in range(0x40))
    pieces = b"".join(made(kind, 2999, 1000, 40, 12, 1, 7, 200) for kind in range(0x40))
    tiny = made(0, 254, 1) + made(2, 254, 1) + made(1, 255, 1) + made(0, 256, 1)
    damaged = b"".join(made(0, 99, 10, at, 0x80, 255, changes=1) for at in range(70))
    lies = b"".join(
        bytes([MADE | HEADER_LIES | kind, 0, *word(999), *word(99), 1, gso, 0, 0, *word(100), start, 0, offset, 0, 0])
        for kind in range(4)
        for gso in (0, 1, 3, 4, 5, 0x81)
        for start, offset in ((34, 16), (34, 6), (54, 16), (13, 0), (254, 0), (255, 0))
    )
    raw = bytes([0, 0, *word(0), *[1] * 10, 0, 0, 0, *word(60), *range(60), 1, 1, *[9] * 8, 0])
    bodies = {"kinds": kinds, "pieces": pieces, "tiny": tiny, "damaged": damaged, "lies": lies, "raw": raw}
    found = {f"{name}_accepted": bytes([OFFLOAD_ALL, 0]) + body for name, body in bodies.items()}
    found |= {f"{name}_done": bytes([0, 0]) + body for name, body in bodies.items()}
    return found | {"full": bytes([0, 1, 2]) + kinds}


if __name__ == "__main__":
    made = {"vring": seeds(), "nf": nf_seeds(), "frame": frame_seeds(), "capture": capture_seeds()}
    made |= {"fib_message": fib_seeds(), "vhost_listener": door_seeds(), "frontend": frontend_seeds()}
    made["memif"] = memif_seeds()
    made["offload"] = offload_seeds()
    for folder, named in made.items():
        for name, data in named.items():
            (Path(__file__).parent / folder / name).write_bytes(data)
