# SPDX-License-Identifier: BSD-3-Clause
"""One sending of the tester: start, wait, let late frames arrive, read every counter once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from planebench.measure.counts import received_total
from planebench.planed.requests import Call, Load, Profile, get_statistics, is_sending, start_traffic
from planebench.planed.statistics import Statistics
from planebench.scenarios.flows import Flow
from planebench.scenarios.queues import queue_name

STRAGGLER_DEADLINE_S = 1.0
STRAGGLER_STEP_S = 0.005
STRAGGLER_STEPS = 8
SLICE_S = 0.008
"""Twice what the kernel gives a thread on a busy core before the next one has its turn (CFS: 3 to 4 ms)."""
START_DELAY_S = 0.002
"""planed starts sending a moment after it is told to; nothing of ours may run on its core before the end."""


def next_epoch(epoch: int) -> int:
    """Return the next number from 1 to 65535, in a cycle: 0 marks no trial."""
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
    profile: Profile | None = None,
    stamps: bool = False,
    pollers_on_core: int = 1,
    sleep: Callable[[float], None] = time.sleep,
    watch: Callable[[], None] = lambda: None,
) -> Statistics:
    """Clear, send for ``duration_s`` (``pps`` None: maximum offered load), wait for late frames; return ``stats.get``.

    ``pollers_on_core``: how many pollers share a core on the way: a frame waits for the slices of all of them.
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
    return end(call, pollers_on_core)


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
    profile: Profile | None = None,
    stamps: bool = False,
) -> None:
    """Clear the counters and begin to send.

    The rate of a flow is spread evenly over the ``queues`` of its port.
    ``profile`` as planed takes it (traffic.document); sizes of its own replace the frame size. With ``stamps`` every
    task of the path notes when it had each probe.
    """
    names = [queue_name(f"gen-{flow.sender_port}", queue) for flow in flows for queue in range(queues)]
    own_sizes = profile is not None and ("sizes" in profile or "pcap" in profile)
    load = Load(
        task="",
        rate_pps=None if pps is None else pps / queues,
        frame_size_bytes=None if own_sizes else frame_size_bytes,
        probe_rate_pps=probe_rate_pps / queues,
        profile=profile,
        recorded=profile is not None and profile.get("pcap", {}).get("timing") == "recorded",
    )
    start_traffic(call, epoch, duration_s, [replace(load, task=name) for name in names], stamps=stamps)


def end(call: Call, pollers_on_core: int = 1) -> Statistics:
    """Return the counters once nothing is sent and no late frame arrives any more."""
    while is_sending(call):
        time.sleep(0.001)
    return _settled(call, STRAGGLER_STEP_S if pollers_on_core == 1 else pollers_on_core * SLICE_S)


def _settled(call: Call, step_s: float) -> Statistics:
    """Return the counters once no frame has arrived for the given time."""
    deadline = time.monotonic() + max(STRAGGLER_DEADLINE_S, STRAGGLER_STEPS * step_s)
    time.sleep(2 * step_s)
    stats = get_statistics(call)
    while time.monotonic() < deadline:
        time.sleep(step_s)
        later = get_statistics(call)
        if received_total(later) == received_total(stats):
            return later
        stats = later
    return stats
