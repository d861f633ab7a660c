# SPDX-License-Identifier: BSD-3-Clause
"""VALE on each path of a frame, and netmap in the drivers of NICs, in the only place where a machine can load netmap's
module without risk: a guest.

It takes netmap, built for the kernel of the lab: PLANEBENCH_VALE=FOLDER with ``netmap.ko``, the drivers and
``build-apps/vale-ctl/vale-ctl`` in it (docs/switches/vale.md).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from lab_rig import RUNS, Lab, on

from planebench.model.errors import INCONCLUSIVE
from planebench.switches.vale import LOAD

pytestmark = [pytest.mark.slow, pytest.mark.lab, pytest.mark.timeout(7200), on("netmap")]

PLACE = "PLANEBENCH_VALE"
RATE_PPS, RING = 1000, 2048
CHECKS = "starts,forwards,wiring,intact,order"
ALSO = {("netmap", "p2p"): ",found,options,settings,cores,bad-frames,counters,overload,pause,restart"}
PATHS = [("netmap", it) for it in ("p2p", "p2v", "v2v", "loopback-1", "loopback-5")] + [
    ("veth", "p2p"),
    ("veth", "p2v"),
]
DRIVERS = {"e1000e": "e1000e/e1000e.ko", "igb": "igb/igb.ko"}
ADMODE = "/sys/module/netmap/parameters/admode"
BEST, NATIVE = 0, 1
"""Values of it: emulated where no driver knows netmap; never emulated."""


@pytest.fixture
def netmap(lab: Lab) -> str:
    """The folder of netmap, whose module and drivers are loaded in the guest."""
    folder = os.environ.get(PLACE)
    if not folder or not (Path(folder) / "netmap.ko").exists():
        pytest.skip(f"netmap is not here: {PLACE}=/folder/of/netmap, built for the kernel of the lab")
    loads = " && ".join(f"rmmod {name} && insmod {path}" for name, path in DRIVERS.items())
    done = lab.sh(f"[ -e /dev/netmap ] || ( cd {folder} && {LOAD.strip('`')} && {loads} )", 300)
    assert done.code == 0, done.output
    return folder


def interface(lab: Lab, nic: str) -> str:
    name: str = lab.sh(f"ls /sys/bus/pci/devices/{lab.address(nic)}/net").output.strip()
    return name


def cables(lab: Lab, interfaces: Mapping[str, str]) -> list[str]:
    return [f"{interfaces[a]}={interfaces[b]}" for a, b in lab.topology.cables]


@pytest.fixture
def native(lab: Lab, netmap: str) -> Iterator[Mapping[str, str]]:
    """The interfaces of the NICs, by name, which are up, and which netmap takes natively or not at all."""
    found = {nic: interface(lab, nic) for nic in lab.topology.nics}
    for name in found.values():
        lab.sh(f"ip link set {name} up; ethtool -L {name} combined 1; true")
    done = lab.sh(f"echo {NATIVE} > {ADMODE}")
    assert done.code == 0, done.output
    yield found
    lab.sh(f"echo {BEST} > {ADMODE}")


def test_frames_cross_cables_between_nics(lab: Lab, native: Mapping[str, str]) -> None:
    """Each end is a port of planed on the rings of a NIC."""
    lines = lab.script("cables.py", *cables(lab, native), timeout_s=300).documents()
    assert [line["nic"] for line in lines] == list(native.values())
    for line in lines:
        assert line["sent"] == line["came"] > 0 == line["wrong"], line


def test_frames_cross_vale_from_nic_to_nic(lab: Lab, netmap: str, native: Mapping[str, str]) -> None:
    words = ["--wire", f"veth:{','.join(cables(lab, native))}", "--scenario", "p2p", "--check", "starts,forwards,order"]
    done = lab.planebench("switch", "check", "vale", *words, timeout_s=600, PLANEBENCH_VALE=netmap)
    assert done.code == 0, done.output


@pytest.mark.parametrize("wire", ["netmap", "veth"])
def test_every_frame_of_a_run_arrives(lab: Lab, netmap: str, wire: str) -> None:
    """At a rate that means nothing, with rings that hold a whole trial: VALE drops what a port has no room for."""
    plan = ["--switch", "vale", "--scenario", "p2p,p2v,v2v,loopback", "--chain-length", "1,2"]
    plan += [
        "--wire",
        wire,
        "--frame-size",
        "64",
        "--direction",
        "bidirectional",
        "--max-rate",
        str(RATE_PPS),
        "--ring-size",
        str(RING),
    ]
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
    done = lab.sh(f"ip -o link | grep -c veth; ip netns list | wc -l; rmmod {' '.join(DRIVERS)} netmap && echo gone")
    assert done.output.split() == ["0", "0", "gone"], done.output
