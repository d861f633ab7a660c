# SPDX-License-Identifier: BSD-3-Clause
"""FIB updates while frames are sent: the tester plays the control of one VNF (planed's task kind ``fib_source``)."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from planebench.host.deadlines import stretched
from planebench.model.errors import StartError
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import FibUpdates
from planebench.model.traffic import Updates
from planebench.planed.requests import Call, get_statistics
from planebench.planed.statistics import FibSource, Statistics
from planebench.wiring.tasks import SOURCE, control_name

SESSION_DEADLINE_S = 5.0
TOLERANCE = 0.02
MIN_UPDATES = 1000
"""With fewer, those on their way at both ends of a trial are more than that."""


def wait_for_session(call: Call, port: str) -> None:
    """Wait until the forwarder has accepted the session at ``port``. Raises StartError after SESSION_DEADLINE_S."""
    deadline = time.monotonic() + stretched(SESSION_DEADLINE_S)
    while port and not _source(get_statistics(call))["up"]:
        if time.monotonic() > deadline:
            raise StartError(f"the switch does not answer the FIB messages of the VNF at port {port}")
        time.sleep(0.01)


@contextlib.contextmanager
def updating(call: Call, port: str, updates: Updates | None) -> Iterator[None]:
    """Have the control at ``port`` change routes at a rate; ``flat_out``: as fast as they are acknowledged."""
    if not port or updates is None:
        yield
        return
    rate = {"flat_out": True} if updates == "flat_out" else {"updates_per_s": updates}
    call("fib_source.rate", {"task": control_name(port), **rate})
    try:
        yield
    finally:
        call("fib_source.rate", {"task": control_name(port), "updates_per_s": 0})


def fib_updates(stats: Statistics) -> FibUpdates | None:
    """Return the updates of the control of a VNF since the counters were cleared; None if there were none."""
    if not any(task["kind"] == SOURCE for task in stats["tasks"]):
        return None
    found = _source(stats)
    rate = found["updates_per_s"]
    if rate == 0 and not found["sent"]:
        return None
    return FibUpdates(
        intended_per_s=None if rate is None else float(rate),
        duration_ns=int(found["duration_ns"]),
        sent=int(found["sent"]),
        acknowledged=int(found["acknowledged"]),
        refused=int(found["refused"]),
    )


def not_applied(updates: FibUpdates | None) -> tuple[Reason, ...]:
    """Return a remark if fewer updates were applied than requested."""
    if updates is None:
        return ()
    wanted = updates.intended_per_s
    if updates.refused:
        text = f"the switch refused {updates.refused} of {updates.sent} FIB updates"
        return (Reason(ReasonCode.UPDATES_MISSING, text, {"refused": updates.refused, "sent": updates.sent}),)
    few = wanted is not None and updates.sent >= MIN_UPDATES and updates.per_s < (1 - TOLERANCE) * wanted
    if not few or wanted is None:
        return ()
    text = f"{updates.per_s:.0f} FIB updates per second were applied, not {wanted:.0f}"
    return (Reason(ReasonCode.UPDATES_MISSING, text, {"per_s": updates.per_s, "intended_per_s": wanted}),)


def _source(stats: Statistics) -> FibSource:
    return next(task["fib_source"] for task in stats["tasks"] if task["kind"] == SOURCE)
