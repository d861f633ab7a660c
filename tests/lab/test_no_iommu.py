# SPDX-License-Identifier: BSD-3-Clause
"""A machine without an IOMMU, whose kernel has no way around it: NICs are refused in one sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest
from lab_rig import Lab, require, topology

from planebench.host.process import Supervisor
from planebench.model.errors import StartError

pytestmark = [pytest.mark.slow, pytest.mark.lab, pytest.mark.timeout(900)]


def test_without_an_iommu_no_nic_is_bound() -> None:
    bare = replace(topology("one_cable"), iommu=False)
    require(bare)
    with Supervisor() as supervisor, Lab(supervisor, bare) as lab:
        (line,) = lab.refusals("as it is")
    assert "has no IOMMU, and this kernel's vfio has no mode without one" in line["said"]
    assert line["code"] == StartError.exit_code and line["same"], line
