# SPDX-License-Identifier: BSD-3-Clause
"""What may come of an update, each with its reason and the way out."""

from __future__ import annotations

from planebench_fib.exceptions import Error
from planebench_fib.messages import Ack, Code, Record

REASONS: dict[Code, str] = {
    Code.MALFORMED: "the forwarder takes it for malformed: no such wire of this VNF, a group address, or a source MAC "
    "that is not the VNF's",
    Code.QUOTA: "the quota of this VNF is used up ({routes} of {quota} routes): delete some, or have it raised",
    Code.FULL: "the forwarder's table has no room: have the operator make it larger (routes4, routes6)",
    Code.NO_NEXT_HOP: "this session has not announced that next hop: announce it before routes that lead there",
    Code.EXISTS: "it is there already: use replace()",
    Code.ABSENT: "it is not there",
    Code.BUSY_HOP: "routes still lead there: delete or replace them before",
}


class FibError(Error):
    """The forwarder does not do what it is told."""


class FibTimeout(FibError):
    """It does not answer."""


class FibSessionLost(FibError):
    """The forwarder knows nothing of our session, say it has started anew. Another has begun: announce all again."""


class FibUpdateError(FibError):
    """An update was refused; those around it were not. ``record`` is None if it was a whole message."""

    def __init__(self, what: str, record: Record | None, ack: Ack) -> None:
        reason = REASONS.get(ack.code, ack.code.name).format(routes=ack.routes, quota=ack.quota)
        super().__init__(f"{what}: {reason}")
        self.record = record
        self.code = ack.code
