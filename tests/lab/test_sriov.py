# SPDX-License-Identifier: BSD-3-Clause
"""The switch in a NIC (ic16's path): VNFs have virtual functions of an emulated igb, and frames come back by the same
cable. `make lab MODEL=igb`."""

from __future__ import annotations

import pytest
from lab_rig import RUNS, Lab, on

from planebench.model.errors import INCONCLUSIVE

pytestmark = [pytest.mark.slow, pytest.mark.lab, pytest.mark.timeout(7200), on("igb")]
COUNT = 2
RATE_PPS = 500


def test_frames_cross_virtual_functions_and_come_back(lab: Lab) -> None:
    """At a rate that the emulated NICs are not too slow for: the count is exact, the rate means nothing."""
    tester, physical = (lab.address(nic) for nic in lab.topology.cables[0])
    plan = ["--switch", "sriov", "--scenario", "parallel", "--vnfs", str(COUNT), "--frame-size", "64"]
    plan += ["--direction", "unidirectional", "--wire", f"pci:{tester}={physical}", "--hugepages"]
    plan += ["--max-rate", str(RATE_PPS), "--duration", "1", "--repeat", "1", "--loads", "none"]
    done = lab.planebench("run", *plan, "--no-calibrate", "--no-report", "--runs", RUNS, timeout_s=600)
    assert done.code in (0, INCONCLUSIVE), done.output
    *trials, _ = lab.script("trials.py", RUNS).documents()
    assert trials
    for it in trials:
        assert (it["switch"], it["scenario"], it["verdict"]) == ("sriov", "parallel", "functional"), it
        assert it["forwarded"] == it["offered"] > 0, it
    assert lab.driver("t0") == lab.driver("s0") == "igb"
    left = lab.sh(f"cat /sys/bus/pci/devices/{physical}/sriov_numvfs")
    assert left.output.strip() == "0"
