# SPDX-License-Identifier: BSD-3-Clause
"""The progress bar of a run in its terminal, drawn between trials: drawing takes CPU time from the pollers."""

from __future__ import annotations

from datetime import timedelta
from types import TracebackType
from typing import Self

from rich.progress import ProgressColumn, Task, TimeElapsedColumn
from rich.progress import TextColumn as Words
from rich.text import Text

from planebench.cli.bar import Bar
from planebench.measure.ahead import Pace
from planebench.measure.trial import TrialRequest
from planebench.model.records import Trial, VerdictKind
from planebench.model.words import frames
from planebench.search import short_name

SLOW_TRIAL_S = 5.0
"""Trials this long get a bar that also moves while they run, once a second."""


class _Left(ProgressColumn):
    """The time that the rest of the plan takes, longer trials and starts of switches included."""

    max_refresh = 0.5

    def __init__(self, pace: Pace) -> None:
        super().__init__()
        self._pace = pace

    def render(self, task: Task) -> Text:
        return Text(str(timedelta(seconds=round(self._pace.left_s()))), style="progress.remaining")


class ProgressListener:
    """The bar of a run in its own terminal; off a terminal a line a trial."""

    def __init__(self, pace: Pace, trial_s: float, quiet: bool = False) -> None:
        self._bar = Bar(
            pace.steps,
            quiet=quiet,
            left=_Left(pace),
            more=(Words("[dim]after[/]"), TimeElapsedColumn()),
            moving=trial_s >= SLOW_TRIAL_S,
        )

    def __enter__(self) -> Self:
        self._bar.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.__exit__(kind, error, trace)

    def working_on(self, text: str) -> None:
        """Show work that is not a trial."""
        self._bar.working_on(text)

    def trial_begins(self, request: TrialRequest) -> None:
        """Show the trial that begins."""
        point = request.point
        what = short_name(request.search) if request.search else "latency" if request.role == "latency" else ""
        words = f"{point.switch} {point.scenario_label} {point.direction} {frames(point)} {what}"
        self._bar.working_on(words.strip())

    def trial_done(self, trial: Trial) -> None:
        """Show the result of a trial."""
        point, kind = trial.point, trial.verdict.kind
        no_figure = kind in (VerdictKind.INVALID, VerdictKind.FUNCTIONAL)
        rate = "" if no_figure else f"{trial.throughput_pps / 1e6:.2f} Mpps "
        self._bar.line(
            f"[{self._bar.done + 1}/{self._bar.steps}] {point.switch} {point.scenario_label} {point.direction} "
            f"{frames(point)} {trial.load.label}: {rate}{kind.value}"
        )

    def advance(self, steps: int) -> None:
        """Advance by the given number of planned trials."""
        self._bar.advance(steps)

    def trouble(self, text: str) -> None:
        """Show a failure; the run continues."""
        self._bar.tell(f"planebench: {text}", style="yellow")
