# SPDX-License-Identifier: BSD-3-Clause
"""Names of the placements of VNFs on NUMA nodes, as plans and points have them (docs/placements.md)."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import StringConstraints

from planebench.model.errors import UsageError

Placing = Annotated[str, StringConstraints(pattern=r"^(near|random|far|split:[1-9][0-9]?)$")]
"""``near``, ``random``, ``far``, or ``split:K``."""
NEAR: Placing = "near"
RANDOM: Placing = "random"
FAR: Placing = "far"
SPLIT = "split:"
_SYNTAX = re.compile(r"near|random|far|split:[1-9][0-9]?")


def parse_placing(text: str) -> Placing:
    """Return the placement of a name. Raises UsageError for any other text."""
    if not _SYNTAX.fullmatch(text):
        raise UsageError(
            f'placement "{text}" is not valid. Valid: near, random, far, split:K with K VNFs near, 1 or more'
        )
    return text


def far_vnfs(placing: Placing, count: int) -> frozenset[int]:
    """Return the numbers of those of ``count`` VNFs that a placement puts on another node than the switch."""
    if placing.startswith(SPLIT):
        return frozenset(range(int(placing.removeprefix(SPLIT)), count))
    return frozenset(range(count)) if placing == FAR else frozenset()
