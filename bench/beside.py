# SPDX-License-Identifier: BSD-3-Clause
"""Are the answers of planebench right beside other programs? README's comparison on a machine that is not quiet.

    sudo .venv/bin/python bench/beside.py [--settings a-root-0,e-user-1] [--times 3] [--budget 90s]
    sudo .venv/bin/python bench/beside.py --aa 20
    sudo .venv/bin/python bench/beside.py --gate 20
    .venv/bin/python bench/beside.py --report [--json]

A setting is a load (a to e, see LOADS), who measures (root, or an ordinary user), and kernel.sched_autogroup_enabled;
the load and the command that measures have a session each, which is what autogroup groups by. ``quick-`` before it:
the suite quick instead of README's comparison. ``--aa``: runs of quick with one switch entered twice. ``--gate``: runs
of the suite regression, in turns beside nothing and beside a program of 4 ms in 10 ms. Each run has a folder of its
own under ``--folder``; what is there is not measured again. ``--report`` measures nothing.

The reference of a run is the pool of all other runs beside nothing, of the same plan. The two cores of a virtual
machine are near each other or far, for minutes, which changes rates by half, and the luck of a run is no merit of it.
So each block of the run (a start of a switch) is given the quiet figure of its test point at its own core distance, the
geometric mean over the quiet runs, or the mean of all distances where the distance changed within the block; and the
library pairs and averages these blocks as it does with the measured ones. The error of a reference is that between
quiet runs, by leaving out one at a time (jackknife). A distance that fewer than two quiet runs have at a test point is
no reference; what has none is counted as unknown.

Columns of the table, over all runs of a setting:

    bounds    pairs of switches at a test point of which the tester limits both in most quiet runs: nothing is decided
    decided   of the others whose quiet ratio is 1.2 or more, those called different, rightly
    wrong     of the same, those called different in the wrong direction, or the same
    covered   95 % intervals of ratios that hold the quiet one, with the error of both
    width     median of high / low - 1 of these intervals
    figures   absolute figures whose interval holds the quiet one, or that are marked: the host kept the pollers from
              their CPUs for more than 2 % of the time; and how many of all are marked
    time      what measuring took beyond (or below) what was said before it, calibration and report apart
    report    seconds from the last trial to the end of the command

Exit code 1 if a bar is missed, or a run.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args

from planebench.analysis.compare import Derived
from planebench.analysis.counting import cell_id, saturating
from planebench.analysis.noise import Estimate
from planebench.analysis.starts import Block, Blocks, by_start, paired, throughput_blocks
from planebench.model.errors import INTERRUPTED
from planebench.model.header import Run
from planebench.model.records import Point
from planebench.model.results import Comparison
from planebench.model.text import seconds_since_epoch
from planebench.model.time_had import STOOD_SHARE
from planebench.store import read_run

ROOT = Path(__file__).resolve().parent.parent
PLANEBENCH = Path(sys.executable).parent / "planebench"
AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")
DONE, LOG = "done.json", "log"

Who = Literal["root", "user"]
Log = float
"""The logarithm of a rate or a ratio."""

DUTY = """
import time
while True:
    end = time.perf_counter() + 0.004
    while time.perf_counter() < end:
        pass
    time.sleep(0.006)
"""
BUSY = ("sh", "-c", "while :; do :; done")
COMPILE = ("sh", "-c", "while find . -name '*.o' -delete && ninja -j2; do :; done")
LOADS: Mapping[str, tuple[str, tuple[tuple[str, ...], ...]]] = {
    "a": ("nothing", ()),
    "b": ("a program of 4 ms in 10 ms", ((sys.executable, "-c", DUTY),)),
    "c": ("one busy loop", (BUSY,)),
    "d": ("two busy loops", (BUSY, BUSY)),
    "e": ("a compile with -j2", (COMPILE,)),
}
PLANS: Mapping[str, tuple[str, ...]] = {
    "": ("--switch", "ovs-dpdk,testpmd,planed", "--scenario", "p2p,v2v"),
    "quick": ("quick",),
    "aa": ("quick", "--switch", "one=planed,other=planed"),
    "gate": ("regression", "--switch", "planed"),
}
BUDGET = "90s"
"""Time budget of README's comparison."""
SETTLE_S = 1.0
END_WITHIN_S = 30.0

