# SPDX-License-Identifier: BSD-3-Clause
"""How much of a planed process's memory a network function needs, by its settings: upper bounds, in bytes.

Of memory.size_mb, beside what ports need (planebench.placement.memory). A function that finds too little says so when
the document is checked, or applied; so an estimate that is too small is a clear error, not a wrong figure.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

Settings = Mapping[str, Any]

MIB = 1 << 20
_CHUNK_BYTES = 1 << 20


def entries(settings: Settings, key: str) -> int:
    """How many entries ``key``, or the file that ``KEY_file`` names, has at most: lines of a text, objects of a JSON.

    0 where there is neither, or where the file is gone: planed says what is wrong with it.
    """
    listed = settings.get(key)
    count = len(listed) if isinstance(listed, list) else 0
    path = settings.get(f"{key}_file")
    return count + (_entries_of_file(Path(path)) if isinstance(path, str) else 0)


def _entries_of_file(path: Path) -> int:
    """Newlines, or opening braces where there are more of these."""
    lines, objects = 1, 0
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                lines += chunk.count(b"\n")
                objects += chunk.count(b"{")
    except OSError:
        return 0
    return max(lines, objects)


def whole(settings: Settings, key: str, default: int) -> int:
    """A number of the settings; the default where there is none, or something else that planed will refuse."""
    value = settings.get(key, default)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else default


def nothing(settings: Settings) -> int:
    """A function that needs no memory of its own."""
    return 0


def l3fwd(settings: Settings) -> int:
    """Two tables of 2^24 entries (IPv4, IPv6) of 4 bytes, and a kilobyte a route: groups of 256 entries, and nodes."""
    return 2 * 64 * MIB + 16 * MIB + 1024 * entries(settings, "routes")


def firewall(settings: Settings) -> int:
    """A trie of each address family; what a rule takes in it depends on all the others."""
    return 32 * MIB + 8192 * entries(settings, "rules")


def nat44(settings: Settings) -> int:
    """Sessions with their hash, and an index of each port of each outside address and protocol."""
    outside = settings.get("outside")
    addresses = len(outside) if isinstance(outside, list) else 1
    return 8 * MIB + 256 * whole(settings, "sessions_max", 65536) + addresses * 3 * 65536 * 4


def load_balancer(settings: Settings) -> int:
    """A lookup table of each service, and the connections."""
    services = settings.get("services")
    count = len(services) if isinstance(services, list) else 1
    table = 8 * whole(settings, "table_size", 65537)
    return 4 * MIB + count * table + 256 * whole(settings, "connections", 65536)


def rate_limiter(settings: Settings) -> int:
    """A bucket of each address."""
    return MIB + 256 * whole(settings, "buckets_max", 65536)


def monitor(settings: Settings) -> int:
    """An entry of each flow."""
    return 4 * MIB + 256 * whole(settings, "flows_max", 65536)
