# SPDX-License-Identifier: BSD-3-Clause
"""One sending of a tester, live topology or self-loop: start, wait, let stragglers come in, read every counter once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from planebench.measure.counts import received_total
from planebench.scenarios import Flow
from planebench.scenarios.queues import queue_name

STRAGGLER_DEADLINE_S = 1.0
STRAGGLER_STEP_S = 0.005
STRAGGLER_STEPS = 8
SLICE_S = 0.008
"""Twice what the kernel gives a thread on a busy core before the next one has its turn (CFS: 3 to 4 ms)."""
START_DELAY_S = 0.002
"""planed starts sending a moment after it is told to; nothing of ours may run on its core before the end."""

Call = Callable[..., dict[str, Any]]
"""Method and parameters of an RPC -> its result. Raises DiedError when the tester is gone."""


def next_epoch(epoch: int) -> int:
    """1 to 65535, and round again: 0 is no trial."""
    return epoch % 0xFFFF + 1


def send(
    call: Call,
    epoch: int,
    flows: Sequence[Flow],
    frame_size_bytes: int,
    duration_s: float,
    pps: float | None,
    probe_rate_pps: int = 0,
    *,
    queues: int = 1,
    profile: dict[str, Any] | None = None,
    stamps: bool = False,
    turns: int = 1,
    sleep: Callable[[float], None] = time.sleep,
    watch: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Clear, send for ``duration_s`` (flat out if ``pps`` is None), wait for stragglers; returns ``stats.get``.

    ``turns``: how many pollers share a core on the way: a frame waits for the slices of all of them.
    ``sleep`` waits while frames are sent; ``watch`` is called just before and just after that. The others as in
    :func:`start`.
    """
    watch()
    start(
        call,
        epoch,
        flows,
        frame_size_bytes,
        duration_s,
        pps,
        probe_rate_pps,
        queues=queues,
        profile=profile,
        stamps=stamps,
    )
    sleep(duration_s + START_DELAY_S)
    watch()
    return end(call, turns)


def start(
    call: Call,
    epoch: int,
    flows: Sequence[Flow],
    frame_size_bytes: int,
    duration_s: float,
    pps: float | None,
    probe_rate_pps: int = 0,
    *,
    queues: int = 1,
    profile: dict[str, Any] | None = None,
    stamps: bool = False,
) -> None:
    """Clear, and begin to send.

    The rate of a flow is spread evenly over the ``queues`` of its port.
    ``profile`` as planed takes it (traffic.document); sizes of its own replace the frame size. With ``stamps`` every
    task of the path notes when it had each probe.
    """
    rate: dict[str, Any] = {"flat_out": True} if pps is None else {"rate_pps": pps / queues}
    frames = (
        {"frame_size_bytes": frame_size_bytes, **rate} if profile is None else _frames(profile, frame_size_bytes, rate)
    )
    every = {**frames, "probe_rate_pps": probe_rate_pps / queues}
    names = [queue_name(f"gen-{flow.sender_port}", queue) for flow in flows for queue in range(queues)]
    generators = [{"task": name, **every} for name in names]
    begin = {"epoch": epoch, "duration_ns": int(duration_s * 1e9), "generators": generators}
    if stamps:
        begin["stamps"] = True
    call("traffic.start", begin)


def end(call: Call, turns: int = 1) -> dict[str, Any]:
    """The counters once nothing is sent any more and no straggler comes in."""
    while call("traffic.get")["running"]:
        time.sleep(0.001)
    return _settled(call, STRAGGLER_STEP_S if turns == 1 else turns * SLICE_S)


def _frames(profile: dict[str, Any], frame_size_bytes: int, rate: dict[str, Any]) -> dict[str, Any]:
    """A profile, with frame size and rate where it has none of its own."""
    frames: dict[str, Any] = {"profile": profile}
    if "sizes" not in profile and "pcap" not in profile:
        frames["frame_size_bytes"] = frame_size_bytes
    return frames if profile.get("pcap", {}).get("timing") == "recorded" else frames | rate


def _settled(call: Call, step_s: float) -> dict[str, Any]:
    """The counters once no more frames come in for so long."""
    deadline = time.monotonic() + max(STRAGGLER_DEADLINE_S, STRAGGLER_STEPS * step_s)
    time.sleep(2 * step_s)
    stats = call("stats.get")
    while time.monotonic() < deadline:
        time.sleep(step_s)
        later = call("stats.get")
        if received_total(later) == received_total(stats):
            return later
        stats = later
    return stats
