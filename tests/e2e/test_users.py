# SPDX-License-Identifier: BSD-3-Clause
"""Where there is little: one CPU, no root, no switch. It runs where it can and says what that does to the numbers."""

from __future__ import annotations

import json
import os
import shutil

import pytest
from e2e_rig import PATIENCE_S, RAN, Bench, assert_exact

pytestmark = [pytest.mark.dataplane, pytest.mark.timeout(180)]

NOBODY = 65534


def test_one_cpu_is_a_functional_check_and_says_so(bench: Bench) -> None:
    cpu = min(os.sched_getaffinity(0))
    bench.prefix = ("taskset", "-c", str(cpu))
    done = bench.run("run", bench.plan, "--no-calibrate", "--json")
    (result,) = json.loads(done.stdout)["results"]
    assert (result["verdict"], result["throughput_pps"]) == ("functional", None)
    assert (
        "switch and tester share one CPU: rates and latencies are those of its scheduler" in result["verdict_reasons"]
    )
    assert "a functional check: switch and tester share one CPU" in done.stderr
    (trial,) = bench.trials()
    assert trial["evidence"]["shared_cpu"] is True
    assert all(way["forwarded_packets"] <= way["offered_packets"] for way in trial["directions"])


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_without_root(bench: Bench) -> None:
    """Every switch without root: tests/switches/test_running.py."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("setpriv is not here: apt-get install util-linux")
    home = bench.base / "home"
    home.mkdir()
    bench.runs = home / "runs"
    for path in (bench.base, home):
        os.chown(path, NOBODY, NOBODY)
    bench.prefix = (setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all")
    bench.env = {"HOME": str(home), "TMPDIR": str(home)}
    process = bench.start("run", bench.plan, "--json", "--scenario", "p2p,v2v")
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode in RAN, err
    assert {result["scenario"] for result in json.loads(out)["results"]} == {"p2p", "v2v"}
    for trial in bench.trials():
        assert_exact(trial)
    assert {path.stat().st_uid for path in bench.runs.rglob("*")} == {NOBODY}
    shutil.rmtree(home)
    bench.assert_nothing_left()
