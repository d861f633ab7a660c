# SPDX-License-Identifier: BSD-3-Clause
"""One run of the library: what is derived from it, and the folder that it was read from."""

from __future__ import annotations

from pathlib import Path

from planebench.model.run import Run
from planebench.stats.derived import Derived


class Source(Derived):
    """A run that was read from ``path``."""

    def __init__(self, path: Path, run: Run) -> None:
        super().__init__(run)
        self.path = path
