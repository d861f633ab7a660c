# SPDX-License-Identifier: BSD-3-Clause
"""The estimated capacity of a switch beside the one that is known, because a slower clock lets the tester reach it.

    .venv/bin/planebench run bench/capacity.yaml        # four minutes
    .venv/bin/python bench/capacity.py [--runs runs] [RUN]

A switch on an emulated clock of a share d takes 1 / d of the time for each poll, so its capacity is R+ of the fastest
clock at which the switch, not the tester, limits, divided by d. Where lines that cross between cores are the cost, an
emulated clock flatters: docs/performance.md says by how much. Printed for each point: that, and the estimate of each
clock at which the tester limits, with its interval, both at the whole clock, and their ratio. Exit code 1 if an
estimate is off by more than 5 % and its interval does not hold the known capacity.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from planebench.analysis.counting import counts, same_cell
from planebench.analysis.results import derive_results
from planebench.model.results import Result
from planebench.store import find_run, read_run

CLOCKS = {"planed": 1.0, "half": 0.5, "fifth": 0.2, "tenth": 0.1}
"""The labels of bench/capacity.yaml."""
ERROR = 0.05


def judge(results: Sequence[Result]) -> Iterator[tuple[str, bool]]:
    """Yield a line and whether it is good, for each estimate of a point."""
    known = [r for r in results if counts(r) and not r.verdict.kind.is_bound]
    best = max(known, key=lambda r: CLOCKS[r.point.switch], default=None)
    if best is None or best.throughput_pps is None:
        yield "the tester limits at every clock", False
        return
    truth = best.throughput_pps / CLOCKS[best.point.switch]
    yield f"{truth / 1e6:7.2f} Mpps known, from R+ of {best.point.switch}", True
    for r in results:
        if not counts(r) or not r.verdict.kind.is_bound:
            continue
        if r.capacity_estimate_pps is None:
            yield f"  {r.point.switch:7} no estimate", False
            continue
        estimate, low, high = (
            None if it is None else it / CLOCKS[r.point.switch]
            for it in (r.capacity_estimate_pps, r.capacity_low_pps, r.capacity_high_pps)
        )
        assert estimate is not None
        inside = low is not None and high is not None and low <= truth <= high
        ends = "" if low is None or high is None else f" [{low / 1e6:.2f}, {high / 1e6:.2f}]"
        good = inside or abs(estimate / truth - 1) <= ERROR
        yield f"  {r.point.switch:7} {estimate / 1e6:7.2f}{ends} estimated, {estimate / truth:.3f} of it", good


def main() -> int:
    """Read, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", default="latest")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    given = parser.parse_args()
    bad = 0
    for point, results in same_cell(derive_results(read_run(find_run(given.runs, given.run)))).items():
        print(f"{point.scenario} {point.direction} {point.frame_size_bytes} B")
        for line, good in judge(results):
            print(f"  {line}{'' if good else '  BAD'}")
            bad += not good
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
