# SPDX-License-Identifier: BSD-3-Clause
"""What the host took from the pollers of a trial, and the figures of the time that they had.

At maximum offered load nothing passes while tester, switch or a VNF in a process of its own stands: rings hold some ten
microseconds. So the rate of a switch is what was forwarded per time in which all of them had their CPUs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean

from planebench.model.records import SCHEDSTAT_MIN_NS, Evidence, ThreadEvidence, Trial
from planebench.model.server import RANDOM

READING_NS = 200_000
"""Between the readings of two threads' accounts: 50 us on a quiet machine."""
KERNEL_THREADS = ("napi/", "ksoftirqd/")
"""Names of the kernel's threads that forward."""
OWN_ROUNDS = 3
"""Gaps that are shorter than so many times their threshold in the mean are rounds of the tester's own work. The host
takes milliseconds at a time."""
STOOD_MAX = 0.98
"""No larger share of a trial is taken off: what is left of it tells nothing."""
STOOD_SHARE = 0.02
"""A trial whose pollers stood for a larger share of it was disturbed by the host."""


@dataclass(frozen=True, slots=True)
class Stood:
    """Shares of the sending time, 0 to 1, in which the host kept switch, hosted VNFs and tester from polling."""

    switch: float = 0.0
    vnfs: float = 0.0
    tester: float = 0.0
    stalled: float | None = None
    """The share in which the tester polled and no frame came; None if it is unknown."""

    @property
    def waited(self) -> float:
        """Return the share in which the switch, or a VNF, waited for its CPU."""
        return 1 - (1 - self.switch) * (1 - self.vnfs)

    @property
    def had(self) -> float:
        """Return the share in which all of them polled.

        While the tester polled, the others stood for as long as no frame came, but not for longer than they waited: a
        stall that no wait explains is the switch's own. Where that is unknown, all stand independently of each other.
        """
        polled = 1 - self.tester
        lost = self.waited * polled if self.stalled is None else min(self.stalled, self.waited)
        return max(polled - lost, 1 - STOOD_MAX)


def stood(evidence: Evidence, duration_ns: int, *, roaming: bool = False) -> Stood:
    """Return how long the pollers of a trial stood. ``roaming``: waits of VNFs that the scheduler moves are measured.

    A tester's wait is a poll gap, too, which it measures itself within the trial; but rounds of its own work that take
    as long as a gap, of a chain of large frames, are the host's only where it waited meanwhile. Waits are read around
    it, by a harness that may wait for a CPU as well: those of a poller are a share of what it ran and waited. The
    workers of a switch stand side by side: the mean of their CPUs counts; the VNFs of a chain one after the other.
    Waits are unknown in a trial shorter than their reading.
    """
    if duration_ns <= 0:
        return Stood()
    cpus: dict[str, dict[int, float]] = {"switch": {}, "vnf": {}, "tester": {}}
    for thread in evidence.threads if duration_ns >= SCHEDSTAT_MIN_NS else ():
        if not (roaming and thread.owner == "vnf"):
            window_ns = max(duration_ns, thread.run_ns + thread.wait_ns)
            share = min(max(lost_ns(thread, evidence, duration_ns) / window_ns, 0.0), STOOD_MAX)
            cpus[thread.owner][thread.cpu] = max(share, cpus[thread.owner].get(thread.cpu, 0.0))
    stolen = evidence.steal_ns / duration_ns / max(len({thread.cpu for thread in evidence.threads}), 1)
    gaps_known = evidence.poll_gap_threshold_ns > 0 or evidence.poll_gap_sum_ns > 0
    switch, tester = (fmean(it.values()) if it else 0.0 for it in (cpus["switch"], cpus["tester"]))
    gaps = evidence.poll_gap_sum_ns / duration_ns if gaps_known else tester + stolen
    if cpus["tester"] and evidence.poll_gap_sum_ns < OWN_ROUNDS * evidence.poll_gaps * evidence.poll_gap_threshold_ns:
        gaps = min(gaps, tester + stolen)
    return Stood(
        min(switch + stolen, STOOD_MAX),
        1 - math.prod(1 - share for cpu, share in cpus["vnf"].items() if cpu not in cpus["switch"]),
        min(gaps, STOOD_MAX),
        None if evidence.stall_ns is None else evidence.stall_ns / duration_ns,
    )


def lost_ns(thread: ThreadEvidence, evidence: Evidence, duration_ns: int) -> int:
    """Return for how long others than those that share its core on purpose kept a thread from running.

    A switch and VNFs that are processes on its core share it on purpose: that is measured (ic16's over-provisioning).
    The kernel adds a wait when it ends, so with 33 sharers and slices of 4 ms the sum is wrong by up to 128 ms. What
    the sharers together did not run, less what they left idle, is exact to the time that the reading takes.

    The threads of a kernel switch share a core as well, one per port. Two pollers of a switch in no such case take
    turns by the scheduler's slices.
    """
    if thread.owner != "tester" and has_vnfs(evidence):
        sharers = [other for other in evidence.threads if other.owner != "tester" and other.cpu == thread.cpu]
        run_ns = sum(other.run_ns for other in sharers)
        kept_ns = thread.wait_ns - (run_ns - thread.run_ns)
        if len(sharers) > 1:
            kept_ns = min(kept_ns, duration_ns - run_ns)
        return kept_ns - READING_NS * len(evidence.threads)
    if thread.owner != "switch" or not thread.thread.startswith(KERNEL_THREADS):
        return thread.wait_ns
    others = (other for other in evidence.threads if other.owner == "switch" and other.thread != thread.thread)
    return thread.wait_ns - sum(other.run_ns for other in others if other.cpu == thread.cpu)


def has_vnfs(evidence: Evidence) -> bool:
    """Return whether VNFs are processes of their own."""
    return any(thread.owner == "vnf" for thread in evidence.threads)


def stood_in(trial: Trial) -> Stood:
    """Return how long the pollers of a trial stood."""
    return stood(trial.evidence, trial.offered_duration_ns, roaming=trial.point.placement == RANDOM)


def rate_pps(trial: Trial) -> float:
    """Return what a trial forwarded per second that its pollers had, at most what its links carry; a paced load is what
    it is."""
    if trial.load.pps_per_direction not in (None, trial.line_rate_pps):
        return trial.throughput_pps
    rate = trial.throughput_pps / stood_in(trial).had
    if trial.line_rate_pps is None:
        return rate
    # Frames that wait in a ring meanwhile come afterwards, so that a full link seems to carry more.
    return min(rate, max(trial.line_rate_pps * len(trial.directions), trial.throughput_pps))


def cycles_per_packet(trial: Trial) -> float | None:
    """Return the busy cycles per packet without those that the clock counted while the poller had no CPU."""
    cycles, share = trial.switch.cycles_per_packet, trial.switch.busy_share
    return cycles if cycles is None or share is None else cycles * (1 - stood_in(trial).switch)


def is_disturbed(trial: Trial) -> bool:
    """Return whether the host kept the pollers of a trial standing for more than STOOD_SHARE of it."""
    return stood_in(trial).had < 1 - STOOD_SHARE
