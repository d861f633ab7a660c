# SPDX-License-Identifier: BSD-3-Clause
"""A/A: runs of the quick suite with one switch entered twice. A run that calls the two different is a false answer.

    .venv/bin/python bench/same_twice.py [--switch planed] [--runs 20] [--minutes 1.5]

The table has a line per run: the answers of its comparisons of throughput and cycles, the ratio farthest from 1, and
the widest interval. Exit code 1 if a run has a comparison with the answer "different".
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

PLANEBENCH = Path(sys.executable).parent / "planebench"


def main() -> int:
    """Run, compare, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--switch", default="planed")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=1.5, help="time budget of a run")
    parser.add_argument("--keep", type=Path, help="folder of the runs; by default they are deleted")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="same-twice-") as scratch:
        folder = given.keep or Path(scratch)
        wrong = sum([_one(given.switch, number, given.minutes, folder) for number in range(given.runs)])
    print(f"{wrong} of {given.runs} runs find a difference between {given.switch} and itself")
    return int(wrong > 0)


def _one(switch: str, number: int, minutes: float, folder: Path) -> bool:
    """Return whether a run finds a difference; its seed is its number."""
    name, where = f"same-{number:02}", ("--runs", str(folder))
    budget = ("--time-budget", f"{round(minutes * 60)}s", "--seed", str(number), "--loads", "none")
    run = [PLANEBENCH, "run", "quick", "--switch", f"{switch},{switch}", *budget, "--name", name, *where, "--quiet"]
    subprocess.run(run, check=True)
    compare = [PLANEBENCH, "compare", name, *where, "--json"]
    answer = subprocess.run(compare, check=True, capture_output=True)
    comparisons: list[dict[str, Any]] = json.loads(answer.stdout)["comparisons"]
    answers = Counter(found["answer"] for found in comparisons)
    ratios = [found["ratio"] for found in comparisons if found["ratio"]]
    widths = [found["high"] / found["low"] - 1 for found in comparisons if found["low"] and found["high"]]
    words = ", ".join(f"{count} {answer}" for answer, count in sorted(answers.items()))
    farthest = max(ratios, key=lambda ratio: max(ratio, 1 / ratio), default=1.0)
    print(f"{name}: {words}; farthest ratio {farthest:.3f}; widest interval {max(widths, default=0):.1%}", flush=True)
    return answers["different"] > 0


if __name__ == "__main__":
    sys.exit(main())
