# SPDX-License-Identifier: BSD-3-Clause
"""A/B: two builds of ring_bench take turns; ratios of pairs of runs, within one core-distance band.

    .venv/bin/python bench/ab.py A B [--times 15] [--planed build/dataplane/planed] [-- ARGUMENTS OF ring_bench]

A and B are programs (A the older one). The distance between the two cores is measured before and after each pair; a
pair that saw two bands is left out. Below a ratio of 1, B is faster. With ``--single`` among the arguments no line
travels between cores: everything is the band "same". "busy" counts pairs during which the load was above one.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from planebench.analysis.answers import effect_of, estimate_alone
from planebench.measure.distance import measure_distance

Case = tuple[str, int, int, int]
"""Kind of ring, directions, frame size in bytes, burst."""
Pair = dict[Case, tuple[float, float]]
METRIC = "cycles_per_packet"
TIMEOUT_S = 60.0
CALM = 1.0
"""Load average over a minute: the bench itself is two threads, but each run is a fraction of a second."""


def main() -> int:
    """Take turns, then print one table a band."""
    own, bench_arguments = split_arguments(sys.argv[1:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs=2, metavar="PROGRAM", type=Path)
    parser.add_argument("--times", type=int, default=15, help="pairs of runs")
    parser.add_argument("--planed", type=Path, default=Path("build/dataplane/planed"))
    given = parser.parse_args(own)
    bands: dict[str, list[Pair]] = defaultdict(list)
    left_out = busy = 0
    for turn in range(given.times):
        busy += os.getloadavg()[0] > CALM
        before = band(given.planed, bench_arguments)
        pair = run_pair(given.programs, bench_arguments, turn)
        if before is None or before != band(given.planed, bench_arguments):
            left_out += 1
        else:
            bands[before].append(pair)
    for name, pairs in sorted(bands.items()):
        print_band(name, pairs)
    print(f"{given.times} pairs, {left_out} left out (the band changed), {busy} begun on a busy machine")
    return 0


def split_arguments(words: list[str]) -> tuple[list[str], list[str]]:
    """Ours, and those behind ``--``."""
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at + 1 :]


def band(planed: Path, bench_arguments: list[str]) -> str | None:
    """Where the two cores are now; None if that cannot be told."""
    if "--single" in bench_arguments:
        return "same"
    distance = measure_distance(planed, 0, 1)
    return distance.band if distance else None


def run_pair(programs: list[Path], bench_arguments: list[str], turn: int) -> Pair:
    """Both programs once; who is first alternates."""
    order = (0, 1) if turn % 2 == 0 else (1, 0)
    found = {side: run(programs[side], bench_arguments) for side in order}
    return {case: (cycles, found[1][case]) for case, cycles in found[0].items()}


def run(program: Path, bench_arguments: list[str]) -> dict[Case, float]:
    """One run: cycles a packet by case."""
    command = [program, "--json", "--rounds", "3", *bench_arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=TIMEOUT_S)
    lines = done.stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    return {(r["kind"], r["directions"], r["frame_size_bytes"], r["burst"]): r[METRIC] for r in rows}


def print_band(name: str, pairs: list[Pair]) -> None:
    """Medians of both, and B / A, the geometric mean of the ratios of the pairs, with its interval."""
    print(f"{name} band, {len(pairs)} pairs: TSC cycles a packet of busy polls")
    for case in pairs[0]:
        a, b = ([pair[case][side] for pair in pairs] for side in (0, 1))
        ratios = [after / before for before, after in zip(a, b, strict=True)]
        effect = effect_of(estimate_alone(ratios), statistics.geometric_mean(ratios))
        interval = "no interval" if effect.low is None else f"{effect.low:.3f} to {effect.high:.3f}"
        kind, directions, size, burst = case
        print(
            f"  {kind:6} {directions}-way {size:5} B  burst {burst:2}  {statistics.median(a):8.1f} "
            f"{statistics.median(b):8.1f}  {effect.ratio:.3f} ({interval})  {effect.answer}"
        )


if __name__ == "__main__":
    sys.exit(main())
