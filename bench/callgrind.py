# SPDX-License-Identifier: BSD-3-Clause
"""Instructions of one function of a program, counted by callgrind: no clock is read, other load on the machine does not
matter.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

DATAPLANE = Path(__file__).resolve().parent.parent / "build/dataplane"


def count(function: str, program: str, *arguments: str) -> tuple[int, str]:
    """Return the instructions of ``function`` in a run of a program of the data plane, and what the program printed."""
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(
            [
                "valgrind",
                "--tool=callgrind",
                f"--toggle-collect={function}",
                f"--callgrind-out-file={folder}/out",
                *(DATAPLANE / program, *arguments),
            ],
            capture_output=True,
            text=True,
            check=True,
        )
    instructions = re.search(r"Collected : (\d+)", run.stderr)
    assert instructions, run.stderr
    return int(instructions[1]), run.stdout
