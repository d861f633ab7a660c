# SPDX-License-Identifier: BSD-3-Clause
"""How much of a planed process's memory a network function needs, by its settings: upper bounds, in bytes.

Of memory.size_mb, beside what ports need (planebench.wiring.memory). A function that finds too little says so when
the document is checked, or applied; so an estimate that is too small is a clear error, not a wrong figure.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

Settings = Mapping[str, Any]

FIREWALL_BYTES = 64 << 20
FIREWALL_RULE_BYTES = 64 << 10
_CHUNK_BYTES = 1 << 20


def entries(settings: Settings, key: str) -> int:
    """Return an upper bound of the entries of ``key``, or of the file that ``KEY_file`` names.

    Lines of a text, objects of a JSON file. 0 without entries or if the file is gone, which planed reports.
    """
    listed = settings.get(key)
    count = len(listed) if isinstance(listed, list) else 0
    path = settings.get(f"{key}_file")
    return count + (_entries_of_file(Path(path)) if isinstance(path, str) else 0)


def _entries_of_file(path: Path) -> int:
    """Return the newlines, or the opening braces if there are more."""
    lines, objects = 1, 0
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                lines += chunk.count(b"\n")
                objects += chunk.count(b"{")
    except OSError:
        return 0
    return max(lines, objects)


def nothing(settings: Settings) -> int:
    """Return 0: the tables of the function are not in this memory."""
    return 0


def firewall(settings: Settings) -> int:
    """Return the memory of rte_acl's tries: a rule's share depends on all others; a build takes up to half of it."""
    return FIREWALL_BYTES + FIREWALL_RULE_BYTES * entries(settings, "rules")
