# SPDX-License-Identifier: BSD-3-Clause
"""Search results: tables, back-to-back bursts, deviations from standards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from planebench.analysis.counting import search_counts
from planebench.analysis.results import mean_burst_packets
from planebench.analysis.search.methods import METHODS, short_name
from planebench.model.grouped import grouped
from planebench.model.results import Result, SearchResult
from planebench.model.words import NOTHING, count, interval, mpps, several
from planebench.report.tables import PageColumn, PageTable, page_table, point_columns


def search_table(results: Sequence[Result]) -> PageTable:
    """Return what searches came to in Mpps; below, its error, the rate forwarded at it, and remarks."""
    members = [r for r in results if r.searches]
    known = [METHODS[method] for method in methods_of(members) if method in METHODS]
    definitions = " ".join(f"{it.short_name}: {it.help}." for it in known)
    columns = (
        *point_columns(lambda it: it.point),
        *(PageColumn(short_name(method), partial(_cell, method), "two") for method in methods_of(members)),
    )
    return page_table(
        "Rates by search, Mpps",
        columns,
        members,
        f"{definitions} Mean over the starts of the switch. {RESOLUTION} "
        "Back-to-back: mean longest burst without loss, in frames. "
        "In parentheses: did not converge.",
    )


RESOLUTION = (
    "Of three starts or more: the 95 % interval. Of fewer: the bounds, which are the resolution of the search; starts "
    "may differ by more."
)


def _cell(method: str, result: Result) -> tuple[str, str]:
    found = [s for s in result.searches if s.method == method]
    if not found:
        return NOTHING, ""
    search, *others = found
    figure, error = search_figure(result, method)
    known = result.search_figure(method)
    if known is not None and known.low_pps is None:
        starts = "one start" if known.starts == 1 else several(known.starts, "start")
        error = f"bounds {error}, {starts}" if error else starts
    small = [] if search.conditional_pps is None else [f"forwards {mpps(search.conditional_pps)}"]
    if others:
        small.append(f"in other starts {', '.join(_lower(s) for s in others)}")
    remarks = next((s.verdict.texts for s in found if s.verdict.reasons), ())
    return figure, "; ".join(filter(None, [error, *small, *remarks]))


def _lower(search: SearchResult) -> str:
    return mpps(search.lower_pps) if search.burst is None else count(round(search.burst.mean_packets))


def deviations(results: Iterable[Result]) -> list[str]:
    """Return every deviation from a standard once, with its methods: ``NDR, PDR: trials of 0.1 s; ...``."""
    found = ((text, short_name(s.method)) for r in results for s in r.searches for text in s.deviations)
    return [f"{', '.join(names)}: {text}" for text, names in grouped(dict.fromkeys(found)).items()]


def search_figure(result: Result, method: str) -> tuple[str, str]:
    """Return what a search came to, in Mpps or in frames of a burst, and its error; in parentheses if it came to none.

    The error: the interval of the starts, ``[9.61, 9.99]``, or the bounds of few starts.
    """
    found = [s for s in result.searches if s.method == method]
    figure = result.search_figure(method)
    if figure is None:
        packets = mean_burst_packets(found, method)
        words = search_bounds(found) if packets is None else count(round(packets))
        return (words if any(map(search_counts, found)) else f"({words})"), ""
    words = f"{'≥' * figure.is_bound}{mpps(figure.pps)}"
    if figure.low_pps is not None:
        return words, interval(figure.low_pps, figure.high_pps, mpps)
    ended = [s for s in found if search_counts(s) and s.lower_pps]
    return words, search_bounds(ended) if all(s.upper_pps for s in ended) else ""


def search_bounds(found: Sequence[SearchResult]) -> str:
    """Return the least load that met the goal and the highest that did not, in Mpps."""
    lower = min((s.lower_pps for s in found if s.lower_pps is not None), default=None)
    upper = max((s.upper_pps for s in found if s.upper_pps is not None), default=None)
    if lower is None:
        return NOTHING if upper is None else f"<{mpps(upper)}"
    return mpps(lower) if upper is None else f"{mpps(lower)}{NOTHING}{mpps(upper)}"


def methods_of(results: Sequence[Result]) -> list[str]:
    """Return the methods that were run, in the order of their columns."""
    found = dict.fromkeys(s.method for r in results for s in r.searches)
    return [m for m in METHODS if m in found] + [m for m in found if m not in METHODS]
