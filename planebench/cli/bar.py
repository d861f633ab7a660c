# SPDX-License-Identifier: BSD-3-Clause
"""Progress bars, drawn between steps: drawing takes CPU time from the pollers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from planebench.analysis.search import short_name
from planebench.measure.ahead import Pace
from planebench.measure.trial import TrialRequest
from planebench.model.records import Trial, VerdictKind
from planebench.model.status import Stage
from planebench.model.words import frames

FAILED_IN_A_ROW = 20
"""After so many trials in a row that did not take place, a line says what to do."""
SLOW_TRIAL_S = 5.0
"""The bar of trials this long is also drawn while they run, once a second."""


class Bar:
    """Show a bar with the time left on a terminal, a line per step elsewhere, neither if ``quiet``; on standard error.

    ``left`` shows the time left, ``more`` are further columns. ``moving``: the bar is drawn once a second as well.
    """

    def __init__(
        self,
        steps: int,
        *,
        quiet: bool = False,
        left: ProgressColumn | None = None,
        more: tuple[ProgressColumn, ...] = (),
        moving: bool = False,
    ) -> None:
        self.steps, self.done = steps, 0
        self._console = Console(stderr=True)
        self._quiet = quiet
        self._bar: Progress | None = None
        if self._console.is_terminal and not self._console.is_dumb_terminal and not quiet:
            columns = (left or TimeRemainingColumn(elapsed_when_finished=True), *more, TextColumn("{task.description}"))
            self._bar = Progress(
                BarColumn(bar_width=30),
                MofNCompleteColumn(),
                TextColumn("[dim]left[/]"),
                *columns,
                console=self._console,
                auto_refresh=moving,
                refresh_per_second=1,
                speed_estimate_period=60,
            )
            self._task = self._bar.add_task("starting", total=steps)

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()

    def working_on(self, text: str) -> None:
        """Show what begins."""
        if self._bar:
            self._bar.update(self._task, description=escape(text))
            self._bar.refresh()

    def line(self, text: str) -> None:
        """Print a line about a finished step if there is no bar."""
        if not (self._bar or self._quiet):
            self.tell(text)

    def advance(self, steps: int = 1) -> None:
        """Advance by the given number of steps."""
        self.done += steps
        if self._bar:
            self._bar.advance(self._task, steps)
            self._bar.refresh()

    def tell(self, text: str, style: str = "") -> None:
        """Print a line above the bar, also if ``quiet``."""
        self._console.print(text, markup=False, highlight=False, style=style, soft_wrap=True)


class _Left(ProgressColumn):
    """The time that the rest of the plan takes, longer trials and starts of switches included."""

    max_refresh = 0.5

    def __init__(self, pace: Pace) -> None:
        super().__init__()
        self._pace = pace

    def render(self, task: Task) -> Text:
        return Text(str(timedelta(seconds=round(self._pace.left_s()))), style="progress.remaining")


class RunBar(Bar):
    """The bar of a run in its own terminal: a listener of the campaign."""

    def __init__(self, pace: Pace, trial_s: float, quiet: bool = False) -> None:
        more = (TextColumn("[dim]after[/]"), TimeElapsedColumn())
        super().__init__(pace.steps, quiet=quiet, left=_Left(pace), more=more, moving=trial_s >= SLOW_TRIAL_S)
        self._failed = 0

    def trial_begins(self, request: TrialRequest) -> None:
        """Show the trial that begins."""
        point = request.point
        what = short_name(request.search) if request.search else "latency" if request.role == "latency" else ""
        words = f"{point.switch} {point.scenario_label} {point.direction} {frames(point)} {what}"
        self.working_on(words.strip())

    def trial_done(self, trial: Trial) -> None:
        """Show the result of a trial."""
        point, kind = trial.point, trial.verdict.kind
        no_figure = kind in (VerdictKind.INVALID, VerdictKind.FUNCTIONAL)
        rate = "" if no_figure else f"{trial.throughput_pps / 1e6:.2f} Mpps "
        search = f"{short_name(trial.search)} " if trial.search else ""
        failed = kind is VerdictKind.INVALID
        why = f": {trial.verdict.texts[0]}" if failed else ""
        self.line(
            f"[{self.done + 1}/{self.steps}] {point.switch} {point.scenario_label} {point.direction} "
            f"{frames(point)} {search}{trial.load.label}: {rate}{kind.value}{why}"
        )
        self._failed = self._failed + 1 if failed else 0
        if self._failed == FAILED_IN_A_ROW:
            self.trouble(
                f"none of the last {FAILED_IN_A_ROW} trials took place. `planebench switch check NAME` tests a switch "
                "alone; Ctrl-C ends the run, and `--resume` continues it"
            )

    def extend(self, stages: Sequence[Stage]) -> None:
        """Lengthen the bar by a further pass."""
        self.steps += sum(stage.steps for stage in stages)
        if self._bar:
            self._bar.update(self._task, total=self.steps)

    def trouble(self, text: str) -> None:
        """Show a failure; the run continues."""
        self.tell(f"planebench: {text}", style="yellow")
