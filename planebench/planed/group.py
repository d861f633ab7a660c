# SPDX-License-Identifier: BSD-3-Clause
"""Several planeds that answer as one: generators and monitors in processes, guests, or on hosts of their own.

It is the one place that knows which of them has a task: who sends and counts calls it as he calls a single planed.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import cast

from planebench.planed.client import Call
from planebench.planed.document import Json

DELAY_MIN_S, DELAY_MAX_S = 0.002, 0.25
"""Between the first call and the common begin of the sending: twice what the calls took the last time."""


@dataclass(frozen=True, slots=True)
class Member:
    """One of the processes, and the names of its tasks; of those that no member names, the first member has all."""

    call: Call
    tasks: Collection[str] = ()


class PlanedGroup:
    """Processes whose :meth:`__call__` is that of one. Not thread-safe."""

    def __init__(self, members: Sequence[Member]) -> None:
        self._members = tuple(members)
        self._delay_s = DELAY_MAX_S

    def __call__(self, method: str, params: Json | None = None, **more: float) -> Json:
        """Ask all, or the one that has the task, and return their answers as one.

        Lists are joined, and a flag is set if any has set it; all else is what the first one says.
        """
        if len(self._members) == 1:
            return self._members[0].call(method, params, **more)
        if method == "traffic.start" and params is not None:
            return self._start_traffic(params)
        if params is not None and "task" in params:
            return self._owner(str(params["task"])).call(method, params, **more)
        found: Json = {}
        for member in self._members:
            for key, value in member.call(method, params, **more).items():
                mine = found.get(key)
                if key not in found:
                    found[key] = value
                elif isinstance(mine, list) and isinstance(value, list):
                    found[key] = [*mine, *value]
                elif isinstance(mine, bool) and isinstance(value, bool):
                    found[key] = mine or value
        return found

    def _owner(self, task: str) -> Member:
        return next((member for member in self._members if task in member.tasks), self._members[0])

    def _start_traffic(self, params: Json) -> Json:
        """Clear every counter, then start the generators, at the same time as far as the calls let them.

        A process that cleared its counters after another has begun to send would lose what it has counted by then. One
        that sends alone does so at once: workers that share a CPU have it right after a call, and later perhaps not.
        """
        loads = cast("list[Json]", params["generators"])
        owners = [self._owner(str(load["task"])) for load in loads]
        senders = []
        for member in self._members:
            if own := [load for load, owner in zip(loads, owners, strict=True) if owner is member]:
                senders.append((member, own))
        called_s = time.monotonic()
        begin_s = called_s + (self._delay_s if len(senders) > 1 else 0.0)
        for member in self._members:
            member.call("traffic.start", {**params, **_delay(begin_s), "generators": []})
        for member, own in senders:
            member.call("traffic.start", {**params, **_delay(begin_s), "generators": own, "keep": True})
        ended_s = time.monotonic()
        self._delay_s = min(max(2 * (ended_s - called_s), DELAY_MIN_S), DELAY_MAX_S)
        time.sleep(max(begin_s - ended_s, 0.0))
        return {}


def _delay(begin_s: float) -> Json:
    """Return how long to wait until a time; planed's own delay where it is over, or nearly."""
    left_s = begin_s - time.monotonic()
    return {"delay_ns": int(left_s * 1e9)} if left_s > DELAY_MIN_S / 2 else {}
