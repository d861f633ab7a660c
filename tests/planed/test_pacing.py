# SPDX-License-Identifier: BSD-3-Clause
"""A paced generator keeps its pace, and uses every slot. The one test here that depends on time: whether every slot was
used is judged by tries that were not disturbed; the pace, as the median over short stretches, by all."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from statistics import median

import dpkt
import pytest
from planed_rig import OTHER_CPU, Planed, ethdev, load, task

pytestmark = pytest.mark.dataplane

TOLERANCE = 0.005
PACE_TOLERANCE = 0.002
STRETCHES_PER_S = 2000
"""Of half a millisecond, or one frame: the clock of a capture tells microseconds, a five hundredth of that."""
TRIES = 5
SHARED_MEMORY = Path("/dev/shm")


@pytest.mark.parametrize(("rate_pps", "duration_s"), [(1_000, 1.0), (100_000, 0.3), (1_000_000, 0.1)])
def test_a_rate_is_hit_within_half_a_percent(planed: Planed, tmp_path: Path, rate_pps: int, duration_s: float) -> None:
    """The capture's own clock says how far apart frames are, and that it took the time it should; every slot is used.

    A thread that got its CPU late loses slots and says so. The pace between losses is right whatever the machine does.
    """
    folder = SHARED_MEMORY if SHARED_MEMORY.is_dir() else tmp_path
    path = folder / f"{planed.process.pid}-{rate_pps}.pcap"
    seen = []
    for number in range(TRIES):
        port = ethdev("e0", f"net_pcap_pace{rate_pps}_{number},tx_pcap={path}")
        planed.apply([port], [task("gen", "generator", "e0")], cpu=OTHER_CPU, nice=-20)
        sent = planed.send(load("gen", rate_pps=rate_pps), duration_s=duration_s)["gen"]["generator"]
        (worker,) = planed.call("stats.get")["workers"]
        planed.apply()  # closes the file
        times = times_of(path)
        path.unlink()
        measured_pps, pace_pps = rate_of(times), pace_of(times, rate_pps)
        assert sent["intended_packets"] == round(rate_pps * duration_s)
        assert sent["duration_ns"] == round(duration_s * 1e9)
        assert sent["offered_packets"] + sent["unsent_late_packets"] == sent["intended_packets"]
        assert sent["unsent_ring_full_packets"] == 0
        assert pace_pps == pytest.approx(rate_pps, rel=PACE_TOLERANCE)
        used = sent["offered_packets"] / sent["intended_packets"]
        if used >= 1 - TOLERANCE and abs(measured_pps / rate_pps - 1) <= TOLERANCE:
            return
        seen.append((used, measured_pps, worker["gaps"], worker["gap_sum_ns"]))
    told = "; ".join(f"{u:.2%} sent at {pps:.0f} pps, {gaps} gaps of {ns / 1e6:.1f} ms" for u, pps, gaps, ns in seen)
    disturbed = sum(gaps > 0 for _, _, gaps, _ in seen)
    assert disturbed > TRIES / 2, f"off {rate_pps} pps without a poll gap in most tries: {told}"
    pytest.skip(f"the machine disturbed each of {TRIES} tries: {told}")


def times_of(path: Path) -> list[float]:
    """Return the time stamps of a capture, in s."""
    with path.open("rb") as file:
        return [float(time) for time, _ in dpkt.pcap.Reader(file)]


def rate_of(times: list[float]) -> float:
    """Frames per second from the first to the last."""
    return (len(times) - 1) / (times[-1] - times[0]) if len(times) > 1 else 0.0


def pace_of(times: list[float], rate_pps: int) -> float:
    """Return the median of the rates of short stretches: those in which no slot was lost, unless they are few."""
    frames = max(1, rate_pps // STRETCHES_PER_S)
    marks = times[::frames]
    return median(frames / (after - before) for before, after in pairwise(marks))
