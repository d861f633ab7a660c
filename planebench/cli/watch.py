# SPDX-License-Identifier: BSD-3-Clause
"""``planebench watch``: follow a run from another terminal without disturbing it (docs/measure.md)."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from textwrap import wrap
from typing import Any, Self

from inotify_simple import INotify, flags
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from planebench.analysis.results import derive_results
from planebench.analysis.search import short_name
from planebench.measure.machine import terminable
from planebench.model.errors import UsageError
from planebench.model.header import Run
from planebench.model.records import Point, Trial, VerdictKind
from planebench.model.results import SWITCH_FIGURES, Result
from planebench.model.status import CurrentTrial, Status
from planebench.model.words import NOTHING, batch, frames, load_words, mark, mpps, percent, throughput
from planebench.report.terminal.grid import Glyphs, column_of, column_title, columns_of
from planebench.report.terminal.grid import LoadColumn as Kind
from planebench.store import default_runs_dir, find_run, list_runs
from planebench.store.folder import FINISHED_FILE, STATUS_FILE
from planebench.store.reader import Follower, Seen, live_runs

# One frame of `planebench watch`: a run as lines that fit a terminal, 80x24 and up, in what characters it has.

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
class TerminalPage:
    """The size and the characters of the page."""

    width: int
    height: int
    glyphs: Glyphs


def frame(seen: Seen, page: TerminalPage, cost: str = "") -> list[Text]:
    """Return the lines of a frame, at most as many as the page is high, none wider than it."""
    top = [*head(seen, page), *_now(seen, page)]
    end = [_line("watching", cost, page, "dim")] if cost and seen.state == "running" else []
    told = [" ".join(text.split()) for text in seen.status.troubles] if seen.status else []
    troubles = [_line("trouble", text, page, "yellow") for text in told[-TROUBLES_MAX:]]
    tail = [*_next(seen, page), *troubles]
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


def head(seen: Seen, page: TerminalPage) -> Iterator[Text]:
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


def _progress(status: Status, page: TerminalPage) -> Text:
    share = status.done / status.steps if status.steps > 0 else 0.0
    width = min(max(10, page.width // 4), 60)
    words = f" {status.done} of {status.steps} · {_duration(status.left_s)} left"
    with contextlib.suppress(OverflowError):  # when it will be over stays right while nothing is drawn
        words += f", until {_moment(status.written_at) + timedelta(seconds=status.left_s):%H:%M}"
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
    if seen.finished is not None:
        why = seen.finished.note or "interrupted"
    else:
        why = seen.problem if seen.status is None else f"its process {seen.status.pid} is gone"
    lines = (f"{why}; {trials} are kept", f"resume with: {again}")
    return [part for line in lines for part in wrap(line, width, break_on_hyphens=False)]


def _now(seen: Seen, page: TerminalPage) -> Iterator[Text]:
    status = seen.status
    if seen.state == "running" and status is not None:
        words = _current(status.trial, page.glyphs) if status.trial else status.doing
        yield _line("now", words, page)
    if seen.trials:
        yield _line("load", _load(seen.trials[-1]), page)


def _current(trial: CurrentTrial, glyphs: Glyphs) -> str:
    what = f"{short_name(trial.search or trial.role)} no. {trial.repetition + 1}"
    load = "max. load" if trial.load.pps_per_direction is None else load_words(trial.load.label)
    words = (trial.point.switch, _point(trial.point, glyphs), what, load, f"{trial.duration_s:g} s")
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


def _trials(seen: Seen, page: TerminalPage, room: int) -> Iterator[Text]:
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


def _next(seen: Seen, page: TerminalPage) -> Iterator[Text]:
    if seen.state != "running" or seen.status is None:
        return
    status = seen.status
    shown = status.ahead[:NEXT_MAX]
    more = len(status.ahead) - len(shown) + status.ahead_more
    for i, stage in enumerate(shown):
        method = short_name(stage.method)
        about = "" if stage.method in ("r_plus", "latency") else "about "
        steps = f"{about}{stage.steps} trials{' left' if i == 0 else ''}"
        words = f"{stage.topology} {method}: {steps} on {stage.points} points, {_duration(stage.seconds)}"
        rest = f" · then {more} more" if more > 0 and i == len(shown) - 1 else ""
        yield _line("next" if i == 0 else "", words + rest, page)


def _line(label: str, words: str, page: TerminalPage, style: str = "") -> Text:
    return _row(label, [page.glyphs.text(words)], style or "not dim")


def _point(point: Point, glyphs: Glyphs) -> str:
    return f"{point.scenario_label} {glyphs.arrow(point.direction)} {frames(point)}"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 100 else f"{minutes / 60:.1f} h"


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
    cells = "".join(text for _, texts in fitting for text in texts)
    found = [words for sign, words in LEGEND.items() if sign in cells]
    legend = f"   {' · '.join(found)}" if found else ""
    title = _row("results", head, "dim").append(glyphs.text(legend), style="dim")
    return [title, *(_row("", row) for row in rows)]


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


# Outputs of `planebench watch`: a terminal, of which only changed lines are drawn; lines; JSON.

LAST_TRIALS = 10
"""Number of last trials in a JSON object."""
LONG = 10_000
"""Line width without wrapping."""

_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l\x1b[2J", "\x1b[?25h\x1b[?1049l"
"""The terminal's other screen without a cursor, and back."""


