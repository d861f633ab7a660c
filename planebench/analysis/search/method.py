# SPDX-License-Identifier: BSD-3-Clause
"""A search as one object that knows all facts of it (docs/design/adding.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from planebench.analysis.search.task import MAX_LOAD_FACTOR, Measure, SearchFinding, SearchSettings, SearchTask

RFC2544_TRIAL_S = 60.0
CSIT_WIDTH = 0.005


@dataclass(frozen=True, slots=True)
class Parameter:
    """A key of ``search:`` in a plan that is an option of the command line, too."""

    key: str
    """A field of :class:`planebench.model.plan.SearchPlan`, which says what is valid."""
    option: str
    """Its option, without dashes: ``max_r`` is ``--max-r``."""
    kind: type[int] | type[float]
    help: str


@dataclass(frozen=True, slots=True)
class Method:
    """A search. Everything that names searches asks this: plan, command line, estimate, report, export."""

    name: str
    """The name in plans, in stored trials and in ``--search``."""
    short_name: str
    """At the head of a column."""
    help: str
    """The figure that it finds, as a noun phrase."""
    search: Callable[[Measure, SearchTask, SearchFinding], None]
    """Does it: fills the Finding."""
    deviations: Callable[[SearchSettings], Iterable[str]]
    """Returns a sentence for each departure from the standard that defines it."""
    expected_trials: Callable[[SearchSettings], int]
    """How many trials it takes on a point: the median over simulated switches with noise, stalls and loss."""
    standard_s: float
    """Seconds of a trial by the standard; the mean where they differ."""
    figure: Literal["rate", "burst"] = "rate"
    """The kind of its result: bounds of a rate, or the longest burst."""
    parameters: tuple[Parameter, ...] = ()
    """The keys of a plan that are for this search alone."""


TRIAL_DURATION = Parameter(
    "duration_s",
    "search_duration",
    float,
    "Duration of each search trial in seconds (default: per the standard).",
)
SEARCH_STARTS = Parameter(
    "starts", "search_starts", int, "Starts of the switch in which every search is done: comparisons need 2 or more."
)
"""The parameters that all searches have."""


def short_trials(settings: SearchSettings) -> Iterator[str]:
    """Yield a sentence where trials are shorter than RFC 2544 section 24 asks for."""
    if settings.duration_s is not None and settings.duration_s < RFC2544_TRIAL_S:
        yield f"trials of {settings.duration_s:g} s; RFC 2544 section 24 asks for {RFC2544_TRIAL_S:g} s"


def wide_bounds(settings: SearchSettings) -> Iterator[str]:
    """Yield a sentence where the bounds may differ by more than is usual."""
    width = settings.relative_width
    if width is not None and width > CSIT_WIDTH:
        yield f"the bounds may differ by {width:.2%}; usual is {CSIT_WIDTH:.2%}"


def highest_load(settings: SearchSettings) -> Iterator[str]:
    """Yield where the search begins if that is not the line rate: an emulated wire has none."""
    if settings.max_load_pps is None and settings.line_rate_pps is not None:
        return
    if settings.max_load_pps is None:
        yield f"the highest load is {MAX_LOAD_FACTOR:g} x the forwarding rate at maximum offered load (no line rate)"
    else:
        yield f"the highest load is set to {settings.max_load_pps / 1e6:.6g} Mpps (no line rate)"
