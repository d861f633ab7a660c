# SPDX-License-Identifier: BSD-3-Clause
"""A VNF of four cores in a virtual machine (conext19 gives its VMs four vCPUs): a worker and a queue pair on each vCPU,
exact counts. On a machine of two CPUs two vCPUs share each: it boots slowly, so it is no test of every change."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from planed_rig import CPU, OTHER_CPU
from vm_rig import Bed, guest_supervisor

from planebench.host.process import Supervisor
from planebench.planed.client import get_statistics
from planebench.testbed.hosting.vm import VmHosting

pytestmark = [pytest.mark.dataplane, pytest.mark.lab, pytest.mark.timeout(600)]

CORES = (OTHER_CPU, CPU, OTHER_CPU, CPU)


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    with guest_supervisor() as it:
        yield it


def test_every_frame_passes_one_of_four_vcpus(supervisor: Supervisor) -> None:
    with Bed(supervisor, queues=len(CORES)) as bed:
        request = bed.request("vnf0", bed.document(cpus=CORES), cpus=CORES, values={"memory_mb": 400})
        vnf = VmHosting().start(request, supervisor)
        vnf.forward()
        bed.until_it_forwards(vnf)
        assert [thread.name for thread in vnf.threads()] == [f"vnf0-vcpu{number}" for number in range(4)]
        assert vnf.facts.details["rings"] == "split, 256 entries, 4 queue pairs"
        sent, dropped = bed.exchange(vnf)
        assert len(sent) == 8 and not dropped.keys() - {"tx_full"}
        assert vnf.planed is not None
        stats = get_statistics(vnf.planed.call)
        assert len(stats.workers) == 4
        assert all(task.tx_packets for task in stats.tasks)
        vnf.stop()
