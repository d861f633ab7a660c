# SPDX-License-Identifier: BSD-3-Clause
"""VALE on each path of a frame, and netmap in the drivers of NICs, in the only place where a machine can load netmap's
module without risk: a guest.

It takes netmap, built for the kernel of the lab by ``scripts/netmap.sh``: PLANEBENCH_VALE=FOLDER with ``netmap.ko``,
the drivers and ``build-apps/vale-ctl/vale-ctl`` in it (docs/switches/vale.md).
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from lab_rig import RUNS, Lab, on

from planebench.model.errors import INCONCLUSIVE
from planebench.switches.vale import LOAD

pytestmark = [pytest.mark.slow, pytest.mark.lab, pytest.mark.timeout(7200), on("netmap")]

PLACE = "PLANEBENCH_VALE"
RATE_PPS = 1000
CHECKS = "starts,forwards,wiring,intact,order"
ALSO = {("netmap", "p2p"): ",found,options,settings,cores,bad-frames,counters,overload,pause,restart"}
PATHS = [("netmap", it) for it in ("p2p", "p2v", "v2v", "loopback-1", "loopback-5")] + [
    ("veth", "p2p"),
    ("veth", "p2v"),
]
DRIVERS = {"e1000e": "e1000e/e1000e.ko", "igb": "igb/igb.ko"}
EMULATED, NATIVE = 0, 1
"""Values of netmap's parameter ``admode``: whatever is there; a driver that knows netmap, or an error."""


@pytest.fixture
def netmap(lab: Lab) -> str:
    """The folder of netmap, whose module and drivers are loaded in the guest."""
    folder = os.environ.get(PLACE)
    if not folder or not (Path(folder) / "netmap.ko").exists():
        pytest.skip(f"netmap is not here: {PLACE}=/folder/of/netmap, built for the kernel of the lab")
    loads = "; ".join(
        f"rmmod {Path(path).stem} && insmod {path}" for path in DRIVERS.values() if (Path(folder) / path).exists()
    )
    done = lab.sh(f"[ -e /dev/netmap ] || ( cd {folder} && {LOAD.strip('`')} && {loads} )", 300)
    assert done.code == 0, done.output
    return folder


def interface(lab: Lab, nic: str) -> str:
    folder = f"/sys/bus/pci/devices/{lab.address(nic)}"
    name: str = lab.sh(f"basename $(ls -d {folder}/net/* {folder}/virtio*/net/* 2>/dev/null)").output.strip()
    return name


@pytest.mark.parametrize("model", DRIVERS)
def test_frames_cross_the_cable_of_nics_whose_drivers_know_netmap(lab: Lab, netmap: str, model: str) -> None:
    if not (Path(netmap) / DRIVERS[model]).exists():
        pytest.skip(f"netmap was built without the driver of {model}")
    ends = [interface(lab, nic) for nic, its in lab.topology.nics.items() if its == model]
    for name in ends:
        done = lab.sh(f"ip link set {name} up; ethtool -L {name} combined 1; true")
    done = lab.sh(f"echo {NATIVE} > /sys/module/netmap/parameters/admode")
    assert done.code == 0, done.output
    try:
        lines = lab.script("cables.py", "=".join(ends), timeout_s=300).documents()
    finally:
        lab.sh(f"echo {EMULATED} > /sys/module/netmap/parameters/admode")
    assert [line["nic"] for line in lines] == ends
    for line in lines:
        assert line["sent"] == line["came"] > 0 == line["wrong"], line


@pytest.mark.parametrize("wire", ["netmap", "veth"])
def test_every_frame_of_a_run_arrives(lab: Lab, netmap: str, wire: str) -> None:
    """At a rate that the guest is not too slow for; the rate means nothing."""
    plan = ["--switch", "vale", "--scenario", "p2p,p2v,v2v,loopback", "--chain-length", "1,2"]
    plan += ["--wire", wire, "--frame-size", "64", "--direction", "bidirectional", "--max-rate", str(RATE_PPS)]
    plan += ["--duration", "1", "--repeat", "1", "--loads", "none", "--no-calibrate", "--no-report", "--runs", RUNS]
    done = lab.planebench("run", *plan, timeout_s=900, PLANEBENCH_VALE=netmap)
    assert done.code in (0, INCONCLUSIVE), done.output
    *trials, _ = lab.script("trials.py", RUNS).documents()
    assert {it["scenario"] for it in trials} == {"p2p", "p2v", "v2v", "loopback"}
    for it in trials:
        assert it["forwarded"] == it["offered"] > 0, it
        assert it["unexplained"] in (None, 0), it  # VALE counts nothing of ports that programs open


@pytest.mark.parametrize(("wire", "scenario"), PATHS)
def test_vale_conforms(lab: Lab, netmap: str, wire: str, scenario: str) -> None:
    words = ["--wire", wire, "--scenario", scenario, "--check", CHECKS + ALSO.get((wire, scenario), "")]
    done = lab.planebench("switch", "check", "vale", *words, timeout_s=600, PLANEBENCH_VALE=netmap)
    assert done.code == 0, done.output


def test_nothing_stays_attached(lab: Lab, netmap: str) -> None:
    """What stays attached to a VALE switch can neither be removed nor let the module go."""
    drivers = " ".join(Path(path).stem for path in DRIVERS.values())
    done = lab.sh(f"ip -o link | grep -c veth; ip netns list | wc -l; rmmod {drivers} netmap && echo gone")
    assert done.output.split() == ["0", "0", "gone"], done.output
