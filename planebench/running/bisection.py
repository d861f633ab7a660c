# SPDX-License-Identifier: BSD-3-Clause
"""A bisection of a repository by measurement: git chooses commits, runs of each are added until its side is known."""

from __future__ import annotations

import contextlib
import math
import re
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from planebench.host.git import git
from planebench.model.errors import UsageError
from planebench.stats.sides import ENDS_RUNS_MIN, RUNS_MAX, Side, ends_differ, nearer_side, side_of

Figures = Mapping[str, float]
"""The figures of one run, by series."""

_FIRST_BAD = re.compile(r"^([0-9a-f]{40}) is the first '?bad'? commit", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Judged:
    """A commit of the bisection. ``side``: None for one that does not build. ``sure``: its runs decided the side."""

    commit: str
    side: Side | None
    figures: tuple[float, ...]
    sure: bool = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a bisection. ``first_bad``: empty where the budget was spent first; ``left``: commits that remain."""

    first_bad: str
    left: int
    series: str
    judged: tuple[Judged, ...]
    builds: int
    runs: int

    @property
    def sure(self) -> bool:
        """Return whether the runs of all commits decided their sides."""
        return all(it.sure for it in self.judged)


@dataclass
class Bisection:
    """A bisection between two commits of a clean working tree.

    ``build`` builds what is checked out and returns whether that worked; ``measure`` makes a run and returns its
    figures. ``builds_max`` and ``seconds_max`` end it early; None is no limit. ``tell`` is given a line at each step.
    """

    folder: Path
    build: Callable[[], bool]
    measure: Callable[[], Figures]
    builds_max: int | None = None
    seconds_max: float | None = None
    tell: Callable[[str], None] = lambda _: None
    builds: int = field(default=0, init=False)
    runs: int = field(default=0, init=False)

    def find(self, good: str, bad: str) -> Outcome:
        """Return the first commit that is as ``bad``. Raises UsageError if the two do not differ, or cannot be built.

        Afterwards the working tree is what it was before.
        """
        if git(self.folder, "status", "--porcelain", "--untracked-files=no"):
            raise UsageError(f"{self.folder} has changed files; commit or stash them: a bisection checks out others")
        ends = [git(self.folder, "rev-parse", "--verify", f"{one}^{{commit}}") for one in (good, bad)]
        candidates = int(git(self.folder, "rev-list", "--count", f"{ends[0]}..{ends[1]}"))
        if not candidates:
            raise UsageError(f"there is no commit from {good} to {bad}: give the older, good one first")
        deadline = None if self.seconds_max is None else time.monotonic() + self.seconds_max
        before = git(self.folder, "rev-parse", "--abbrev-ref", "HEAD")
        before = git(self.folder, "rev-parse", "HEAD") if before == "HEAD" else before
        try:
            series, of_good, of_bad = self._ends(*ends)
            with self._started(*ends):
                return self._search(series, {"good": of_good, "bad": of_bad}, candidates, deadline)
        finally:
            git(self.folder, "checkout", "--quiet", before)

    def _ends(self, good: str, bad: str) -> tuple[str, list[float], list[float]]:
        """Measure both ends until a series differs, and return the one that differs most."""
        found: dict[str, list[Figures]] = {}
        for commit in (good, bad):
            git(self.folder, "checkout", "--quiet", commit)
            if not self._built(commit):
                raise UsageError(f"commit {commit[:12]} does not build")
            found[commit] = [self._measured() for _ in range(ENDS_RUNS_MIN)]
        while True:
            series = [name for name in found[good][0] if all(name in it for side in found.values() for it in side)]
            logs = {name: (_logs(found[good], name), _logs(found[bad], name)) for name in series}
            p_values = {name: p for name in series if (p := ends_differ(*logs[name], len(series))) is not None}
            if p_values:
                chosen = min(p_values, key=p_values.__getitem__)
                of_good, of_bad = logs[chosen]
                change = math.expm1(statistics.fmean(of_bad) - statistics.fmean(of_good))
                self.tell(f"{chosen} differs by {change * 100:+.1f} % between {good[:12]} and {bad[:12]}")
                return chosen, of_good, of_bad
            if len(found[bad]) >= RUNS_MAX or not series:
                numbers = " and ".join(str(len(runs)) for runs in found.values())
                raise UsageError(f"{good[:12]} and {bad[:12]} do not differ in {numbers} runs")
            # The build of the bad end is checked out; that of the good end would be another build.
            found[bad].append(self._measured())

    @contextlib.contextmanager
    def _started(self, good: str, bad: str) -> Iterator[None]:
        git(self.folder, "bisect", "start", bad, good)
        try:
            yield
        finally:
            git(self.folder, "bisect", "reset", "HEAD")

    def _search(
        self, series: str, ends: Mapping[Side, list[float]], candidates: int, deadline: float | None
    ) -> Outcome:
        decisions = max(1, math.ceil(math.log2(candidates)))
        judged: list[Judged] = []
        first_bad, left = "", candidates
        if candidates == 1:
            first_bad, left = git(self.folder, "rev-parse", "refs/bisect/bad"), 0
        while not first_bad and not self._spent(deadline):
            commit = git(self.folder, "rev-parse", "HEAD")
            judged.append(self._judge(commit, series, ends, judged, decisions))
            try:
                said = git(self.folder, "bisect", judged[-1].side or "skip")
            except UsageError:  # only skipped commits are left
                break
            match = _FIRST_BAD.search(said)
            first_bad = match[1] if match else ""
            left = (
                len(git(self.folder, "rev-list", "refs/bisect/bad", "--not", "--glob=refs/bisect/good-*").split()) - 1
            )
        return Outcome(
            first_bad,
            0 if first_bad else left,
            series,
            tuple(_settled(judged, ends, decisions)),
            self.builds,
            self.runs,
        )

    def _judge(
        self,
        commit: str,
        series: str,
        ends: Mapping[Side, list[float]],
        judged: list[Judged],
        decisions: int,
    ) -> Judged:
        if not self._built(commit):
            self.tell(f"{commit[:12]} does not build: skipped")
            return Judged(commit, None, ())
        of_good, of_bad = ([*end, *_logs_of(judged, name)] for name, end in ends.items())
        here: list[float] = []
        side: Side | None = None
        while side is None and len(here) < RUNS_MAX:
            figures = self._measured()
            if series not in figures:
                raise UsageError(f"the run of commit {commit[:12]} has no accepted figure of {series}")
            here.append(math.log(figures[series]))
            side = side_of(here, of_good, of_bad, decisions)
        sure = side is not None
        side = side or nearer_side(here, of_good, of_bad)
        self.tell(f"{commit[:12]} is {side}{'' if sure else ' (not certain)'}, {len(here)} runs")
        return Judged(commit, side, tuple(here), sure)

    def _spent(self, deadline: float | None) -> bool:
        late = deadline is not None and time.monotonic() >= deadline
        return late or (self.builds_max is not None and self.builds >= self.builds_max)

    def _built(self, commit: str) -> bool:
        self.builds += 1
        self.tell(f"building {commit[:12]}")
        return self.build()

    def _measured(self) -> Figures:
        self.runs += 1
        return self.measure()


def _logs(runs: list[Figures], series: str) -> list[float]:
    return [math.log(figures[series]) for figures in runs]


def _logs_of(judged: Iterable[Judged], side: Side) -> Iterator[float]:
    """Yield the runs of the commits that are on a side for sure: they make its level more certain."""
    for it in judged:
        if it.side == side and it.sure:
            yield from it.figures


def _settled(judged: list[Judged], ends: Mapping[Side, list[float]], decisions: int) -> Iterator[Judged]:
    """Yield the commits; one that was not decided may be so by what the runs of later ones tell of both levels."""
    for it in judged:
        if not it.sure:
            good, bad = ([*end, *_logs_of(judged, name)] for name, end in ends.items())
            it = replace(it, sure=side_of(it.figures, good, bad, decisions) == it.side)
        yield it
