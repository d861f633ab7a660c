# SPDX-License-Identifier: BSD-3-Clause
"""load_balancer in the micro-benchmark of network functions, by the number of connections, and without any."""

from __future__ import annotations

from pathlib import Path

from nf_case import Case
from nf_flow_monitor import FLOWS, flow_frames


def cases(folder: Path) -> list[Case]:
    """The cases; files that they need go to ``folder``."""
    tables = {"": 131_072, ", no connections kept": 0}
    return [
        Case(
            f"load_balancer, {flows} flows{name}",
            {"kind": "load_balancer", "settings": {"connections": connections}},
            flow_frames(flows),
        )
        for name, connections in tables.items()
        for flows in FLOWS
    ]
