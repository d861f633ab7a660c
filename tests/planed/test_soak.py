# SPDX-License-Identifier: BSD-3-Clause
"""The soak of bench/soak.py for a quarter of a minute, at a rate that any machine has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from planed_rig import planed_binary

pytestmark = [pytest.mark.dataplane, pytest.mark.slow, pytest.mark.all, pytest.mark.timeout(300)]

SOAK = Path(__file__).resolve().parents[2] / "bench" / "soak.py"
HOURS = 6 / 3600


def test_a_short_soak() -> None:
    """No frame without an explanation, no leak, no call without answer. Memory takes longer to tell."""
    done = subprocess.run(
        [sys.executable, SOAK, "--hours", str(HOURS), "--rate", "5000", "--json"],
        capture_output=True,
        text=True,
        env=os.environ | {"PLANEBENCH_PLANED": planed_binary()},
        check=False,
    )
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    wrong = {key: value for key, value in found["checked"].items() if "growth" not in key and value > 0}
    assert not wrong, done.stderr
    assert found["rounds"] and found["applied"] > 2 and found["hostile_messages"] > 0
    assert all(way["forwarded"] > 1000 for way in found["ways"].values())
