# SPDX-License-Identifier: BSD-3-Clause
"""``planebench watch``: follow a run from another terminal without disturbing it (docs/measure.md)."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from textwrap import wrap
from typing import Any, Self

from inotify_simple import INotify, flags
from rich.console import Console
from rich.text import Text

from planebench.analysis.results import derive_results
from planebench.analysis.search import short_name
from planebench.cli.progress import RATES, aligned, duration, last_point, progress_line, so_far, switch_rows
from planebench.measure.machine import terminable
from planebench.model.errors import UsageError
from planebench.model.header import Run
from planebench.model.records import Trial, VerdictKind
from planebench.model.results import SWITCH_FIGURES
from planebench.model.words import batch, load_words, mark, mpps, percent, point_words
from planebench.report.terminal.grid import Glyphs
from planebench.store import default_runs_dir, find_run, list_runs
from planebench.store.folder import FINISHED_FILE, STATUS_FILE, resume_command
from planebench.store.reader import Follower, Seen, live_runs

# One frame: a run as lines that fit a terminal, 80x24 and up, in what characters it has.

NEXT_MAX, TROUBLES_MAX = 3, 2
LABEL = 9
"""Characters of the label at the left."""
STATE_STYLES = {"running": "bold green", "complete": "bold green", "interrupted": "bold yellow", "killed": "bold red"}


@dataclass(frozen=True, slots=True)
class TerminalPage:
    """The size and the characters of the page."""

    width: int
    height: int
    glyphs: Glyphs

    @classmethod
    def of(cls, console: Console) -> TerminalPage:
        """Return a line less than a terminal has: below the last frame comes the prompt."""
        return cls(console.width, console.height - 1, Glyphs(unicode=not console.options.ascii_only))


def frame(seen: Seen, page: TerminalPage) -> list[Text]:
    """Return the lines of a frame, at most as many as the page is high, none wider than it."""
    top, glyphs = head(seen, page), page.glyphs
    tail: list[Text] = []
    if seen.trials:
        switches = dict.fromkeys(t.point.switch for t in seen.trials)
        rows = switch_rows(so_far(seen.trials, tuple(switches)), last_point(seen.trials))
        tail += _block("rates", aligned(rows, glyphs, RATES), max(2, (page.height - len(top)) // 2))
    if seen.state == "running" and seen.status is not None:
        tail += _block("next", [glyphs.text(line) for line in _next(seen)], NEXT_MAX, headed=False)
        end = Text("Ctrl-C stops watching, not the run", style="dim")
    else:
        end = Text()
    told = [glyphs.text(" ".join(text.split())) for text in seen.status.troubles] if seen.status else []
    tail += [_line("trouble", text, "yellow") for text in told[-TROUBLES_MAX:]]
    room = page.height - len(top) - len(tail) - bool(end)
    trials = []
    if room > 1 and seen.trials:
        cells = [("trial", "of", "load", "Mpps", "loss", ""), *map(_cells, seen.trials[:-room:-1])]
        trials = _block("last", aligned(cells, glyphs, range(3, 5)), room)
    lines = [*top, *trials, *tail, *([end] if end else ())]
    for line in lines:
        line.truncate(page.width, overflow="ellipsis" if glyphs.unicode else "crop")
    return lines[: page.height]


def head(seen: Seen, page: TerminalPage) -> list[Text]:
    """Return the name and state of the run, what it does now, or what to do if it has ended."""
    glyphs, status = page.glyphs, seen.status
    title = Text(glyphs.text(f"{seen.header.name} · {seen.folder.name} · "))
    title.append(seen.state, style=STATE_STYLES[seen.state])
    if status is not None and status.trial is not None and status.trial.parts:
        title.append(glyphs.text(f" · for {', '.join(status.trial.parts)}"))
    if seen.state != "running" or status is None:
        return [title, *(Text(glyphs.text(line)) for line in _ending(seen, page.width))]
    line = progress_line(status.done, status.steps, status.left_s, glyphs, page.width)
    with contextlib.suppress(OverflowError):  # when it will be over stays right while nothing is drawn
        line.append(f", until {_moment(status.written_at) + timedelta(seconds=status.left_s):%H:%M}")
    line.append(glyphs.text(f" · since {_moment(status.session_at):%H:%M:%S}"))
    doing = status.doing
    if (trial := status.trial) is not None:
        what = f"{short_name(trial.search or trial.role)} no. {trial.repetition + 1}"
        load = "max. load" if trial.load.pps_per_direction is None else load_words(trial.load.label)
        words = (trial.point.switch, point_words(trial.point), what, load, f"{trial.duration_s:g} s")
        doing = f"{' · '.join(words)} · since {_moment(trial.since):%H:%M:%S}"
    now = _line("now", glyphs.text(glyphs.arrows(doing)))
    return [title, line, now, *([_line("load", glyphs.text(_load(seen.trials[-1])))] if seen.trials else ())]


def _ending(seen: Seen, width: int) -> list[str]:
    """Return how it ended, and what to do now: the command whole, to be copied."""
    trials = f"{len(seen.trials)} trials"
    if seen.state == "complete" and seen.finished is not None:
        at = _moment(seen.finished.finished_at)
        return [f"ended at {at:%H:%M:%S}, {trials}: planebench report {seen.folder.name}"]
    if seen.finished is not None:
        why = seen.finished.note or "interrupted"
    else:
        why = seen.problem if seen.status is None else f"its process {seen.status.pid} is gone"
    lines = (f"{why}; {trials} are kept", f"resume with: {resume_command(seen.header.command)}")
    return [part for line in lines for part in wrap(line, width, break_on_hyphens=False)]


def _load(trial: Trial) -> str:
    """Return the utilization in the last trial; unknown, not zero, if the switch does not report it."""
    shares = {trial.point.switch: trial.switch.busy_share, "tester": trial.evidence.tester_busy_share}
    of = [f"{name} {'busy unknown' if share is None else f'{percent(share)} busy'}" for name, share in shares.items()]
    if trial.switch.batch_size is not None:
        of.insert(1, f"batch {batch(trial.switch.batch_size)}")
    distance = trial.evidence.distance_after
    of.append(f"cores {distance.band} ({distance.median_ns:.0f} ns)" if distance else "core-to-core latency unknown")
    return " · ".join(of)


def _cells(trial: Trial) -> tuple[str, ...]:
    """Return a trial as cells; its rate is in parentheses where it did not take place, or is none."""
    kind, method = trial.verdict.kind, short_name(trial.search or trial.role)
    load = method if trial.load.pps_per_direction is None else f"{method} {load_words(trial.load.label)}"
    rate = mark(kind) + mpps(trial.throughput_pps)
    rate = f"({rate})" if kind in (VerdictKind.INVALID, VerdictKind.FUNCTIONAL) else rate
    why = " ".join("; ".join(trial.verdict.texts).split())
    point = f"{trial.point.switch} {point_words(trial.point)}"
    return f"#{trial.index}", point, load, rate, percent(trial.loss_ratio), f"{kind.value} {why}".rstrip()


def _next(seen: Seen) -> Iterator[str]:
    if seen.status is None:
        return
    ahead = seen.status.ahead
    more = len(ahead[NEXT_MAX:]) + seen.status.ahead_more
    for i, stage in enumerate(ahead[:NEXT_MAX]):
        about = "" if stage.method in ("r_plus", "latency") else "about "
        steps = f"{about}{stage.steps} trials{' left' if i == 0 else ''} on {stage.points} points"
        rest = f" · then {more} more" if more > 0 and i == len(ahead[:NEXT_MAX]) - 1 else ""
        yield f"{stage.topology} {short_name(stage.method)}: {steps}, {duration(stage.seconds)}{rest}"


def _block(label: str, lines: list[str], room: int, *, headed: bool = True) -> list[Text]:
    """Return lines with a label before the first one, which may be the head of a table."""
    return [
        _line("" if i else label, line, "dim" if headed and not i else "not dim") for i, line in enumerate(lines[:room])
    ]


def _line(label: str, words: str, style: str = "not dim") -> Text:
    return Text(label.ljust(LABEL), style="dim").append(words, style=style)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone()


# Outputs: a terminal, of which only changed lines are drawn; a line a trial; JSON.

LAST_TRIALS = 10
"""Number of last trials in a JSON object."""
LONG = 10_000
"""Line width without wrapping."""
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l\x1b[2J", "\x1b[?25h\x1b[?1049l"
"""The terminal's other screen without a cursor, and back."""

