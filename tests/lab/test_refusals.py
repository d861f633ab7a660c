# SPDX-License-Identifier: BSD-3-Clause
"""NICs that must not be taken, and cables that are not there: one sentence each, and nothing is changed."""

from __future__ import annotations

import pytest
from lab_rig import Lab, on

from planebench.model.errors import UsageError

pytestmark = [pytest.mark.slow, pytest.mark.lab, pytest.mark.timeout(3600), on("one-cable")]
SAID = {
    "no NIC": "PCI device 0000:00:02.0 is no network device",
    "absent": "there is no PCI device 0000:7f:00.0; the network devices of this machine: 0000:01:00.0",
    "twice": "is named twice",
    "default route": "carries the default route of this machine",
    "ssh": "carries the ssh connection of this machine",
    "address": "is up and has addresses; take it down first",
    "another run": "of planebench uses it; wait until it ends",
    "uio": "uio_pci_generic has it, which lets it write to any memory",
    "another speed": "has 1000 Mb/s and 0000:03:00.0 has 10000 Mb/s: these are not the ends of one cable",
}
"""A part of the sentence for each case of inside/refusals.py."""


def test_nics_that_must_not_be_taken_are_refused(lab: Lab) -> None:
    found = lab.refusals()
    assert [line["case"] for line in found] == list(SAID)
    for line in found:
        assert SAID[line["case"]] in line["said"], line
        assert line["said"].startswith("planebench: ") and line["said"].count("\n") == 1, line
        assert line["code"] == UsageError.exit_code and line["same"], line


def test_a_group_that_another_program_has_open_is_told_by_the_kernel(lab: Lab) -> None:
    (line,) = lab.refusals("open")
    assert "/dev/vfio/" in line["said"] and "Device or resource busy" in line["said"]
    assert line["code"] == 1 and line["same"], line


def test_a_nic_without_a_link_is_refused_while_the_kernel_knows_it(lab: Lab) -> None:
    lab.set_link("s0", up=False)
    (line,) = lab.refusals("no link")
    lab.set_link("s0", up=True)
    assert "has no link; is the cable in?" in line["said"]
    assert line["code"] == UsageError.exit_code and line["same"], line


def test_a_switch_at_the_end_of_no_cable_fails_with_the_way_out(lab: Lab) -> None:
    wire = f"pci:{lab.address('t0')}={lab.address('x0')}"
    words = ["--scenario", "p2v", "--check", "starts", "--hugepages", "--wire", wire]
    done = lab.planebench("switch", "check", "planed", *words, timeout_s=400, patience=3)
    assert done.code == 1
    assert "is the cabling as --wire says?" in " ".join(done.output.split())
    assert [lab.driver(nic) for nic in ("t0", "s0", "x0")] == ["vmxnet3", "vmxnet3", "virtio-pci"]
