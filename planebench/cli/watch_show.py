# SPDX-License-Identifier: BSD-3-Clause
"""Outputs of `planebench watch`: a terminal, of which only changed lines are drawn; lines; JSON."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections import Counter
from typing import Any, Self

from rich.console import Console
from rich.text import Text

from planebench.cli.watch_frame import Page, frame, head, results_so_far, trial_line
from planebench.model.records import Trial
from planebench.model.results import Result
from planebench.model.switch_figures import SWITCH_FIGURES
from planebench.report.terminal.glyphs import Glyphs
from planebench.store.follow import Seen

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


class Lines(Show):
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
            for line in head(seen, Page(LONG, LONG, self._glyphs)):
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


def _page(console: Console) -> Page:
    """Return a line less than it has: below the last frame comes the prompt."""
    return Page(console.width, console.height - 1, glyphs_of(console))


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
        "results": [_result(r) for r in results_so_far(seen)],
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


def _result(result: Result) -> dict[str, Any]:
    return {
        "point": result.point.point_id,
        "throughput_pps": result.throughput_pps,
        "trials": len(result.throughput_trials_pps),
        "verdict": result.verdict.kind.value,
        "verdict_reasons": list(result.verdict.texts),
        "verdict_codes": list(result.verdict.codes),
    }
