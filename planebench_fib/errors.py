# SPDX-License-Identifier: BSD-3-Clause
"""The errors of an update, each with its reason and a remedy."""

from __future__ import annotations

from planebench_fib.exceptions import Error
from planebench_fib.messages import Ack, Code, HopRecord, Record, RouteRecord

REASONS: dict[Code, str] = {
    Code.MALFORMED: "malformed message",
    Code.QUOTA: "the quota of this VNF is exhausted: delete some or raise quota_next_hops",
    Code.FULL: "the forwarder's table is full; ask the operator for a larger one (routes4, routes6)",
    Code.NO_NEXT_HOP: "unknown next hop in this session; announce the next hop before its routes",
    Code.EXISTS: "it already exists; use replace()",
    Code.ABSENT: "it does not exist",
    Code.BUSY_HOP: "routes or groups still use this next hop; delete or replace them first",
}


_ROUTE_REASONS: dict[Code, str] = {
    Code.MALFORMED: "malformed message: the address has bits behind the length",
    Code.QUOTA: "the quota of this VNF is exhausted ({routes} of {quota} routes): delete some or raise quota_routes",
}


def _reason(record: Record | None, ack: Ack) -> str:
    match record:
        case RouteRecord() if ack.code in _ROUTE_REASONS:
            return _ROUTE_REASONS[ack.code].format(routes=ack.routes, quota=ack.quota)
        case HopRecord() if ack.code is Code.MALFORMED:
            vlan = f", VLAN {record.vlan}" if record.vlan else ""
            return (
                f"malformed message: wire {record.wire}{vlan} or the source MAC address is not this VNF's, or the "
                "destination is a group address"
            )
    return REASONS.get(ack.code, ack.code.name)


class FibError(Error):
    """The forwarder did not do what it was asked."""


class FibTimeout(FibError):
    """The forwarder does not answer."""


class FibSessionLost(FibError):
    """The forwarder does not know the session, e.g. after a restart. A new one has begun: announce everything again."""


class FibUpdateError(FibError):
    """An update was refused; those around it were not. ``record`` is None if it was a whole message."""

    def __init__(self, what: str, record: Record | None, ack: Ack) -> None:
        super().__init__(f"{what}: {_reason(record, ack)}")
        self.record = record
        self.code = ack.code
