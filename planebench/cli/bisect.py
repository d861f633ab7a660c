# SPDX-License-Identifier: BSD-3-Clause
"""``planebench bisect``: the commit that changed a figure, by measurement."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from planebench.cli.show import print_json
from planebench.library.history import histories
from planebench.library.lab import add_run
from planebench.metrics.column import plain
from planebench.model.errors import INCONCLUSIVE, StartError, UsageError
from planebench.model.results import Metric
from planebench.plans.budget import parse_budget
from planebench.running.bisection import Bisection, Outcome
from planebench.running.labels import SUBJECT_VARIABLE
from planebench.store.folder import RUNS_VARIABLE, list_runs

RUN_VARIABLE = "PLANEBENCH_BISECT_RUN"


@dataclass
class _Command:
    """A shell command that makes a run, and the folder where the runs and their store are kept."""

    text: str
    repository: Path
    folder: Path
    metric: Metric
    done: int = field(default=0)

    def measure(self) -> Mapping[str, float]:
        """Make a run and return its figures. Raises StartError if the command fails, UsageError without a run."""
        runs = self.folder / "runs"
        before = {info.run_id for info in list_runs(runs)}
        self.done += 1
        own = {RUNS_VARIABLE: str(runs), RUN_VARIABLE: str(self.done), SUBJECT_VARIABLE: str(self.repository)}
        _shell(self.text, self.repository, own)
        made = [info for info in list_runs(runs) if info.run_id not in before]
        if len(made) != 1:
            raise UsageError(f"`{self.text}` made {len(made)} runs in ${RUNS_VARIABLE}; a bisection needs one")
        store = self.folder / "store"
        add_run(store, made[0].path)
        return {
            f"{key.switch} {key.point}": sample.value
            for key, samples in histories(store, self.metric).items()
            for sample in samples
            if sample.run_id == made[0].run_id
        }


def bisect(
    command: str,
    good: str,
    bad: str,
    build: str,
    repository: Path,
    folder: Path,
    metric: Metric,
    builds: int | None,
    time_budget: str | None,
    *,
    json: bool,
    quiet: bool,
) -> int:
    """Print the first commit whose figure is that of ``bad``; return the exit code.

    0: found; INCONCLUSIVE: the budget was spent first, or runs did not decide a commit.
    """
    repository, folder = repository.resolve(), folder.resolve()
    made = _Command(command, repository, folder, metric)

    def built() -> bool:
        try:
            _shell(build, repository, {})
        except StartError:
            return False
        return True

    found = Bisection(
        repository,
        built if build else lambda: True,
        made.measure,
        builds,
        None if time_budget is None else parse_budget(time_budget),
        lambda text: None if quiet else print(text, file=sys.stderr),
    ).find(good, bad)
    if json:
        print_json(plain(found))
    elif not quiet or not found.first_bad:
        print(_words(found))
    return 0 if found.first_bad and found.sure else INCONCLUSIVE


def _words(found: Outcome) -> str:
    spent = f"{found.builds} builds, {found.runs} runs"
    if not found.first_bad:
        return f"the budget is spent: {found.left} commits are left ({spent})"
    sure = (
        ""
        if found.sure
        else "; not certain: runs did not decide " + ", ".join(it.commit[:12] for it in found.judged if not it.sure)
    )
    return f"{found.first_bad} changed {found.series} ({spent}){sure}"


def _shell(text: str, folder: Path, variables: Mapping[str, str]) -> None:
    """Run a command of the user. Raises StartError with the end of what it printed where it fails."""
    done = subprocess.run(
        ["sh", "-c", text],
        cwd=folder,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode not in (0, INCONCLUSIVE):  # 6: a run without an accepted trial, which decides nothing
        raise StartError(f"`{text}` failed with exit code {done.returncode}: {done.stdout[-800:].strip()}")
