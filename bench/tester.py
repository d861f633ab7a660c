# SPDX-License-Identifier: BSD-3-Clause
"""Instructions of generator and monitor for a frame, at each kind of port; sampled: of a monitor in a sampled trial.

    python bench/tester.py [--size 64] [--program build/dataplane/tester_polls]

Bursts of 64 in AVX2, the widest instruction set that valgrind knows. At 64 B there is a budget, what was reached and a
little more: exit code 1 if something costs more. Exit code 77, with a sentence, where nothing can be counted.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from pathlib import Path

from callgrind import DATAPLANE, count

SKIPPED = 77  # as meson and automake have it

# The generators of memif-client and vhost-user copy. Measured with GCC 12.
BUDGET = {
    ("virtio-user", "generator"): 20,
    ("virtio-user", "monitor"): 38,
    ("memif-server", "generator"): 46,
    ("memif-server", "monitor"): 48,
    ("memif-client", "generator"): 75,
    ("memif-client", "monitor"): 80,
    ("vhost-user", "generator"): 126,
    ("vhost-user", "monitor"): 117,
    ("virtio-user", "sampled"): 11,
    ("memif-server", "sampled"): 36,
    ("memif-client", "sampled"): 68,
    ("vhost-user", "sampled"): 102,
}


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--program", type=Path, default=DATAPLANE / "tester_polls")
    given = parser.parse_args()
    if not shutil.which("valgrind"):
        print("no valgrind here, so the instructions of the tester are not counted: apt install valgrind")
        return SKIPPED
    counted, printed = count("poll_measured", str(given.program.absolute()), str(given.size), until="case_ends")
    if "isa avx2" not in printed:
        print("this CPU has no AVX2, and the budget is that of AVX2: the instructions of the tester are not compared")
        return SKIPPED
    exceeded = False
    cases = re.findall(r"^(\S+) (generator|monitor|sampled) (\d+)$", printed, re.MULTILINE)
    for (port, task, frames), instructions in zip(cases, counted, strict=False):
        each = instructions / int(frames)
        budget = BUDGET[port, task] if given.size == 64 else None
        over = budget is not None and each > budget
        exceeded |= over
        print(f"{port:13} {task:10} {each:6.1f}" + (f"  budget {budget}" if budget else "") + ("  exceeded" * over))
    return int(exceeded or len(cases) != len(BUDGET))


if __name__ == "__main__":
    sys.exit(main())
