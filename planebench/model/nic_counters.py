# SPDX-License-Identifier: BSD-3-Clause
"""The extended statistics of NICs (``rte_eth_xstats``) that speak of lost frames.

Their names and meanings are the drivers'. Those that drivers count nowhere else are losses of the drop ledger; others
may be a part of the basic counters, so they only explain what the ledger leaves open.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

NOT_BASIC = frozenset({"rx_phy_discard_packets", "tx_phy_discard_packets"})
"""Frames that no basic counter has. mlx5: the port had no room for them before a queue was chosen (rx_discards_phy of
the kernel; imissed is its out_of_buffer)."""
_LOSS = re.compile(r"drop|discard|miss|error|no_?buf|nombuf|out_of_buffer|overrun|overflow|fifo|jabber|size_p|fragment")
_BASIC = frozenset({"rx_missed_errors", "rx_errors", "tx_errors", "rx_mbuf_allocation_errors"})
"""The names of the basic counters among the extended ones (rte_ethdev.c)."""


def of_losses(counters: Mapping[str, int]) -> dict[str, int]:
    """Return those of the extended statistics of a port that speak of lost frames and are not 0, without the basic
    counters."""
    return {name: count for name, count in counters.items() if count and name not in _BASIC and _LOSS.search(name)}
