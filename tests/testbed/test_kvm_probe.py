# SPDX-License-Identifier: BSD-3-Clause
"""KVM is used once a probe boot has worked, and only then; a probe is made once. QEMU is a script here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from planebench.host.process import Supervisor
from planebench.host.programs import Found
from planebench.model.errors import StartError
from planebench.testbed.hosting import qemu
from planebench.testbed.hosting.qemu import Accelerator, KvmProbe, known_failure


@pytest.fixture
def supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Supervisor]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with Supervisor(Path("/tmp")) as it:
        yield it


def probe(folder: Path, supervisor: Supervisor, qemu: str, limit_s: float = 60.0) -> KvmProbe:
    """With a QEMU that notes that it was called."""
    program, kernel, device = folder / "qemu", folder / "kernel", folder / "kvm"
    program.write_text(f'#!/bin/sh\necho "$@" >>{folder}/calls\n{qemu}\n')
    program.chmod(0o755)
    for file in (kernel, device):
        file.touch()
    cpus = frozenset(os.sched_getaffinity(0))
    return KvmProbe(Found("7.2.22", program), kernel, folder / "initramfs", cpus, supervisor, limit_s, device)


def calls(folder: Path) -> list[str]:
    file = folder / "calls"
    return file.read_text().splitlines() if file.exists() else []


def test_a_guest_that_comes_up_is_evidence_for_as_long_as_the_machine_runs(
    tmp_path: Path, supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = probe(tmp_path, supervisor, "echo booting; echo GUEST-UP; exec sleep 1000")
    assert it.accelerator("auto") == it.accelerator("kvm") == Accelerator("kvm", "kvm, verified by a test boot")
    assert known_failure(it.device) == ""
    (called,) = calls(tmp_path)
    assert "-accel kvm -cpu host" in called
    assert not supervisor.processes[0].alive()
    assert it.accelerator("tcg") == Accelerator("tcg", "tcg, as requested")
    monkeypatch.setattr(qemu.procfs, "boot_id", lambda: "another boot")
    assert it.accelerator("auto").name == "kvm" and len(calls(tmp_path)) == 2


@pytest.mark.parametrize(
    ("qemu", "limit_s", "why"),
    [
        (
            "echo 'KVM internal error. Suberror: 1' >&2; echo EAX=0; exit 1",
            60.0,
            "the test boot failed: KVM internal error. Suberror: 1",
        ),
        ("exit 3", 60.0, "the test boot failed: exit code 3"),
        ("echo booting; exec sleep 1000", 0.3, "the test boot did not finish within 0.3 s"),
    ],
)
def test_a_guest_that_does_not_come_up_is_emulated(
    tmp_path: Path, supervisor: Supervisor, qemu: str, limit_s: float, why: str
) -> None:
    it = probe(tmp_path, supervisor, qemu, limit_s)
    assert known_failure(it.device) == ""  # nobody has tried
    found = it.accelerator("auto")
    assert known_failure(it.device) == why
    assert found == Accelerator("tcg", f"tcg, because KVM does not work: {why}")
    with pytest.raises(StartError, match=r"accel=kvm, but KVM does not work: the test boot .*; use accel=tcg") as error:
        it.accelerator("kvm")
    assert len(supervisor.processes) == 1
    Path(str(error.value).rpartition("rm -f ")[2]).unlink()
    assert it.accelerator("auto") == found and len(supervisor.processes) == 2


def test_without_a_device_nothing_is_started(tmp_path: Path, supervisor: Supervisor) -> None:
    it = probe(tmp_path, supervisor, "echo GUEST-UP")
    it.device.unlink()
    assert it.accelerator("auto") == Accelerator("tcg", f"tcg, because KVM does not work: {it.device} does not exist")
    assert known_failure(it.device) == f"{it.device} does not exist"
    assert not calls(tmp_path)
