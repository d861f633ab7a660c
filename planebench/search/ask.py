# SPDX-License-Identifier: BSD-3-Clause
"""The seam of a search: what it asks for, and how it is answered. No I/O, no clock, nothing of planebench.measure."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Protocol

from annotated_types import Gt

from planebench.model.plan import Plan, SearchPlan
from planebench.model.records import Trial


@dataclass(frozen=True, slots=True)
class Ask:
    """A trial that a search wants. ``load_pps`` is the aggregate of all directions; None is flat out.

    ``repetition`` is that of the search, from 0.
    ``rough``: a trial that the tester did not keep up with answers, too: what it offered is the load.
    """

    load_pps: float | None
    duration_s: float
    repetition: int = 0
    rough: bool = False


class Measure(Protocol):
    """How a search gets a trial, which took place; raises to end the search (see replay.py)."""

    def __call__(self, ask: Ask) -> Trial:
        """Return the trial, measured now or stored."""


@dataclass(frozen=True, slots=True)
class SearchSettings(SearchPlan):
    """How every search of a run is done on a point: what the plan says of searches, and what it says of R+."""

    r_plus_duration_s: Annotated[float, Gt(0)] = 1.0
    """Duration of a saturating trial; also of the one a search starts with."""
    max_load_pps: Annotated[float, Gt(0)] | None = None
    """The highest load, of all directions together; None: the line rate, or without one a quarter above the forwarding
    rate at the maximum."""
    line_rate_pps: Annotated[float, Gt(0)] | None = None
    """What the links carry, of all directions together; None on wires without a speed. Trials tell it."""
    min_load_pps: float = 1000.0


def search_settings(plan: Plan, senders: int) -> SearchSettings:
    """Return how ``plan`` has searches done on a point with that many sending directions."""
    throughput, rate = plan.throughput, plan.throughput.max_rate_pps
    return SearchSettings(
        **{field.name: getattr(plan.search, field.name) for field in fields(SearchPlan)},
        r_plus_duration_s=throughput.duration_s,
        max_load_pps=None if rate is None else rate * senders,
    )
