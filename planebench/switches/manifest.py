# SPDX-License-Identifier: BSD-3-Clause
"""The fairness manifest of a switch that is started (planebench.model.manifest says what its keys are)."""

from __future__ import annotations

from planebench.model.claims import FeatureClaim
from planebench.model.cpus import cpu_text
from planebench.model.manifest import MANIFEST_KEYS, UNKNOWN
from planebench.wiring.request import SwitchRequest


def manifest(request: SwitchRequest, *, function: str, burst: str, **more: str | FeatureClaim) -> dict[str, str]:
    """Return a complete manifest from the request and the values of the adapter; other keys are ``unknown``."""
    known = {
        "function": function,
        "cores": cpu_text(request.worker_cpus),
        "queues": str(request.queues),
        "ring_size": ", ".join(str(size) for size in sorted({port.ring_size for port in request.ports})),
        "burst": burst,
        "memory": "hugepages" if request.hugepages else "4 KiB pages (no hugepages)",
        **{key: str(value) for key, value in more.items()},
    }
    return {**{key: known.pop(key, UNKNOWN) for key in MANIFEST_KEYS}, **known}
