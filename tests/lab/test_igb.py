# SPDX-License-Identifier: BSD-3-Clause
"""What only igb has of the emulated NICs: virtual functions, and time stamps of PTP frames. `make lab MODEL=igb`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lab_driver import installed, with_stamps
from lab_rig import Lab, booted, topology

from planebench.model.errors import StartError

pytestmark = [pytest.mark.slow, pytest.mark.lab, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module", params=["igb"])
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    with booted(topology("two_dual_ports").with_nics(request.param)) as running:
        yield running


@pytest.fixture(scope="module")
def stamping(lab: Lab) -> Lab:
    """The lab, with the driver of igb that stamps frames in the place of Debian's."""
    try:
        driver = with_stamps()
    except StartError as error:
        pytest.skip(str(error))
    assert lab.run("mount", "--bind", str(driver), str(installed())).code == 0
    return lab


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
    assert relation["cable"]["delay_ns"] > 0
    assert abs(relation["cable"]["drift"]) < 1e-3
