# SPDX-License-Identifier: BSD-3-Clause
"""A trial takes its time by CLOCK_MONOTONIC_RAW, whatever DPDK takes the frequency of the TSC for."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest
from planed_rig import Planed, ethdev, load, planed_binary, task

from planebench.host.process import Supervisor

pytestmark = pytest.mark.dataplane

TRIAL_S = 10
TOLERANCE = 50e-6
READINGS = 100
WRONG_HZ = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

uint64_t rte_get_tsc_hz(void)
{
    uint64_t hz = ((uint64_t (*)(void))dlsym(RTLD_NEXT, "rte_get_tsc_hz"))();

    return hz + hz * 3 / 1000;
}
"""


@pytest.fixture
def misled(supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Planed:
    """A planed for which DPDK's frequency of the TSC is wrong by 0.3 %."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    source, library, program = (tmp_path / name for name in ("wrong_hz.c", "wrong_hz.so", "planed"))
    source.write_text(WRONG_HZ)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    program.write_text(f'#!/bin/sh\nLD_PRELOAD={library} exec {planed_binary()} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PLANEBENCH_PLANED", str(program))
    return Planed(supervisor, "misled")


@pytest.mark.all
def test_a_trial_of_ten_seconds_takes_ten_seconds(misled: Planed) -> None:
    misled.apply([ethdev("e0", "net_null0,no-rx=1")], [task("gen", "generator", "e0")])
    begin_tsc, begin_ns = reading(misled)
    sent = misled.send(load("gen", rate_pps=1000), duration_s=TRIAL_S)["gen"]["generator"]
    end_tsc, end_ns = reading(misled)
    stats = misled.call("stats.get")
    true_hz = (end_tsc - begin_tsc) * 1e9 / (end_ns - begin_ns)
    assert stats["tsc_hz"] == pytest.approx(true_hz, rel=TOLERANCE)
    assert stats["tsc_nominal_hz"] == misled.call("version")["tsc_nominal_hz"]
    assert abs(stats["tsc_nominal_hz"] / true_hz - 1) > TOLERANCE
    sent_ticks = sent["duration_ns"] * stats["tsc_hz"] / 1e9
    assert sent_ticks / true_hz == pytest.approx(TRIAL_S, rel=TOLERANCE)
    assert sent["duration_ns"] == pytest.approx(TRIAL_S * 1e9, rel=TOLERANCE)


def reading(planed: Planed) -> tuple[int, int]:
    """The TSC and the raw clock at the same moment: what was read in the shortest time is wrong by half of that."""
    found = []
    for _ in range(READINGS):
        before_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        tsc = planed.call("stats.get")["now_tsc"]
        took_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW) - before_ns
        found.append((took_ns, tsc, before_ns + took_ns // 2))
    _, tsc, at_ns = min(found)
    return tsc, at_ns
