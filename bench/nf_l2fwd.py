# SPDX-License-Identifier: BSD-3-Clause
"""l2fwd in the micro-benchmark of network functions: what a function costs that does nothing but addresses."""

from __future__ import annotations

from pathlib import Path

from nf_case import Case, FrameIn


def cases(folder: Path) -> list[Case]:
    """The cases; files that they need go to ``folder``."""
    return [Case("l2fwd", {"kind": "l2fwd"}, [FrameIn(bytes(60))] * 4096)]
