# SPDX-License-Identifier: BSD-3-Clause
"""A finding of the doctor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. ``remedy`` is empty if there is nothing to do."""

    code: str
    level: Level
    text: str
    remedy: str = ""
