# SPDX-License-Identifier: BSD-3-Clause
"""``planebench watch``: a run that goes on, seen from another terminal, without disturbing it (docs/watch.md)."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from planebench.cli.watch_show import JsonLines, Lines, Once, Screen, Show
from planebench.cli.watch_wait import LOOK_S, Changes
from planebench.model.errors import INTERRUPTED, UsageError
from planebench.running.machine import terminable
from planebench.store import default_runs_dir, find_run, list_runs
from planebench.store.folder import FINISHED_FILE, STATUS_FILE
from planebench.store.follow import Follower, Seen
from planebench.store.status import live_runs

ENDED_EARLY = 1
"""Exit code for a run that was killed or interrupted."""
NICE = 19


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """The command line of ``watch``."""

    run: str | None = None
    runs: Path | None = None
    once: bool = False
    wait: bool = False
    json: bool = False


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


def watch(options: WatchOptions) -> int:
    """Show a run until it ends, or once. Exit code: 0; 1 if it was killed or interrupted; 130 after Ctrl-C.

    Raises UsageError where there is no such run, StoreError for a folder that cannot be read.
    """
    try:
        with terminable():
            return _watch(options)
    except KeyboardInterrupt:
        return INTERRUPTED


def _watch(options: WatchOptions) -> int:
    runs_dir = options.runs or default_runs_dir()
    os.setpriority(os.PRIO_PROCESS, 0, NICE)
    folder = _choose(options, runs_dir)
    follower = Follower(folder)
    with Changes(folder) as changes, _show(options) as show:
        seen = _draw(show, follower, cost := _Cost())
        while seen.state == "running" and not options.once:
            changes.wait(seen.status.pid if seen.status else None)
            seen = _draw(show, follower, cost)
    return 0 if seen.state in ("running", "complete") else ENDED_EARLY


def _draw(show: Show, follower: Follower, cost: _Cost) -> Seen:
    seen = follower.look()
    _stay_away(seen)
    show.draw(seen, cost.words())
    return seen


def _stay_away(seen: Seen) -> None:
    """Move to the CPUs of the harness, away from the switch, as far as allowed."""
    if seen.state == "running" and seen.status is not None:
        with contextlib.suppress(OSError, ValueError):
            os.sched_setaffinity(0, seen.status.cpus)


def _choose(options: WatchOptions, runs_dir: Path) -> Path:
    """Return the run that is named; else the newest that goes on; else the newest that did not come to its end."""
    if options.run is not None:
        return find_run(runs_dir, options.run)
    live = live_runs(runs_dir)
    if options.wait and not live:
        return _await_run(runs_dir)
    unfinished = [info.path for info in list_runs(runs_dir) if info.finished is None] if not live else []
    found = [*live, *reversed(unfinished)]
    if not found:
        raise UsageError(
            f"no run in progress in {runs_dir}. Specify a run (`planebench list runs`), give its folder with --runs, "
            "or wait for one with --wait"
        )
    return found[0]


def _await_run(runs_dir: Path) -> Path:
    """Return the next run that begins here, also one that has ended by the time we look."""
    print(f"waiting for a run to start in {runs_dir}", file=sys.stderr, flush=True)
    known = set(_told(runs_dir))
    while not (found := live_runs(runs_dir) or [folder for folder in _told(runs_dir) if folder not in known]):
        time.sleep(LOOK_S)
    return found[0]


def _told(runs_dir: Path) -> list[Path]:
    """Return the folders of runs that have told something of themselves."""
    return [path.parent for name in (STATUS_FILE, FINISHED_FILE) for path in runs_dir.glob(f"*/{name}")]


def _show(options: WatchOptions) -> Show:
    if options.json:
        return JsonLines(indent=1 if options.once else None)
    console = Console(highlight=False)
    if options.once:
        return Once(console)
    drawable = console.is_terminal and not console.is_dumb_terminal and sys.stdout.isatty()
    return Screen(console) if drawable else Lines(console)