Output = Callable[[Seen], None]


class Screen:
    """A terminal. Its last frame stays when the run has ended."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._drawn: list[Text] = []
        self._size: tuple[int, int] = (0, 0)

    def __enter__(self) -> Output:
        self._write(_ENTER)
        return self.draw

    def __exit__(self, *_: object) -> None:
        self._write(_LEAVE + "".join(f"{_rendered(self._console, line)}\n" for line in self._drawn))

    def draw(self, seen: Seen) -> None:
        """Draw the lines that are not as they were."""
        size = (self._console.width, self._console.height)
        if size != self._size:
            self._write("\x1b[2J")
            self._drawn, self._size = [], size
        lines = frame(seen, TerminalPage.of(self._console))
        old = [*self._drawn, *[None] * len(lines)]
        changed = [(i, line) for i, line in enumerate(lines) if line != old[i]]
        rows = "".join(f"\x1b[{i + 1}H{_rendered(self._console, line)}\x1b[K" for i, line in changed)
        self._write(rows + (f"\x1b[{len(lines) + 1}H\x1b[J" if len(lines) < len(self._drawn) else ""))
        self._drawn = lines

    def _write(self, text: str) -> None:
        if text:
            self._console.file.write(text)
            self._console.file.flush()


class TrialLines:
    """A line a trial, where nothing can be drawn: a file, a pipe, a dumb terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._told: int | None = None
        self._state = ""

    def draw(self, seen: Seen) -> None:
        """Print the new trials; at the beginning only their number."""
        page = dataclasses.replace(TerminalPage.of(self._console), width=LONG, height=LONG)
        lines = []
        if seen.state != self._state:
            self._state = seen.state
            lines = [line.plain for line in head(seen, page)[: 2 if seen.state == "running" else None]]
        new = seen.trials[len(seen.trials) if self._told is None else self._told :]
        lines += [page.glyphs.text(page.glyphs.arrows(" ".join(_cells(trial)))) for trial in new]
        self._told = len(seen.trials)
        for line in lines:
            print(line, file=self._console.file, flush=True)


