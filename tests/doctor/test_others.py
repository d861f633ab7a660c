# SPDX-License-Identifier: BSD-3-Clause
"""The programs that take CPU time from a measurement."""

from __future__ import annotations

import subprocess
import sys
import time

from planebench.doctor.others import MAX_NAMED, Program, busy_programs, cpu_times, programs_finding
from planebench.host.deadlines import stretched


def test_a_busy_program_is_named_and_an_idle_one_is_not() -> None:
    with (
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy,
        subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as idle,
    ):
        try:
            end, found = time.monotonic() + stretched(10), set[int]()
            while busy.pid not in found and time.monotonic() < end:
                before = cpu_times()
                time.sleep(0.3)
                found = {it.pid for it in busy_programs(before)}
        finally:
            busy.kill()
            idle.kill()
    assert busy.pid in found and idle.pid not in found


def test_the_finding_names_the_busiest_with_their_shares() -> None:
    assert programs_finding(()).level == "ok"
    programs = [Program(100 + i, f"cc{i}", 0.9 - i / 10) for i in range(MAX_NAMED + 2)]
    found = programs_finding(programs)
    assert found.level == "warning" and found.remedy
    assert "cc0 (process 100) 90 %" in found.text and found.text.endswith("and 2 more")
