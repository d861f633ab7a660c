# SPDX-License-Identifier: BSD-3-Clause
"""Exact counts: so few frames at a time that no ring can overflow, and time enough for each of them to arrive."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import TypeVar

from planebench.conformance.model import Failure
from planebench.conformance.rig import Rig
from planebench.host.deadlines import stretched
from planebench.measure.counts import TesterCounts, tester_counts, untried
from planebench.model.traffic import PLAIN as PLAIN_TRAFFIC
from planebench.model.traffic import TrafficProfile
from planebench.planed.requests import Call, get_statistics
from planebench.planed.statistics import Statistics
from planebench.scenarios.flows import Flow

T = TypeVar("T")

FRAMES = 96
"""Of one direction in flight at once, at most; with both, fewer than the 256 entries of any ring."""
SENDING_S = FRAMES / 20_000
SENDING_MAX_S = 2.0
"""A worker of the tester has its CPU within that time, on however busy a machine."""
TESTER_SILENT = "nothing: a failure of the tester, which tells nothing of the switch"
ARRIVE_S = 2.0
"""A frame that has not come by then is lost, on however busy a machine."""
LOSSY_ARRIVE_S = 0.1
LOOK_S = 0.01


@dataclass
class Counts:
    """Counts of frames sent and received, added up over rounds."""

    offered: int = 0
    """Taken by the port; or tried, of a sending of which it took none."""
    arrived: int = 0
    """Different ones, damaged or not, at the port where they belong."""
    corrupt: int = 0
    duplicate: int = 0
    reordered: int = 0
    misdirected: int = 0
    foreign: int = 0
    tester_drops: dict[str, int] = field(default_factory=dict)

    @property
    def lost(self) -> int:
        """Return the number of frames that did not arrive."""
        return self.offered - self.arrived

    def add(self, counts: TesterCounts) -> None:
        """Add the counts of one more sending."""
        for way in counts.directions:
            self.offered += way.offered_packets or way.attempted_packets
            self.arrived += way.forwarded_packets + way.corrupt_packets
            self.corrupt += way.corrupt_packets
            self.duplicate += way.duplicate_packets
            self.reordered += way.reordered_packets
        self.misdirected += counts.misdirected_packets
        self.foreign += counts.foreign_packets
        for reason, packets in counts.tester_drops.items():
            self.tester_drops[reason] = self.tester_drops.get(reason, 0) + packets

    def words(self) -> str:
        """Return all counts that are not 0, in words."""
        found = [f"{getattr(self, count.name)} {count.name}" for count in fields(self) if count.name != "tester_drops"]
        drops = [f"{packets} {reason} in the tester" for reason, packets in self.tester_drops.items()]
        return ", ".join(text for text in (*found, *drops) if not text.startswith("0 "))


def send_exact(
    rig: Rig, flows: Sequence[Flow], size: int = 64, profile: TrafficProfile = PLAIN_TRAFFIC, rounds: int = 1
) -> Counts:
    """Send up to ``FRAMES`` frames in each of the flows, each round once the one before has arrived.

    ``rounds`` times, or until one is lost.
    """
    tally, live = Counts(), rig.live
    frames = live.profile(profile, live.topology.chain, flat_out=False)

    def send(duration_s: float) -> Statistics:
        stats = live.send(flows, size, duration_s, FRAMES / duration_s, profile=frames)
        tally.add(settled(live.call, stats, flows, rig.lossless))
        return stats

    while rounds and not tally.lost:
        sent(rig, flows, SENDING_S, send)
        rounds -= 1
    return tally


def sent(rig: Rig, flows: Sequence[Flow], duration_s: float, send: Callable[[float], Statistics]) -> Statistics:
    """Call ``send`` with a duration, then with longer ones until the tester sends in each of the flows.

    A worker of the tester that a busy machine gives its CPU late begins when a short sending is over.
    Return the counters of the last sending. Raises Failure if the tester sends nothing in the longest one.
    """
    duration_s = max(duration_s, rig.sending_min_s)
    while silent := untried(stats := send(duration_s), flows):
        if duration_s >= SENDING_MAX_S:
            raise Failure(f"the tester to send in {' and '.join(silent)}", TESTER_SILENT)
        duration_s = rig.sending_min_s = min(2 * duration_s, SENDING_MAX_S)
    return stats


def settled(call: Call, stats: Statistics, flows: Sequence[Flow], lossless: bool = True) -> TesterCounts:
    """Return the counters of a sending once every frame has arrived, or a while later; ``lossless``: a longer one."""
    counts = tester_counts(stats, flows)
    if _complete(counts):
        return counts
    within_s = ARRIVE_S if lossless else LOSSY_ARRIVE_S
    return read_until(lambda: tester_counts(get_statistics(call), flows), _complete, within_s)


def read_until(read: Callable[[], T], good: Callable[[T], bool], within_s: float) -> T:
    """Return what ``read`` returns once it is ``good``, or after ``within_s`` seconds, stretched."""
    deadline = time.monotonic() + stretched(within_s)
    while not good(found := read()) and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    return found


def _complete(counts: TesterCounts) -> bool:
    return all(way.forwarded_packets + way.corrupt_packets >= way.offered_packets for way in counts.directions)
