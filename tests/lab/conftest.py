# SPDX-License-Identifier: BSD-3-Clause
"""The guests of the lab. Each is booted once: pytest runs the tests that have the same one, of all files, in turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from _pytest.runner import runtestprotocol
from lab_rig import MODELS, QEMU_FAULTS, Lab, Topology, booted, topology

GUESTS = {
    **{model: topology("two_dual_ports").with_nics(model) for model in MODELS},
    "one-cable": topology("one_cable"),
    "no-iommu": replace(topology("one_cable"), iommu=False),
    "netmap": replace(topology("netmap"), iommu=False),
    "two-nodes": Topology(nics={}, cables=(), iommu=False, vcpus=8, memory_mb=4096, hugepages=0, nodes=2),
    "xen": Topology(nics={}, cables=(), iommu=False, vcpus=3, hugepages=0, xen=True),
}
RERUNS = 2


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test again, in a guest that boots again, if QEMU ended by its own assertion, or hung (docs/wires.md)."""
    if not isinstance(item, pytest.Function) or "guest" not in item.fixturenames:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    for _ in range(RERUNS):
        if not any(report.failed and fault in report.longreprtext for report in reports for fault in QEMU_FAULTS):
            break
        item._initrequest()
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.fixture(scope="session")
def guest(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """The guest that a test names by ``lab_rig.on``."""
    with booted(GUESTS[request.param]) as running:
        yield running


@pytest.fixture
def lab(guest: Lab) -> Lab:
    """The guest, booted again if an earlier test has ended it."""
    guest.boot_if_ended()
    return guest
