# SPDX-License-Identifier: BSD-3-Clause
"""KVM is used where QEMU can make a CPU with it that boots a kernel, and only there. QEMU is a script here."""

from __future__ import annotations

from pathlib import Path

import pytest

from planebench.host.programs import Found
from planebench.model.errors import StartError
from planebench.testbed.hosting import qemu
from planebench.testbed.hosting.qemu import Accelerator, accelerator, kvm_failure


def program(folder: Path, script: str) -> Found:
    """A QEMU that notes that it was called."""
    file = folder / "qemu"
    file.write_text(f'#!/bin/sh\necho "$@" >>{folder}/calls\n{script}\n')
    file.chmod(0o755)
    return Found("7.2.22", file)


@pytest.fixture(autouse=True)
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    device = tmp_path / "kvm"
    device.touch()
    monkeypatch.setattr(qemu, "DEVICE", device)
    monkeypatch.setattr(qemu.guest_image, "kept_kernel", lambda: None)
    return device


BOOTS = 'case "$*" in *-kernel*) %s;; *) read command; test $command = quit;; esac'
"""A QEMU that makes a CPU, and what it does with a kernel."""


def test_a_qemu_that_makes_a_cpu_is_asked_once(tmp_path: Path) -> None:
    found = program(tmp_path, "read command; test $command = quit")
    assert (
        accelerator(found, "auto")
        == accelerator(found, "kvm")
        == Accelerator("kvm", "kvm, with which QEMU has made a CPU")
    )
    (called,) = (tmp_path / "calls").read_text().splitlines()
    assert "-accel kvm -cpu host" in called
    assert accelerator(found, "tcg") == Accelerator("tcg", "tcg, as requested")


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo 'error: failed to set MSR' >&2; echo EAX=0 >&2; exit 1", "error: failed to set MSR"),
        ("exit 3", "exit code 3"),
    ],
)
def test_without_a_cpu_guests_are_emulated(tmp_path: Path, script: str, why: str) -> None:
    found = program(tmp_path, script)
    assert accelerator(found, "auto") == Accelerator("tcg", f"tcg, because KVM does not work: {why}")
    with pytest.raises(StartError, match=rf"accel=kvm, but KVM does not work: {why}; use accel=tcg or auto"):
        accelerator(found, "kvm")


def test_a_cpu_that_boots_a_kernel_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qemu.guest_image, "kept_kernel", lambda: Path("/boot/vmlinuz"))
    assert accelerator(program(tmp_path, BOOTS % "exit 0"), "auto").name == "kvm"
    _, boot = (tmp_path / "calls").read_text().splitlines()
    assert "-accel kvm -cpu host" in boot and "-kernel /boot/vmlinuz" in boot and "earlyprintk=ttyS0" in boot


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (
            "echo KASLR disabled; echo 'KVM internal error. Suberror: 1' >&2; echo 'extra data[0]: 0x1' >&2; "
            "echo 'emulation failure' >&2; echo RAX=0 >&2; exec sleep 60",
            "KVM internal error. Suberror: 1, emulation failure",
        ),
        ("echo KASLR disabled; exit 1", "a guest ended with exit code 1; the last it said: KASLR disabled"),
    ],
)
def test_what_kvm_says_when_a_guest_fails_is_told(tmp_path: Path, script: str, why: str) -> None:
    assert kvm_failure(program(tmp_path, BOOTS % script).binary, Path("/boot/vmlinuz")) == why


def test_a_guest_that_does_not_come_up_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qemu, "PROBE_S", 0.2)
    hangs = program(tmp_path, BOOTS % "echo KASLR disabled; exec sleep 60")
    why = kvm_failure(hangs.binary, Path("/boot/vmlinuz"))
    assert why == "a guest has not booted a kernel after 0.2 s; the last it said: KASLR disabled"


def test_without_a_device_nothing_is_started(tmp_path: Path, device: Path) -> None:
    device.unlink()
    assert kvm_failure(program(tmp_path, "").binary, None) == f"{device} does not exist"
    assert not (tmp_path / "calls").exists()