QUIET_MIN = 5
"""Runs that a reference is the pool of."""
RATIO_MIN = math.log(1.2)
DECIDED_MIN, COVERED_MIN, FIGURES_MIN = 0.98, 0.93, 0.90
TIME_MAX, REPORT_MAX_S = 0.10, 15.0
AA_MAX = 0.10
"""Of runs of a switch with itself, those that may find a difference."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What is measured, beside what, by whom. ``plan``: a key of PLANS; ``load``: of LOADS."""

    plan: str
    load: str
    who: Who
    autogroup: int

    @property
    def name(self) -> str:
        """Return ``a-root-0``, ``quick-e-user-1``."""
        return "-".join(filter(None, (self.plan, self.load, self.who, str(self.autogroup))))

    @property
    def width_max(self) -> float:
        """Return the bar of the width of its intervals."""
        return 0.05 if self.load == "a" else 0.10 if self.who == "root" else 0.15


Job = tuple[Setting, int]
"""A run: its setting, and which of its runs it is, from 1."""

WHO: tuple[Who, ...] = ("root", "user")
SETTINGS = tuple(
    [Setting("", load, who, autogroup) for who in WHO for autogroup in (0, 1) for load in LOADS]
    + [Setting("quick", load, "user", 1) for load in "ace"]
)
AA, GATE = Setting("aa", "a", "root", 1), tuple(Setting("gate", load, "root", 1) for load in "ab")
BY_NAME = {setting.name: setting for setting in (*SETTINGS, AA, *GATE)}


