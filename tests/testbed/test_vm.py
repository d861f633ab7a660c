# SPDX-License-Identifier: BSD-3-Clause
"""VNFs in QEMU guests: every frame that goes in comes out, or was dropped with a reason; and how their lives begin and
end. Without KVM they are emulated: seconds to boot, so each guest is asked about much."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from planed_rig import CPU, OTHER_CPU, load, until
from vm_rig import Bed, guest_supervisor

from planebench.host import procfs
from planebench.host.process import Supervisor
from planebench.model.errors import DiedError, UsageError
from planebench.testbed.hosting.base import HostedRequest, RunningVnf
from planebench.testbed.hosting.vm import VmHosting

pytestmark = [pytest.mark.dataplane, pytest.mark.slow]

SHUT = "b0"
RULES = """drop udp from any port 49153 to any port 28770
permit ip from any to any
"""
"""49153 is the source port of stream 1: that of generator b0."""


@pytest.fixture(scope="module")
def supervisor() -> Iterator[Supervisor]:
    with guest_supervisor() as it:
        yield it


def boot(bed: Bed, request: HostedRequest, *shut: str) -> RunningVnf:
    """Until it forwards. How long that takes depends on the machine: it is told, not judged."""
    start = time.monotonic()
    vnf = VmHosting().start(request, bed.supervisor)
    vnf.forward()
    bed.until_it_forwards(vnf, shut)
    print(f"{request.name}: {vnf.facts.details['accelerator']}; forwards after {time.monotonic() - start:.1f} s")
    return vnf


@pytest.mark.all
def test_a_guest_forwards_every_frame_and_its_life_is_ours(supervisor: Supervisor, tmp_path: Path) -> None:
    with Bed(supervisor) as bed:
        vnf = boot(bed, bed.request("vnf0", bed.document()))
        assert vnf.facts.vnf == "vnf0" and vnf.facts.hosting == "vm" and vnf.facts.program.startswith("QEMU ")
        assert vnf.facts.emulated == vnf.facts.details["accelerator"].startswith("tcg")
        assert vnf.facts.details["rings"] == "split, 256 entries"
        for frame_bytes in (64, 1518):
            _, dropped = bed.exchange(vnf, frame_bytes)
            assert not dropped.keys() - {"tx_full"}
        _pinned(vnf)
        _paused_it_forwards_nothing(bed, vnf)
        bed.restart()
        bed.until_it_forwards(vnf)
        bed.exchange(vnf)
        _killed_it_is_gone(bed, vnf)
        _another_takes_its_place(bed, vnf, tmp_path / "rules")
        assert not (bed.workdir / "vnf0" / "own" / "rpc").exists()


def _pinned(vnf: RunningVnf) -> None:
    """What forwards is on the VNF's CPU; all else of QEMU is on those for control."""
    (thread,) = vnf.threads()
    assert (thread.owner, thread.name) == ("vnf", "vnf0-vcpu0")
    assert thread.pid in procfs.descendants(vnf.process.pid)
    assert os.sched_getaffinity(thread.tid) == {CPU}
    others = procfs.threads(thread.pid).keys() - {thread.tid}
    assert others and all(os.sched_getaffinity(tid) == {OTHER_CPU} for tid in others)


def _paused_it_forwards_nothing(bed: Bed, vnf: RunningVnf) -> None:
    vnf.process.pause()
    tasks = bed.tester.send(load("gen-a0", rate_pps=1000), epoch=60000)
    assert not tasks["mon-b0"]["monitor"]["received_packets"]
    vnf.process.resume()
    until(lambda: bed.tester.tasks()["mon-b0"]["monitor"]["received_packets"], "it forwards what waited")


def _killed_it_is_gone(bed: Bed, vnf: RunningVnf) -> None:
    vnf.check()
    vnf.kill()
    with pytest.raises(DiedError, match=r"vnf0 died: .* was killed by SIGKILL"):
        vnf.check()
    until(lambda: not any(port["link_up"] for port in bed.tester.call("ports.get")["ports"]), "the tester sees it go")
    vnf.stop()


def _another_takes_its_place(bed: Bed, dead: RunningVnf, rules: Path) -> None:
    """Of the same name, with other rings, and a file that its document names."""
    rules.write_text(RULES)
    document = bed.document("firewall", settings={"rules_file": str(rules)})
    vnf = boot(bed, bed.request("vnf0", document, files=(rules,), values={"rings": "packed"}), SHUT)
    assert vnf.threads() != dead.threads() and vnf.facts.details["rings"] == "packed, 256 entries"
    sent, dropped = bed.exchange(vnf)
    assert dropped.pop("rule") == sent[SHUT] and not dropped.keys() - {"tx_full"}
    vnf.process.pause()
    vnf.ask_to_end()
    vnf.stop()
    vnf.stop()
    assert not vnf.process.alive()


@pytest.mark.all
def test_guests_come_up_together_and_one_that_cannot_says_why(supervisor: Supervisor) -> None:
    with Bed(supervisor, queues=2) as bed, Bed(supervisor) as other, ThreadPoolExecutor() as pool:
        spread = bed.request("vnf1", bed.document(), values={"memory_mb": 400})
        odd = pool.submit(VmHosting().start, other.request("vnf2", other.document("no-such-function")), supervisor)
        vnf = pool.submit(boot, bed, spread).result()
        assert vnf.facts.details["rings"] == "split, 256 entries, 2 queue pairs"
        assert vnf.facts.details["memory"].startswith("400 MiB")
        sent, dropped = bed.exchange(vnf)
        assert len(sent) == 4 and not dropped.keys() - {"tx_full"}
        vnf.stop()
        until(lambda: not odd.result().process.alive(), "the other one ends")
        with pytest.raises(DiedError, match=r"vnf2 died: .*(?s:.)*no-such-function"):
            odd.result().check()
        odd.result().stop()


def test_what_cannot_be_had_is_refused_before_anything_starts(supervisor: Supervisor) -> None:
    with Bed(supervisor) as bed:
        started = len(supervisor.processes)
        with pytest.raises(UsageError, match="memory_mb=64 is too small; give memory_mb="):
            VmHosting().start(
                bed.request("small", bed.document(), values={"memory_mb": 64, "accel": "tcg"}), supervisor
            )
        with pytest.raises(UsageError, match="ring size 4096 is too large: QEMU's virtio-net supports 1024 at most"):
            request = bed.request("long", bed.document(), ring_size=4096, values={"accel": "tcg"})
            VmHosting().start(request, supervisor)
        assert len(supervisor.processes) == started
