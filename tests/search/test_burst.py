# SPDX-License-Identifier: BSD-3-Clause
"""Back-to-back frames."""

from __future__ import annotations

import dataclasses

import pytest
from builders import make_point

from planebench.analysis.search.methods import summarise
from planebench.model.records import VerdictKind


@pytest.mark.parametrize("direction", ["unidirectional", "bidirectional"])
def test_longest_burst_is_what_the_ring_takes(rig, direction):
    """A burst of n frames at rate r leaves n (1 - c / r) behind: with a ring of 2000, c = 8 and r = 10 Mpps, 10000."""
    tried = rig(
        "sim:capacity=8M:ring=2000",
        max_load_pps=10e6,
        burst_repetitions=3,
        point=make_point("sim", direction=direction),
    )
    result = tried.finish("b2b")
    burst = result.burst
    assert result.verdict.kind is VerdictKind.VALID
    assert burst.repetitions == 3
    assert burst.rate_pps == 10e6
    assert 9900 <= burst.min_packets <= burst.mean_packets <= burst.max_packets <= 10_004
    assert burst.stddev_packets == 0
    assert burst.buffer_ns == pytest.approx(2000 / 10e6 * 1e9, rel=0.011)
    assert any("RFC 2544 asks for 50" in d for d in result.deviations)
    lengths = {t.directions[0].offered_packets for t in tried.trials[1:]}
    assert len(lengths) <= 20


def test_bursts_differ_where_the_switch_does(rig):
    burst = rig("sim:capacity=8M:ring=2000:noise=5%", max_load_pps=10e6, burst_repetitions=5).finish("b2b").burst
    assert burst.min_packets < burst.max_packets
    assert burst.stddev_packets > 0


def test_correction_of_rfc_9004():
    """1000 frames at 10 Mpps are 100 us; at a throughput of 6 Mpps 60 of them needed no buffer."""
    burst = summarise([900, 1000, 1100], 10e6, 6e6)
    assert (burst.mean_packets, burst.min_packets, burst.max_packets) == (1000, 900, 1100)
    assert burst.stddev_packets == 100
    assert burst.buffer_ns == pytest.approx(40_000)
    assert summarise([1000], 10e6, 11e6).buffer_ns == 0


def test_without_loss_the_test_does_not_apply(rig):
    tried = rig("sim:capacity=10M", max_load_pps=9e6)
    result = tried.finish("b2b")
    assert result.complete
    assert result.burst is None
    assert result.verdict.codes == ("not-applicable",)
    lengths = [t.intended_duration_ns for t in tried.trials[1:]]
    assert lengths == sorted(lengths) and lengths[-1] == pytest.approx(2e9, rel=0.01), "up to two seconds"


def test_without_a_ring_no_burst_gets_through(rig):
    result = rig("sim:capacity=40M:ring=0", max_load_pps=50e6).finish("b2b")
    assert result.burst.max_packets == 0
    assert "not even a burst of 100" in result.verdict.texts[0]


@pytest.mark.parametrize(("mpps", "shortest"), [(4, 16), (8, 16), (12, 24), (200, 400), (1000, 2000)])
@pytest.mark.parametrize("direction", ["unidirectional", "bidirectional"])
def test_no_burst_is_shorter_than_two_microseconds(rig, mpps, shortest, direction):
    tried = rig(
        f"sim:capacity={mpps / 2}M:ring=0", max_load_pps=mpps * 1e6, point=make_point("sim", direction=direction)
    )
    tried.finish("b2b")
    bursts = [t for t in tried.trials if t.load.pps_per_direction is not None]
    assert min(t.intended_duration_ns for t in bursts) >= 2000
    assert min(sum(d.intended_packets for d in t.directions) for t in bursts) == pytest.approx(shortest, rel=0.01)


def test_a_burst_that_took_a_little_longer_is_taken_all_the_same(rig):
    """Evidence of 20 us is coarse: 40 us more do not make the generator one that stretches."""
    tried = rig("sim:capacity=8M:ring=200", max_load_pps=10e6, burst_repetitions=1)
    tried.change = lambda t: dataclasses.replace(t, offered_duration_ns=t.offered_duration_ns + 40_000)
    result = tried.finish("b2b")
    assert result.complete and 980 <= result.burst.max_packets <= 1001


def test_a_stall_does_not_shorten_a_burst(rig):
    """A quarter of the trials stall: with loss verification bursts within the ring still pass, most of the time."""
    spec = "sim:capacity=8M:ring=2000:stall_share=25%"
    verified = rig(spec, max_load_pps=10e6, max_r=6).finish("b2b").burst
    assert verified.min_packets >= 9900
    single = rig(spec, max_load_pps=10e6, max_r=1, burst_repetitions=10).finish("b2b").burst
    assert single.min_packets < 9000
