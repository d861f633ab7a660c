# SPDX-License-Identifier: BSD-3-Clause
"""What a user sees while a run goes on. Drawn between trials only: drawing takes CPU time from the pollers."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from planebench.model.records import Trial
from planebench.report.wording import frames

SLOW_TRIAL_S = 5.0
"""Trials this long get a bar that also moves while they run, once a second."""


class ProgressListener:
    """A bar with the time left on a terminal, a line a trial elsewhere. Everything goes to standard error."""

    def __init__(self, steps: int, trial_s: float, quiet: bool = False) -> None:
        self._console = Console(stderr=True, quiet=quiet)
        self._steps = steps
        self._done = 0
        self._bar = self._make_bar(trial_s) if self._console.is_terminal and not quiet else None
        self._task = self._bar.add_task("starting", total=steps) if self._bar else None

    def _make_bar(self, trial_s: float) -> Progress:
        return Progress(
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("[dim]left[/]"),
            TimeRemainingColumn(elapsed_when_finished=True),
            TextColumn("[dim]after[/]"),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
            console=self._console,
            auto_refresh=trial_s >= SLOW_TRIAL_S,
            refresh_per_second=1,
            speed_estimate_period=120,
        )

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()

    def working_on(self, text: str) -> None:
        """Something begins."""
        if self._bar and self._task is not None:
            self._bar.update(self._task, description=escape(text))
            self._bar.refresh()

    def trial_done(self, trial: Trial) -> None:
        """A trial is on disk."""
        if self._bar is None:
            point = trial.point
            self._console.print(
                f"[{self._done + 1}/{self._steps}] {point.switch} {point.scenario_label} {point.direction} "
                f"{frames(point)} {trial.load.label}: {trial.throughput_pps / 1e6:.2f} Mpps "
                f"{trial.verdict.kind.value}",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )

    def advance(self, steps: int) -> None:
        """So many planned trials are dealt with."""
        self._done += steps
        if self._bar and self._task is not None:
            self._bar.advance(self._task, steps)
            self._bar.refresh()

    def trouble(self, text: str) -> None:
        """Something failed; the run goes on."""
        self._console.print(f"planebench: {text}", markup=False, highlight=False, style="yellow", soft_wrap=True)
