# SPDX-License-Identifier: BSD-3-Clause
"""VNF isolation: its names, and the record of each VNF that is not a task of the tester."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

HostingName = Literal["process", "separate", "container", "vm", "image", "exec"]
"""``process``: a task of the tester's process. ``separate``: a planed process of its own. ``image``, ``exec``: the
user's own VNF, a disk image in a VM or a command in a container."""

WORDS: Mapping[HostingName, str] = {"separate": "in processes", "container": "in containers", "vm": "in VMs"}
"""Words for a common hosting of all VNFs that their text does not name."""


@dataclass(frozen=True, slots=True)
class HostingFacts:
    """One hosted VNF as it really runs: a part of the conditions of a start."""

    vnf: str
    hosting: HostingName
    program: str
    """``QEMU 7.2.22``, ``bubblewrap 0.8.0``, ``podman 4.3.1 with runc 1.1.5``, ``planed 0.1.0``."""
    emulated: bool = False
    """Software emulation (TCG): frames count, rates and latencies tell nothing."""
    details: Mapping[str, str] = field(default_factory=dict)
    """What else a reader must know, in words: ``accelerator``: ``tcg, no KVM: the probe boot failed: ...``; ``kernel``,
    ``memory``, ``rings``, ``cpus``, ``limits``, ``image``."""
