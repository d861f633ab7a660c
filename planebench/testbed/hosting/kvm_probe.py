# SPDX-License-Identifier: BSD-3-Clause
"""A test of KVM by a boot, since /dev/kvm alone proves little.

In nested hypervisors KVM may start a guest and then fail or crawl; QEMU's own fallback to TCG covers only a KVM that
does not start. The probe boots the guest image without a document: the guest prints that it is up, and ends. The
outcome is kept for this boot of the machine, this QEMU and this kernel.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from planebench.host import procfs
from planebench.host.files import default_folder, keep
from planebench.host.process import Supervisor, stretched
from planebench.host.programs import Found
from planebench.model.errors import StartError
from planebench.testbed.hosting import qemu

DEVICE = Path("/dev/kvm")
LIMIT_S = 10.0
"""The guest takes 2 s with KVM and 4 s without."""
MEMORY_MB = 192
GUEST_UP = "GUEST-UP"
COMMAND_LINE = "console=ttyS0 quiet panic=-1 no_timer_check mitigations=off nokaslr"
"""no_timer_check: a virtual CPU without CPU time is not a broken timer. panic=-1: end at once."""

_one_at_a_time = threading.Lock()


@dataclass(frozen=True, slots=True)
class Accelerator:
    """The accelerator of a guest, and in ``told`` the reason for it."""

    name: qemu.AcceleratorName
    told: str


@dataclass(frozen=True, slots=True)
class KvmOutcome:
    """The outcome of a probe: whether a guest came up, and if not, the reason in one line."""

    works: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class KvmProbe:
    """A probe of KVM. ``cpus``: where it may run."""

    qemu: Found
    kernel: Path
    initramfs: Path
    cpus: frozenset[int]
    supervisor: Supervisor
    limit_s: float = LIMIT_S
    device: Path = DEVICE

    def accelerator(self, wanted: str) -> Accelerator:
        """Return the accelerator for ``auto``, ``kvm`` or ``tcg``. Raises StartError if required KVM does not work."""
        if wanted == "tcg":
            return Accelerator("tcg", "tcg, as requested")
        outcome = self.outcome()
        if outcome.works:
            return Accelerator("kvm", "kvm, verified by a test boot")
        if wanted == "kvm":
            raise StartError(
                f"accel=kvm, but KVM does not work: {outcome.why}; use accel=tcg or auto. To repeat the test: "
                f"rm -f {self._file()}"
            )
        return Accelerator("tcg", f"tcg, because KVM does not work: {outcome.why}")

    def outcome(self) -> KvmOutcome:
        """Return the outcome of a boot, now or before. Others that ask during a boot wait for its outcome."""
        if closed := _no_device(self.device):
            return KvmOutcome(False, closed)
        with _one_at_a_time:
            file = self._file()
            kept = _load(file)
            if kept is None:
                kept = self._boot()
                with contextlib.suppress(OSError):  # one that cannot be kept is determined again
                    keep(file, json.dumps(asdict(kept)).encode())
        return kept

    def _file(self) -> Path:
        """Return the file of the outcome, named by everything that the outcome depends on."""
        programs = [(str(path.resolve()), path.stat().st_mtime_ns) for path in (self.qemu.binary, self.kernel)]
        told = json.dumps([procfs.boot_id(), self.qemu.version, programs])
        return _folder() / f"{_prefix()}{hashlib.sha256(told.encode()).hexdigest()[:16]}.json"

    def _boot(self) -> KvmOutcome:
        machine = qemu.Guest(
            name="kvm-probe",
            version=self.qemu.version,
            accelerator="kvm",
            vcpus=1,
            memory_mb=MEMORY_MB,
            boot=qemu.Kernel(self.kernel, self.initramfs, COMMAND_LINE),
        )
        process = self.supervisor.spawn(
            machine.name, [str(self.qemu.binary), *qemu.arguments(machine)], cpus=self.cpus, high_priority=False
        )
        limit_s = stretched(self.limit_s)
        end = time.monotonic() + limit_s
        try:
            while time.monotonic() < end:
                ended = not process.alive()
                if GUEST_UP in process.log_path.read_text(errors="replace"):
                    return KvmOutcome(True)
                if ended:
                    # The first line with an error: QEMU may print registers after it.
                    lines = process.log_tail(100).splitlines()
                    told = next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "")
                    why = told.removeprefix(f"{qemu.PROGRAM}: ") or f"exit code {process.returncode}"
                    return KvmOutcome(False, f"the test boot failed: {why}")
                time.sleep(0.02)
            return KvmOutcome(False, f"the test boot did not finish within {limit_s:g} s")
        finally:
            process.kill()


def known_failure(device: Path = DEVICE) -> str:
    """Return why KVM does not work, as far as that is known without a boot; empty if it may work."""
    if closed := _no_device(device):
        return closed
    kept = [outcome for file in _folder().glob(f"{_prefix()}*.json") if (outcome := _load(file)) is not None]
    return kept[0].why if kept and not any(outcome.works for outcome in kept) else ""


def _folder() -> Path:
    return default_folder() / "guest"


def _prefix() -> str:
    """Return how the files of outcomes since this boot of the machine begin."""
    return f"kvm-{procfs.boot_id()[:8]}-"


def _no_device(device: Path) -> str:
    if not device.exists():
        return f"{device} does not exist"
    if not os.access(device, os.R_OK | os.W_OK):
        return f"no permission to open {device}; add this user to group kvm"
    return ""


def _load(file: Path) -> KvmOutcome | None:
    with contextlib.suppress(OSError, ValueError, TypeError):
        return KvmOutcome(**json.loads(file.read_text(encoding="utf-8")))
    return None
