# SPDX-License-Identifier: BSD-3-Clause
"""Writes the named inputs of tests/fuzz/vring and tests/fuzz/nf: what a fuzzer should not have to find out by itself.

    python tests/fuzz/make_seeds.py

The bytes are those that dataplane/test/hostile.c and dataplane/nf/nf_fuzz.c read. Files named by a hash are libFuzzer's
(scripts/fuzz.sh --keep).
"""

from __future__ import annotations

from pathlib import Path

SPLIT, PACKED, MERGEABLE, IN_ORDER = 1, 3, 5, 16
SIZE_8, SIZE_64, SIZE_512 = 3, 6, 9
NEXT, INDIRECT, BACKWARDS = 1, 4, 2
SENDER, RECEIVER = 1, 0
HOP, MBUFS, PARTLY_SENDER, PARTLY_RECEIVER, NOBODY = 5, 3, 1, 2, 0
ALL = 7 << 3
"""64 buffers a poll."""

POKE, INDEX, ENTRY, SLOT, TABLE, CHAIN, BURST, ANEW, CALLS, OFFER = 0, 1, 2, 3, 4, 5, 7, 8, 9, 10
B72, B64, B512, B1024, B12, B0, B4096, BEYOND = 0, 1, 3, 7, 10, 11, 13, 14
ROOM, TABLE_AT, LATE, TABLE_LATE, BORDER, OUTSIDE = 10 << 4, 7 << 4, 12 << 4, 9 << 4, 2 << 4, 15 << 4


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
    """By name: every template through every subject, out, back and out again; then a second later, in pieces."""
    found = {}
    bursts = [range(at, min(at + NF_BURST, NF_TEMPLATES)) for at in range(0, NF_TEMPLATES, NF_BURST)]
    for subject in range(NF_SUBJECTS):
        data = bytes([subject])
        for side in (0, NF_SIDE, 0):
            for burst_ in bursts:
                data += bytes([len(burst_) - 1 | side | NF_RIGHT, 1, 4])
                data += bytes(byte for template in burst_ for byte in (template, 0))
        for side in (0, NF_SIDE):
            for burst_ in bursts:
                data += bytes([len(burst_) - 1 | side | NF_TICK, *NF_SECOND])
                data += bytes(byte for template in burst_ for byte in (template, 32, 34 + template))
        found[f"subject_{subject}"] = data
    return found


if __name__ == "__main__":
    for folder, named in (("vring", seeds()), ("nf", nf_seeds())):
        for name, data in named.items():
            (Path(__file__).parent / folder / name).write_bytes(data)
