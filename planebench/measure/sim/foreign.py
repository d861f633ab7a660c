# SPDX-License-Identifier: BSD-3-Clause
"""When the pollers of a simulated trial stood, beside foreign load as it was measured on a machine with two CPUs."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from planebench.model.records import TENTHS

Span = tuple[int, int]
"""Begin and end, in ns since the sending began."""

USUAL_NS = {
    "4ms/10ms": (3_500_000, 10_000_000),
    "loop": (4_000_000, 8_000_000),
    "loops": (4_000_000, 8_000_000),
    "irq": (300_000, 10_000_000),
}
"""The mean slice that is taken from a poller of an ordinary user, and the mean time from one to the next.

A busy loop has its fair half of a CPU, in slices of a tick of the kernel."""
FOREIGN = ("none", *USUAL_NS)
ROOT_NS = 1_000_000, 40_000_000
"""The same of a program beside pollers with nice -20."""
LENGTH_SPREAD = 0.11
"""The slices of a trial are longer or shorter by up to this share: 4 ms in 10 ms take 31 to 39 %."""
PERIOD_SPREAD = 0.1
MOVE_SHARE = 0.02
"""Share of the slices after which the kernel moves the program to the other CPU."""
IRQS_PER_BURST = 20
DISTURBED_SHARE = 0.05
"""Share of a disturbed trial for which the switch has no CPU, the same in each tenth."""


@dataclass(frozen=True, slots=True)
class StandingSpans:
    """The spans of a trial in which switch and tester did not poll."""

    duration_ns: int
    switch: tuple[Span, ...] = ()
    tester: tuple[Span, ...] = ()
    irq: bool = False
    """They were interrupted: no wait is counted, and no switch to another thread."""

    @property
    def tester_ns(self) -> int:
        """Return how long the tester stood."""
        return length_ns(self.tester)

    @property
    def had_by_tenth(self) -> tuple[int, ...]:
        """Return the time in tenths of a ns in which both polled, for each tenth of the sending."""
        tenth, had = self.duration_ns, [self.duration_ns] * TENTHS
        for begin, end in _union((*self.switch, *self.tester)):
            for i in range(begin * TENTHS // max(tenth, 1), TENTHS):
                if end * TENTHS <= i * tenth:
                    break
                had[i] -= min(end * TENTHS, (i + 1) * tenth) - max(begin * TENTHS, i * tenth)
        return tuple(had)

    @property
    def had(self) -> float:
        """Return the share of the time in which both polled."""
        return sum(self.had_by_tenth) / (TENTHS * self.duration_ns) if self.duration_ns else 1.0


def standing(foreign: str, root: bool, disturbed: bool, rng: random.Random, duration_ns: int) -> StandingSpans:
    """Return when the pollers stood. ``root``: they have root's priority; interrupts do not care."""
    cpus: tuple[list[Span], list[Span]] = [], []
    if disturbed:
        length = round(DISTURBED_SHARE * duration_ns / TENTHS)
        begins = (duration_ns * (2 * i + 1) // (2 * TENTHS) for i in range(TENTHS))
        cpus[0].extend((begin, begin + length) for begin in begins)
    if foreign != "none":
        slice_ns, period_ns = ROOT_NS if root and foreign != "irq" else USUAL_NS[foreign]
        first = rng.randrange(2)
        for program in range(2 if foreign == "loops" else 1):
            cpu = (first + program) % 2
            for span in _slices(rng, slice_ns, period_ns, duration_ns):
                cpus[cpu].append(span)
                if foreign in ("4ms/10ms", "loop") and rng.random() < MOVE_SHARE:
                    cpu = 1 - cpu
    return StandingSpans(duration_ns, _union(cpus[0]), _union(cpus[1]), foreign == "irq")


def _slices(rng: random.Random, slice_ns: int, period_ns: int, duration_ns: int) -> Iterator[Span]:
    """Yield the slices of one program that are within the trial, cut at its begin and end."""
    length = slice_ns * rng.uniform(1 - LENGTH_SPREAD, 1 + LENGTH_SPREAD)
    begin = -period_ns * rng.random()
    while begin < duration_ns:
        span = max(round(begin), 0), min(round(begin + length), duration_ns)
        if span[0] < span[1]:
            yield span
        begin += period_ns * rng.uniform(1 - PERIOD_SPREAD, 1 + PERIOD_SPREAD)


def length_ns(spans: Sequence[Span]) -> int:
    """Return the length of all spans together."""
    return sum(end - begin for begin, end in spans)


def _union(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Return the spans in order, those that meet as one."""
    joined: list[Span] = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((begin, end))
    return tuple(joined)
