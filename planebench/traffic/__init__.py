# SPDX-License-Identifier: BSD-3-Clause
"""Rates and loads: what a share, a line rate or a label means in packets per second. Pure."""

from planebench.traffic.rates import (
    SATURATING,
    V2V_LATENCY_PPS,
    fixed_loads,
    latency_labels,
    latency_loads,
    line_rate_pps,
    rate_label,
    share_label,
)

__all__ = [
    "SATURATING",
    "V2V_LATENCY_PPS",
    "fixed_loads",
    "latency_labels",
    "latency_loads",
    "line_rate_pps",
    "rate_label",
    "share_label",
]
