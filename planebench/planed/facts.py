# SPDX-License-Identifier: BSD-3-Clause
"""What planed makes of files: it sends captures and looks up routes, so it alone reads them (``planed --facts``)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from planebench.host.planed_program import complaint, require_planed
from planebench.host.programs import run_tool
from planebench.model.errors import UsageError, unreadable

FACTS_DEADLINE_S = 120.0
"""For a capture or a table of millions."""

Facts = dict[str, Any]
FileStamp = tuple[Any, ...]


def planed_facts(kind: str, what: Mapping[str, Any], files: Iterable[Path] = ()) -> Facts:
    """Return what a task of ``kind`` makes of an object that names ``files``; not to be changed.

    Kept until a file changes. Raises UsageError in planed's words, NotInstalledError without planed.
    """
    return _facts(json.dumps({kind: dict(what)}), tuple(map(_stamp, files)), require_planed())


@lru_cache(maxsize=16)
def _facts(asked: str, stamps: tuple[FileStamp, ...], planed: Path) -> Facts:
    said = run_tool([planed, "--facts", "/dev/stdin"], FACTS_DEADLINE_S, stdin=asked)
    if not said.ok:
        raise UsageError(complaint(said))
    found: Facts = json.loads(said.stdout)
    return found


def _stamp(file: Path) -> FileStamp:
    try:
        it = file.stat()
    except OSError as error:
        raise unreadable(f"file {file}", error, "give a readable file") from None
    return it.st_dev, it.st_ino, it.st_size, it.st_mtime_ns
