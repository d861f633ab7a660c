# SPDX-License-Identifier: BSD-3-Clause
"""What only igb has of the emulated NICs: virtual functions, and time stamps of PTP frames. `make lab MODEL=igb`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lab_driver import installed, with_stamps
from lab_rig import RUNS, Lab, on

from planebench.model.errors import INCONCLUSIVE, StartError

pytestmark = [pytest.mark.slow, pytest.mark.lab, pytest.mark.timeout(7200), on("igb")]


@pytest.fixture
def stamping(lab: Lab) -> Iterator[Lab]:
    """The lab, with the driver of igb that stamps frames in the place of Debian's."""
    try:
        driver = with_stamps()
    except StartError as error:
        pytest.skip(str(error))
    assert lab.run("mount", "--bind", str(driver.resolve()), str(installed())).code == 0
    yield lab
    lab.run("umount", str(installed()))


def test_virtual_functions_are_made_used_and_removed(lab: Lab) -> None:
    tester, physical = (lab.address(nic) for nic in lab.topology.cables[0])
    made, there, back, end = lab.script("vfs.py", "use", tester, physical, timeout_s=600).documents()
    assert made["told"] == [["02:00:00:00:77:01", "on", "off"], ["02:00:00:00:56:01", "on", "off"]]
    assert len(set(made["groups"])) == 2
    assert [there["driver"], back["driver"]] == ["net_e1000_igb", "net_e1000_igb_vf"]
    for line in (there, back):
        assert line["sent"] == line["came"] > 0 and line["wrong"] == 0, line
    assert end["restored"], end
    assert lab.driver("t0") == lab.driver("s0") == "igb"


def test_virtual_functions_that_a_kill_left_are_removed(lab: Lab) -> None:
    (line,) = lab.script("vfs.py", "kill", lab.address("s0")).documents()
    assert line["left"]["vfs"] == 2 and line["restored"], line


def test_a_driver_that_was_built_without_stamps_is_refused(lab: Lab) -> None:
    done = lab.script("stamps.py", lab.address("t1"), lab.address("s1"), timeout_s=300)
    assert done.code != 0 and "RTE_LIBRTE_IEEE1588" in done.output


def test_both_ends_stamp_probes_and_the_cable_relates_their_clocks(stamping: Lab) -> None:
    ends = [stamping.address(nic) for nic in stamping.topology.cables[1]]
    told, there, back, relation = stamping.script("stamps.py", *ends, timeout_s=600).documents()
    assert told["clocks"] == [["hardware", True]] * 2
    for line in (there, back):
        assert line["sent"] == line["came"] > 0 and line["wrong"] == 0, line
        assert line["stamped_sent"] > 0.5 * line["probes"] > 0, line
        assert line["stamped_received"] > 0.5 * line["stamped_sent"], line
    assert there["by_both"] > 0.5 * there["stamped_received"], there
    assert there["clock_ns"][0] < there["software_ns"][0]
    assert abs(relation["relation"]["drift"]) < 1e-3


def test_a_run_has_latencies_by_the_clock_of_the_nics(stamping: Lab) -> None:
    """The run calibrates the tester over a cable first: the two clocks, and the floor of each clock."""
    wire = "pci:" + ",".join(f"{stamping.address(a)}={stamping.address(b)}" for a, b in stamping.topology.cables)
    plan = ["--switch", "planed", "--scenario", "p2p", "--direction", "unidirectional", "--frame-size", "64"]
    plan += ["--wire", wire, "--hugepages", "--clock", "hardware", "--loads", "none", "--rates", "200"]
    plan += ["--max-rate", "500", "--duration", "4", "--repeat", "1", "--no-report", "--runs", RUNS]
    done = stamping.planebench("run", *plan, timeout_s=600)
    assert done.code in (0, INCONCLUSIVE), done.output
    *trials, told = stamping.script("trials.py", RUNS).documents()
    latencies = [trial["latency"] for trial in trials if trial["latency"]]
    assert latencies and not any(trial["unexplained"] for trial in trials), trials
    for latency in latencies:
        assert latency["clock"] == "hardware" and latency["stamped"] > 10, latency
        assert 0 < latency["p50_ns"] < latency["software_p50_ns"], latency
    assert set(told["floors"]) == {"hardware", "software"}
    assert 0 < told["floors"]["hardware"] < told["floors"]["software"], told
