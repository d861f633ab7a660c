# SPDX-License-Identifier: BSD-3-Clause
"""Results so far of the topology in progress: R+ of each switch, with the marks of the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from planebench.model.records import Point
from planebench.model.results import Result
from planebench.model.run import Run
from planebench.model.words import NOTHING, frames, throughput
from planebench.report.terminal.glyphs import Glyphs
from planebench.report.terminal.grid import Column as Kind
from planebench.report.terminal.grid import column_of, column_title, columns_of
from planebench.stats.choose import of_other_band
from planebench.stats.results import derive_results, run_band
from planebench.store.follow import Seen

LABEL = 9
"""Characters of the label at the left."""
NAME_MAX = 20
CELL = 11
"""Characters of a figure and its gap; titles as `→ imix 362 B` make a column wider, and the line is cut."""
LEGEND = {
    "≥": "≥ lower bound",
    "~": "~ unstable",
    NOTHING: f"{NOTHING} no accepted trial",
    "(": "( ) other core-to-core latency",
}


def column(title: str, texts: Sequence[str], glyphs: Glyphs, right: bool = False, limit: int = 40) -> list[str]:
    """Return title and texts in one width, made printable and cut at the limit."""
    shown = [glyphs.text(text) for text in (title, *texts)]
    width = min(limit, max(cell_len(text) for text in shown))
    return [" " * (width - cell_len(text)) + text if right else set_cell_size(text, width) for text in shown]


def row(label: str, cells: Sequence[str], style: str = "not dim") -> Text:
    """Return a line of a frame: a label, and cells that are columns already."""
    return Text(label.ljust(LABEL), style="dim").append("  ".join(cells), style=style)


def current_point(seen: Seen) -> Point | None:
    """Return the point that is measured now, or was last."""
    if seen.status is not None and seen.status.trial is not None:
        return seen.status.trial.point
    return seen.trials[-1].point if seen.trials else None


def results_so_far(seen: Seen) -> tuple[Result, ...]:
    """Return the results of the topology in progress, from its saturating trials alone."""
    point = current_point(seen)
    if point is None:
        return ()
    band = run_band(seen.trials, seen.header.settings.get("band"))
    mine = tuple(t for t in seen.trials if t.role == "r_plus" and _topology(t.point) == _topology(point))
    settings = {key: value for key, value in seen.header.settings.items() if key != "search"}  # they are not replayed
    return derive_results(Run(replace(seen.header, settings={**settings, "band": band}), mine))


def results_lines(seen: Seen, width: int, glyphs: Glyphs, room: int) -> list[Text]:
    """Return a row a switch, a column a direction and kind of frames; the columns around the current point, if not all
    fit."""
    results = results_so_far(seen)
    point = current_point(seen)
    if not results or point is None or room < 2:
        return []
    switches = list(dict.fromkeys(result.point.switch for result in results))[: room - 1]
    name = f"{point.scenario_label}, R+ in Mpps"
    fitting = _fitting(results, point, switches, max(1, (width - LABEL - width // 4) // CELL))
    columns = [column(name, switches, glyphs, limit=max(NAME_MAX, width // 4))]
    columns += [column(column_title(kind, glyphs), texts, glyphs, right=True) for kind, texts in fitting]
    head, *rows = zip(*columns, strict=True)
    title = row("results", head, "dim").append(glyphs.text(_legend(fitting)), style="dim")
    return [title, *(row("", cells) for cells in rows)]


def _fitting(
    results: Sequence[Result], point: Point, switches: Sequence[str], room: int
) -> list[tuple[Kind, list[str]]]:
    """Return the columns that fit, the current one included: the traffic, and the figure of each switch."""
    kinds = columns_of(results)
    at = next((i for i, kind in enumerate(kinds) if kind == (point.direction, frames(point))), 0)
    first = max(0, min(at, len(kinds) - room))
    found = []
    for kind in kinds[first : first + room]:
        figures = {r.point.switch: figure(r) for r in results if column_of(r) == kind}
        found.append((kind, [figures.get(label, "") for label in switches]))
    return found


def figure(result: Result) -> str:
    """Return R+ with its mark; in parentheses if it is not comparable with the rest of the run."""
    words = throughput(result)
    return f"({words})" if of_other_band(result.verdict) else words


def _legend(columns: Sequence[tuple[Kind, list[str]]]) -> str:
    shown = "".join(text for _, texts in columns for text in texts)
    found = [words for sign, words in LEGEND.items() if sign in shown]
    return f"   {' · '.join(found)}" if found else ""


def _topology(point: Point) -> tuple[object, ...]:
    return (point.scenario, point.chain_key, point.wire)
