# SPDX-License-Identifier: BSD-3-Clause
"""The seam between the harness and what VNFs run in (docs/hosting.md). Adding a hosting = one file and a line in
``registry.py``. Nothing else knows a hosting by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from planebench.host import pci_binding
from planebench.host.evidence import WatchedThread
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
DEVICES = Option(
    "devices", "list", "NICs or virtual functions for the VNF, as libvirt names them: pci_0000_3b_02_0+pci_0000_3b_02_1"
)
"""The option of hostings whose VNFs may have PCI devices as their ports or beside them."""
VFIO = Path("/dev/vfio/vfio")


@dataclass(frozen=True, slots=True)
class HostedPort:
    """A port of a VNF: virtio, whose vhost-user device is the switch, which listens on ``socket`` already; or a virtual
    function of a NIC at the PCI address ``address``."""

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


class Sandbox:
    """The surroundings of a VNF's process that were made for it: here ``files`` that it leaves behind."""

    def __init__(self, *files: Path) -> None:
        self._files = files

    def why(self) -> str:
        """Return a reason for the end of the VNF, to follow its last log lines; empty if none is known."""
        return ""

    def remove(self) -> None:
        """Remove the surroundings when nothing runs in them any more. Never raises; safe to call twice."""
        for file in self._files:
            file.unlink(missing_ok=True)


class RunningVnf:
    """A started VNF: one process, which is planed, a command of the user, or QEMU.

    Frames that cross it, not its own words, prove that it forwards.
    """

    same_clock = True
    """Whether the TSC inside is the host's: stamps of its tasks may be set against the tester's."""

    def __init__(
        self,
        process: Process,
        facts: HostingFacts,
        sandbox: Sandbox,
        threads: tuple[WatchedThread, ...] = (),
        planed: PlanedProcess | None = None,
        inside: Callable[[Document], Document] = lambda document: document,
        title: str = "",
    ) -> None:
        self.name = facts.vnf
        self.facts = facts
        self.planed = planed
        """The planed inside; None for a VNF of the user."""
        self.inside = inside
        """Returns a document of the VNF as its planed has to get it: with the ports and CPUs that it has there."""
        self.processes: tuple[Process, ...] = (process,)
        """Every process of the VNF, to be paused (SIGSTOP to its group) while another switch is measured."""
        self._title = title or f"{facts.vnf} ({facts.hosting})"
        self._process = process
        self._sandbox = sandbox
        self._threads = threads

    def threads(self) -> tuple[WatchedThread, ...]:
        """Return the threads that forward: planed's workers or vCPUs. They stay the same until the VNF ends."""
        return self._threads

    def forward(self) -> None:
        """Let the VNF poll once all others of its topology are up; on a shared core a poller would delay them.

        A VNF that starts by itself does nothing. Raises StartError with its last log lines.
        """

    def check(self) -> None:
        """Raise DiedError, with the last log lines, if the VNF is gone."""
        if not self._process.alive():
            raise DiedError(f"{self._title} died: {self._last_words()}")

    def ask_to_end(self) -> None:
        """Ask the VNF to end, without waiting: many end together."""
        if self._process.alive():
            self._process.ask_to_end()

    def kill(self) -> None:
        """Send SIGKILL to all of it, as in a crash, and remove what is left of it. Never raises."""
        self._process.kill()
        self._clean()

    def stop(self) -> None:
        """End the VNF, paused or not. Never raises; safe to call twice."""
        self._process.terminate()
        self._clean()

    def _clean(self) -> None:
        if self.planed is not None:
            self.planed.close()
        self._sandbox.remove()

    def _last_words(self) -> str:
        return self._process.exit_report() + self._sandbox.why()


class Hosting(Protocol):
    """One kind of VNF isolation. ``start`` may be called from several threads at once."""

    name: str
    title: str
    remedy: str
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


def passed_devices(request: HostedRequest) -> tuple[Nic, ...]:
    """Bind the devices of a request to vfio-pci, until the end of the run: those that are ports, then the others.

    Raises UsageError for a device that must not be taken, StartError where the system refuses.
    """
    more = request.values.get(DEVICES.key)
    ports = [port.address for port in request.ports if port.address]
    wanted = [*ports, *(more if isinstance(more, list) else ())]
    return pci_binding.bind(wanted, for_guest=True).nics if wanted else ()


def bind_ports(request: HostedRequest) -> None:
    """Bind the ports of a VNF without isolation that are devices. Raises as :func:`passed_devices`."""
    if ports := [port.address for port in request.ports if port.address]:
        pci_binding.bind(ports)


def device_files(devices: Sequence[Nic]) -> tuple[Path, ...]:
    """Return the files in /dev by which a program in a container uses these devices."""
    groups = {f"{'' if nic.has_iommu else 'noiommu-'}{nic.iommu_group}" for nic in devices}
    return (VFIO, *(VFIO.with_name(group) for group in sorted(groups))) if devices else ()
