# SPDX-License-Identifier: BSD-3-Clause
"""Instructions for a frame that is offered while the next ring is full, beside those of one that is forwarded.

    python bench/drops.py [--size 64] [TASK...]

Each task between two ports of each kind, bursts of 32 offered before each poll (build/dataplane/task_bench; needs
valgrind). Not each of them is dropped: a function whose frames are dear leaves most to their sender. Exit code 1 if one
costs more than 0.85 of a forward.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence

from callgrind import count

PORTS = ("virtio", "vhost", "memif")
TASKS = (
    "patch",
    "bridge",
    "l2fwd",
    "l3fwd",
    "firewall",
    "nat44",
    "load_balancer",
)
RATIO_MAX = 0.85
BURSTS, BURST = 200, 32


def costs(ports: str, tasks: Sequence[str], size: int, dropped: bool) -> list[float]:
    """Return the instructions a frame offered, of each task."""
    arguments = ["--ports", ports, "--tasks", ",".join(tasks), "--sizes", str(size), "--bursts", str(BURSTS)]
    found, printed = count(
        "poll_measured", "task_bench", *arguments, *(["--dropped"] if dropped else []), until="case_ends"
    )
    handled = re.findall(r"(\d+) handled, (\d+) received", printed)
    assert len(handled) == len(tasks) <= len(found), printed
    assert all(received == ("0" if dropped else frames) for frames, received in handled), printed
    return [instructions / (BURSTS * BURST) for instructions in found[: len(tasks)]]


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", metavar="TASK")
    parser.add_argument("--size", type=int, default=64)
    given = parser.parse_args()
    tasks = given.tasks or TASKS
    worst = 0.0
    for ports in PORTS:
        forwards, drops = (costs(ports, tasks, given.size, it) for it in (False, True))
        for task, forward, drop in zip(tasks, forwards, drops, strict=True):
            worst = max(worst, drop / forward)
            print(f"{ports:7} {task:14} forwarded {forward:5.0f}  full {drop:5.0f}  {drop / forward:.2f}", flush=True)
    return int(worst > RATIO_MAX)


if __name__ == "__main__":
    sys.exit(main())
