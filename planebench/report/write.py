# SPDX-License-Identifier: BSD-3-Clause
"""Where a report or an export goes."""

from __future__ import annotations

from pathlib import Path

from planebench.model.errors import UsageError


def write_bytes(path: Path, data: bytes) -> Path:
    """Write a file whole and return it. UsageError where that cannot be."""
    try:
        path.write_bytes(data)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}; give a file in a folder you may write") from None
    return path
