# SPDX-License-Identifier: BSD-3-Clause
"""Options of VNFs in virtual machines, and what follows from them and from a request."""

from __future__ import annotations

from planebench.hosting.base import HostedRequest
from planebench.hosting.qemu import Nic, NicSettings, Rings
from planebench.model.errors import UsageError
from planebench.model.option import Option

STANDARD_FRAME_BYTES = 1518
VCPUS_MAX = 64
MEMORY_MAX_MB = 2**20

RINGS = Option("rings", "text", "virtqueue layout offered to the guest", "split", ("split", "packed"))
ACCEL = Option("accel", "text", "auto: kvm if a test boot works, else tcg (emulation)", "auto", ("auto", "kvm", "tcg"))


def vcpus_option(default: str) -> Option:
    """Return the option ``vcpus``."""
    return Option("vcpus", "whole", "number of CPUs of the guest", default, least=1, most=VCPUS_MAX)


def memory_option(default: str) -> Option:
    """Return the option ``memory_mb``."""
    return Option("memory_mb", "whole", "memory of the guest in MiB", default, least=64, most=MEMORY_MAX_MB)


def vcpu_count(request: HostedRequest, more: int) -> int:
    """Return the requested number, or ``more`` than the VNF has CPUs of the host. Raises UsageError for too few."""
    least = len(request.cpus)
    wanted = int(_text(request, "vcpus", str(least + more)))
    if wanted < least:
        raise UsageError(
            f"{request.name}: vcpus={wanted}, but the VNF polls on {least} CPUs; give vcpus={least} or more"
        )
    return wanted


def vcpu_places(request: HostedRequest, vcpus: int) -> tuple[frozenset[int], ...]:
    """Return where each vCPU may run: the last ones forward and are pinned, those before are for the guest's Linux."""
    others = vcpus - len(request.cpus)
    return (*(request.control_cpus,) * others, *(frozenset({cpu}) for cpu in request.cpus))


def memory_mb(request: HostedRequest, default: int, least: int) -> int:
    """Return the requested memory, or ``default``. Raises UsageError for less than ``least``."""
    wanted = int(_text(request, "memory_mb", str(default)))
    if wanted < least:
        raise UsageError(f"{request.name}: memory_mb={wanted} is too small; give memory_mb={least} or more")
    return wanted + wanted % 2  # whole hugepages


def nics(request: HostedRequest) -> tuple[Nic, ...]:
    """Return a NIC for each virtio port, in their order."""
    return tuple(Nic(port.socket, port.mac) for port in request.ports if not port.address)


def nic_settings(request: HostedRequest) -> NicSettings:
    """Return the settings of the NICs. Only a user's image needs mergeable buffers: planed's hold the largest frame."""
    rings: Rings = "packed" if _text(request, "rings", "split") == "packed" else "split"
    own = request.document is None
    return NicSettings(rings, request.ring_size, request.queues, own and request.max_frame_bytes > STANDARD_FRAME_BYTES)


def wanted_accelerator(request: HostedRequest) -> str:
    """Return ``auto``, ``kvm`` or ``tcg``."""
    return _text(request, "accel", "auto")


def _text(request: HostedRequest, key: str, default: str) -> str:
    return str(request.values.get(key, default))