class Show:
    """Somewhere to show a run."""

    def draw(self, seen: Seen, cost: str) -> None:
        """Show what has changed."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the output as it is."""


class Screen(Show):
    """A terminal. Its last frame stays when the run has ended."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._drawn: list[Text] = []
        self._size: tuple[int, int] = (0, 0)

    def __enter__(self) -> Self:
        self._write(_ENTER)
        return self

    def __exit__(self, *_: object) -> None:
        self._write(_LEAVE + "".join(f"{_rendered(self._console, line)}\n" for line in self._drawn))

    def draw(self, seen: Seen, cost: str) -> None:
        """Draw the lines that are not as they were."""
        size = (self._console.width, self._console.height)
        if size != self._size:
            self._write("\x1b[2J")
            self._drawn, self._size = [], size
        lines = frame(seen, _page(self._console), cost)
        old = [*self._drawn, *[None] * len(lines)]
        changed = [(i, line) for i, line in enumerate(lines) if line != old[i]]
        rows = "".join(f"\x1b[{i + 1}H{_rendered(self._console, line)}\x1b[K" for i, line in changed)
        self._write(rows + (f"\x1b[{len(lines) + 1}H\x1b[J" if len(lines) < len(self._drawn) else ""))
        self._drawn = lines

    def _write(self, text: str) -> None:
        if text:
            self._console.file.write(text)
            self._console.file.flush()


class Once(Show):
    """One frame, to be read or piped."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def draw(self, seen: Seen, cost: str) -> None:
        """Print it."""
        for line in frame(seen, _page(self._console)):
            print(_rendered(self._console, line), file=self._console.file)


