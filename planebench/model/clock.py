# SPDX-License-Identifier: BSD-3-Clause
"""The clocks of latencies: who stamps a probe (docs/design/clocks.md)."""

from __future__ import annotations

from typing import Literal

ClockName = Literal["software", "kernel", "hardware"]
"""planed, the kernel at its interface, or the device."""
LatencyClock = Literal["software", "kernel", "hardware", "tester"]
"""The same, or an external tester."""
ClockChoice = Literal["auto", "hardware", "kernel", "software"]
"""``auto``: software. Hardware has to be asked for: with it, drivers choose slower functions than their vector ones."""


def port_clock(choice: ClockChoice) -> ClockName:
    """Return the clock to ask the ports of the tester for."""
    return "software" if choice == "auto" else choice
