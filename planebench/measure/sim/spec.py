# SPDX-License-Identifier: BSD-3-Clause
"""The settings of a simulated switch: ``sim:capacity=10M:noise=1%``, parsed and checked."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planebench.measure.sim.foreign import FOREIGN
from planebench.model.errors import UsageError
from planebench.model.switch import Option, OptionKind, parse_switch, parse_values

ADAPTER = "sim"


def _key(default: float | str, kind: OptionKind, help: str, choices: tuple[str, ...] = ()) -> Any:
    """Return a field of :class:`SimSpec` that is a key of the text, too."""
    return dataclasses.field(default=default, metadata={"kind": kind, "help": help, "choices": choices})


@dataclass(frozen=True, slots=True)
class SimSpec:
    """A simulated switch. Fields are the keys of SIM_KEYS; rates are aggregates of all directions."""

    name: str = ADAPTER
    capacity: float = _key(10e6, "rate", "maximum forwarding rate in packets per second, sum of all directions")
    noise: float = _key(0.0, "share", "standard deviation of the capacity between trials, as a share of the capacity")
    modes: float = _key(1.0, "ratio", "capacity ratio of a second, hidden mode, drawn at each start of the switch")
    mode_share: float = _key(0.5, "share", "share of starts in the second mode")
    mode_disturbed: float = _key(0.0, "share", "share of trials in the second mode in which the switch is preempted")
    start_noise: float = _key(0.0, "share", "standard deviation of the capacity between starts of the switch")
    stall_share: float = _key(0.0, "share", "share of trials in which the switch stalls and loses stall_packets")
    stall_packets: int = _key(3, "whole", "number of frames lost in a stall")
    loss: float = _key(0.0, "share", "share of frames lost at any load")
    stretch: float = _key(1.0, "ratio", "factor by which a paced generator takes longer to send all intended frames")
    max_rate: float = _key(
        math.inf,
        "rate",
        "maximum rate of the generator in packets per second, sum of all directions; the rest is unsent",
    )
    line: float = _key(0.0, "rate", "speed of the links in bits per second (0: none, as of emulated wires)")
    drop_one_in: int = _key(0, "whole", "fault: drop one in N frames of each direction (0: none)")
    ring: int = _key(0, "whole", "number of frames that queue in front of an overloaded switch")
    latency_us: float = _key(5.0, "amount", "latency without load in microseconds (0: no latency measurement)")
    batch: int = _key(1, "whole", "number of frames the switch collects before it forwards them (slow at low load)")
    disturbed_share: float = _key(0.0, "share", "share of trials in which the switch is preempted")
    foreign: str = _key("none", "text", "what else runs on the two CPUs: none, 4ms/10ms, loop, loops, irq", FOREIGN)
    root: bool = _key(False, "flag", "the pollers have root's priority, nice -20: programs take a few per cent of it")
    far_share: float = _key(0.0, "share", "share of blocks with far cores, of all switches alike")
    far_ratio: float = _key(0.5, "ratio", "capacity ratio with far cores")
    shared_share: float = _key(0.0, "share", "share of trials in which another hyperthread uses the core of the switch")
    shared_ratio: float = _key(0.6, "ratio", "capacity ratio with a shared core")
    cycles: float = _key(200.0, "amount", "cycles per packet (0: not reported)")
    poll: float = _key(0.0, "amount", "cycles of a poll among those of its packets (0: polls are not reported)")
    burst: int = _key(32, "whole", "maximum number of frames that a poll finds")
    dies_share: float = _key(0.0, "share", "share of trials in which the switch dies")

    @classmethod
    def parse(cls, text: str) -> SimSpec:
        """Parse ``sim:key=value:...``. Raises UsageError, which names the key, the value and what is valid."""
        switch = parse_switch(text)
        if switch.adapter != ADAPTER:
            raise UsageError(f'"{text}" is not a simulated switch: begin it with {ADAPTER}:')
        return cls.from_options(switch.label, switch.options)

    @classmethod
    def from_options(cls, label: str, options: Mapping[str, str]) -> SimSpec:
        """Return the switch with these options. Raises UsageError as in parse."""
        values: Mapping[str, Any] = parse_values("switch sim", tuple(SIM_KEYS.values()), options)
        return dataclasses.replace(cls(name=label), **values)


SIM_KEYS = {
    key.name: Option(key.name, key.metadata["kind"], key.metadata["help"], choices=key.metadata["choices"])
    for key in dataclasses.fields(SimSpec)
    if key.metadata
}
"""Every key but ``name``, the label, in the order of the page docs/simulator.md."""