class TrialLines(Show):
    """A line a trial, where nothing can be drawn: a file, a pipe, a dumb terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._glyphs = glyphs_of(console)
        self._told: int | None = None
        self._state = ""

    def draw(self, seen: Seen, cost: str) -> None:
        """Print the new trials; at the beginning only their number."""
        if seen.state != self._state:
            self._state = seen.state
            for line in head(seen, TerminalPage(LONG, LONG, self._glyphs)):
                self._print(line.plain)
        for trial in seen.trials[len(seen.trials) if self._told is None else self._told :]:
            self._print(trial_line(trial, self._glyphs))
        self._told = len(seen.trials)

    def _print(self, text: str) -> None:
        print(text, file=self._console.file, flush=True)


class JsonLines(Show):
    """One object, on a line, for each change."""

    def __init__(self, indent: int | None = None) -> None:
        self._indent = indent

    def draw(self, seen: Seen, cost: str) -> None:
        """Print the object."""
        print(json.dumps(to_document(seen), indent=self._indent), file=sys.stdout, flush=True)


def _page(console: Console) -> TerminalPage:
    """Return a line less than it has: below the last frame comes the prompt."""
    return TerminalPage(console.width, console.height - 1, glyphs_of(console))


def _rendered(console: Console, line: Text) -> str:
    """Return the text with its colors."""
    with console.capture() as captured:
        console.print(line, no_wrap=True, crop=True, highlight=False, end="")
    return captured.get()


def glyphs_of(console: Console) -> Glyphs:
    """Return the characters that it can show."""
    return Glyphs(unicode=not console.options.ascii_only)


def to_document(seen: Seen) -> dict[str, Any]:
    """Return everything that a frame shows, as data."""
    return {
        "run": seen.folder.name,
        "folder": str(seen.folder),
        "state": seen.state,
        "problem": seen.problem,
        "status": None if seen.status is None else dataclasses.asdict(seen.status),
        "trials": len(seen.trials),
        "verdicts": dict(Counter(t.verdict.kind.value for t in seen.trials)),
        "last_trials": [_trial(t) for t in seen.trials[-LAST_TRIALS:]],
        "results": [
            {
                "point": result.point.point_id,
                "throughput_pps": result.throughput_pps,
                "trials": len(result.throughput_trials_pps),
                "verdict": result.verdict.kind.value,
                "verdict_reasons": list(result.verdict.texts),
                "verdict_codes": list(result.verdict.codes),
            }
            for result in results_so_far(seen)
        ],
    }


def _trial(trial: Trial) -> dict[str, Any]:
    return {
        "index": trial.index,
        "point": trial.point.point_id,
        "role": trial.role,
        "search": trial.search,
        "load": trial.load.label,
        "started_at": trial.started_at,
        "throughput_pps": trial.throughput_pps,
        "loss_ratio": trial.loss_ratio,
        "verdict": trial.verdict.kind.value,
        "verdict_reasons": list(trial.verdict.texts),
        "verdict_codes": list(trial.verdict.codes),
        "band": trial.band,
        **{f"switch_{figure.name}": figure.of(trial.switch) for figure in SWITCH_FIGURES},
        "tester_busy_share": trial.evidence.tester_busy_share,
    }


LOOK_S = 1.0
"""How often to look where the kernel does not report changes: no inotify left, a process of another namespace."""
_EVENTS = flags.MOVED_TO | flags.DELETE_SELF | flags.MOVE_SELF
"""status.json and finished.json come by a rename; a line in trials.jsonl wakes nobody."""
ENDED_EARLY = 1
"""Exit code for a run that was killed or interrupted."""
NICE = 19


@dataclass
class _Cost:
    """The CPU time that this process takes for watching."""

    begun_s: float = field(default_factory=time.monotonic)
    begun_cpu_s: float = field(default_factory=time.process_time)
    changes: int = 0

    def words(self) -> str:
        """Return the cost from the second look on, because the first reads the whole run."""
        self.changes += 1
        if self.changes == 1:
            return "Ctrl-C stops watching, not the run"
        cpu_s, took_s = time.process_time() - self.begun_cpu_s, time.monotonic() - self.begun_s
        each_ms = cpu_s / (self.changes - 1) * 1e3
        return f"takes {cpu_s / max(took_s, 1e-9):.1%} of a core, {each_ms:.0f} ms per change · Ctrl-C stops watching"


def watch(run: str | None, runs: Path | None, *, once: bool = False, wait: bool = False, json: bool = False) -> int:
    """Show a run until it ends, or ``once``. Exit code: 0; 1 if it was killed or interrupted.

    ``wait`` for a run to start if none is in progress. Raises UsageError where there is no such run, StoreError for a
    folder that cannot be read.
    """
    with terminable():
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
        folder = _choose(run, runs or default_runs_dir(), wait)
        follower = Follower(folder)
        with Changes(folder) as changes, _show(once=once, json=json) as show:
            seen = _draw(show, follower, cost := _Cost())
            while seen.state == "running" and not once:
                changes.wait(seen.status.pid if seen.status else None)
                seen = _draw(show, follower, cost)
    return 0 if seen.state in ("running", "complete") else ENDED_EARLY


def _draw(show: Show, follower: Follower, cost: _Cost) -> Seen:
    """Draw the run as it is now, on the CPUs of the harness, away from the switch, as far as allowed."""
    seen = follower.look()
    if seen.state == "running" and seen.status is not None:
        with contextlib.suppress(OSError, ValueError):
            os.sched_setaffinity(0, seen.status.cpus)
    show.draw(seen, cost.words())
    return seen


def _choose(run: str | None, runs_dir: Path, wait: bool) -> Path:
    """Return the run that is named; else the newest in progress; else the newest that did not finish."""
    if run is not None:
        return find_run(runs_dir, run)
    live = live_runs(runs_dir)
    if wait and not live:
        print(f"waiting for a run to start in {runs_dir}", file=sys.stderr, flush=True)
        known = set(_known(runs_dir))  # a run may have ended by the time we look
        while not (begun := live_runs(runs_dir) or [folder for folder in _known(runs_dir) if folder not in known]):
            time.sleep(LOOK_S)
        return begun[0]
    unfinished = [info.path for info in list_runs(runs_dir) if info.finished is None] if not live else []
    found = [*live, *reversed(unfinished)]
    if not found:
        raise UsageError(
            f"no run in progress in {runs_dir}. Specify a run (`planebench list runs`), give its folder with --runs, "
            "or wait for one with --wait"
        )
    return found[0]


def _known(runs_dir: Path) -> list[Path]:
    """Return the folders of runs with a status or an end."""
    return [path.parent for name in (STATUS_FILE, FINISHED_FILE) for path in runs_dir.glob(f"*/{name}")]


def _show(*, once: bool, json: bool) -> Show:
    if json:
        return JsonLines(indent=1 if once else None)
    console = Console(markup=False, highlight=False)
    if once:
        return Once(console)
    drawable = console.is_terminal and not console.is_dumb_terminal and sys.stdout.isatty()
    return Screen(console) if drawable else TrialLines(console)


class Changes:
    """Waits for a change of a run, using no CPU time: inotify on its folder, a pidfd on its process."""

    def __init__(self, folder: Path) -> None:
        self._stack = contextlib.ExitStack()
        self._inotify: INotify | None = None
        self._pid: int | None = None
        self._poll = select.poll()
        with contextlib.suppress(OSError):
            self._inotify = self._stack.enter_context(INotify(nonblocking=True))
            self._inotify.add_watch(folder, _EVENTS)
            self._poll.register(self._inotify, select.POLLIN)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def wait(self, pid: int | None) -> None:
        """Sleep until something may have changed. ``pid`` is the process of the run, which ``--resume`` may change."""
        sure = self._watch_process(pid) and self._inotify is not None
        self._poll.poll(None if sure else LOOK_S * 1000)
        if self._inotify is not None:
            with contextlib.suppress(OSError):
                self._inotify.read(timeout=0)

    def _watch_process(self, pid: int | None) -> bool:
        """Return whether the end of the process will wake us."""
        if pid is None or pid == self._pid:
            return pid is not None
        try:
            fd = os.pidfd_open(pid)
        except OSError:
            return False
        self._stack.callback(os.close, fd)
        self._poll.register(fd, select.POLLIN)
        self._pid = pid
        return True
