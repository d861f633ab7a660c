# SPDX-License-Identifier: BSD-3-Clause
"""VALE on each path of a frame, in the only place where a machine can load netmap's module without risk: a guest.

It takes netmap, built for the kernel of the lab: PLANEBENCH_VALE=FOLDER with ``netmap.ko`` and
``build-apps/vale-ctl/vale-ctl`` in it (docs/switches/vale.md).
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from lab_rig import RUNS, Lab, on

from planebench.model.errors import INCONCLUSIVE
from planebench.switches.vale import LOAD

pytestmark = [pytest.mark.slow, pytest.mark.lab, pytest.mark.timeout(7200), on("no-iommu")]

PLACE = "PLANEBENCH_VALE"
RATE_PPS = 1000
SCENARIOS = ("p2p", "p2v", "v2v", "loopback-1", "loopback-5")
CHECKS = "starts,forwards,wiring,intact,order"
ALSO = {"p2p": ",found,options,settings,cores,bad-frames,counters,overload,pause,restart"}


@pytest.fixture
def netmap(lab: Lab) -> str:
    """The folder of netmap, whose module is loaded in the guest."""
    folder = os.environ.get(PLACE)
    if not folder or not (Path(folder) / "netmap.ko").exists():
        pytest.skip(f"netmap is not here: {PLACE}=/folder/of/netmap, built for the kernel of the lab")
    done = lab.sh(f"[ -e /dev/netmap ] || ( cd {folder} && {LOAD.strip('`')} )")
    assert done.code == 0, done.output
    return folder


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_vale_conforms(lab: Lab, netmap: str, scenario: str) -> None:
    words = ["--wire", "veth", "--scenario", scenario, "--check", CHECKS + ALSO.get(scenario, "")]
    done = lab.planebench("switch", "check", "vale", *words, timeout_s=600, PLANEBENCH_VALE=netmap)
    assert done.code == 0, done.output


def test_every_frame_of_a_run_arrives(lab: Lab, netmap: str) -> None:
    """At a rate that the guest is not too slow for; the rate means nothing."""
    plan = ["--switch", "vale", "--scenario", "p2p,p2v,v2v,loopback", "--chain-length", "1,2"]
    plan += ["--wire", "veth", "--frame-size", "64", "--direction", "bidirectional", "--max-rate", str(RATE_PPS)]
    plan += ["--duration", "1", "--repeat", "1", "--loads", "none", "--no-calibrate", "--no-report", "--runs", RUNS]
    done = lab.planebench("run", *plan, timeout_s=900, PLANEBENCH_VALE=netmap)
    assert done.code in (0, INCONCLUSIVE), done.output
    *trials, _ = lab.script("trials.py", RUNS).documents()
    assert {it["scenario"] for it in trials} == {"p2p", "p2v", "v2v", "loopback"}
    for it in trials:
        assert it["forwarded"] == it["offered"] > 0 == it["unexplained"], it


def test_nothing_stays_attached(lab: Lab, netmap: str) -> None:
    """What stays attached to a VALE switch can neither be removed nor let the module go."""
    done = lab.sh("ip -o link | grep -c veth; ip netns list | wc -l; rmmod netmap && echo gone")
    assert done.output.split() == ["0", "0", "gone"], done.output
