# SPDX-License-Identifier: BSD-3-Clause
"""How the figures of searches are written, in table and page alike."""

from __future__ import annotations

from collections.abc import Sequence

from planebench.model.records import VerdictKind
from planebench.model.results import Result, SearchResult
from planebench.model.words import NOTHING, count, mpps
from planebench.search import METHODS, short_name
from planebench.stats.counting import search_counts


def search_bounds(search: SearchResult) -> str:
    """Highest load that met the goal and lowest that did not; ``≥5.10`` where none failed. Mpps."""
    lower, upper = search.lower_pps, search.upper_pps
    if lower is None:
        return NOTHING if upper is None else f"<{mpps(upper)}"
    if upper is None:
        return f"≥{mpps(lower)}" if search.complete else mpps(lower)
    return f"{mpps(lower)}{NOTHING}{mpps(upper)}"


def search_figure(search: SearchResult) -> str:
    """Bounds in Mpps, or the mean longest burst in packets; in brackets where it does not count."""
    if search.method in METHODS and METHODS[search.method].figure == "burst":
        figure = NOTHING if search.burst is None else count(round(search.burst.mean_packets))
    else:
        figure = search_bounds(search)
        if search.verdict.kind is VerdictKind.TESTER_LIMITED and figure[0].isdigit():
            figure = f"≥{figure}"
    return figure if search_counts(search) else f"({figure})"


def search_bands(searches: Sequence[SearchResult]) -> str:
    """The core-distance band of searches: ``near``; each with its own where they differ, ``NDR near, PDR far``."""
    if len({s.band for s in searches}) == 1:
        return searches[0].band or NOTHING
    return ", ".join(f"{short_name(s.method)} {s.band or 'unknown'}" for s in searches)


def methods_of(results: Sequence[Result]) -> list[str]:
    """The methods that were run, in the order of their columns."""
    found = dict.fromkeys(s.method for r in results for s in r.searches)
    return [m for m in METHODS if m in found] + [m for m in found if m not in METHODS]
