# SPDX-License-Identifier: BSD-3-Clause
"""Names of what a point asks of a server: the clocks of its CPUs, and the placements of VNFs on its NUMA nodes."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Annotated

from pydantic import StringConstraints

from planebench.model.errors import UsageError

# The CPU clocks of a server, as plans and points have them (docs/switches.md, Clock).

CpuClock = Annotated[str, StringConstraints(pattern=r"^([1-9][0-9]{2,4}MHz|duty:0\.[0-9]{1,2})?$")]
"""``1200MHz``; ``duty:0.46``, emulated; empty: that which the machine has."""
OWN_CLOCK: CpuClock = ""
_MHZ, _DUTY = re.compile(r"([1-9][0-9]{2,4})MHz"), "duty:"
MOST_MHZ = 10_000


def parse_cpu_clock(text: str) -> CpuClock:
    """Return the clock of a text: ``1200MHz``, ``duty:0.46``, or ``own``. Raises UsageError for any other text."""
    mhz = _MHZ.fullmatch(text)
    if text == "own" or (mhz and int(mhz[1]) <= MOST_MHZ):
        return OWN_CLOCK if text == "own" else text
    percent = 0
    if text.startswith(_DUTY):
        with suppress(ValueError, OverflowError):
            percent = round(100 * float(text.removeprefix(_DUTY)))
    if not 1 <= percent <= 100:
        raise UsageError(
            f'CPU clock "{text}" is not valid. Valid: 100MHz to {MOST_MHZ}MHz (cpufreq), duty:0.01 to duty:1 (emulated '
            "by planed), own"
        )
    return OWN_CLOCK if percent == 100 else f"{_DUTY}{percent / 100:g}"


def mhz_of(clock: CpuClock) -> int | None:
    """Return the frequency that CPUs are set to; None for another kind of clock."""
    found = _MHZ.fullmatch(clock)
    return int(found[1]) if found else None


def duty_of(clock: CpuClock) -> float | None:
    """Return the share of the CPU's own clock that is emulated; None for another kind of clock."""
    return float(clock.removeprefix(_DUTY)) if clock.startswith(_DUTY) else None


def clock_words(clock: CpuClock) -> str:
    """Return e.g. ``at 1200 MHz``, ``at 46 % of the clock (emulated)``; empty for the machine's own."""
    mhz, duty = mhz_of(clock), duty_of(clock)
    if mhz is not None:
        return f"at {mhz} MHz"
    return "" if duty is None else f"at {duty * 100:g} % of the clock (emulated)"


def speed_of(clock: CpuClock) -> tuple[str, float]:
    """Return the scale of a clock and its place on it: only clocks of one scale can be compared."""
    mhz = mhz_of(clock)
    return ("duty", duty_of(clock) or 1.0) if mhz is None else ("MHz", mhz)


# The placements of VNFs on NUMA nodes, as plans and points have them (docs/chains.md).

_PLACING = r"near|random|far|split:[1-9][0-9]?"
Placing = Annotated[str, StringConstraints(pattern=f"^({_PLACING})$")]
"""``near``, ``random``, ``far``, or ``split:K``."""
NEAR: Placing = "near"
RANDOM: Placing = "random"
FAR: Placing = "far"
SPLIT = "split:"


def parse_placing(text: str) -> Placing:
    """Return the placement of a name. Raises UsageError for any other text."""
    if not re.fullmatch(_PLACING, text):
        raise UsageError(
            f'placement "{text}" is not valid. Valid: near, random, far, split:K with K VNFs near, 1 or more'
        )
    return text


def far_vnfs(placing: Placing, count: int) -> frozenset[int]:
    """Return the numbers of those of ``count`` VNFs that a placement puts on another node than the switch."""
    if placing.startswith(SPLIT):
        return frozenset(range(int(placing.removeprefix(SPLIT)), count))
    return frozenset(range(count)) if placing == FAR else frozenset()
