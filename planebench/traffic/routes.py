# SPDX-License-Identifier: BSD-3-Clause
"""Destination addresses for a router under test: drawn from the prefixes of its own table, as planed reads it.

Prefixes are drawn uniformly, seeded, and in each one random host address. Only those drawn are parsed: a table of a
million routes takes a second or two, as many addresses some more. What an address is routed by may be a more specific
route of the same table.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from planebench.model.errors import UsageError
from planebench.planed.facts import planed_facts
from planebench.vnfs.chain import parse_chain

TRIES = 64
"""A prefix may hold addresses that no router forwards; so often another of its addresses is tried."""

SYNTHETIC_FIRST = 10 << 24
"""10.0.0.0: route i of a synthetic FIB (docs/design/fib-offload.md) is that of this address + i."""

Ip = Literal[4, 6]

_FAMILY: dict[Ip, socket.AddressFamily] = {4: socket.AF_INET, 6: socket.AF_INET6}
_BITS: dict[Ip, int] = {4: 32, 6: 128}


def router_settings(chain: str) -> dict[str, Any]:
    """Return the settings of the first router of a chain; empty for its defaults, or without a router."""
    return next((vnf.settings() for vnf in parse_chain(chain) if vnf.kind.router), {}) if chain else {}


def synthetic_routes_of(chain: str) -> int:
    """Return the number of routes of the synthetic FIB of the first router of a chain; 0 without one."""
    return int(router_settings(chain).get("synthetic", 0))


def draw_addresses(settings: Mapping[str, Any], ip: Ip, count: int, seed: int) -> list[str]:
    """Return ``count`` addresses in the routes of a router with these settings. Raises UsageError."""
    rng = random.Random(seed)
    if synthetic := int(settings.get("synthetic", 0)):
        return [socket.inet_ntoa((SYNTHETIC_FIRST + rng.randrange(synthetic)).to_bytes(4, "big")) for _ in range(count)]
    file = settings.get("routes_file")
    where = f"routes {file}" if file else "the routes of the router"
    prefixes: list[str] = planed_facts("l3fwd", settings, [Path(file)] if file else [])["prefixes"]
    candidates = [prefix for prefix in prefixes if (":" in prefix) == (ip == 6)]
    if not candidates:
        raise UsageError(f"{where}: there is no IPv{ip} prefix to draw addresses from; add one, or set ip")
    drawn = rng.sample(candidates, count) if count <= len(candidates) else rng.choices(candidates, k=count)
    return [_address(text, ip, rng, candidates, where) for text in drawn]


def write_addresses(path: Path, addresses: Sequence[str]) -> None:
    """Write one address per line, the format of planed."""
    path.write_text("\n".join(addresses) + "\n", encoding="ascii")


def _address(prefix: str, ip: Ip, rng: random.Random, candidates: Sequence[str], where: str) -> str:
    """Return a host address in this prefix, or in another one if a router forwards none in it."""
    for _ in range(TRIES):
        first, _, length = prefix.partition("/")
        network, host_bits = int.from_bytes(socket.inet_pton(_FAMILY[ip], first), "big"), _BITS[ip] - int(length)
        for _ in range(TRIES):
            address = network | rng.getrandbits(host_bits) if host_bits else network
            if _forwarded(address, ip):
                return socket.inet_ntop(_FAMILY[ip], address.to_bytes(_BITS[ip] // 8, "big"))
        prefix = rng.choice(candidates)
    raise UsageError(f"{where}: no routable IPv{ip} prefix found; use another table")


def _forwarded(address: int, ip: Ip) -> bool:
    """Return whether RFC 1812 section 5.3.7, RFC 3927 section 7 and RFC 4291 sections 2.5 and 2.7 allow forwarding."""
    if ip == 4:
        return address >> 24 not in (0, 127) and address >> 24 < 224 and address >> 16 != 0xA9FE
    return address > 1 and address >> 120 != 0xFF and address >> 118 != 0xFE80 >> 6
