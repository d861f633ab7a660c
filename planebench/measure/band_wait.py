# SPDX-License-Identifier: BSD-3-Clause
"""Waits until the CPUs are in the band whose trials are compared; all switches are paused meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

WAIT_S = 2.0
LOOK_S = 0.1
"""Trials of one band are compared: how long a campaign waits for that band before it sends, and how often it looks."""
IDLE_WAIT_S = 60.0
IDLE_LOOK_S = 3.0
"""The same for far cores that the user asks for. Our hosts move the CPUs of a VM apart that was idle for half a minute,
and together while both are busy; each look keeps them busy for some milliseconds."""


@dataclass
class BandWait:
    """How long to wait for a band. Not thread-safe."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    idle_s: float = IDLE_WAIT_S
    """Present patience with far cores that were asked for: half as much after each wait in vain, as the cores of most
    machines never move."""

    def until(
        self,
        band: str,
        look: Callable[[], str | None],
        *,
        asked: bool = False,
        waiting: Callable[[], None] = lambda: None,
    ) -> bool:
        """Wait until ``look`` finds ``band``, for a limited time; return whether it did.

        ``look`` returns None where no band is known: then there is nothing to wait for. ``asked``: the user wants
        trials of this band. ``waiting`` is called once, before the first pause.
        """
        idle = asked and band == "far"
        deadline = self.clock() + (self.idle_s if idle else WAIT_S)
        found = look() in (band, None)
        if not found:
            waiting()
        while not found and self.clock() < deadline:
            self.sleep(IDLE_LOOK_S if idle else LOOK_S)
            found = look() in (band, None)
        if idle:
            self.idle_s = IDLE_WAIT_S if found else max(self.idle_s / 2, WAIT_S)
        return found
