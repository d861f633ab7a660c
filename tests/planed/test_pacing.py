# SPDX-License-Identifier: BSD-3-Clause
"""A paced generator hits its rate. The one test here that depends on time: it judges tries that were not disturbed."""

from __future__ import annotations

import pytest
from planed_rig import OTHER_CPU, Planed, ethdev, load, task

pytestmark = pytest.mark.dataplane

TOLERANCE = 0.005
TRIES = 5


@pytest.mark.parametrize(("rate_pps", "duration_s"), [(1_000, 1.0), (100_000, 0.4), (1_000_000, 0.2)])
def test_a_rate_is_hit_within_half_a_percent(planed: Planed, rate_pps: int, duration_s: float) -> None:
    planed.apply([ethdev("e0", "net_null0,no-rx=1")], [task("gen", "generator", "e0")], cpu=OTHER_CPU, nice=-20)
    seen = []
    for _ in range(TRIES):
        sent = planed.send(load("gen", rate_pps=rate_pps), duration_s=duration_s)["gen"]["generator"]
        assert sent["intended_packets"] == round(rate_pps * duration_s)
        assert sent["duration_ns"] == round(duration_s * 1e9)
        assert sent["offered_packets"] + sent["unsent_late_packets"] == sent["intended_packets"]
        assert sent["unsent_ring_full_packets"] == 0
        if sent["offered_packets"] >= (1 - TOLERANCE) * sent["intended_packets"]:
            return
        (worker,) = planed.call("stats.get")["workers"]
        seen.append((sent["offered_packets"], sent["intended_packets"], worker["gaps"], worker["gap_sum_ns"]))
    told = "; ".join(f"{o} of {i} sent, {gaps} poll gaps of {ns / 1e6:.1f} ms in all" for o, i, gaps, ns in seen)
    assert all(gaps for _, _, gaps, _ in seen), f"off the rate without a poll gap: {told}"
    pytest.skip(f"the machine disturbed each of {TRIES} tries: {told}")
