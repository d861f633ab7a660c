# SPDX-License-Identifier: BSD-3-Clause
"""A/A: one switch entered twice in one run must come out equal, or no comparison of two switches may be believed.

    .venv/bin/python bench/same_twice.py [--switch planed] [--scenario v2v] [--trials 100] [--seconds 0.1]

Exit code 1 if the two are called distinguishable, or their medians differ by 1 % or more.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

PLANEBENCH = Path(sys.executable).parent / "planebench"
LIMIT = 0.01


def main() -> int:
    """Run, compare, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--switch", default="planed")
    parser.add_argument("--scenario", default="v2v")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=0.1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="same-twice-") as runs:
        where = ("--runs", runs)
        matrix = ("--switch", f"{given.switch},{given.switch}", "--scenario", given.scenario, "--frame-size", "64")
        trials = ("--direction", "unidirectional", "--loads", "none", "--restarts", "3")
        length = ("--repeat", str(given.trials), "--duration", str(given.seconds))
        subprocess.run([PLANEBENCH, "run", *matrix, *trials, *length, *where, "--quiet"], check=True)
        subprocess.run([PLANEBENCH, "compare", "latest", *where], check=True)
        done = subprocess.run(
            [PLANEBENCH, "compare", "latest", *where, "--json", "--metric", "throughput"],
            check=True,
            capture_output=True,
        )
    (found,) = json.loads(done.stdout)["comparisons"]
    difference = abs(found["ratio"] - 1)
    print(f"{found['trials_a']} and {found['trials_b']} trials of the {found['band']} band, {difference:.2%} apart")
    return int(found["answer"] == "different" or difference >= LIMIT)


if __name__ == "__main__":
    sys.exit(main())
