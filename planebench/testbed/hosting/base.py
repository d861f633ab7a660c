# SPDX-License-Identifier: BSD-3-Clause
"""The seam between the harness and what VNFs run in (docs/hosting.md). Adding a hosting = one file and a line in
``registry.py``. Nothing else knows a hosting by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from planebench.host import pci_binding
from planebench.host.evidence import ThreadRef
from planebench.host.own_user import free_uid
from planebench.host.pci import Nic
from planebench.host.process import Process, Supervisor
from planebench.host.programs import Found, NotFound
from planebench.model.dimensions import HostingFacts
from planebench.model.errors import DiedError
from planebench.model.switch import Option, Value
from planebench.planed.document import Document
from planebench.planed.process import PlanedProcess

IDLE = Option(
    "idle",
    "text",
    "behavior when no packets arrive",
    "sleep if the VNF shares its CPU in a chain, else poll",
    ("poll", "sleep"),
)
"""The option of hostings with a planed inside; planed finds it in its document."""
VFIO = Path("/dev/vfio/vfio")


@dataclass(frozen=True, slots=True)
class HostedPort:
    """A port of a VNF: virtio, whose vhost-user device is the switch, which listens on ``socket`` already; or a virtual
    function of a NIC at the PCI address ``address``. A VNF that is enclosed sees the folder of its socket."""

    name: str
    socket: Path
    mac: str
    address: str = ""


@dataclass(frozen=True, slots=True)
class HostedRequest:
    """The request to start one hosted VNF."""

    name: str
    """``vnf0``: also the name of its folder in ``workdir``."""
    ports: tuple[HostedPort, ...]
    """Two in a chain, in path order; one of VNFs side by side."""
    values: Mapping[str, Value]
    """The values of the hosting's own options, by key."""
    document: Document | None
    """planed's, with these ports as virtio-user ports, and one worker; None for a VNF that is the user's own."""
    files: tuple[Path, ...]
    """Files that the document names, by absolute paths: they must be there under the same paths inside."""
    cpus: tuple[int, ...]
    """CPUs to which its forwarding threads are pinned."""
    control_cpus: frozenset[int]
    """CPUs for all its other threads."""
    workdir: Path
    """The folder of the topology: private, short, shared with the switch's sockets."""
    planed: Path
    ring_size: int = 256
    queues: int = 1
    """Queue pairs of each port."""
    max_frame_bytes: int = 1518
    hugepages: bool = False
    shares_cpu: bool = False
    """Others poll on ``cpus`` too: it should sleep when no packets arrive."""
    uid: int | None = field(default_factory=free_uid)
    """The user that it is if it is enclosed; None for ours, if we cannot give it one of its own."""


class RunningVnf:
    """A started VNF: one process, which is planed, a command of the user, or QEMU.

    Frames that cross it, not its own words, prove that it forwards.
    """

    def __init__(
        self,
        process: Process,
        facts: HostingFacts,
        threads: tuple[ThreadRef, ...] = (),
        planed: PlanedProcess | None = None,
        title: str = "",
        files: tuple[Path, ...] = (),
        *,
        same_clock: bool = True,
    ) -> None:
        """Take a VNF that was started; ``files`` are those that it leaves behind."""
        self.name = facts.vnf
        self.facts = facts
        self.same_clock = same_clock
        """Whether the TSC inside is the host's: stamps of its tasks may be set against the tester's. A guest's begins
        with the guest, and under TCG it is another clock altogether."""
        self.planed = planed
        """The planed inside; None for a VNF of the user."""
        self.process = process
        """Paused (SIGSTOP to its group) while another switch is measured."""
        self._title = title or f"{facts.vnf} ({facts.hosting})"
        self._files = files
        self._threads = threads

    def threads(self) -> tuple[ThreadRef, ...]:
        """Return the threads that forward: planed's workers or vCPUs. They stay the same until the VNF ends."""
        return self._threads

    def forward(self) -> None:
        """Let the VNF poll once all others of its topology are up; on a shared core a poller would delay them.

        A VNF that starts by itself does nothing. Raises StartError with its last log lines.
        """

    def check(self) -> None:
        """Raise DiedError, with the last log lines, if the VNF is gone."""
        if not self.process.alive():
            raise DiedError(f"{self._title} died: {self._last_words()}")

    def ask_to_end(self) -> None:
        """Ask the VNF to end, without waiting: many end together."""
        if self.process.alive():
            self.process.ask_to_end()

    def kill(self) -> None:
        """Send SIGKILL to all of it, as in a crash, and remove what is left of it. Never raises."""
        self.process.kill()
        self._clean()

    def stop(self) -> None:
        """End the VNF, paused or not. Never raises; safe to call twice."""
        self.process.terminate()
        self._clean()

    def _clean(self) -> None:
        if self.planed is not None:
            self.planed.close()
        for file in self._files:
            file.unlink(missing_ok=True)

    def _last_words(self) -> str:
        return self.process.exit_report()


class Hosting(Protocol):
    """One kind of VNF isolation. ``start`` may be called from several threads at once."""

    name: str
    title: str
    options: tuple[Option, ...]
    """Where it hosts what is the user's own (``image``, ``exec``), the first is what stands behind its name without a
    key: ``image:/x.qcow2``, ``exec:"command"``."""
    ready_within_s: float
    """Deadline for the first frames to cross it, on a busy machine."""

    def find(self) -> Found | NotFound:
        """Return whether this hosting is available, and its version; cheap, starts nothing but ``--version``."""

    def start(self, request: HostedRequest, supervisor: Supervisor) -> RunningVnf:
        """Start a VNF and return as soon as it is asked to come up. Raises StartError with its last log lines.

        It forwards after :meth:`RunningVnf.forward`, at the latest.
        """


def bind_ports(request: HostedRequest, *, for_guest: bool) -> tuple[Nic, ...]:
    """Bind the ports of a VNF that are devices to vfio-pci, until the end of the run.

    ``for_guest``: a container or a virtual machine has them. Raises UsageError for a device that must not be taken,
    StartError where the system refuses.
    """
    ports = [port.address for port in request.ports if port.address]
    return pci_binding.bind(ports, for_guest=for_guest).nics if ports else ()


def device_files(devices: Sequence[Nic]) -> tuple[Path, ...]:
    """Return the files in /dev by which a program in a container uses these devices."""
    groups = {f"{'' if nic.has_iommu else 'noiommu-'}{nic.iommu_group}" for nic in devices}
    return (VFIO, *(VFIO.with_name(group) for group in sorted(groups))) if devices else ()
