# SPDX-License-Identifier: BSD-3-Clause
"""Instructions of a frame that is dropped because the next ring is full, beside those of one that is forwarded.

    python bench/drops.py [--size 64] [TASK...]

Each task between two ports of each kind, bursts of 32 (build/dataplane/task_bench; needs valgrind). Exit code 1 if a
drop costs more than 0.9 of a forward.
"""

from __future__ import annotations

import argparse
import re
import sys

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
    "flow_monitor",
    "rate_limiter",
)
RATIO_MAX = 0.9


def cost(ports: str, task: str, size: int, dropped: bool) -> float:
    """Return the instructions a frame."""
    arguments = ("--ports", ports, "--task", task, "--sizes", str(size), *(("--dropped",) if dropped else ()))
    instructions, printed = count("poll_measured", "task_bench", *arguments)
    found = re.search(r"(\d+) handled, (\d+) received", printed)
    assert found and found[2] == ("0" if dropped else found[1]), printed
    return instructions / int(found[1])


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", metavar="TASK", choices=(*TASKS, []))
    parser.add_argument("--size", type=int, default=64)
    given = parser.parse_args()
    worst = 0.0
    for task in given.tasks or TASKS:
        for ports in PORTS:
            forwarded, dropped = (cost(ports, task, given.size, it) for it in (False, True))
            ratio = dropped / forwarded
            worst = max(worst, ratio)
            print(f"{task:14} {ports:7} forwarded {forwarded:5.0f}  dropped {dropped:5.0f}  {ratio:.2f}", flush=True)
    return int(worst > RATIO_MAX)


if __name__ == "__main__":
    sys.exit(main())
