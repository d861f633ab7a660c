# SPDX-License-Identifier: BSD-3-Clause
"""Network interfaces of the kernel: counters in the namespace of a process, and which must not be taken by a run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from planebench.host import af_xdp, routes
from planebench.host.pci import ROOT
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


def xdp_refusal(names: Sequence[str], root: Path = ROOT) -> str:
    """Return why AF_XDP sockets cannot take all frames of these interfaces, as a sentence; empty if they can."""
    return af_xdp.missing() or refusal(names, root)


def refusal(names: Sequence[str], root: Path = ROOT) -> str:
    """Return why sockets cannot take all frames of these interfaces, as a sentence; empty if they can."""
    essential = routes.essential_interfaces(root, os.environ.get("SSH_CONNECTION"))
    for name in names:
        if reason := _refusal(name, essential.get(name, ""), root):
            return f"interface {name} {reason}"
    return ""


def _refusal(name: str, carries: str, root: Path) -> str:
    folder = root / "sys/class/net" / name
    if read_text(folder / "operstate") is None:
        return "does not exist; `ip link` lists all"
    if carries:
        return f"carries {carries}; its frames would go to the sockets: name another"
    if read_text(folder / "carrier") != "1":
        return f"is down or has no link: `ip link set {name} up`, and look at its cable"
    if (use := routes.uses(root, name)) is not None:
        return f"{use}; its frames would go to the sockets: name another"
    return ""
