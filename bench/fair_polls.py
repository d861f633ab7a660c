# SPDX-License-Identifier: BSD-3-Clause
"""Instructions of one poll, of honest ports and hostile ones, counted by callgrind: no clock is read, other load on the
machine does not matter.

    python bench/fair_polls.py [GROUP...]

Prints instructions per poll and per frame, and the ratio to the honest shape of the group, which comes first.
"""

from __future__ import annotations

import re
import subprocess
import sys

import callgrind

PROGRAM = "poll_bench"
POLLS = 200


def shapes() -> list[tuple[str, str]]:
    """Return group and name of each shape."""
    found = subprocess.run([callgrind.DATAPLANE / PROGRAM], capture_output=True, text=True, check=True).stdout
    return [(group, name) for group, name in (line.split() for line in found.splitlines())]


def count(group: str, name: str) -> tuple[float, float]:
    """Return instructions and frames per poll of a shape."""
    found, printed = callgrind.count("poll_measured", PROGRAM, group, name, str(POLLS))
    polled = re.search(r"(\d+) polls, (\d+) frames", printed)
    assert polled, printed
    return found[0] / int(polled[1]), int(polled[2]) / int(polled[1])


def main() -> int:
    """Print the table; return 0."""
    wanted = sys.argv[1:]
    honest: dict[str, float] = {}
    for group, name in shapes():
        if wanted and group not in wanted:
            continue
        instructions, frames = count(group, name)
        ratio = instructions / honest.setdefault(group, instructions)
        each = f"{instructions / frames:8.0f}" if frames else "       -"
        print(f"{group:10} {name:24} {instructions:10.0f} a poll {each} a frame {ratio:8.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
