# SPDX-License-Identifier: BSD-3-Clause
"""Maglev's lookup table from the pseudocode of its paper (NSDI 2016, section 3.4), and the hashes around it."""

from __future__ import annotations

from collections.abc import Sequence

_MASK = 0xFFFFFFFF


def _rotate(value: int, by: int) -> int:
    return (value << by | value >> (32 - by)) & _MASK


def lookup3(data: bytes, initial: int) -> int:
    """hashlittle() of Bob Jenkins' lookup3.c."""
    a = b = c = (0xDEADBEEF + len(data) + initial) & _MASK
    words = [int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), 4)]
    if not words:
        return c
    while len(data) > 12:
        a, b, c = (a + words[0]) & _MASK, (b + words[1]) & _MASK, (c + words[2]) & _MASK
        a, b, c = _mix(a, b, c)
        data, words = data[12:], words[3:]
    x, y, z = (*words, 0, 0)[:3]
    return _final((a + x) & _MASK, (b + y) & _MASK, (c + z) & _MASK)


def _mix(a: int, b: int, c: int) -> tuple[int, int, int]:
    for by in (4, 6, 8, 16, 19, 4):  # each line of mix(): a -= c; a ^= rot(c, by); c += b, and the names move on
        a = ((a - c) & _MASK) ^ _rotate(c, by)
        c = (c + b) & _MASK
        a, b, c = b, c, a
    return a, b, c


def _final(a: int, b: int, c: int) -> int:
    c = ((c ^ b) - _rotate(b, 14)) & _MASK
    a = ((a ^ c) - _rotate(c, 11)) & _MASK
    b = ((b ^ a) - _rotate(a, 25)) & _MASK
    c = ((c ^ b) - _rotate(b, 16)) & _MASK
    a = ((a ^ c) - _rotate(c, 4)) & _MASK
    b = ((b ^ a) - _rotate(a, 14)) & _MASK
    return ((c ^ b) - _rotate(b, 24)) & _MASK


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_CRC = _table()


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli, reflected), from 0, not inverted."""
    crc = 0
    for byte in data:
        crc = crc >> 8 ^ _CRC[(crc ^ byte) & 0xFF]
    return crc


def populate(backends: Sequence[tuple[str, int]], size: int) -> list[int | None]:
    """The paper's POPULATE for (name, turns): whose each entry is, by index into backends."""
    offset = [lookup3(name.encode(), 0) % size for name, _ in backends]
    skip = [lookup3(name.encode(), 1) % (size - 1) + 1 for name, _ in backends]
    following = [0] * len(backends)
    entry: list[int | None] = [None] * size
    n = 0
    while any(turns for _, turns in backends):
        for i, (_, turns) in enumerate(backends):
            for _ in range(turns):
                c = (offset[i] + following[i] * skip[i]) % size
                while entry[c] is not None:
                    following[i] += 1
                    c = (offset[i] + following[i] * skip[i]) % size
                entry[c] = i
                following[i] += 1
                n += 1
                if n == size:
                    return entry
    return entry
