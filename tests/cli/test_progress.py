# SPDX-License-Identifier: BSD-3-Clause
"""scripts/progress.sh: a set-up of minutes says what it does, and shows its output only where it fails."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/progress.sh"
STEPS = "echo 'Collecting typer>=0.20 (from x)'; sleep 0.5; echo '  [12/345] Compiling C object'; sleep 0.5; exit {}"


@pytest.mark.parametrize("code", [0, 3])
def test_steps_are_printed_and_the_log_only_if_it_fails(tmp_path: Path, code: int) -> None:
    log = tmp_path / "new" / "install.log"
    done = subprocess.run(
        [SCRIPT, log, "bash", "-c", STEPS.format(code)],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "PROGRESS_S": "0.1"},
        timeout=60,
    )
    assert done.returncode == code
    assert "Collecting typer>=0.20" in done.stdout and "compiled 12 of 345 files" in done.stdout
    assert ("Compiling C object" in done.stdout) == (code != 0)
    assert ("exit code 3; all of its output is in" in done.stderr) == (code != 0)
    assert "Compiling C object" in log.read_text()
