# SPDX-License-Identifier: BSD-3-Clause
"""Is one switch first in every cell of a run, and by how much? Figures per time that the pollers had.

    .venv/bin/planebench run bench/prevail.yaml
    .venv/bin/planebench run bench/prevail.yaml --wire memif --chain-length 1 --frame-size 64,1024 --loads none
    .venv/bin/python bench/prevail.py [--switch planed] [--runs runs] [RUN]

A cell is a wire, scenario, chain length, direction and frame size. Printed for each: throughput of the switch over that
of the best other, cycles a packet over the fewest of the others, and latency at each load over the lowest of the
others: mean and p99. ``>=`` marks a throughput that the tester limits: the true ratio may be higher. Exit code 1 if the
switch is behind anywhere.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from planebench.analysis.counting import counts, same_cell
from planebench.analysis.results import derive_results
from planebench.model.records import Point, VerdictKind
from planebench.model.results import LatencySummary, Result
from planebench.store import find_run, read_run


@dataclass(frozen=True, slots=True)
class Cell:
    """How the switch does in one cell. Ratios: own / best other; None where one of the two has no figure."""

    point: Point
    throughput: float | None
    limited: bool
    """The tester limits the switch: the throughput ratio is a lower bound."""
    cycles: float | None
    own_cycles: float | None
    mean: tuple[float | None, ...]
    p99: tuple[float | None, ...]

    @property
    def behind(self) -> tuple[str, ...]:
        """In what the switch is not first."""
        slow = self.throughput is not None and self.throughput < 1 and not (self.limited and (self.cycles or 2) < 1)
        latency = (("mean", self.mean), ("p99", self.p99))
        late = tuple(name for name, ratios in latency if any(ratio is not None and ratio > 1 for ratio in ratios))
        return (("throughput",) if slow else ()) + late


def _ratio(own: float | None, others: Iterable[float | None], best: type[max] | type[min]) -> float | None:
    known = [other for other in others if other]
    return own / best(known) if own and known else None


def _latency(result: Result, load: str) -> LatencySummary | None:
    found = [s for s in result.latency if s.load == load and s.verdict.kind is VerdictKind.VALID]
    return found[0] if found else None


def judge(point: Point, results: Sequence[Result], switch: str) -> Cell | None:
    """The cell of one point; None without a result of the switch, and of another one, that counts."""
    own = next((r for r in results if r.point.switch == switch and counts(r)), None)
    if own is None:
        return None
    others = [r for r in results if r.point.switch != switch and counts(r)]
    if not others:  # nobody was compared
        return None
    means, p99s = [], []
    for load in dict.fromkeys(s.load for s in own.latency):
        mine, theirs = _latency(own, load), [_latency(other, load) for other in others]
        there = [s for s in theirs if s is not None]
        means.append(_ratio(mine.mean if mine else None, [s.mean for s in there], min))
        p99s.append(_ratio(mine.p99 if mine else None, [s.p99 for s in there], min))
    return Cell(
        point,
        _ratio(own.throughput_median_pps, [r.throughput_median_pps for r in others], max),
        own.verdict.kind is VerdictKind.TESTER_LIMITED,
        _ratio(own.switch_cycles_per_packet, [r.switch_cycles_per_packet for r in others], min),
        own.switch_cycles_per_packet,
        tuple(means),
        tuple(p99s),
    )


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def show(cell: Cell) -> None:
    """One line."""
    point = cell.point
    name = f"{point.wire} {point.scenario}{point.chain_length or ''} {point.direction[:3]} {point.frame_size_bytes}"
    sign = ">=" if cell.limited else "  "
    latency = "/".join(map(_text, cell.mean)) + "  " + "/".join(map(_text, cell.p99))
    cycles = "-" if cell.own_cycles is None else f"{cell.own_cycles:.0f}"
    behind = "  BEHIND: " + ", ".join(cell.behind) if cell.behind else ""
    print(f"{name:27} {sign}{_text(cell.throughput):>5}  {cycles:>5} {_text(cell.cycles):>5}  {latency}{behind}")


def main() -> int:
    """Read, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", default="latest")
    parser.add_argument("--switch", default="planed")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    given = parser.parse_args()
    run = read_run(find_run(given.runs, given.run))
    cells = [judge(point, results, given.switch) for point, results in same_cell(derive_results(run)).items()]
    known = [cell for cell in cells if cell is not None]
    print(f"{given.switch} over the best other: throughput; its cycles, over the fewest; latency mean, p99 by load")
    for cell in known:
        show(cell)
    ratios = [cell.throughput for cell in known if cell.throughput is not None]
    behind = [cell for cell in known if cell.behind]
    median = f"median throughput ratio {statistics.median(ratios):.2f}; " if ratios else ""
    print(f"{median}{len(known)} of {len(cells)} cells count, behind in {len(behind)}")
    return int(bool(behind) or len(known) < len(cells))


if __name__ == "__main__":
    sys.exit(main())