def schedule(settings: Sequence[Setting], times: int) -> list[Job]:
    """Return the runs in turns, so that drift of the machine hits all settings alike, with enough quiet ones between.

    Where fewer than QUIET_MIN runs of a plan are beside nothing, more of them are spread evenly.
    """
    jobs = [(setting, number) for number in range(1, times + 1) for setting in settings]
    for plan in dict.fromkeys(setting.plan for setting in settings):
        missing = QUIET_MIN - sum(setting.plan == plan and setting.load == "a" for setting, _ in jobs)
        quiet = next((it for it in settings if it.plan == plan and it.load == "a"), Setting(plan, "a", "user", 1))
        first = 1 + sum(setting == quiet for setting, _ in jobs)
        places = [index for index, (setting, _) in enumerate(jobs) if setting.plan == plan]
        for extra in reversed(range(max(missing, 0))):
            jobs.insert(places[(2 * extra + 1) * len(places) // (2 * missing)], (quiet, first + extra))
    return jobs


def in_turns(runs: int) -> list[Job]:
    """Return the runs of the gate, beside nothing and beside a load in turns."""
    return [(GATE[index % 2], index // 2 + 1) for index in range(runs)]


def folder_of(job: Job, folder: Path) -> Path:
    """Return where a run is stored."""
    return folder / f"{job[0].name}.{job[1]}"


def there(folder: Path) -> list[Job]:
    """Return the runs that are there."""
    found = (path.parent.name.rpartition(".") for path in sorted(folder.glob(f"*/{DONE}")))
    return [(BY_NAME[name], int(number)) for name, _, number in found if name in BY_NAME]


def to_measure(jobs: Sequence[Job], folder: Path) -> list[Job]:
    """Return the runs that are not there yet."""
    have = there(folder)
    return [job for job in jobs if job not in have]


class Machine:
    """Measures runs. ``uid``: of the ordinary user, who runs the loads too. ``scratch`` is theirs as well."""

    def __init__(self, folder: Path, scratch: Path, uid: int, budget: str | None) -> None:
        self._folder, self._scratch, self._uid, self._budget = folder, scratch, uid, budget
        self._build: Path | None = None
        scratch.chmod(0o755)
        for who in WHO:
            (scratch / who).mkdir()
        os.chown(scratch / "user", uid, uid)

    def measure(self, job: Job) -> None:
        """Measure one run and note that it is there. Ends the program where planebench or a load failed."""
        setting, _ = job
        folder = folder_of(job, self._folder)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if setting.who == "user":
            os.chown(folder, self._uid, self._uid)
        budget = self._budget or ("" if setting.plan else BUDGET)
        limit = ("--time-budget", budget) if budget else ()
        command = (str(PLANEBENCH), "run", *PLANS[setting.plan], *limit, "--runs", str(folder))
        log, load_log = folder / LOG, folder / "load.log"
        with autogroup(setting.autogroup), ExitStack() as stack:
            loads = [stack.enter_context(self._started(it, "user", load_log, "KILL")) for it in LOADS[setting.load][1]]
            time.sleep(SETTLE_S)
            code = stack.enter_context(self._started(command, setting.who, log)).wait()
            ended_s = time.time()
            if any(load.poll() is not None for load in loads):
                _stop(f"the load of {setting.name} ended by itself: see {load_log}")
        if stored_run(folder) is None:
            _stop(f"{setting.name}: planebench ended with exit code {code} and stored no run: see {log}")
        (folder / DONE).write_text(json.dumps({"exit_code": code, "ended_s": ended_s}) + "\n")

    @contextmanager
    def _started(
        self, command: Sequence[str], who: Who, log: Path, dies_by: str = "TERM"
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Run a command in a session of its own. ``dies_by``: the signal that it gets should this program be killed."""
        where = self._compiled() if command is COMPILE else self._scratch / who
        with log.open("ab") as told:
            process = subprocess.Popen(
                [*self._becoming(who), "--pdeathsig", dies_by, *command],
                cwd=where,
                env=self._environment(who),
                stdin=subprocess.DEVNULL,
                stdout=told,
                stderr=told,
                start_new_session=True,
            )
        try:
            yield process
        finally:
            _end(process)

    def _becoming(self, who: Who) -> tuple[str, ...]:
        ids = (f"--reuid={self._uid}", f"--regid={self._uid}", "--clear-groups") if who == "user" else ()
        return ("setpriv", *ids)

    def _environment(self, who: Who) -> dict[str, str]:
        theirs = ("XDG_", "SUDO_", "USER", "LOGNAME", "CCACHE_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(theirs)}
        programs = f"{PLANEBENCH.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        return {**kept, "HOME": str(self._scratch / who), "PATH": programs, "CCACHE_DISABLE": "1"}

    def _compiled(self) -> Path:
        """Return the build folder of the load that compiles: of a copy of what is committed."""
        if self._build is None:
            source, archive = self._scratch / "user" / "source", self._scratch / "source.tar"
            git = ("git", "-c", "safe.directory=*", "-C", ROOT, "archive", "-o", archive, "HEAD")
            subprocess.run(git, check=True)
            source.mkdir()
            os.chown(source, self._uid, self._uid)
            for command in (("tar", "-xf", archive), ("meson", "setup", "build", "-Dbuildtype=release")):
                made = subprocess.run(
                    (*self._becoming("user"), *command),
                    cwd=source,
                    env=self._environment("user"),
                    capture_output=True,
                    text=True,
                    check=False,
                )
                if made.returncode:
                    _stop(f"the load of a compile cannot be set up:\n{made.stdout}{made.stderr}")
            self._build = source / "build"
        return self._build


@contextmanager
def autogroup(value: int) -> Iterator[None]:
    """Set kernel.sched_autogroup_enabled, and restore it."""
    before = AUTOGROUP.read_text()
    AUTOGROUP.write_text(f"{value}\n")
    try:
        yield
    finally:
        AUTOGROUP.write_text(before)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a session: its process group in order, then whatever is left of it, as compilers in groups of their own."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_WITHIN_S)
    for pid in (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()):
        with suppress(ProcessLookupError):
            if os.getsid(pid) == process.pid:
                os.kill(pid, signal.SIGKILL)
    process.wait()


def _stop(why: str) -> NoReturn:
    print(why, file=sys.stderr)
    raise SystemExit(1)


@dataclass(frozen=True, slots=True)
class Ended:
    """How the command of a run ended, and what it took. ``said_s``: shortest and longest; None if nothing was said."""

    exit_code: int
    measuring_s: float
    report_s: float
    said_s: tuple[float, float] | None

    @property
    def deviation(self) -> float | None:
        """Return what measuring took beyond the longest that was said, as a share; below 0: below the shortest."""
        if self.said_s is None:
            return None
        shortest_s, longest_s = self.said_s
        if self.measuring_s > longest_s:
            return self.measuring_s / longest_s - 1 if longest_s > 0 else math.inf
        return min(self.measuring_s / shortest_s - 1, 0.0) if shortest_s > 0 else 0.0


@dataclass(frozen=True)
class Stored:
    """A run as it is evaluated. ``blocks``: the throughput of each test point by start."""

    name: str
    derived: Derived
    blocks: Mapping[Point, Blocks]
    ended: Ended


def stored_run(folder: Path) -> Path | None:
    """Return the folder of the run within a folder of this bench."""
    return next((path.parent for path in folder.glob("*/run.json")), None)


def read(job: Job, folder: Path) -> Stored:
    """Return a run that was measured."""
    mine = folder_of(job, folder)
    found = stored_run(mine)
    if found is None:
        _stop(f"{mine} has no run: delete it, and it is measured again")
    done, run = json.loads((mine / DONE).read_text()), read_run(found)
    finished_s = seconds_since_epoch(run.finished.finished_at) if run.finished else done["ended_s"]
    measuring_s = finished_s - seconds_since_epoch(run.header.started_at)
    said_s = said((mine / LOG).read_text(errors="replace"))
    ended = Ended(done["exit_code"], measuring_s, done["ended_s"] - finished_s, said_s)
    return Stored(mine.name, Derived(run), blocks_of_run(run), ended)


def said(log: str) -> tuple[float, float] | None:
    """Return the seconds of measuring that planebench says before a run: the shortest, and with further passes."""
    seconds = {"s": 1.0, "minutes": 60.0, "hours": 3600.0}
    length = rf"([\d.]+)\s({'|'.join(seconds)})"
    found = re.search(rf"trials, about {length} of measuring(?:, at most {length})?", " ".join(log.split()))
    if found is None:
        return None
    lengths = [float(number) * seconds[unit] for number, unit in (found.group(1, 2), found.group(3, 4)) if unit]
    return lengths[0], lengths[-1]


def blocks_of_run(run: Run) -> dict[Point, Blocks]:
    """Return the throughput of each test point by start, as the library compares it."""
    found = {point: throughput_blocks(saturating(trials).trials) for point, trials in run.by_point().items()}
    return {point: blocks for point, blocks in found.items() if blocks}


Levels = Mapping[Point, Mapping[str, tuple[Log, int]]]
"""Of each test point by core distance: the mean over the quiet runs, and how many have it."""
NOWHERE: Blocks = (Block(0, 0, 0.0),)
"""The blocks of a point that a run has not: at a distance that is not known."""


class Reference:
    """What a run would have found beside nothing, at its own core distances (see above)."""

    def __init__(self, runs: Sequence[Mapping[Point, Blocks]]) -> None:
        self.points = tuple(dict.fromkeys(point for run in runs for point in run))
        self._all = _levels(runs)
        self._without_one = [_levels([*runs[:at], *runs[at + 1 :]]) for at in range(len(runs))]

    def figure(self, point: Point, blocks: Mapping[Point, Blocks]) -> Estimate | None:
        """Return the logarithm of the quiet throughput; None where the distances of the run are no reference."""
        return self._estimate((point,), blocks, lambda own: statistics.fmean(by_start(own[0])))

    def ratio(self, a: Point, b: Point, blocks: Mapping[Point, Blocks]) -> Estimate | None:
        """Return the logarithm of the quiet ratio b / a, by the pairs of blocks that the library compares.

        Of a switch that the run has not, it is that of all distances.
        """
        return self._estimate((a, b), blocks if a in blocks and b in blocks else {}, _ratio)

    def _estimate(
        self, points: Sequence[Point], blocks: Mapping[Point, Blocks], figure: Callable[[list[Blocks]], Log]
    ) -> Estimate | None:
        def of(levels: Levels) -> Log | None:
            quiet = [_quiet(levels.get(point, {}), blocks.get(point, NOWHERE)) for point in points]
            known = [it for it in quiet if it is not None]
            return figure(known) if len(known) == len(quiet) else None

        mean, parts = of(self._all), [part for part in map(of, self._without_one) if part is not None]
        if mean is None or len(parts) < len(self._without_one):
            return None
        least = min(_runs_behind(self._all[point], blocks.get(point, NOWHERE)) for point in points)
        error = math.sqrt((len(parts) - 1) * statistics.pvariance(parts))
        return Estimate(mean, error, least - 1, len(parts)) if least > 1 else None


def _levels(runs: Sequence[Mapping[Point, Blocks]]) -> Levels:
    found: dict[Point, dict[str, list[Log]]] = {}
    for run in runs:
        for point, blocks in run.items():
            by_band: dict[str, list[Log]] = {}
            for block in blocks:
                if block.band is not None:
                    by_band.setdefault(block.band, []).append(block.log)
            for band, logs in by_band.items():
                found.setdefault(point, {}).setdefault(band, []).append(statistics.fmean(logs))
    return {
        point: {band: (statistics.fmean(logs), len(logs)) for band, logs in bands.items()}
        for point, bands in found.items()
    }


def _quiet(levels: Mapping[str, tuple[Log, int]], blocks: Blocks) -> Blocks | None:
    """Return the blocks with the quiet figures of their distances; None where one of them is not known."""
    if not levels or any(block.band not in (None, *levels) for block in blocks):
        return None
    middle = statistics.fmean(log for log, _ in levels.values())
    return tuple(replace(it, log=middle if it.band is None else levels[it.band][0]) for it in blocks)


def _runs_behind(levels: Mapping[str, tuple[Log, int]], blocks: Blocks) -> int:
    """Return how many quiet runs the rarest of the distances has."""
    bands = {block.band for block in blocks}
    return min(count for band, (_, count) in levels.items() if band in bands or None in bands)


def _ratio(sides: Sequence[Blocks]) -> Log:
    a, b = sides
    return statistics.fmean(paired(a, b) or [statistics.fmean(by_start(b)) - statistics.fmean(by_start(a))])


Count = Literal[
    "unknown", "bounds", "eligible", "decided", "wrong", "intervals", "covered", "figures", "figures_right", "marked"
]


@dataclass(frozen=True, slots=True)
class Row:
    """A setting against its bars: counts over all of its runs. ``missed``: names of columns, empty if none is."""

    setting: str
    runs: int
    wanted: int
    counts: Mapping[Count, int]
    width: float | None
    time: float | None
    report_s: float
    exit_codes: tuple[int, ...]
    missed: tuple[str, ...] = ()


def holds(low: float | None, mean: Log, high: float | None, quiet: Estimate) -> bool:
    """Return whether the interval of a figure holds the quiet one, with the errors of both. None: an open end."""
    error = quiet.half_width()
    below = math.inf if low is None else math.hypot(mean - math.log(low), error)
    above = math.inf if high is None else math.hypot(math.log(high) - mean, error)
    return mean - below <= quiet.mean <= mean + above


def _agrees(found: Comparison, quiet: Estimate) -> bool:
    return (found.ratio > 1) == (quiet.mean > 0)


def _both_bounds(a: Point, b: Point, quiet: Sequence[Stored]) -> bool:
    """Return whether the tester limited both switches in most quiet runs: which is faster cannot be known then."""

    def limited(run: Stored) -> bool:
        bound = {it.point for it in run.derived.results if it.verdict.kind.is_bound}
        return a in bound and b in bound

    return 2 * sum(map(limited, quiet)) > len(quiet)


def evaluate(setting: Setting, runs: Sequence[Stored], wanted: int, quiet: Sequence[Stored]) -> Row:
    """Return the figures of a setting. ``quiet``: the runs of the reference; a run is no part of its own."""
    counts: Counter[Count] = Counter(dict.fromkeys(get_args(Count), 0))
    widths: list[float] = []
    for run in runs:
        reference = Reference([it.blocks for it in quiet if it.name != run.name])
        compared = {(it.point, it.a, it.b): it for it in run.derived.comparisons if it.metric == "throughput"}
        for a, b in combinations(reference.points, 2):
            cell = cell_id(a)
            if cell != cell_id(b):
                continue
            found, (first, second) = compared.get((cell, a.switch, b.switch)), (a, b)
            if found is None and (found := compared.get((cell, b.switch, a.switch))) is not None:
                first, second = b, a
            expected = reference.ratio(first, second, run.blocks)
            if expected is None:
                counts["unknown"] += 1
                continue
            if _both_bounds(a, b, quiet):
                counts["bounds"] += 1
            elif abs(expected.mean) >= RATIO_MIN:
                different = found is not None and found.distinguishable
                right = found is not None and _agrees(found, expected)
                counts["eligible"] += 1
                counts["decided"] += different and right
                counts["wrong"] += found is not None and (found.answer == "same" or (different and not right))
            if found is not None and (found.low is not None or found.high is not None):
                counts["intervals"] += 1
                counts["covered"] += holds(found.low, math.log(found.ratio), found.high, expected)
                if found.low is not None and found.high is not None:
                    widths.append(found.high / found.low - 1)
        for result in run.derived.results:
            level = reference.figure(result.point, run.blocks) if result.point in run.blocks else None
            if level is None or result.throughput_pps is None:
                continue
            low, high = result.throughput_low_pps, result.throughput_high_pps
            lowered = result.stood_share > STOOD_SHARE
            right = low is not None and holds(low, math.log(result.throughput_pps), high, level)
            counts["figures"] += 1
            counts["figures_right"] += right or lowered
            counts["marked"] += lowered
    deviations = [it.ended.deviation for it in runs]
    known = [it for it in deviations if it is not None]
    row = Row(
        setting=setting.name,
        runs=len(runs),
        wanted=wanted,
        counts=dict(counts),
        width=statistics.median(widths) if widths else None,
        time=max(known, key=abs) if known and len(known) == len(deviations) else None,
        report_s=max((it.ended.report_s for it in runs), default=0.0),
        exit_codes=tuple(sorted({it.ended.exit_code for it in runs})),
    )
    return replace(row, missed=tuple(_missed(row, setting)) if runs else ("runs",))


def _missed(row: Row, setting: Setting) -> Iterator[str]:
    count = row.counts
    bars = {
        "runs": row.runs >= row.wanted,
        "decided": count["eligible"] > 0 and count["decided"] >= DECIDED_MIN * count["eligible"],
        "wrong": count["wrong"] == 0,
        "covered": count["intervals"] > 0 and count["covered"] >= COVERED_MIN * count["intervals"],
        "figures": count["figures"] > 0 and count["figures_right"] >= FIGURES_MIN * count["figures"],
        "width": row.width is not None and row.width <= setting.width_max,
        "time": row.time is not None and abs(row.time) <= TIME_MAX,
        "report": row.report_s <= REPORT_MAX_S,
        "exit code": set(row.exit_codes) <= {0},
    }
    return (name for name, met in bars.items() if not met)


def of_several_builds(runs: Iterable[Stored]) -> list[str]:
    """Return the switches that are not of one build in all runs: those are no runs of one series."""
    switches = {(it.label, it.version, repr(it.build)) for run in runs for it in run.derived.run.header.switches}
    builds = Counter(label for label, *_ in switches)
    return [label for label, count in sorted(builds.items()) if count > 1]


def _refuse_mixed(runs: Iterable[Stored], folder: Path) -> None:
    if mixed := of_several_builds(runs):
        _stop(f"{folder} has runs of several builds of {', '.join(mixed)}: give another --folder")


@dataclass(frozen=True, slots=True)
class Pool:
    """The quiet runs of a plan: how many, and what a reference is worth: its median error, as a share of the ratio."""

    plan: str
    runs: int
    error: float | None


def pool_of(plan: str, quiet: Sequence[Stored]) -> Pool:
    """Return what the quiet runs of a plan are worth."""
    reference = Reference([it.blocks for it in quiet])
    pairs = [pair for pair in combinations(reference.points, 2) if cell_id(pair[0]) == cell_id(pair[1])]
    found = [reference.ratio(a, b, run.blocks) for run in quiet for a, b in pairs]
    errors = [it.half_width() for it in found if it is not None]
    return Pool(plan or "README", len(quiet), statistics.median(errors) if errors else None)


@dataclass(frozen=True, slots=True)
class SameTwice:
    """A run of a switch with itself. ``farthest``: the ratio farthest from 1."""

    name: str
    answers: Mapping[str, int]
    farthest: float
    different: tuple[str, ...]


def same_twice(run: Stored) -> SameTwice:
    """Return what a run of a switch with itself found."""
    compared = run.derived.comparisons
    return SameTwice(
        run.name,
        dict(sorted(Counter(it.answer for it in compared).items())),
        max((it.ratio for it in compared), key=lambda ratio: max(ratio, 1 / ratio), default=1.0),
        tuple(f"{it.point} {it.metric} {it.load}".strip() for it in compared if it.distinguishable),
    )


@dataclass(frozen=True, slots=True)
class RunNoise:
    """How the runs of the gate differ beside a load: standard deviations of the logarithm of a run's rate.

    ``over_points``: the root of the mean square over the test points; ``worst``: the largest. ``at_distance``: as
    ``over_points``, without what core distances explain.
    """

    beside: str
    runs: int
    over_points: float
    worst: float
    at_distance: float


def run_noise(beside: str, runs: Sequence[Mapping[Point, Blocks]]) -> RunNoise | None:
    """Return the noise between runs; None for fewer than two."""
    if len(runs) < 2:
        return None
    levels = _levels(runs)
    plain, explained = [], []
    for point in dict.fromkeys(point for run in runs for point in run):
        rates = [statistics.fmean(by_start(run[point])) for run in runs if point in run]
        quiet = [_quiet(levels.get(point, {}), run[point]) for run in runs if point in run]
        left = [rate - statistics.fmean(by_start(it)) for rate, it in zip(rates, quiet, strict=True) if it]
        plain += [statistics.stdev(rates)] if len(rates) > 1 else []
        explained += [statistics.stdev(left)] if len(left) > 1 else []
    of_all, of_left = (math.sqrt(statistics.fmean(it * it for it in found)) for found in (plain, explained or plain))
    return RunNoise(beside, len(runs), of_all, max(plain), of_left)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is wanted, evaluate what is there."""
    given = _arguments(arguments)
    wanted_aa, wanted_gate = [(AA, number + 1) for number in range(given.aa)], in_turns(given.gate)
    of_settings = [] if given.aa or given.gate else schedule(given.settings, given.times)
    jobs = [*of_settings, *wanted_aa, *wanted_gate]
    if not given.report:
        try:
            _measure(jobs, given)
        except KeyboardInterrupt:
            print("interrupted; what is measured is kept, and the same command goes on", file=sys.stderr)
            return INTERRUPTED
    plans = {setting.plan for setting, _ in jobs}
    stored = {job: read(job, given.folder) for job in there(given.folder) if job[0].plan in plans}
    if not stored:
        print(f"{given.folder} has none of these runs", file=sys.stderr)
        return 2
    _refuse_mixed(stored.values(), given.folder)
    found: dict[str, Any] = {}
    failed = False
    if of_settings:
        quiet = {
            plan: [it for job, it in stored.items() if job[0].plan == plan and job[0].load == "a"] for plan in plans
        }
        pools = [pool_of(plan, quiet[plan]) for plan in sorted(plans)]
        rows = [
            evaluate(it, [run for job, run in stored.items() if job[0] == it], given.times, quiet[it.plan])
            for it in given.settings
        ]
        failed |= any(pool.runs < QUIET_MIN for pool in pools) or any(row.missed for row in rows)
        found |= {"references": pools, "settings": rows}
    if wanted_aa:
        same = [same_twice(run) for job, run in stored.items() if job[0] == AA]
        failed |= len(same) < given.aa or sum(bool(it.different) for it in same) > AA_MAX * len(same)
        found |= {"same_twice": same}
    if wanted_gate:
        noises = [
            run_noise(LOADS[it.load][0], [run.blocks for job, run in stored.items() if job[0] == it]) for it in GATE
        ]
        failed |= any(job not in stored for job in wanted_gate)
        found |= {"gate": [it for it in noises if it is not None]}
    if given.json:
        print(json.dumps({key: list(map(asdict, rows)) for key, rows in found.items()}, indent=2))
    else:
        _print(found)
    return int(failed)


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--settings", help=f"some of {', '.join(it.name for it in SETTINGS)}; default: all")
    parser.add_argument("--times", type=int, default=3, help="runs of each setting (3)")
    parser.add_argument("--budget", help="time budget of every run, instead of that of its plan")
    parser.add_argument("--aa", type=int, default=0, metavar="N", help="N runs of one switch with itself alone")
    parser.add_argument("--gate", type=int, default=0, metavar="N", help="N runs of the suite regression alone")
    parser.add_argument("--report", action="store_true", help="measure nothing")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "beside", help="of the runs (build/beside)")
    parser.add_argument("--uid", type=int, default=65534, help="the ordinary user: an uid and gid (65534)")
    given = parser.parse_args(arguments)
    valid = [setting.name for setting in SETTINGS]
    names = valid if given.settings is None else given.settings.split(",")
    if unknown := [name for name in names if name not in valid]:
        parser.error(f"no settings {', '.join(unknown)}. Valid: {', '.join(valid)}")
    if given.times < 1 or given.aa < 0 or given.gate < 0:
        parser.error("--times is at least 1, --aa and --gate are not below 0")
    if not given.report and os.geteuid():
        parser.error("measuring as root and as a user needs root; --report does not")
    given.settings = [BY_NAME[name] for name in dict.fromkeys(names)]
    given.folder = given.folder.resolve()
    return given


def _measure(jobs: Sequence[Job], given: argparse.Namespace) -> None:
    left = to_measure(jobs, given.folder)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda signum, _: sys.exit(128 + signum))
    with tempfile.TemporaryDirectory(prefix="beside-", ignore_cleanup_errors=True) as scratch:
        machine = Machine(given.folder, Path(scratch), given.uid, given.budget)
        for count, job in enumerate(left, start=1):
            print(f"{count} of {len(left)}: {job[0].name}, run {job[1]}", file=sys.stderr, flush=True)
            machine.measure(job)
            if count == 1:  # not after hours
                _refuse_mixed((read(it, given.folder) for it in there(given.folder)), given.folder)


def _print(found: Mapping[str, Any]) -> None:
    for pool in found.get("references", ()):
        error = "unknown" if pool.error is None else f"{pool.error:.1%}"
        few = "" if pool.runs >= QUIET_MIN else f" (MISSED: {QUIET_MIN} are the least)"
        print(f"reference of {pool.plan}: {pool.runs} quiet runs{few}; a ratio is known to within {error} (median)")
    if "settings" in found:
        print(f"\n{'setting':17}{'runs':>5}{'unknown':>9}{'bounds':>8}{'decided':>9}{'wrong':>7}", end="")
        print(f"{'covered':>11}{'width':>8}{'figures (marked)':>19}{'time':>7}{'report':>8}  exit  missed")
    for row in found.get("settings", ()):
        width = "-" if row.width is None else f"{row.width:.1%}"
        took = "-" if row.time is None else f"{row.time:+.0%}"
        count = row.counts
        decided, covered = f"{count['decided']}/{count['eligible']}", f"{count['covered']}/{count['intervals']}"
        figures = f"{count['figures_right']}/{count['figures']} ({count['marked']})"
        print(
            f"{row.setting:17}{row.runs:5}{count['unknown']:9}{count['bounds']:8}{decided:>9}{count['wrong']:7}{covered:>11}{width:>8}"
            f"{figures:>19}{took:>7}{row.report_s:6.0f} s  {','.join(map(str, row.exit_codes)):4}  "
            f"{', '.join(row.missed) or '-'}"
        )
    for it in found.get("same_twice", ()):
        answers = ", ".join(f"{count} {answer}" for answer, count in it.answers.items())
        print(f"{it.name}: {answers}; farthest ratio {it.farthest:.3f}{''.join(f'; {one}' for one in it.different)}")
    if same := found.get("same_twice", ()):
        print(f"{sum(bool(it.different) for it in same)} of {len(same)} runs find a difference of a switch to itself")
    for it in found.get("gate", ()):
        print(
            f"regression beside {it.beside}, {it.runs} runs: rates of a run vary by {it.over_points:.1%} (worst test "
            f"point {it.worst:.1%}), at like core distances by {it.at_distance:.1%}"
        )


if __name__ == "__main__":
    sys.exit(main())
