# SPDX-License-Identifier: BSD-3-Clause
"""Network interfaces of the kernel: their counters, and those that no run may take, as the machine is reached by them.

``root`` is where /proc and /sys are.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from planebench.host.pci import ROOT
from planebench.host.procfs import link_name, read_text

_UP, _REJECT = 0x1, 0x200
"""Flags of a route (Linux, include/uapi/linux/route.h)."""
_LINK_LOCAL = "20"
"""Scope of an IPv6 address in /proc/net/if_inet6 that every interface that is up has."""


@dataclass(frozen=True, slots=True)
class Route:
    """A route of the kernel's main table. A default route has prefix length 0."""

    interface: str
    network: ipaddress.IPv4Network | ipaddress.IPv6Network
    metric: int


def routes(root: Path) -> tuple[Route, ...]:
    """Return the routes of both address families that are up and lead somewhere."""
    found = _routes_v4(root)
    for line in (read_text(root / "proc/net/ipv6_route") or "").splitlines():
        destination, length, _, _, _, metric, _, _, flags, interface = line.split()
        if int(flags, 16) & (_UP | _REJECT) == _UP and interface != "lo":
            address = ipaddress.IPv6Address(bytes.fromhex(destination))
            network = ipaddress.IPv6Network((address, int(length, 16)), strict=False)
            found.append(Route(interface, network, int(metric, 16)))
    return tuple(found)


def essential_interfaces(root: Path, ssh_connection: str | None) -> Mapping[str, str]:
    """Return the interfaces that must not be taken, each with what it carries.

    They are those of the default routes and of the route to the ssh client, and all interfaces below them: the ports
    of a bridge or a bond, the device of a VLAN. ``ssh_connection`` is the variable SSH_CONNECTION.
    """
    known = routes(root)
    found: dict[str, str] = {}
    for route in known:
        if route.network.prefixlen == 0:
            found.update(dict.fromkeys(_with_lower(root, route.interface), "the default route"))
    try:
        client = ipaddress.ip_address((ssh_connection or "").split(" ")[0].partition("%")[0])
    except ValueError:
        return found
    if isinstance(client, ipaddress.IPv6Address) and client.ipv4_mapped:
        client = client.ipv4_mapped
    ways = [route for route in known if client.version == route.network.version and client in route.network]
    best = min(ways, key=lambda route: (-route.network.prefixlen, route.metric), default=None)
    if best:
        found.update(dict.fromkeys(_with_lower(root, best.interface), "the ssh connection"))
    return found


def uses(root: Path, interface: str) -> str | None:
    """Return what the kernel uses an interface that is up for: addresses, a bridge, a VLAN; None if it is unused."""
    folder = root / "sys/class/net" / interface
    master = link_name(folder / "master")
    if master:
        return f"is part of {master}"
    upper = [entry.name.removeprefix("upper_") for entry in folder.glob("upper_*")]
    if upper:
        return f"carries {', '.join(sorted(upper))}"
    addresses = [line.split() for line in (read_text(root / "proc/net/if_inet6") or "").splitlines()]
    if any(line[5] == interface and line[3] != _LINK_LOCAL for line in addresses if len(line) > 5):
        return "has addresses"
    # A route comes with an address.
    return "has addresses" if any(route.interface == interface for route in _routes_v4(root)) else None


def ssh_connection(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return SSH_CONNECTION of this process, or of the nearest ancestor that has it: sudo removes it."""
    found = environment.get("SSH_CONNECTION")
    for process in psutil.Process().parents() if found is None else ():
        with contextlib.suppress(psutil.Error):  # of another user
            found = found or process.environ().get("SSH_CONNECTION")
    return found


def _routes_v4(root: Path) -> list[Route]:
    """Return the routes of /proc/net/route, whose addresses are little-endian hexadecimal numbers."""
    found = []
    for line in (read_text(root / "proc/net/route") or "").splitlines()[1:]:
        interface, destination, _, flags, _, _, metric, mask = line.split()[:8]
        if int(flags, 16) & (_UP | _REJECT) == _UP:
            address = ipaddress.IPv4Address(bytes.fromhex(destination)[::-1])
            network = ipaddress.IPv4Network((address, int(mask, 16).bit_count()), strict=False)
            found.append(Route(interface, network, int(metric)))
    return found


def _with_lower(root: Path, interface: str) -> set[str]:
    """Return an interface and all those that it is made of."""
    found: set[str] = set()
    wanted = [interface]
    while wanted:
        name = wanted.pop()
        if name not in found:
            found.add(name)
            lower = (root / "sys/class/net" / name).glob("lower_*")
            wanted += [entry.name.removeprefix("lower_") for entry in lower]
    return found


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


def refusal(names: Sequence[str], root: Path = ROOT) -> str:
    """Return why sockets cannot take all frames of these interfaces, as a sentence; empty if they can."""
    essential = essential_interfaces(root, ssh_connection())
    for name in names:
        folder = root / "sys/class/net" / name
        if read_text(folder / "operstate") is None:
            return f"interface {name} does not exist; `ip link` lists all"
        if name in essential:
            return f"interface {name} carries {essential[name]}; its frames would go to the sockets: name another"
        if read_text(folder / "carrier") != "1":
            return f"interface {name} is down or has no link: `ip link set {name} up`, and look at its cable"
        if (use := uses(root, name)) is not None:
            return f"interface {name} {use}; its frames would go to the sockets: name another"
    return ""
