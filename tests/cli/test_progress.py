# SPDX-License-Identifier: BSD-3-Clause
"""scripts/progress.sh: a set-up of minutes says what it does, and shows its output only where it fails."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/progress.sh"
STEPS = "echo 'Collecting typer>=0.20 (from x)'; read; echo '  [12/345] Compiling C object'; read; exit {}"


@pytest.mark.parametrize("code", [0, 3])
def test_steps_are_printed_and_the_log_only_if_it_fails(tmp_path: Path, code: int) -> None:
    log, more = tmp_path / "new" / "install.log", tmp_path / "more"
    os.mkfifo(more)
    with subprocess.Popen(
        [SCRIPT, log, "bash", "-c", f"exec <>{more}; {STEPS.format(code)}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PATH": "/usr/bin:/bin", "PROGRESS_S": "0.1"},
    ) as script:
        assert script.stdout is not None
        for step in ("Collecting typer>=0.20", "compiled 12 of 345 files"):
            assert any(step in line for line in script.stdout), step  # each step goes on when its line has been read
            more.write_text("\n")
        out, err = script.communicate(timeout=60)
    assert script.returncode == code
    assert ("Compiling C object" in out) == (code != 0)
    assert ("exit code 3; all of its output is in" in err) == (code != 0)
    assert "Compiling C object" in log.read_text()


def test_a_long_step_is_told_again(tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "PROGRESS_S": "0.1", "PROGRESS_AGAIN_S": "0"}
    command = [SCRIPT, tmp_path / "log", "bash", "-c", "echo Installing collected packages; sleep 60"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as script:
        assert script.stdout is not None
        for _ in range(2):
            assert any("Installing collected packages" in line for line in script.stdout)
        script.terminate()
