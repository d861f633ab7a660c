# SPDX-License-Identifier: BSD-3-Clause
"""PCI devices, such as virtual functions, that a VNF has as its ports or beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from planebench.host import pci_binding
from planebench.host.pci import Nic
from planebench.hosting.base import HostedRequest
from planebench.model.option import Option

DEVICES = Option(
    "devices", "list", "NICs or virtual functions for the VNF, as libvirt names them: pci_0000_3b_02_0+pci_0000_3b_02_1"
)
VFIO = Path("/dev/vfio/vfio")


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
