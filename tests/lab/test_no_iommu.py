# SPDX-License-Identifier: BSD-3-Clause
"""A machine without an IOMMU, whose kernel has no way around it: NICs are refused in one sentence."""

from __future__ import annotations

import pytest
from lab_rig import Lab, on

from planebench.model.errors import StartError

pytestmark = [pytest.mark.slow, pytest.mark.lab, pytest.mark.timeout(1800), on("no-iommu")]


def test_without_an_iommu_no_nic_is_bound(lab: Lab) -> None:
    (line,) = lab.refusals("as it is")
    assert "has no IOMMU, and this kernel's vfio has no mode without one" in line["said"]
    assert line["code"] == StartError.exit_code and line["same"], line
