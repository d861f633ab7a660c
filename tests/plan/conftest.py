# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def document() -> dict[str, Any]:
    """A small valid plan, as YAML gives it."""
    return {
        "version": 1,
        "name": "small",
        "switches": ["planed", "testpmd"],
        "scenarios": ["p2p", "loopback"],
        "directions": ["unidirectional"],
        "frame_sizes_bytes": [64, 1024],
        "chain_lengths": [1, 2],
        "throughput": {"duration_s": 1.0, "repetitions": 2},
        "latency": {"loads": [0.1, 0.5], "duration_s": 0.5},
    }
