# SPDX-License-Identifier: BSD-3-Clause
"""Counters of the network interfaces of a process's network namespace, from /proc/PID/net/dev."""

from __future__ import annotations

from dataclasses import dataclass

from planebench.host.procfs import read_text

_RX = "bytes packets errs drop fifo frame compressed multicast"
_TX = "bytes packets errs drop fifo colls carrier compressed"
_COLUMNS = f"face |{_RX}|{_TX}".split()
_FIELDS = 16


@dataclass(frozen=True, slots=True)
class Interface:
    """Counters of an interface."""

    rx_packets: int
    rx_dropped: int
    tx_packets: int
    tx_dropped: int


def interfaces_of(pid: int) -> dict[str, Interface]:
    """Return the counters of the interfaces that a process has in its namespace, by name; none if it is gone."""
    return parse_interfaces(read_text(f"/proc/{pid}/net/dev") or "")


def parse_interfaces(text: str) -> dict[str, Interface]:
    """Return the counters in /proc/net/dev by interface. Lines in another format are ignored."""
    header, *lines = text.splitlines()[1:] or [""]
    if header.split() != _COLUMNS:
        return {}
    found = {}
    for line in lines:
        name, _, rest = line.partition(":")
        fields = rest.split()
        if len(fields) == _FIELDS and all(field.isdecimal() for field in fields):
            numbers = [int(field) for field in fields]
            found[name.strip()] = Interface(numbers[1], numbers[3], numbers[9], numbers[11])
    return found
