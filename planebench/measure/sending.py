# SPDX-License-Identifier: BSD-3-Clause
"""Sending through a planed: start, wait, let late frames arrive, read every counter once."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from planebench.host.deadlines import stretched
from planebench.measure.counts import arrived, received_total
from planebench.model.errors import StartError
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
LOOK_S = 1.0
NONCE_MAX = 2**63 - 1
READY_FRAME_BYTES = 64
READY_RATE_PPS = 20_000
READY_DURATION_S = 0.01


@dataclass(frozen=True, slots=True)
class Sending:
    """Frames to send in each of ``flows`` for ``duration_s``; ``pps`` None is the maximum offered load.

    ``profile`` as planed takes it (traffic.document); sizes of its own replace the frame size. With ``stamps`` every
    task of the path notes when it had each probe; with ``clocks`` only its two ends do, by the clocks
    of their ports too. With ``stamp_all`` every frame has a time stamp, not the probes alone.
    """

    flows: Sequence[Flow]
    frame_size_bytes: int
    duration_s: float
    pps: float | None
    probe_rate_pps: float = 0
    profile: Profile | None = None
    stamps: bool = False
    clocks: bool = False
    stamp_all: bool = False
    more: tuple[Load, ...] = ()
    """Loads of further generators."""

    def loads(self, queues: int) -> list[Load]:
        """Return the load of each generator: the rate of a flow is spread evenly over the ``queues`` of its port."""
        profile = self.profile or {}
        pcap = profile.get("pcap")
        return [
            Load(
                task=queue_name(f"gen-{flow.sender_port}", queue),
                rate_pps=None if self.pps is None else self.pps / queues,
                frame_size_bytes=None if pcap or "sizes" in profile else self.frame_size_bytes,
                probe_rate_pps=self.probe_rate_pps / queues,
                profile=self.profile,
                recorded=isinstance(pcap, dict) and pcap.get("timing") == "recorded",
                stamp_all=self.stamp_all,
            )
            for flow in self.flows
            for queue in range(queues)
        ] + [*self.more]


class Sender:
    """Sends through one planed, or several that answer as one, and numbers its sendings.

    ``check`` raises if a process has died. ``epoch`` is the number of the last sending, 1 to 65535 in a cycle; 0 marks
    no sending. ``nonce`` is the secret in all its frames: a frame without it is foreign, whoever made it.
    """

    def __init__(
        self, call: Call, *, queues: int = 1, epoch: int = 0, check: Callable[[], None] = lambda: None
    ) -> None:
        self.call, self.queues, self.epoch = call, queues, epoch
        self.nonce = 1 + secrets.randbelow(NONCE_MAX)
        self._check = check

    @property
    def next_epoch(self) -> int:
        """Return the number that marks the frames of the next sending."""
        return self.epoch % 0xFFFF + 1

    def send(
        self, sending: Sending, *, pollers_on_core: int = 1, watch: Callable[[], None] = lambda: None
    ) -> Statistics:
        """Clear the counters, send, wait for late frames, and return ``stats.get``.

        ``watch`` is called just before and just after the sending. ``pollers_on_core`` as in :meth:`end`.
        """
        watch()
        self.start(sending)
        self._sleep(sending.duration_s + START_DELAY_S)
        watch()
        return self.end(pollers_on_core)

    def start(self, sending: Sending) -> None:
        """Clear the counters and begin to send."""
        self.epoch = self.next_epoch
        start_traffic(
            self.call,
            self.epoch,
            sending.duration_s,
            sending.loads(self.queues),
            stamps=sending.stamps,
            clocks=sending.clocks,
            nonce=self.nonce,
        )

    def end(self, pollers_on_core: int = 1) -> Statistics:
        """Return the counters once nothing is sent and no late frame arrives any more.

        ``pollers_on_core``: how many pollers share a core on the way. A frame waits for the slices of all of them.
        """
        while is_sending(self.call):
            time.sleep(0.001)
        step_s = STRAGGLER_STEP_S if pollers_on_core == 1 else pollers_on_core * SLICE_S
        deadline = time.monotonic() + max(STRAGGLER_DEADLINE_S, STRAGGLER_STEPS * step_s)
        time.sleep(2 * step_s)
        stats = get_statistics(self.call)
        while time.monotonic() < deadline:
            time.sleep(step_s)
            later = get_statistics(self.call)
            if received_total(later) == received_total(stats):
                return later
            stats = later
        return stats

    def wait_until_forwarding(self, flows: Sequence[Flow], within_s: float) -> None:
        """Wait until a few frames of each flow arrive. Raises StartError after ``within_s`` seconds, stretched."""
        within_s = stretched(within_s)
        deadline, missing = time.monotonic() + within_s, list(flows)
        while True:
            self._check()
            missing = [flow for flow in missing if not self._arrives(flow)]
            if not missing:
                return
            if time.monotonic() > deadline:
                names = ", ".join(flow.name for flow in missing)
                raise StartError(f"no frame came through {names} within {within_s:g} s")

    def _arrives(self, flow: Flow) -> bool:
        return arrived(self.send(Sending((flow,), READY_FRAME_BYTES, READY_DURATION_S, READY_RATE_PPS)), flow)

    def _sleep(self, duration_s: float) -> None:
        """Sleep for the time of a sending; in a long one, check every second that all processes are alive."""
        deadline = time.monotonic() + duration_s
        while (left := deadline - time.monotonic()) > 0:
            time.sleep(left if left < 1.5 * LOOK_S else LOOK_S)
            self._check()
