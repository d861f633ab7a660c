# SPDX-License-Identifier: BSD-3-Clause
"""What a simulated switch is like: ``sim:capacity=10M:noise=1%``, taken apart and checked."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NoReturn

from planebench.model.choices import unknown
from planebench.model.errors import UsageError
from planebench.model.quantity import SHARES, parse_number
from planebench.model.spec import parse_switch

ADAPTER = "sim"

Kind = Literal["rate", "count", "share", "ratio", "amount"]
"""rate: above 0. count: whole, from 0. share: 0 to 1. ratio: above 0. amount: from 0."""

_VALID: dict[Kind, str] = {
    "rate": "a number above 0, as 500k, 10M or 1.5G",
    "count": "a whole number from 0, as 256 or 1k",
    "share": "0 to 1, or 0% to 100%",
    "ratio": "a number above 0, as 0.5 or 50%",
    "amount": "a number from 0, as 5 or 2.5",
}


@dataclass(frozen=True, slots=True)
class SimKey:
    """A key of the simulator's text: what values it takes, and what it does."""

    kind: Kind
    help: str


SIM_KEYS: dict[str, SimKey] = {
    "capacity": SimKey("rate", "what the switch forwards at most, packets a second of all directions"),
    "noise": SimKey("share", "standard deviation of the capacity from trial to trial, as a share of it"),
    "modes": SimKey("ratio", "capacity in a second, hidden mode, as a ratio; drawn at each start of the switch"),
    "mode_share": SimKey("share", "how often a start falls into the second mode"),
    "stall_share": SimKey("share", "share of trials in which the switch stalls and loses stall_packets"),
    "stall_packets": SimKey("count", "frames lost in a stall"),
    "loss": SimKey("share", "share of frames lost at every load"),
    "stretch": SimKey("ratio", "a paced generator takes this much longer, but sends every frame it intended"),
    "max_rate": SimKey("rate", "the most the generator sends, packets a second of all directions; the rest is unsent"),
    "drop_one_in": SimKey("count", "a fault: exactly every n-th frame of a direction is dropped; 0: none"),
    "ring": SimKey("count", "frames that queue in front of the switch while more come than it can take"),
    "latency_us": SimKey("amount", "latency without load, in microseconds; 0: no latency is taken"),
    "batch": SimKey("count", "the switch waits for so many frames before it forwards them: slow at low load"),
    "disturbed_share": SimKey("share", "share of trials in which a poller loses its CPU"),
    "far_share": SimKey("share", "share of trials in the far band"),
    "far_ratio": SimKey("ratio", "capacity in the far band, as a ratio"),
    "band_change_share": SimKey("share", "share of trials in which the band changes from near to far"),
    "cycles": SimKey("amount", "cycles a packet costs; 0: the switch does not tell"),
    "dies_share": SimKey("share", "share of trials in which the switch dies"),
}
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
        values = {key: _value(key, text) for key, text in options.items()}
        return dataclasses.replace(cls(name=label), **values)  # type: ignore[arg-type] # _value checks them by key


def _value(key: str, text: str) -> float | int:
    if key not in SIM_KEYS:
        raise unknown("key of the simulator", key, ("name", *SIM_KEYS))
    kind = SIM_KEYS[key].kind
    value = parse_number(text, SHARES)
    if value is None:
        _refuse(key, text, kind)
    fits = {
        "rate": value >= 1,
        "ratio": value > 0,
        "share": value <= 1,
        "count": value == round(value),
        "amount": True,
    }[kind]
    if not fits:
        _refuse(key, text, kind)
    return round(value) if kind == "count" else value


def _refuse(key: str, text: str, kind: Kind) -> NoReturn:
    raise UsageError(
        f'simulator: {key} "{text}" is not valid. Valid: {_VALID[kind]}. Keys: name, {", ".join(SIM_KEYS)}'
    )
