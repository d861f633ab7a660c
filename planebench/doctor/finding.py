# SPDX-License-Identifier: BSD-3-Clause
"""Describe what doctor finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. ``remedy`` is empty when there is nothing to do."""

    code: str
    level: Level
    text: str
    remedy: str = ""
