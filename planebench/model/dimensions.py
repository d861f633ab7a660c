# SPDX-License-Identifier: BSD-3-Clause
"""Names of dimensions of a test point: clocks of latencies and of CPUs, testers, VNF isolation, placements of VNFs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import StringConstraints

from planebench.model.errors import UsageError

ClockName = Literal["software", "kernel", "hardware"]
"""planed, the kernel at its interface, or the device."""
LatencyClock = Literal["software", "kernel", "hardware", "tester"]
"""The same, or an external tester."""
ClockChoice = Literal["auto", "hardware", "kernel", "software"]
"""``auto``: software. Hardware has to be asked for: with it, drivers choose slower functions than their vector ones."""


def port_clock(choice: ClockChoice) -> ClockName:
    """Return the clock to ask the ports of the tester for."""
    return "software" if choice == "auto" else choice


# VNF isolation: its names, and the record of each VNF that is not a task of the tester.

HostingName = Literal["process", "separate", "container", "vm", "image", "exec"]
"""``process``: a task of the tester's process. ``separate``: a planed process of its own. ``image``, ``exec``: the
user's own VNF, a disk image in a VM or a command in a container."""

WORDS: Mapping[HostingName, str] = {"separate": "in processes", "container": "in containers", "vm": "in VMs"}
"""Words for a common hosting of all VNFs that their text does not name."""


@dataclass(frozen=True, slots=True)
class HostingFacts:
    """One hosted VNF as it really runs: a part of the conditions of a start."""

    vnf: str
    hosting: HostingName
    program: str
    """``QEMU 7.2.22``, ``bubblewrap 0.8.0``, ``podman 4.3.1 with runc 1.1.5``, ``planed 0.1.0``."""
    emulated: bool = False
    """Software emulation (TCG): frames count, rates and latencies tell nothing."""
    details: Mapping[str, str] = field(default_factory=dict)
    """What else a reader must know, in words: ``accelerator``: ``tcg, no KVM: the probe boot failed: ...``; ``kernel``,
    ``memory``, ``rings``, ``cpus``, ``limits``, ``image``."""


# The names of testers, as plans have them: planed near or far, or a tester that is no part of planebench.

TESTER_PLACES = ("near", "other-node")
"""The places of planed as the tester. ``near``: the NUMA node of its NICs, or of the switch if it has none.
``other-node``: another node than that of the switch."""
EXTERNAL = {"otg": "otg:https://HOST:PORT,...", "trex": "trex:HOST,..."}
"""Kinds of external testers, and how they are written (docs/testers.md)."""

_PORT = "@"


def is_external(tester: str) -> bool:
    """Return whether a tester is no part of planebench."""
    return tester not in TESTER_PLACES


def is_tester_port(end: str) -> bool:
    """Return whether an end of a cable is a port of an external tester, ``@NAME``, and no device of a host of ours."""
    return end.startswith(_PORT)


def port_name(end: str) -> str:
    """Return the name that an external tester has for the port at an end of a cable."""
    return end.removeprefix(_PORT)


# The CPU clocks of a server, as plans and points have them (docs/switches.md, Clock and energy).

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
    percent = _percent(text.removeprefix(_DUTY)) if text.startswith(_DUTY) else None
    if percent is None:
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


def _percent(text: str) -> int | None:
    try:
        percent = round(100 * float(text))
    except (ValueError, OverflowError):
        return None
    return percent if 1 <= percent <= 100 else None


# The placements of VNFs on NUMA nodes, as plans and points have them (docs/placements.md).

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
