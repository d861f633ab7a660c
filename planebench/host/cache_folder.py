# SPDX-License-Identifier: BSD-3-Clause
"""Describe where what can be made again is kept: calibrations, guests."""

from __future__ import annotations

import os
from pathlib import Path

from planebench.host.files import replace_file


def default_folder() -> Path:
    """$XDG_CACHE_HOME/planebench, or ~/.cache/planebench. A relative $XDG_CACHE_HOME counts as unset (XDG rules)."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (cache if cache.is_absolute() else Path("~/.cache").expanduser()) / "planebench"


def keep(path: Path, data: bytes) -> None:
    """Write a file there, whole or not at all, whenever we are killed. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, data)
