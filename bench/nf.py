# SPDX-License-Identifier: BSD-3-Clause
"""How fast each network function of planed is alone, on one core, 64 B frames, no ports: cycles and packets a second.

    python bench/nf.py [KIND...]

Each kind has a module nf_KIND.py beside this one, with a function ``cases(folder)``. "pps" has the copy of every frame
into the buffer where it is handled in it, as a port would make; "cycles" is the function alone. Fails where a bar is
missed, or where frames are dropped that should be forwarded.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path

from nf_case import Case
from nf_rig import nf_bench

HERE = Path(__file__).resolve().parent


def kinds() -> list[str]:
    """Every kind that has a module here."""
    return sorted(path.stem[3:] for path in HERE.glob("nf_*.py") if path.stem != "nf_case")


def run(case: Case, folder: Path) -> bool:
    """Measure and print one case; whether it clears its bar."""
    result = nf_bench(case.task, case.frames, folder, size_mb=case.size_mb)
    dropped = bool(result["dropped"]) and not case.may_drop
    missed = case.bar_pps is not None and result["pps"] < case.bar_pps
    bar = f"bar {case.bar_pps / 1e6:.0f}" if case.bar_pps else ""
    word = "DROPS FRAMES" if dropped else "MISSED" if missed else ""
    print(
        f"{case.name:44} {result['process_cycles']:7.1f} cycles {result['pps'] / 1e6:7.2f} Mpps  {bar} {word}".rstrip()
    )
    return not (dropped or missed)


def main() -> int:
    """0 if every bar was cleared, else 1."""
    wanted = sys.argv[1:] or kinds()
    good = True
    for kind in wanted:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for case in importlib.import_module(f"nf_{kind}").cases(folder):
                good = run(case, folder) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
