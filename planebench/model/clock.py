# SPDX-License-Identifier: BSD-3-Clause
"""The clocks of latencies: who stamps a probe (docs/design/clocks.md)."""

from __future__ import annotations

from typing import Literal

ClockName = Literal["software", "kernel", "hardware"]
"""planed, the kernel at its interface, or the device."""
ClockChoice = Literal["auto", "hardware", "kernel", "software"]
"""``auto``: hardware where every port of the tester has it, else software."""
