# SPDX-License-Identifier: BSD-3-Clause
"""A search as one object that knows all facts of it, and the registry of all (docs/design/adding.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from planebench.analysis.search.task import MAX_LOAD_FACTOR, Measure, SearchFinding, SearchSettings, SearchTask
from planebench.model.plan import R_PLUS

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

METHODS: dict[str, Method] = {}
"""Every search by name, in the order in which they are run: an earlier one leaves trials that a later one can use."""


def register(method: Method) -> Method:
    """Add a search to :data:`METHODS`, and return it. Raises ValueError for a name that is taken."""
    if method.name in METHODS:
        raise ValueError(f"there is a search {method.name} already")
    METHODS[method.name] = method
    return method


def short_name(name: str) -> str:
    """Return the short name of a search, or MRR; ``name`` itself for a search of another planebench."""
    if name == R_PLUS:
        return "MRR"
    return METHODS[name].short_name if name in METHODS else name


def load_name(of: str) -> str:
    """Return what a load is a share of, as its label has it: empty for R+, the short name of a search otherwise."""
    return "" if of == R_PLUS else short_name(of)


def parameters() -> tuple[Parameter, ...]:
    """Return the parameters of all searches, each once."""
    return tuple(
        dict.fromkeys((TRIAL_DURATION, SEARCH_STARTS, *(p for method in METHODS.values() for p in method.parameters)))
    )


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
