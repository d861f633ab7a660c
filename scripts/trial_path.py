#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Print the way of one trial through the harness: the files and functions that a trial in steady state enters.

    .venv/bin/python scripts/trial_path.py [--switch planed] [--all]

Runs three saturating trials of p2p with one start of the switch and looks at the last. ``--all``: each function.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import planebench
from planebench.model.records import Trial

PACKAGE = Path(planebench.__file__).parent


class Looker:
    """A listener of a run that notes what is called between the begin and the end of a trial."""

    def __init__(self) -> None:
        self.calls = Counter[tuple[str, str]]()

    def trial_begins(self, request: object) -> None:
        """Forget the trial before, and look."""
        self.calls.clear()
        sys.setprofile(self._entered)

    def trial_done(self, trial: Trial) -> None:
        """Look no longer."""
        sys.setprofile(None)

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None

    def _entered(self, frame: FrameType, event: str, _: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            self.calls[str(path.relative_to(PACKAGE)), frame.f_code.co_qualname] += 1


def main() -> int:
    """Run, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--switch", default="planed")
    parser.add_argument("--all", action="store_true", help="print each function with its calls")
    given = parser.parse_args()
    looker = Looker()
    with tempfile.TemporaryDirectory() as folder:
        planebench.run(
            "quick", runs_dir=folder, calibrate=False, listener=looker, switch=given.switch, scenario="p2p",
            frame_size="64", direction="unidirectional", loads="none", duration=0.2, repeat=3, restarts=0,
        )  # fmt: skip
    files = {path for path, _ in looker.calls}
    functions = sum(not name.endswith(("comp>", "genexpr>")) for _, name in looker.calls)
    if given.all:
        for (path, name), calls in sorted(looker.calls.items()):
            print(f"{path:40}{calls:6}  {name}")
    inside = len(looker.calls) - functions
    print(f"{len(files)} files, {functions} functions and {inside} comprehensions, {looker.calls.total()} calls")
    return 0


if __name__ == "__main__":
    sys.exit(main())