@contextlib.contextmanager
def _output(*, once: bool, json_wanted: bool) -> Iterator[Output]:
    console = Console(markup=False, highlight=False)
    if json_wanted:
        indent = 1 if once else None
        yield lambda seen: print(json.dumps(to_document(seen), indent=indent), flush=True)
    elif once:
        yield lambda seen: print(
            *(_rendered(console, line) for line in frame(seen, TerminalPage.of(console))), sep="\n"
        )
    elif console.is_terminal and not console.is_dumb_terminal and sys.stdout.isatty():
        with Screen(console) as draw:
            yield draw
    else:
        yield TrialLines(console).draw


def _rendered(console: Console, line: Text) -> str:
    """Return the text with its colors."""
    with console.capture() as captured:
        console.print(line, no_wrap=True, crop=True, highlight=False, end="")
    return captured.get()


def to_document(seen: Seen) -> dict[str, Any]:
    """Return everything that a frame shows, as data, and the results of the topology in progress."""
    trial = seen.status.trial if seen.status is not None else None
    point = trial.point if trial else seen.trials[-1].point if seen.trials else None
    mine = tuple(t for t in seen.trials if point and t.role == "r_plus" and t.point.topology == point.topology)
    return {
        "run": seen.folder.name,
        "folder": str(seen.folder),
        "state": seen.state,
        "problem": seen.problem,
        "status": None if seen.status is None else dataclasses.asdict(seen.status),
        "trials": len(seen.trials),
        "verdicts": dict(Counter(t.verdict.kind.value for t in seen.trials)),
        "last_trials": [
            {
                "index": t.index,
                "point": t.point.point_id,
                "role": t.role,
                "search": t.search,
                "load": t.load.label,
                "started_at": t.started_at,
                "throughput_pps": t.throughput_pps,
                "loss_ratio": t.loss_ratio,
                "verdict": t.verdict.kind.value,
                "verdict_reasons": list(t.verdict.texts),
                "verdict_codes": list(t.verdict.codes),
                "band": t.band,
                **{f"switch_{figure.name}": figure.of(t.switch) for figure in SWITCH_FIGURES},
                "tester_busy_share": t.evidence.tester_busy_share,
            }
            for t in seen.trials[-LAST_TRIALS:]
        ],
        "results": [
            {
                "point": result.point.point_id,
                "throughput_pps": result.throughput_pps,
                "trials": len(result.throughput_trials_pps),
                "verdict": result.verdict.kind.value,
                "verdict_reasons": list(result.verdict.texts),
                "verdict_codes": list(result.verdict.codes),
            }
            for result in (derive_results(Run(seen.header, mine)) if mine else ())
        ],
    }


LOOK_S = 1.0
"""How often to look where the kernel does not report changes: no inotify left, a process of another namespace."""
_EVENTS = flags.MOVED_TO | flags.DELETE_SELF | flags.MOVE_SELF
"""status.json and finished.json come by a rename; a line in trials.jsonl wakes nobody."""
ENDED_EARLY = 1
"""Exit code for a run that was killed or interrupted."""
NICE = 19


def watch(run: str | None, runs: Path | None, *, once: bool = False, wait: bool = False, json: bool = False) -> int:
    """Show a run until it ends, or ``once``. Exit code: 0; 1 if it was killed or interrupted.

    ``wait`` for a run to start if none is in progress. Raises UsageError where there is no such run, StoreError for a
    folder that cannot be read.
    """
    with terminable():
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
        folder = _choose(run, runs or default_runs_dir(), wait)
        follower = Follower(folder)
        with Changes(folder) as changes, _output(once=once, json_wanted=json) as draw:
            while True:
                seen = follower.look()
                if seen.state == "running" and seen.status is not None:  # as far as allowed, away from the switch
                    with contextlib.suppress(OSError, ValueError):
                        os.sched_setaffinity(0, seen.status.cpus)
                draw(seen)
                if seen.state != "running" or once:
                    return 0 if seen.state in ("running", "complete") else ENDED_EARLY
                changes.wait(seen.status.pid if seen.status else None)


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
