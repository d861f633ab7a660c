# SPDX-License-Identifier: BSD-3-Clause
"""The programs that take CPU time from a measurement."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace

from planebench.host.process import stretched
from planebench.measure.doctor import PROGRAMS_MAX, CpuTimes, Program, busy_programs, cpu_times, programs_findings


def test_a_busy_program_is_named_and_an_idle_one_is_not() -> None:
    with (
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy,
        subprocess.Popen(
            [sys.executable, "-c", "print(); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        ) as idle,
    ):
        try:
            assert idle.stdout and idle.stdout.read(1)  # its start, which takes CPU time, is over
            before = cpu_times()
            wait_for_ticks(busy.pid, before, 10)
            # Half a second is said to have passed: pollers of tests beside this one leave the program any share.
            found = {it.pid for it in busy_programs(replace(before, at_ns=time.monotonic_ns() - 500_000_000))}
        finally:
            busy.kill()
            idle.kill()
    assert busy.pid in found and idle.pid not in found


def wait_for_ticks(pid: int, before: CpuTimes, ticks: int) -> None:
    """Return when the process has taken that much CPU time since then."""
    end = time.monotonic() + stretched(60)
    while time.monotonic() < end:
        now = cpu_times().ticks
        if sum(now[it] - before.ticks[it] for it in now.keys() & before.ticks.keys() if it[0] == pid) >= ticks:
            return
        time.sleep(0.05)
    raise AssertionError(f"process {pid} has not taken {ticks} ticks of CPU time")


def test_the_finding_names_the_busiest_with_their_shares() -> None:
    assert programs_findings(()) == ()
    programs = [Program(100 + i, f"cc{i}", 0.9 - i / 10) for i in range(PROGRAMS_MAX + 2)]
    (found,) = programs_findings(programs)
    assert found.level == "warning" and found.remedy
    assert "cc0 (process 100) 90 %" in found.text and found.text.endswith("and 2 more")
