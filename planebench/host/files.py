# SPDX-License-Identifier: BSD-3-Clause
"""Files that are written whole or not at all, and the folder for those that can be made again: calibrations, guests."""

from __future__ import annotations

import os
from pathlib import Path


def replace_file(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Write a temporary file and rename it, so that a kill never leaves half a file. Raises OSError.

    ``durable``: flush file and name to the disk, so that the file survives a crash of the machine.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("wb") as out:
        out.write(data)
        if durable:
            out.flush()
            os.fsync(out.fileno())
    temporary.replace(path)
    if durable:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def default_folder() -> Path:
    """Return $XDG_CACHE_HOME/planebench, or ~/.cache/planebench if it is unset or relative (XDG rules)."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (cache if cache.is_absolute() else Path("~/.cache").expanduser()) / "planebench"


def keep(path: Path, data: bytes) -> None:
    """Write a file and its folder, whole or not at all. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, data)
