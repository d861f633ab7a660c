# SPDX-License-Identifier: BSD-3-Clause
"""The errors of an update, each with its reason and a remedy."""

from __future__ import annotations

from planebench_fib.exceptions import Error
from planebench_fib.messages import Ack, Code, Record

REASONS: dict[Code, str] = {
    Code.MALFORMED: "malformed message: unknown wire of this VNF, a group address, or another VNF's source MAC address",
    Code.QUOTA: "the route quota of this VNF is exhausted ({routes} of {quota} routes): delete some or raise it",
    Code.FULL: "the forwarder's table is full; ask the operator for a larger one (routes4, routes6)",
    Code.NO_NEXT_HOP: "unknown next hop in this session; announce the next hop before its routes",
    Code.EXISTS: "it already exists; use replace()",
    Code.ABSENT: "it does not exist",
    Code.BUSY_HOP: "routes or groups still use this next hop; delete or replace them first",
}


class FibError(Error):
    """The forwarder did not do what it was asked."""


class FibTimeout(FibError):
    """The forwarder does not answer."""


class FibSessionLost(FibError):
    """The forwarder does not know the session, e.g. after a restart. A new one has begun: announce everything again."""


class FibUpdateError(FibError):
    """An update was refused; those around it were not. ``record`` is None if it was a whole message."""

    def __init__(self, what: str, record: Record | None, ack: Ack) -> None:
        reason = REASONS.get(ack.code, ack.code.name).format(routes=ack.routes, quota=ack.quota)
        super().__init__(f"{what}: {reason}")
        self.record = record
        self.code = ack.code
