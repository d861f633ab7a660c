# SPDX-License-Identifier: BSD-3-Clause
"""Whole runs of simulated switches: what the conclusions of planebench come to, with plan, campaign, store, comparison.

Used by bench/conclusions.py. Each function returns figures over ``runs`` seeded runs.
"""

from __future__ import annotations

import math
import statistics
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import planebench
from planebench.analysis.compare import Derived, switches_compared
from planebench.analysis.gate import judge
from planebench.store import read_run

START_NOISE = "noise=0.3%:start_noise=2%"
GATE_LIMIT = 0.97
SLOW, SLOW_SHARE = 0.9, 0.5
"""Capacity of a slow start, and how many starts are slow."""
MODES = f"modes={SLOW}:mode_share={SLOW_SHARE}"


@dataclass(frozen=True, slots=True)
class Bar:
    """A figure and the bar that it has to meet."""

    name: str
    value: float
    low: float = -math.inf
    high: float = math.inf

    @property
    def met(self) -> bool:
        """Return whether the figure meets its bar."""
        return self.low <= self.value <= self.high


def simulate(plan: str, seed: int, switches: str, **options: Any) -> Derived:
    """Return a run of the plan on simulated switches, with everything derived from it."""
    with tempfile.TemporaryDirectory() as folder:
        planebench.run(plan, runs_dir=folder, switch=switches, seed=seed, calibrate=False, **options)
        return Derived(read_run(next(Path(folder).iterdir())))


def each_seed(work: Callable[[int], Any], runs: int) -> list[Any]:
    """Return what ``work`` returns for each seed, on all CPUs."""
    with ProcessPoolExecutor() as pool:
        return list(pool.map(work, range(1, runs + 1)))


def power(runs: int) -> list[Bar]:
    """Return how often quick decides a true ratio of 1.05 and 1.2, with a start noise of 2 %."""
    found: dict[float, list[bool]] = {1.05: [], 1.2: []}
    for cells_of in each_seed(decided, runs):
        for true, cells in cells_of.items():
            found[true] += cells
    return [
        Bar("quick: ratio 1.05 decided", statistics.fmean(found[1.05]), low=0.80),
        Bar("quick: ratio 1.2 decided", statistics.fmean(found[1.2]), low=0.99),
    ]


def decided(seed: int) -> dict[float, list[bool]]:
    """Return for each true ratio whether quick found the faster switch, by cell."""
    rates = {"a": 1.0, "b": 1.05, "c": 1.2}
    derived = simulate("quick", seed, _switches(rates), loads="none")
    outcome = switches_compared(derived)
    throughput = [c for c in outcome.comparisons if c.metric == "throughput" and c.a == "a"]
    return {rates[b]: [c.distinguishable and c.ratio > 1 for c in throughput if c.b == b] for b in ("b", "c")}


def _switches(ratios: Mapping[str, float]) -> str:
    """Return simulated switches with these names and capacities, which differ from start to start."""
    return ",".join(f"sim:name={name}:capacity={10e6 * ratio:.0f}:{START_NOISE}" for name, ratio in ratios.items())


def gate(runs: int) -> list[Bar]:
    """Return how often the gate passes an unchanged switch, and stops one that is 5 % slower; regression suite."""
    same, slower = (each_seed(partial(judged, new_ratio=ratio), runs) for ratio in (1.0, 0.95))
    low = 0.95 - 2 * math.sqrt(0.95 * 0.05 / runs)  # what chance leaves of 95 % in so many runs
    return [
        Bar("gate: an unchanged switch passes, all cells", statistics.fmean(k == {"passes"} for k in same), low=low),
        Bar("gate: 5 % slower is stopped", statistics.fmean("fails" in kinds for kinds in slower), low=0.80),
    ]


def judged(seed: int, new_ratio: float) -> set[str]:
    """Return the kinds of the judgements of the gate on a switch with this ratio to its baseline."""
    derived = simulate("regression", seed, _switches({"old": 1.0, "new": new_ratio}), rates="none")
    judgements = judge(switches_compared(derived), GATE_LIMIT, baseline="old", metric="throughput")
    return {judgement.kind for judgement in judgements}


def many_equal(runs: int) -> list[Bar]:
    """Return in how many runs of conext19 with nine equal switches any comparison differs, and how many do in all.

    Few runs, many comparisons: those of a pair on a topology share their starts, so they are wrong together.
    """
    found, of_runs = each_seed(false_differences, runs), f"of {runs} runs of conext19 with nine equal switches"
    return [
        Bar(f"with a false difference, {of_runs}", sum(map(bool, found)), high=max(1, runs / 20)),
        Bar(f"false differences in all, {of_runs}", sum(found)),
    ]


def false_differences(seed: int, plan: str = "conext19") -> int:
    """Return how many comparisons of nine equal switches end "different"."""
    equal = {f"s{number}": 1.0 for number in range(9)}
    derived = simulate(plan, seed, _switches(equal), loads="none")
    return sum(c.distinguishable for c in switches_compared(derived).comparisons)


def selection(runs: int) -> list[Bar]:
    """Return the bias of R+ where the trials of slow starts are disturbed more often than others, or some of all."""
    bars = []
    for words, keys, true in (
        *(
            (f"{share} % of the trials of slow starts", f"{MODES}:mode_disturbed={share}%", SLOW_SHARE * math.log(SLOW))
            for share in (30, 70)
        ),
        ("30 % of all trials", "disturbed_share=30%", 0.0),
    ):
        bias = math.expm1(statistics.fmean(each_seed(partial(_mean_log, keys=keys), runs)) - true)
        bars.append(Bar(f"R+ where {words} are disturbed: bias", bias, -0.01, 0.01))
    return bars


def _mean_log(seed: int, keys: str) -> float:
    """Return the mean logarithm of R+ over the cells of a run, of the capacity."""
    derived = simulate("regression", seed, f"sim:capacity=10M:noise=0.3%:{keys}", rates="none")
    return statistics.fmean(math.log(r.throughput_pps / 10e6) for r in derived.results if r.throughput_pps)
