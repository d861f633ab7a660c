# SPDX-License-Identifier: BSD-3-Clause
"""planed, our data plane, as the harness uses it (docs/design/planed-protocol.md)."""

from __future__ import annotations

from planebench.host.planed_program import (
    PLANED_ENV,
    REMEDY,
    STATIC_REMEDY,
    find_planed,
    find_static_planed,
    planed_version,
    require_planed,
)
from planebench.planed.client import PROTOCOL_VERSION, PlanedClient, RpcClosedError, RpcError

__all__ = [
    "PLANED_ENV",
    "PROTOCOL_VERSION",
    "REMEDY",
    "STATIC_REMEDY",
    "PlanedClient",
    "RpcClosedError",
    "RpcError",
    "find_planed",
    "find_static_planed",
    "planed_version",
    "require_planed",
]
