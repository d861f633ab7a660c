# SPDX-License-Identifier: BSD-3-Clause
"""The progress bar of everything long: drawn between steps only, for drawing takes CPU time from the pollers."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn


class Bar:
    """A bar with the time left on a terminal, a line a step elsewhere, neither if ``quiet``. On standard error.

    ``left`` shows the time left, ``more`` what else there is to see. ``moving``: it is drawn once a second as well.
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
