# SPDX-License-Identifier: BSD-3-Clause
"""The folder for files that can be made again: calibrations, guests."""

from __future__ import annotations

import os
from pathlib import Path

from planebench.host.files import replace_file


def default_folder() -> Path:
    """Return $XDG_CACHE_HOME/planebench, or ~/.cache/planebench if it is unset or relative (XDG rules)."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (cache if cache.is_absolute() else Path("~/.cache").expanduser()) / "planebench"


def keep(path: Path, data: bytes) -> None:
    """Write a file and its folder, whole or not at all. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, data)
