# SPDX-License-Identifier: BSD-3-Clause
"""This machine, as every measuring command uses it: its CPUs, its hugepages, its tester, and how long to go on."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType

from planebench.host.facts import HostFacts, cpus_of
from planebench.host.priority import high_priority
from planebench.placement import place

HUGEPAGE_BYTES = 2 * 1024 * 1024
HUGEPAGE_MB_PER_SWITCH = 2048
"""The most that tester and switch of one comparison partner use; with fewer free pages every switch runs without."""


def enough_hugepages(wanted: bool | None, facts: HostFacts, switches: int) -> bool:
    """Return ``wanted``; where it is None, whether enough 2 MB pages are free for that many ``switches``."""
    if wanted is not None:
        return wanted
    return facts.hugepages_2m_free * HUGEPAGE_BYTES >= switches * HUGEPAGE_MB_PER_SWITCH * 1024 * 1024


@contextlib.contextmanager
def measuring(facts: HostFacts, switch_cores: int = 1) -> Iterator[None]:
    """Give this process a high priority, and keep it off the CPUs of the switch, while it measures."""
    old = os.sched_getaffinity(0)
    os.sched_setaffinity(0, place(cpus_of(facts, switch_cores)).control_cpus)
    try:
        with high_priority():
            yield
    finally:
        os.sched_setaffinity(0, old)


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise KeyboardInterrupt as Ctrl-C does; after the first, ignore all three.

    So the process ends in order however often it is told to.
    """
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def interrupt(number: int, frame: FrameType | None) -> None:
        for caught in signals:
            signal.signal(caught, signal.SIG_IGN)
        raise KeyboardInterrupt

    old = {number: signal.signal(number, interrupt) for number in signals}
    try:
        yield
    finally:
        for number, handler in old.items():
            if signal.getsignal(number) is interrupt:
                signal.signal(number, handler)
