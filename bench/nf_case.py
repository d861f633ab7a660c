# SPDX-License-Identifier: BSD-3-Clause
"""A case of bench/nf.py: one network function, the frames that it gets, and the bar it has to clear, if any."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from nf_rig import FrameIn


@dataclass(frozen=True, slots=True)
class Case:
    """``task`` and ``frames`` as for nf_rig.nf_bench; ``bar_pps`` is what an issue asks for on one core at 64 B."""

    name: str
    task: dict[str, Any]
    frames: list[FrameIn] = field(repr=False)
    bar_pps: float | None = None
    size_mb: int = 256
    may_drop: bool = False
    """Frames are expected to be dropped; otherwise a drop fails the case, for a drop is cheap."""
