# SPDX-License-Identifier: BSD-3-Clause
"""One frame of `planebench watch`: a run as lines that fit a terminal, 80x24 and up, in what characters it has."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from textwrap import wrap

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from planebench.model.records import Load, Point, Trial, VerdictKind
from planebench.model.results import Result
from planebench.model.run import Run
from planebench.model.status import CurrentTrial, Stage, Status
from planebench.model.words import NOTHING, batch, frames, load_words, mark, mpps, percent, throughput
from planebench.report.terminal.glyphs import Glyphs
from planebench.report.terminal.grid import Column as Kind
from planebench.report.terminal.grid import column_of, column_title, columns_of
from planebench.search import short_name
from planebench.stats.results import derive_results
from planebench.store.follow import Seen

NEXT_MAX, TROUBLES_MAX, NAME_MAX = 3, 2, 16
LABEL = 9
"""Characters of the label at the left."""
ROW_NAME_MAX = 20
CELL = 11
"""Characters of a figure and its gap; titles as `→ imix 362 B` make a column wider, and the line is cut."""
LEGEND = {
    "≥": "≥ lower bound",
    "~": "~ wide interval",
    NOTHING: f"{NOTHING} no figure",
}
STATE_STYLES = {"running": "bold green", "complete": "bold green", "interrupted": "bold yellow", "killed": "bold red"}
VERDICT_STYLES = {
    VerdictKind.VALID: "green",
    VerdictKind.OVERLOAD: "yellow",
    VerdictKind.TESTER_LIMITED: "cyan",
    VerdictKind.LINE_RATE: "cyan",
    VerdictKind.FUNCTIONAL: "magenta",
    VerdictKind.INVALID: "red",
}


@dataclass(frozen=True, slots=True)
class Page:
    """The size and the characters of the page."""

    width: int
    height: int
    glyphs: Glyphs


def frame(seen: Seen, page: Page, cost: str = "") -> list[Text]:
    """Return the lines of a frame, at most as many as the page is high, none wider than it."""
    top = [*head(seen, page), *_now(seen, page)]
    end = [_line("watching", cost, page, "dim")] if cost and seen.state == "running" else []
    tail = [*_next(seen, page), *_troubles(seen, page)]
    room = page.height - len(top) - len(end) - len(tail)
    results = _results_lines(seen, page.width, page.glyphs, max(2, room // 2))
    airy = room - len(results) >= 8
    trials = list(_trials(seen, page, room - len(results) - 3 * airy))
    blank = [Text("")] if airy else []
    lines = [*top, *(line for part in (trials, results, tail) if part for line in (*blank, *part)), *end]
    for line in lines:
        line.truncate(page.width, overflow="ellipsis" if page.glyphs.unicode else "crop")
    return lines[: page.height]


def trial_line(trial: Trial, glyphs: Glyphs) -> str:
    """Return a trial on a line of its own, for where no frame can be drawn."""
    point, kind = trial.point, trial.verdict.kind.value
    words = f"#{trial.index} {point.switch} {_point(point, glyphs)} {short_name(trial.search or trial.role)} "
    return glyphs.text(f"{words}{trial.load.label}: {trial.throughput_pps / 1e6:.2f} Mpps {kind} {_reason(trial)}")


def head(seen: Seen, page: Page) -> Iterator[Text]:
    """Yield the name and state of the run, and what to do if it has ended."""
    glyphs, status = page.glyphs, seen.status
    title = Text(glyphs.text(f"{seen.header.name} · {seen.folder.name} · "))
    title.append(seen.state, style=STATE_STYLES[seen.state])
    if status is not None and status.trial is not None and status.trial.parts:
        title.append(glyphs.text(f" · for {', '.join(status.trial.parts)}"))
    yield title
    if seen.state == "running" and status is not None:
        yield _progress(status, page)
    else:
        yield from (Text(glyphs.text(line)) for line in _ending(seen, page.width))


def _progress(status: Status, page: Page) -> Text:
    share = status.done / status.steps if status.steps > 0 else 0.0
    width = min(max(10, page.width // 4), 60)
    words = f" {status.done} of {status.steps} · {_duration(status.left_s)} left{_until(status)}"
    begun = _clock(status.session_at)
    line = Text(page.glyphs.text("["))
    line.append(page.glyphs.bar(share, width), style="blue")
    return line.append(page.glyphs.text(f"]{words} · since {begun}"))


def _ending(seen: Seen, width: int) -> list[str]:
    """Return how it ended, and what to do now: the command whole, to be copied."""
    trials = f"{len(seen.trials)} trials"
    if seen.state == "complete" and seen.finished is not None:
        return [f"ended at {_clock(seen.finished.finished_at)}, {trials}: planebench report {seen.folder.name}"]
    command = shlex.join(seen.header.command)
    again = command if "--resume" in seen.header.command else f"{command} --resume"
    lines = (f"{_why(seen)}; {trials} are kept", f"resume with: {again}")
    return [part for line in lines for part in wrap(line, width, break_on_hyphens=False)]


def _why(seen: Seen) -> str:
    if seen.finished is not None:
        return seen.finished.note or "interrupted"
    return seen.problem if seen.status is None else f"its process {seen.status.pid} is gone"


def _now(seen: Seen, page: Page) -> Iterator[Text]:
    status = seen.status
    if seen.state == "running" and status is not None:
        words = _current(status.trial, page.glyphs) if status.trial else status.doing
        yield _line("now", words, page)
    if seen.trials:
        yield _line("load", _load(seen.trials[-1]), page)


def _current(trial: CurrentTrial, glyphs: Glyphs) -> str:
    what = f"{short_name(trial.search or trial.role)} no. {trial.repetition + 1}"
    words = (trial.point.switch, _point(trial.point, glyphs), what, _offered(trial.load), f"{trial.duration_s:g} s")
    return f"{' · '.join(words)} · since {_clock(trial.since)}"


def _load(trial: Trial) -> str:
    """Return the utilization in the last trial; unknown, not zero, if the switch does not report it."""
    of = [f"{trial.point.switch} {_share(trial.switch.busy_share)}"]
    if trial.switch.batch_size is not None:
        of.append(f"batch {batch(trial.switch.batch_size)}")
    of.append(f"tester {_share(trial.evidence.tester_busy_share)}")
    distance = trial.evidence.distance_after
    of.append(f"cores {distance.band} ({distance.median_ns:.0f} ns)" if distance else "core-to-core latency unknown")
    return " · ".join(of)


def _share(share: float | None) -> str:
    return "busy unknown" if share is None else f"{percent(share)} busy"


def _trials(seen: Seen, page: Page, room: int) -> Iterator[Text]:
    """Yield the last trials, newest first."""
    if room < 2:
        return
    last = seen.trials[:-room:-1]
    glyphs = page.glyphs
    columns = [
        _column("trial", [f"#{t.index}" for t in last], glyphs, right=True),
        _column("switch", [t.point.switch for t in last], glyphs, limit=NAME_MAX),
        _column("point", [_point(t.point, glyphs) for t in last], glyphs, limit=page.width // 3),
        _column("load", [_what(t) for t in last], glyphs),
        _column("Mpps", [_rate(t) for t in last], glyphs, right=True),
        _column("loss", [percent(t.loss_ratio) for t in last], glyphs, right=True),
    ]
    head, *rows = zip(*columns, strict=True)
    yield _row("last", head, "dim")
    for trial, cells in zip(last, rows, strict=True):
        line = _row("", cells)
        line.append("  " + trial.verdict.kind.value, style=VERDICT_STYLES[trial.verdict.kind])
        yield line.append(glyphs.text(f" {_reason(trial)}".rstrip()), style="dim")


def _what(trial: Trial) -> str:
    method = short_name(trial.search or trial.role)
    return method if trial.load.pps_per_direction is None else f"{method} {load_words(trial.load.label)}"


def _rate(trial: Trial) -> str:
    """Return the rate; in parentheses where the trial did not take place, nothing where the figure is not a rate."""
    rate = mark(trial.verdict.kind) + mpps(trial.throughput_pps)
    if trial.verdict.kind is VerdictKind.FUNCTIONAL:
        return NOTHING
    return f"({rate})" if trial.verdict.kind is VerdictKind.INVALID else rate


def _reason(trial: Trial) -> str:
    return " ".join("; ".join(trial.verdict.texts).split())


def _next(seen: Seen, page: Page) -> Iterator[Text]:
    if seen.state != "running" or seen.status is None:
        return
    status = seen.status
    shown = status.ahead[:NEXT_MAX]
    more = len(status.ahead) - len(shown) + status.ahead_more
    for i, stage in enumerate(shown):
        rest = f" · then {more} more" if more > 0 and i == len(shown) - 1 else ""
        yield _line("next" if i == 0 else "", _stage(stage, rest_of=i == 0) + rest, page)


def _stage(stage: Stage, rest_of: bool) -> str:
    method = short_name(stage.method)
    about = "" if stage.method in ("r_plus", "latency") else "about "
    left = " left" if rest_of else ""
    return (
        f"{stage.topology} {method}: {about}{stage.steps} trials{left} on {stage.points} points, "
        f"{_duration(stage.seconds)}"
    )


def _troubles(seen: Seen, page: Page) -> Iterator[Text]:
    told = [" ".join(text.split()) for text in seen.status.troubles] if seen.status else []
    for text in told[-TROUBLES_MAX:]:
        yield _line("trouble", text, page, "yellow")


def _line(label: str, words: str, page: Page, style: str = "") -> Text:
    return _row(label, [page.glyphs.text(words)], style or "not dim")


def _point(point: Point, glyphs: Glyphs) -> str:
    return f"{point.scenario_label} {glyphs.arrow(point.direction)} {frames(point)}"


def _offered(load: Load) -> str:
    return "max. load" if load.pps_per_direction is None else load_words(load.label)


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 100 else f"{minutes / 60:.1f} h"


def _until(status: Status) -> str:
    """Return when it will be over: that stays right while nothing is drawn."""
    try:
        end = _moment(status.written_at) + timedelta(seconds=status.left_s)
    except OverflowError:
        return ""
    return f", until {end:%H:%M}"


def _clock(text: str) -> str:
    """Return the time of day here."""
    return f"{_moment(text):%H:%M:%S}"


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone()


def _column(title: str, texts: Sequence[str], glyphs: Glyphs, right: bool = False, limit: int = 40) -> list[str]:
    """Return title and texts in one width, made printable and cut at the limit."""
    shown = [glyphs.text(text) for text in (title, *texts)]
    width = min(limit, max(cell_len(text) for text in shown))
    return [" " * (width - cell_len(text)) + text if right else set_cell_size(text, width) for text in shown]


def _row(label: str, cells: Sequence[str], style: str = "not dim") -> Text:
    """Return a line of a frame: a label, and cells that are columns already."""
    return Text(label.ljust(LABEL), style="dim").append("  ".join(cells), style=style)


def _current_point(seen: Seen) -> Point | None:
    """Return the point that is measured now, or was last."""
    if seen.status is not None and seen.status.trial is not None:
        return seen.status.trial.point
    return seen.trials[-1].point if seen.trials else None


def results_so_far(seen: Seen) -> tuple[Result, ...]:
    """Return the results of the topology in progress, from its saturating trials alone."""
    point = _current_point(seen)
    if point is None:
        return ()
    mine = tuple(t for t in seen.trials if t.role == "r_plus" and t.point.topology == point.topology)
    return derive_results(Run(seen.header, mine))


def _results_lines(seen: Seen, width: int, glyphs: Glyphs, room: int) -> list[Text]:
    """Return a row per switch, a column per direction and frames; those around the current point if not all fit."""
    results = results_so_far(seen)
    point = _current_point(seen)
    if not results or point is None or room < 2:
        return []
    switches = list(dict.fromkeys(result.point.switch for result in results))[: room - 1]
    name = f"{point.scenario_label}, R+ in Mpps"
    fitting = _fitting(results, point, switches, max(1, (width - LABEL - width // 4) // CELL))
    columns = [_column(name, switches, glyphs, limit=max(ROW_NAME_MAX, width // 4))]
    columns += [_column(column_title(kind, glyphs), texts, glyphs, right=True) for kind, texts in fitting]
    head, *rows = zip(*columns, strict=True)
    title = _row("results", head, "dim").append(glyphs.text(_legend(fitting)), style="dim")
    return [title, *(_row("", cells) for cells in rows)]


def _fitting(
    results: Sequence[Result], point: Point, switches: Sequence[str], room: int
) -> list[tuple[Kind, list[str]]]:
    """Return the columns that fit, the current one included: the traffic, and the figure of each switch."""
    kinds = columns_of(results)
    at = next((i for i, kind in enumerate(kinds) if kind == (point.direction, frames(point))), 0)
    first = max(0, min(at, len(kinds) - room))
    found = []
    for kind in kinds[first : first + room]:
        figures = {r.point.switch: throughput(r) for r in results if column_of(r) == kind}
        found.append((kind, [figures.get(label, "") for label in switches]))
    return found


def _legend(columns: Sequence[tuple[Kind, list[str]]]) -> str:
    shown = "".join(text for _, texts in columns for text in texts)
    found = [words for sign, words in LEGEND.items() if sign in shown]
    return f"   {' · '.join(found)}" if found else ""
