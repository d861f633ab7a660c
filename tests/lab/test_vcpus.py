# SPDX-License-Identifier: BSD-3-Clause
"""The virtual machine of conext19, emulated: four vCPUs, and its memory of hugepages. A VNF of four cores in it has a
worker and a queue pair on each vCPU; a run has exact counts. On a machine of two CPUs two vCPUs share each: it boots
slowly, so it is no test of every change."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from planed_rig import CPU, OTHER_CPU, planed_binary
from vm_rig import Bed, guest_supervisor

from planebench.analysis.ledger import ledger
from planebench.host.process import Supervisor
from planebench.planed.client import get_statistics
from planebench.store import find_run, read_run
from planebench.testbed.hosting.vm import VmHosting

pytestmark = [pytest.mark.dataplane, pytest.mark.lab, pytest.mark.timeout(900)]

CORES = (OTHER_CPU, CPU, OTHER_CPU, CPU)
RESERVED = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
GUEST_MB = 400


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    with guest_supervisor() as it:
        yield it


@pytest.fixture
def hugepages(request: pytest.FixtureRequest) -> Iterator[int]:
    """Reserve so many pages beside those that are; give them back."""
    before, wanted = int(RESERVED.read_text()), int(request.param)
    try:
        RESERVED.write_text(str(before + wanted))
        if int(RESERVED.read_text()) < before + wanted:
            pytest.skip(f"the kernel has no {wanted} hugepages to give: its memory is in pieces")
        yield wanted
    except PermissionError:
        pytest.skip("only root may reserve hugepages")
    finally:
        if os.geteuid() == 0:
            RESERVED.write_text(str(before))


def on_hugepages(pid: int) -> int:
    """Return the MiB of hugepages that a process has mapped, by the kernel's account."""
    sizes = re.findall(
        r"^(?:Shared|Private)_Hugetlb:\s+(\d+) kB$", Path(f"/proc/{pid}/smaps").read_text(), re.MULTILINE
    )
    return sum(map(int, sizes)) // 1024


@pytest.mark.parametrize("hugepages", [0, GUEST_MB // 2], indirect=True)
def test_every_frame_passes_one_of_four_vcpus(supervisor: Supervisor, hugepages: int) -> None:
    with Bed(supervisor, queues=len(CORES)) as bed:
        more: dict[str, Any] = {"cpus": CORES, "values": {"memory_mb": GUEST_MB}, "hugepages": hugepages > 0}
        vnf = VmHosting().start(bed.request("vnf0", bed.document(cpus=CORES), **more), supervisor)
        vnf.forward()
        bed.until_it_forwards(vnf)
        assert [thread.name for thread in vnf.threads()] == [f"vnf0-vcpu{number}" for number in range(4)]
        assert vnf.facts.details["rings"] == "split, 256 entries, 4 queue pairs"
        memory = f"{GUEST_MB} MiB, {'2 MiB pages of a memfd' if hugepages else 'memfd'}"
        assert vnf.facts.details["memory"] == memory
        assert on_hugepages(vnf.threads()[0].pid) == 2 * hugepages
        sent, dropped = bed.exchange(vnf)
        assert len(sent) == 8 and not dropped.keys() - {"tx_full"}
        assert vnf.planed is not None
        stats = get_statistics(vnf.planed.call)
        assert len(stats.workers) == 4
        assert all(task.tx_packets for task in stats.tasks)
        vnf.stop()


@pytest.mark.parametrize("hugepages", [700], indirect=True)
@pytest.mark.parametrize(
    ("switch", "function"), [("planed", "l2fwd:vcpus=4"), ("testpmd:workers=4", "l2fwd:cores=4:vcpus=4")]
)
def test_a_run_with_the_vm_of_the_paper(
    supervisor: Supervisor, tmp_path: Path, hugepages: int, switch: str, function: str
) -> None:
    """Functional, as its CPUs are emulated. With ``cores=4`` a queue pair of every port is for each of four workers."""
    chosen = ("--scenario", "loopback", "--chain", f"vm:{function}:accel=tcg", "--switch", switch, "--hugepages")
    short = (
        "--frame-size",
        "64",
        "--direction",
        "unidirectional",
        "--loads",
        "none",
        "--duration",
        "1",
        "--repeat",
        "1",
    )
    quiet = ("--no-calibrate", "--no-report", "--quiet", "--runs", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-m", "planebench", "run", *chosen, *short, *quiet],
        env={**os.environ, "PLANEBENCH_PLANED": planed_binary(), "PLANEBENCH_PATIENCE": "5"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 3), done.stderr
    run = read_run(find_run(tmp_path, "latest"))
    (trial,) = run.trials
    account = ledger(trial)
    assert trial.verdict.kind.value == "functional", trial.verdict
    assert account.offered_packets > 0 and account.forwarded_packets > 0 and account.unexplained_packets == 0, account
    (conditions,) = run.conditions
    (guest,) = conditions.hosting
    assert guest.emulated and guest.details["cpus"].count("vCPU") == 4
    assert guest.details["memory"].endswith("2 MiB pages of a memfd")
    assert run.header.settings["hugepages"] is True
    assert guest.details["rings"].endswith("4 queue pairs") is ("workers=4" in switch), guest
