# SPDX-License-Identifier: BSD-3-Clause
"""Instructions of one function of a program, counted by callgrind: no clock is read, other load on the machine does not
matter.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

DATAPLANE = Path(__file__).resolve().parent.parent / "build/dataplane"


def count(function: str, program: str, *arguments: str, until: str = "main") -> tuple[list[int], str]:
    """Return the instructions of ``function`` in a run of a program of the data plane, and what the program printed.

    They are counted anew each time that the program leaves ``until``: one number for each time.
    """
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(
            [
                "valgrind",
                "--tool=callgrind",
                f"--toggle-collect={function}",
                f"--dump-after={until}",
                f"--callgrind-out-file={folder}/out",
                *(DATAPLANE / program, *arguments),
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        parts = sorted(Path(folder).glob("out.*"), key=lambda path: int(path.suffix[1:]))
        found = [re.search(r"^totals: (\d+)", path.read_text(), re.MULTILINE) for path in parts]
    totals = [int(it[1]) for it in found if it]
    if not any(totals):
        sys.exit(
            f"{program} has no call of {function}() that callgrind could see: `make setup` builds without symbols. "
            "Build it with them: meson configure build -Dc_link_args= && ninja -C build"
        )
    return totals, run.stdout
