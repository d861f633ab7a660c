# SPDX-License-Identifier: BSD-3-Clause
"""Xen below the guest's kernel, and domains that run ClickOS between bridges of Linux: every frame counted.

It takes ClickOS' image: PLANEBENCH_CLICKOS=/path/to/clickos_x86_64 (docs/switches/fastclick.md). Debian's packages of
Xen are downloaded and unpacked, as the kernel of the lab is.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import xen_rig
from lab_rig import Lab, on

pytestmark = [pytest.mark.slow, pytest.mark.lab, pytest.mark.timeout(7200), on("xen")]

PLACE = "PLANEBENCH_CLICKOS"
CHAINS = [["click-router"], ["click-firewall"], ["click-firewall", "click-router"]]


@pytest.fixture
def clickos() -> str:
    """The image of ClickOS."""
    image = os.environ.get(PLACE)
    if not image or not Path(image).exists():
        pytest.skip(f"ClickOS is not here: {PLACE}=/path/to/clickos_x86_64")
    return image


def test_linux_is_the_first_domain_of_xen(lab: Lab) -> None:
    assert lab.sh("cat /sys/hypervisor/type /sys/hypervisor/guest_type").output.split() == ["xen", "PV"]
    assert (
        lab.sh("mount -t xenfs xenfs /proc/xen && cat /proc/xen/capabilities; umount /proc/xen").output.strip()
        == "control_d"
    )


@pytest.mark.parametrize("chain", CHAINS, ids=",".join)
def test_every_frame_crosses_a_chain_of_clickos(lab: Lab, clickos: str, chain: list[str]) -> None:
    done = lab.script("chain_of_xen.py", str(xen_rig.folder().resolve()), clickos, *chain, timeout_s=900)
    crossed, refused = done.documents()
    (sent0, came0), (sent1, came1) = crossed["ways"]
    assert (came0, came1) == (sent0, sent1) and sent0 and sent1, crossed
    assert crossed["domains"] == [{"from0": sent0, "to0": sent0, "from1": sent1, "to1": sent1}] * len(chain), crossed
    none = dict.fromkeys(("from0", "to0", "from1", "to1"), 0)
    assert refused["came"] == 0, refused
    assert refused["domains"] == [none | {"from0": refused["refused"]}, *[none] * (len(chain) - 1)], refused
