# SPDX-License-Identifier: BSD-3-Clause
"""Plans that leave out what is not installed.

A file of its own: it measures, so that it must wait for others that do, and test_bad_input.py need not.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from planebench.store import read_run

PLAN = """
version: 1
name: mine
switches: [{}]
missing_switches: skip
scenarios: [p2p]
frame_sizes_bytes: [64]
throughput: {{duration_s: 0.1, repetitions: 1}}
latency: {{loads: [], duration_s: 0.1}}
"""


@pytest.mark.dataplane
def test_a_suite_leaves_out_a_switch_that_is_not_there(planebench, own_run_folder: Path, monkeypatch, tmp_path) -> None:
    """The run names that switch and how to install it, and measures the others. So does the suite quick."""
    monkeypatch.setattr("planebench.host.programs.find_program", lambda _: None)
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN.format("planed, testpmd"))
    done = planebench("run", path)
    assert done.code == 0
    assert "left out: testpmd: not installed; to install: " in done.err
    assert "Left out: testpmd: not installed; to install: " in " ".join(done.out.split())
    (folder,) = own_run_folder.iterdir()
    run = read_run(folder)
    assert [switch.label for switch in run.header.switches] == ["planed"]
    assert [skipped.what for skipped in run.skipped] == ["testpmd"]
    assert {trial.point.switch for trial in run.trials} == {"planed"}

    path.write_text(PLAN.format("testpmd"))
    done = planebench("run", path)
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("planebench: none of the switches of plan mine is installed")
    assert "testpmd" in done.err and done.err.count("\n") == 1
