# SPDX-License-Identifier: BSD-3-Clause
"""Wait until the CPUs are in the state that trials need: near, far or not shared. All switches are paused meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Pace:
    """How long a campaign waits at most, and how often it looks. ``patient``: after each wait in vain the next one is
    half as long, as the cores of most machines never change; otherwise each is as long as the first."""

    wait_s: float
    look_s: float
    patient: bool = True


BRIEF = Pace(2.0, 0.1, patient=False)
"""For the band that most trials have."""
IDLE = Pace(60.0, 3.0)
"""For far cores that the user asks for. Our hosts move the CPUs of a VM apart that was idle for half a minute, and
together while both are busy; each look keeps them busy for some milliseconds."""
ALONE = Pace(60.0, 0.25)
"""For cores that no other hyperthread uses. Others come and go by the second."""


@dataclass
class CoreWait:
    """How long to wait for cores. Not thread-safe."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _left_s: dict[Pace, float] = field(default_factory=dict)
    """The longest wait of a patient pace, after waits in vain."""

    def until(self, found: Callable[[], bool], pace: Pace = BRIEF, waiting: Callable[[], None] = lambda: None) -> bool:
        """Wait until ``found`` says so, for a limited time; return whether it did.

        ``waiting`` is called once, before the first pause.
        """
        longest_s = self._left_s.get(pace, pace.wait_s)
        deadline = self.clock() + longest_s
        there = found()
        if not there:
            waiting()
        while not there and self.clock() < deadline:
            self.sleep(pace.look_s)
            there = found()
        if pace.patient:
            self._left_s[pace] = pace.wait_s if there else max(longest_s / 2, BRIEF.wait_s)
        return there
