# SPDX-License-Identifier: BSD-3-Clause
"""The version of this planebench with a digest of its code, by which two hosts find that theirs are the same."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from planebench import __version__

PACKAGE = Path(__file__).parents[1]


@cache
def own_version() -> str:
    """Return version and digest, ``0.1.0+1f2e3d4c``: of the Python code alone, which is what hosts talk by."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        digest.update(str(path.relative_to(PACKAGE)).encode() + path.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:8]}"
