# SPDX-License-Identifier: BSD-3-Clause
"""Describe what a simulated switch is like: ``sim:capacity=10M:noise=1%``, taken apart and checked."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planebench.model.errors import UsageError
from planebench.model.option import Option, OptionKind, parse_values
from planebench.model.spec import parse_switch

ADAPTER = "sim"

_KEYS: tuple[tuple[str, OptionKind, str], ...] = (
    ("capacity", "rate", "maximum forwarding rate in packets per second, sum of all directions"),
    ("noise", "share", "standard deviation of the capacity between trials, as a share of the capacity"),
    ("modes", "ratio", "capacity ratio of a second, hidden mode, drawn at each start of the switch"),
    ("mode_share", "share", "share of starts in the second mode"),
    ("stall_share", "share", "share of trials in which the switch stalls and loses stall_packets"),
    ("stall_packets", "whole", "number of frames lost in a stall"),
    ("loss", "share", "share of frames lost at any load"),
    ("stretch", "ratio", "factor by which a paced generator takes longer to send all intended frames"),
    (
        "max_rate",
        "rate",
        "maximum rate of the generator in packets per second, sum of all directions; the rest is unsent",
    ),
    ("drop_one_in", "whole", "fault: drop one in N frames of each direction (0: none)"),
    ("ring", "whole", "number of frames that queue in front of an overloaded switch"),
    ("latency_us", "amount", "latency without load in microseconds (0: no latency measurement)"),
    ("batch", "whole", "number of frames the switch collects before it forwards them (slow at low load)"),
    ("disturbed_share", "share", "share of trials in which a poller is preempted"),
    ("far_share", "share", "share of trials in the far band"),
    ("far_ratio", "ratio", "capacity ratio in the far band"),
    ("band_change_share", "share", "share of trials in which the band changes from near to far"),
    ("cycles", "amount", "cycles per packet (0: not reported)"),
    ("dies_share", "share", "share of trials in which the switch dies"),
)
SIM_KEYS = {name: Option(name, kind, help) for name, kind, help in _KEYS}
"""Every key but ``name``, the label, in the order of the page docs/simulator.md."""


@dataclass(frozen=True, slots=True)
class SimSpec:
    """A simulated switch. Fields are the keys of SIM_KEYS; rates are aggregates of all directions."""

    name: str = ADAPTER
    capacity: float = 10e6
    noise: float = 0.0
    modes: float = 1.0
    mode_share: float = 0.5
    stall_share: float = 0.0
    stall_packets: int = 3
    loss: float = 0.0
    stretch: float = 1.0
    max_rate: float = math.inf
    drop_one_in: int = 0
    ring: int = 0
    latency_us: float = 5.0
    batch: int = 1
    disturbed_share: float = 0.0
    far_share: float = 0.0
    far_ratio: float = 0.5
    band_change_share: float = 0.0
    cycles: float = 200.0
    dies_share: float = 0.0

    @classmethod
    def parse(cls, text: str) -> SimSpec:
        """From ``sim:key=value:...``. UsageError naming the key, the value and what is valid."""
        switch = parse_switch(text)
        if switch.adapter != ADAPTER:
            raise UsageError(f'"{text}" is not a simulated switch: begin it with {ADAPTER}:')
        return cls.from_options(switch.label, switch.options)

    @classmethod
    def from_options(cls, label: str, options: Mapping[str, str]) -> SimSpec:
        """From options already taken apart (planebench.model.spec). UsageError as in parse."""
        values: Mapping[str, Any] = parse_values("switch sim", tuple(SIM_KEYS.values()), options)
        return dataclasses.replace(cls(name=label), **values)
