# SPDX-License-Identifier: BSD-3-Clause
"""kill -9 of harness, switch, VNF and tester at named and random moments of a run (tests/crash_rig.py).

    .venv/bin/python bench/crash.py [-n 100] [--seed 1] [--json]       make crash N=100

Every run must be readable afterwards, be resumed to its end, and have left nothing behind after the next start. A kill
that comes after the end of its run is not counted, and made again at another moment. Exit code 1 unless all are well.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from crash_rig import VICTIMS, Case, Verdict, cases, crash

TRIES = 2
"""Cases for each kill that is wanted, at most."""


def kills(count: int, seed: int) -> Iterator[Verdict]:
    """Yield so many kills that came in time; a line each on standard error."""
    with tempfile.TemporaryDirectory(prefix="crash-") as folder:
        done = 0
        for number, case in enumerate(cases(TRIES * count, seed, os.geteuid() == 0)):
            if done == count:
                return
            found = crash(case, Path(folder) / f"runs{number}", Path(folder) / "cache")
            done += found.killed
            print(f"{done:4} {_words(case)}: {_result(found)}", file=sys.stderr, flush=True)
            if found.killed:
                yield found


def _words(case: Case) -> str:
    return f"{case.way}, {case.victim}, {case.moment}" + (f" ({case.after_s:.2f} s)" if case.after_s else "")


def _result(found: Verdict) -> str:
    if not found.killed:
        return "too late"
    wrong = [text for text in (found.unreadable, found.not_resumed, *found.left) if text]
    return f"{found.stored} trials, well" if not wrong else "; ".join(wrong)


def table(found: Sequence[Verdict]) -> Iterator[str]:
    """The counts of each victim, as Markdown."""
    yield "| killed | kills | at random moments | readable | resumed | nothing left |"
    yield "|---|---|---|---|---|---|"
    for victim in VICTIMS:
        its = [it for it in found if it.case.victim == victim]
        counts: Counter[str] = Counter()
        for it in its:
            counts["random"] += it.case.after_s > 0
            counts["readable"] += not it.unreadable
            counts["resumed"] += not it.not_resumed
            counts["clean"] += not it.left
        cells = (counts[key] for key in ("random", "readable", "resumed", "clean"))
        yield f"| {victim} | {len(its)} | {' | '.join(map(str, cells))} |"
    yield f"\n{sum(it.well for it in found)} of {len(found)} are well."


def main() -> int:
    """Parse, kill, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=100, help="kills")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = list(itertools.islice(kills(options.n, options.seed), options.n))
    print(json.dumps([asdict(it) for it in found], indent=1) if options.json else "\n".join(table(found)))
    return 0 if len(found) == options.n and all(it.well for it in found) else 1


if __name__ == "__main__":
    sys.exit(main())
