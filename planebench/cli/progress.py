# SPDX-License-Identifier: BSD-3-Clause
"""A run in progress: what is done, the time left, and the rates so far, for ``run``; bars for the rest.

All is drawn between trials: drawing takes CPU time from the pollers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from planebench.analysis.counting import saturating
from planebench.analysis.search.methods import short_name
from planebench.analysis.starts import geometric_mean, throughput_blocks
from planebench.measure.campaign import Listener
from planebench.measure.trial import TrialRequest
from planebench.model.records import Trial, VerdictKind
from planebench.model.words import mark, mpps, point_words, printable, reasons
from planebench.plan.estimate import duration_words
from planebench.report.terminal.grid import Glyphs

if TYPE_CHECKING:
    from planebench.measure.session import Session

LINE_EVERY_S = 10.0
"""Where nothing can be drawn, as in a pipe, a line is printed this often at most."""
LEADING = 3
"""Switches that such a line names."""
FAILED_IN_A_ROW = 20
"""After so many trials in a row that did not take place, a line says what to do."""
SLOW_TRIAL_S = 5.0
"""What is drawn is also drawn while trials this long run, once a second."""
BAR_SHARE, BAR_MIN, BAR_MAX = 4, 10, 60


def so_far(trials: Sequence[Trial], switches: Sequence[str]) -> str:
    """Return ``planed 31.50, testpmd 12.50 Mpps at p2p → 64 B``, the fastest first; empty before there is a rate.

    The test point is the one that was saturated last.
    """
    at = next((t.point for t in reversed(trials) if t.role == "r_plus"), None)
    if at is None:
        return ""
    found: list[tuple[float, str]] = []
    for label in switches:
        counted = saturating(t for t in trials if t.point == replace(at, switch=label))
        if pps := geometric_mean(throughput_blocks(counted.trials)):
            found.append((pps, f"{printable(label)} {mark(counted.verdict.kind)}{mpps(pps)}"))
    if not found:
        return ""
    rates = [words for _, words in sorted(found, key=lambda it: -it[0])]
    more = f" ({len(rates) - LEADING} more)" if len(rates) > LEADING else ""
    return f"{', '.join(rates[:LEADING])} Mpps{more} at {point_words(at)}"


class _Drawn:
    """What is drawn on standard error while something goes on; nothing if ``quiet``, or where it is no terminal."""

    def __init__(self, drawn: Callable[[], Group], *, quiet: bool, moving: bool = False) -> None:
        self._quiet = quiet
        self._console = Console(stderr=True, markup=False, highlight=False)
        self._glyphs = Glyphs(not self._console.options.ascii_only)
        self._live: Live | None = None
        if self._console.is_terminal and not self._console.is_dumb_terminal and not quiet:
            self._live = Live(
                console=self._console,
                get_renderable=drawn,
                auto_refresh=moving,
                refresh_per_second=1,
                transient=True,
            )

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def _progress(self, done: int, steps: int, left_s: float, doing: str) -> Text:
        """Return a line that fits: a bar, what is done, the time left, and what goes on."""
        glyphs, width = self._glyphs, min(max(BAR_MIN, self._console.width // BAR_SHARE), BAR_MAX)
        line = Text("[").append(glyphs.bar(done / steps if steps > 0 else 0.0, width), "blue")
        line.append(glyphs.text(f"] {done} of {steps} · {duration_words(left_s)} left"))
        line.append(glyphs.text(glyphs.arrows(f" · {printable(doing)}")), style="dim")
        return self._cut(line)

    def _cut(self, line: Text) -> Text:
        line.truncate(self._console.width, overflow="ellipsis" if self._glyphs.unicode else "crop")
        return line


class RunProgress(_Drawn, Listener):
    """The progress of a run in its own terminal, or in a pipe, on standard error: a listener of the campaign.

    ``quiet``: only what goes wrong is printed.
    """

    def __init__(self, session: Session, *, quiet: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._session, self._clock = session, clock
        self._plan = session.survey.plan
        self._switches = tuple(dict.fromkeys(point.switch for point in session.survey.measured))
        self._doing = ""
        self._told_s: float | None = None
        self._failed = 0
        self._failures: set[tuple[str, tuple[str, ...]]] = set()
        super().__init__(self._lines, quiet=quiet, moving=self._plan.throughput.duration_s >= SLOW_TRIAL_S)

    def working_on(self, text: str) -> None:
        """Show work that is not a trial."""
        self._doing = text
        self._draw()

    def trial_begins(self, request: TrialRequest) -> None:
        """Show the trial that begins."""
        what = short_name(request.search or request.role)
        again = "" if request.repetition < self._plan.throughput.repetitions else ", still open"
        self._doing = f"{what} of {request.point.switch}, {point_words(request.point)}{again}"
        self._draw()

    def trial_done(self, trial: Trial) -> None:
        """Say why a trial did not take place, each reason once a switch. The figures are drawn when the next begins."""
        failed = trial.verdict.kind is VerdictKind.INVALID
        self._failed = self._failed + 1 if failed else 0
        key = trial.point.switch, trial.verdict.codes
        if failed and key not in self._failures:
            self._failures.add(key)
            self.trouble(f"{trial.point.switch} {point_words(trial.point)}: no figure: {reasons(trial.verdict.texts)}")
        if self._failed == FAILED_IN_A_ROW:
            self.trouble(
                f"none of the last {FAILED_IN_A_ROW} trials took place. `planebench switch check NAME` tests a switch "
                "alone; Ctrl-C ends the run, and `--resume` continues it"
            )

    def trouble(self, text: str) -> None:
        """Print a failure above what is drawn, also if ``quiet``; the run continues."""
        text = printable(" ".join(text.split()))
        self._console.print(f"planebench: {text}", style="yellow", soft_wrap=not self._console.is_terminal)

    def _draw(self) -> None:
        if self._live:
            self._live.refresh()
        elif not self._quiet and self._session.trials:
            now_s = self._clock()
            if self._told_s is None or now_s - self._told_s >= LINE_EVERY_S:
                self._told_s = now_s
                pace, rates = self._session.pace, so_far(self._session.trials, self._switches)
                words = f"{pace.done}/{pace.steps}, {duration_words(pace.left_s())} left{f': {rates}' if rates else ''}"
                self._console.print(self._glyphs.text(self._glyphs.arrows(words)), soft_wrap=True)

    def _lines(self) -> Group:
        pace, rates = self._session.pace, so_far(self._session.trials, self._switches)
        line = self._progress(pace.done, pace.steps, pace.left_s(), self._doing)
        return Group(line, self._cut(Text(self._glyphs.text(self._glyphs.arrows(rates)))))


class Bar(_Drawn):
    """Shows a bar with the time left on a terminal, a line a step elsewhere, neither if ``quiet``."""

    def __init__(self, steps: int, *, quiet: bool = False) -> None:
        self.steps, self.done = steps, 0
        self._doing, self._begun_s = "", time.monotonic()
        super().__init__(self._lines, quiet=quiet)

    def _lines(self) -> Group:
        left_s = (time.monotonic() - self._begun_s) / max(self.done, 1) * (self.steps - self.done)
        return Group(self._progress(self.done, self.steps, left_s, self._doing))

    def working_on(self, text: str) -> None:
        """Show what begins."""
        self._doing = text
        self.advance(0)

    def line(self, text: str) -> None:
        """Print a line about a finished step if there is no bar."""
        if not (self._live or self._quiet):
            self._console.print(text, soft_wrap=True)

    def advance(self, steps: int = 1) -> None:
        """Advance by the given number of steps."""
        self.done += steps
        if self._live:
            self._live.refresh()
