# SPDX-License-Identifier: BSD-3-Clause
"""Destination addresses for a router under test: drawn from the prefixes of its own table.

Prefixes are drawn uniformly, seeded, and in each one random host address. Only those drawn are parsed: a table of a
million routes takes a second, as many addresses some more. What an address is routed by may be a more specific route of
the same table.
"""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from planebench.model.errors import UsageError, unreadable
from planebench.vnfs.chain import parse_chain

DEFAULT_PREFIXES: dict[int, tuple[str, ...]] = {
    4: (
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.18.0.0/16",
        "198.19.0.0/16",
        "198.19.0.0/24",
        "198.19.1.0/24",
        "198.19.2.0/24",
        "198.19.3.0/24",
    ),
    6: ("2001:2::/48",),
}
"""Where no table is named: the default routes of l3fwd (dataplane/tasks/l3fwd/l3fwd_settings.c).

That of IPv6 is the network for benchmarking (RFC 5180 section 8)."""

TRIES = 64
"""A prefix may hold addresses that no router forwards; so often another of its addresses is tried."""

SYNTHETIC_FIRST = 10 << 24
"""10.0.0.0: route i of a synthetic FIB (docs/design/fib-offload.md) is that of this address + i."""

Ip = Literal[4, 6]

_FAMILY: dict[Ip, socket.AddressFamily] = {4: socket.AF_INET, 6: socket.AF_INET6}
_BITS: dict[Ip, int] = {4: 32, 6: 128}


def routes_file_of(chain: str) -> Path | None:
    """Return the routes file of the first router of a chain; None for its default table, or without a router."""
    for vnf in parse_chain(chain) if chain else ():
        if vnf.kind.router:
            path = vnf.options.get("routes") or _setting(vnf.options.get("settings"))
            return Path(path).expanduser().absolute() if path else None
    return None


def draw_addresses(routes: Path | None, ip: Ip, count: int, seed: int) -> list[str]:
    """Return ``count`` addresses in the prefixes of a file of routes (None: the default routes). Raises UsageError."""
    candidates = DEFAULT_PREFIXES[ip] if routes is None else _prefixes(routes, ip)
    rng = random.Random(seed)
    drawn = rng.sample(candidates, count) if count <= len(candidates) else rng.choices(candidates, k=count)
    where = "the default table" if routes is None else str(routes)
    return [_address(text, ip, rng, candidates, where) for text in drawn]


def synthetic_routes_of(chain: str) -> int:
    """Return the number of routes of the synthetic FIB of the first router of a chain; 0 without one."""
    routers = [vnf for vnf in parse_chain(chain) if vnf.kind.router] if chain else []
    return int(routers[0].settings().get("synthetic", 0)) if routers else 0


def draw_synthetic(routes: int, count: int, seed: int) -> list[str]:
    """Return ``count`` addresses drawn uniformly from a synthetic FIB: host routes from SYNTHETIC_FIRST on."""
    rng = random.Random(seed)
    return [socket.inet_ntoa((SYNTHETIC_FIRST + rng.randrange(routes)).to_bytes(4, "big")) for _ in range(count)]


def write_addresses(path: Path, addresses: Sequence[str]) -> None:
    """Write one address per line, the format of planed."""
    path.write_text("\n".join(addresses) + "\n", encoding="ascii")


def _setting(path: str | None) -> str | None:
    """Return a value of a file of settings; planed reports other errors in it."""
    if path is None:
        return None
    try:
        found = json.loads(Path(path).expanduser().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    value = found.get("routes_file") if isinstance(found, dict) else None
    return value if isinstance(value, str) else None


def _prefixes(routes: Path, ip: Ip) -> list[str]:
    """Return every prefix of this family that is not dropped, as unchecked text."""
    try:
        text = routes.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(f"routes {routes}", error, "give a text file with one prefix per line") from None
    found = list(_from_json(text, routes) if text.lstrip()[:1] in ("{", "[") else _from_lines(text))
    of_family = [prefix for prefix in found if (":" in prefix) == (ip == 6)]
    if not of_family:
        raise UsageError(f"routes {routes} has no IPv{ip} prefix to draw addresses from; add one, or set ip")
    return of_family


def _from_lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if words and "drop" not in words[1:]:
            yield words[0]


def _from_json(text: str, routes: Path) -> Iterator[str]:
    try:
        document: Any = json.loads(text)
        entries = document["routes"] if isinstance(document, dict) else document
        yield from (str(entry["prefix"]) for entry in entries if not entry.get("drop"))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UsageError(f'routes {routes} is not JSON with routes such as [{{"prefix": "10.0.0.0/8"}}, ...]') from None


def _address(text: str, ip: Ip, rng: random.Random, candidates: Sequence[str], where: str) -> str:
    """Return a host address in this prefix, or in another one if a router forwards none in it."""
    for _ in range(TRIES):
        network, host_bits = _parsed(text, ip, where)
        for _ in range(TRIES):
            address = network | rng.getrandbits(host_bits) if host_bits else network
            if _forwarded(address, ip):
                return socket.inet_ntop(_FAMILY[ip], address.to_bytes(_BITS[ip] // 8, "big"))
        text = rng.choice(candidates)
    raise UsageError(f"{where}: no routable IPv{ip} prefix found; use another table")


def _parsed(text: str, ip: Ip, where: str) -> tuple[int, int]:
    """Return network address and number of host bits; the module ipaddress takes ten times as long."""
    address, slash, length = text.partition("/")
    try:
        host_bits = _BITS[ip] - int(length) if slash else 0
        packed = socket.inet_pton(_FAMILY[ip], address)
        if not 0 <= host_bits <= _BITS[ip]:
            raise ValueError
    except (OSError, ValueError):
        raise UsageError(f'{where}: "{text}" is not a prefix; write e.g. 10.1.0.0/16') from None
    return int.from_bytes(packed, "big") >> host_bits << host_bits, host_bits


def _forwarded(address: int, ip: Ip) -> bool:
    """Return whether RFC 1812 section 5.3.7, RFC 3927 section 7 and RFC 4291 sections 2.5 and 2.7 allow forwarding."""
    if ip == 4:
        return address >> 24 not in (0, 127) and address >> 24 < 224 and address >> 16 != 0xA9FE
    return address > 1 and address >> 120 != 0xFF and address >> 118 != 0xFE80 >> 6
