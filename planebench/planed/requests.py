# SPDX-License-Identifier: BSD-3-Clause
"""The methods of planed as functions with types. Each is asked through ``call``: of a connection, a process, a pair of
processes that answer as one, or a stand-in of a test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from planebench.planed.document import Document, Json
from planebench.planed.statistics import PortState, Stamps, Statistics

Call = Callable[..., Json]
"""Method, parameters if any, and ``timeout_s`` if not the usual -> result. Raises RpcError; DiedError or RpcClosedError
where nobody answers."""
Profile = Json
"""A traffic profile as planed takes it (docs/design/traffic.md), which planebench.traffic.document writes."""


def get_statistics(call: Call) -> Statistics:
    """Return every counter of a process. Its workers are parked meanwhile."""
    return cast("Statistics", call("stats.get"))


def get_ports(call: Call) -> list[PortState]:
    """Return the state of every port of a process."""
    return cast("list[PortState]", call("ports.get")["ports"])


def get_stamps(call: Call, task: str, start: int, limit: int) -> Stamps:
    """Return a page of the stamps of a task, beginning with number ``start``."""
    return cast("Stamps", call("stamps.get", {"task": task, "from": start, "limit": limit}))


def is_sending(call: Call) -> bool:
    """Return whether generators of a process still send."""
    return bool(call("traffic.get")["running"])


def apply(call: Call, document: Document, timeout_s: float | None = None) -> None:
    """Have a process run another document; memory and name are those that it was started with."""
    more = {} if timeout_s is None else {"timeout_s": timeout_s}
    call("config.apply", document.to_json(), **more)


@dataclass(frozen=True, slots=True)
class Load:
    """The load of one generator.

    ``rate_pps`` None: as much as it can; with recorded times of a capture (``recorded``) there is no rate.
    ``frame_size_bytes`` None: the profile has sizes of its own.
    """

    task: str
    rate_pps: float | None
    frame_size_bytes: int | None = None
    probe_rate_pps: float = 0
    profile: Profile | None = None
    recorded: bool = False
    stamp_all: bool = False
    """Every frame has a time stamp, not the probes alone."""

    def to_json(self) -> Json:
        """Return the object as planed takes it."""
        found: Json = {"task": self.task}
        if self.profile is not None:
            found["profile"] = self.profile
        if self.frame_size_bytes is not None:
            found["frame_size_bytes"] = self.frame_size_bytes
        if not self.recorded:
            found |= {"flat_out": True} if self.rate_pps is None else {"rate_pps": self.rate_pps}
        found |= {"stamp_all": True} if self.stamp_all else {}
        return {**found, "probe_rate_pps": self.probe_rate_pps}


def start_traffic(
    call: Call,
    epoch: int,
    duration_s: float,
    loads: Sequence[Load] = (),
    *,
    stamps: bool = False,
    clocks: bool = False,
    nonce: int = 0,
) -> None:
    """Clear every counter and begin to send for ``duration_s``. Without loads only counters and ``stamps`` begin.

    ``stamps``: every task notes its probes; ``clocks``: only generators and monitors do, by the clocks of
    their ports too.
    ``nonce``: a secret number in every frame, by which monitors recognize frames of these loads; 0 for none.
    """
    begin: Json = {
        "epoch": epoch,
        "duration_ns": int(duration_s * 1e9),
        "generators": [load.to_json() for load in loads],
    }
    call(
        "traffic.start",
        begin
        | ({"stamps": True} if stamps else {})
        | ({"clocks": True} if clocks else {})
        | ({"nonce": nonce} if nonce else {}),
    )
