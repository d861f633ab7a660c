# SPDX-License-Identifier: BSD-3-Clause
"""A paced generator hits its rate. The one test here that depends on time: it judges tries that were not disturbed."""

from __future__ import annotations

from pathlib import Path

import dpkt
import pytest
from planed_rig import OTHER_CPU, Planed, ethdev, load, task

pytestmark = pytest.mark.dataplane

TOLERANCE = 0.005
TRIES = 5
PIECE_NS = 20_000
"""What the machine takes at once and counts as a gap: shorter than a slot may be late, longer than a turn."""
SHARED_MEMORY = Path("/dev/shm")


@pytest.mark.parametrize(("rate_pps", "duration_s"), [(1_000, 1.0), (100_000, 0.3), (1_000_000, 0.1)])
def test_a_rate_is_hit_within_half_a_percent(planed: Planed, tmp_path: Path, rate_pps: int, duration_s: float) -> None:
    """Every slot is used, and the capture's own clock says that it took the time it should."""
    folder = SHARED_MEMORY if SHARED_MEMORY.is_dir() else tmp_path
    path = folder / f"{planed.process.pid}-{rate_pps}.pcap"
    tries = []
    for number in range(TRIES):
        port = ethdev("e0", f"net_pcap_pace{rate_pps}_{number},tx_pcap={path}")
        worker = {"name": "w0", "cpu": OTHER_CPU, "gap_threshold_ns": PIECE_NS, "tasks": ["gen"]}
        planed.apply([port], [task("gen", "generator", "e0")], workers=[worker], nice=-20)
        sent = planed.send(load("gen", rate_pps=rate_pps), duration_s=duration_s)["gen"]["generator"]
        (seen,) = planed.call("stats.get")["workers"]
        assert seen["gap_threshold_ns"] == PIECE_NS
        planed.apply()  # closes the file
        measured_pps = rate_of(path)
        path.unlink()
        assert sent["intended_packets"] == round(rate_pps * duration_s)
        assert sent["duration_ns"] == pytest.approx(duration_s * 1e9, rel=50e-6)
        assert sent["offered_packets"] + sent["unsent_late_packets"] == sent["intended_packets"]
        assert sent["unsent_ring_full_packets"] == 0
        used = sent["offered_packets"] / sent["intended_packets"]
        if used >= 1 - TOLERANCE and abs(measured_pps / rate_pps - 1) <= TOLERANCE:
            return
        tries.append((used, measured_pps, seen["gaps"], seen["gap_sum_ns"] / 1e9))
    told = "; ".join(f"{u:.2%} sent at {pps:.0f} pps, {gaps} gaps of {s * 1e3:.1f} ms" for u, pps, gaps, s in tries)
    for used, _, gaps, gap_s in tries:
        assert gaps, f"off {rate_pps} pps without a poll gap: {told}"
        assert (1 - used) * duration_s <= gap_s, f"more slots of {rate_pps} pps are lost than the gaps are long: {told}"
    pytest.skip(f"the machine disturbed each of {TRIES} tries: {told}")


def rate_of(path: Path) -> float:
    """Frames per second from the first to the last, by the time stamps of the file."""
    with path.open("rb") as file:
        times = [time for time, _ in dpkt.pcap.Reader(file)]
    return float(len(times) - 1) / float(times[-1] - times[0]) if len(times) > 1 else 0.0
