# SPDX-License-Identifier: BSD-3-Clause
"""What a simulated switch is like: ``sim:capacity=10M:noise=1%``, taken apart and checked."""

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
    ("capacity", "rate", "what the switch forwards at most, packets a second of all directions"),
    ("noise", "share", "standard deviation of the capacity from trial to trial, as a share of it"),
    ("modes", "ratio", "capacity in a second, hidden mode, as a ratio; drawn at each start of the switch"),
    ("mode_share", "share", "how often a start falls into the second mode"),
    ("stall_share", "share", "share of trials in which the switch stalls and loses stall_packets"),
    ("stall_packets", "whole", "frames lost in a stall"),
    ("loss", "share", "share of frames lost at every load"),
    ("stretch", "ratio", "a paced generator takes this much longer, but sends every frame it intended"),
    ("max_rate", "rate", "the most the generator sends, packets a second of all directions; the rest is unsent"),
    ("drop_one_in", "whole", "a fault: exactly every n-th frame of a direction is dropped; 0: none"),
    ("ring", "whole", "frames that queue in front of the switch while more come than it can take"),
    ("latency_us", "amount", "latency without load, in microseconds; 0: no latency is taken"),
    ("batch", "whole", "the switch waits for so many frames before it forwards them: slow at low load"),
    ("disturbed_share", "share", "share of trials in which a poller loses its CPU"),
    ("far_share", "share", "share of trials in the far band"),
    ("far_ratio", "ratio", "capacity in the far band, as a ratio"),
    ("band_change_share", "share", "share of trials in which the band changes from near to far"),
    ("cycles", "amount", "cycles a packet costs; 0: the switch does not tell"),
    ("dies_share", "share", "share of trials in which the switch dies"),
)
SIM_KEYS = {name: Option(name, name, kind, help) for name, kind, help in _KEYS}
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
