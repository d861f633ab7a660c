# SPDX-License-Identifier: BSD-3-Clause
"""From planed's own words to the counts of a trial."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from planed_answers import statistics

from planebench.analysis.histogram import merge, summarise
from planebench.measure.counts import arrived, received_total, tester_counts, vnf_drops
from planebench.model.scenario import Direction
from planebench.model.scenarios import build, flows
from planebench.planed.statistics import Statistics

Stats = dict[str, Any]


def generator(port: str, **changes: Any) -> Stats:
    values = {
        "intended_packets": 1000,
        "offered_packets": 990,
        "unsent_late_packets": 4,
        "unsent_ring_full_packets": 6,
        "attempted_packets": 1010,
        "refused_packets": 20,
        "probes_sent": 0,
        "probes_stamped": changes.get("probes_sent", 0),
        "duration_ns": 100_000_000,
    }
    return {"name": f"gen-{port}", "kind": "generator", "drops": {"tx_full": 0}, "generator": {**values, **changes}}


def monitor(port: str, *streams: Stats, **changes: Any) -> Stats:
    values = {"received_packets": 0, "foreign_packets": 0, "stale_packets": 0, "bursts": 50, "full_bursts": 5}
    seen = {**values, **changes, "streams": list(streams)}
    return {"name": f"mon-{port}", "kind": "monitor", "drops": {"tx_full": 0}, "monitor": seen}


def stream(number: int, forwarded: int, **changes: Any) -> Stats:
    values = {"duplicate_packets": 0, "reordered_packets": 0, "corrupt_packets": 0, "probes_received": 0}
    histograms = {kind: {"overflow": 0, "counts": []} for kind in ("latency", "ipdv")}
    return {"stream": number, "forwarded_packets": forwarded, **values, **histograms, **changes}


def worker(**changes: int) -> Stats:
    values = {"gaps": 0, "gap_sum_ns": 0, "gap_max_ns": 0, "gap_threshold_ns": 100_000, "busy_cycles": 0}
    return {**values, **changes}


def port(name: str, **changes: int) -> Stats:
    values = dict.fromkeys(("rx_packets", "tx_packets", "rx_missed", "rx_errors", "tx_errors", "rx_nombuf"), 0)
    return {"name": name, "link_up": True, **values, **changes}


def vnf(name: str, runts: int = 0, **tx_full: int) -> Stats:
    by_port = {ring: {"tx_full": count} for ring, count in tx_full.items()}
    drops = {"tx_full": sum(tx_full.values()), "runt": runts}
    return {"name": name, "kind": "l2fwd", "drops": drops, "drops_by_port": by_port}


def stats(*tasks: Stats, workers: tuple[Stats, ...] = (worker(),), ports: tuple[Stats, ...] = ()) -> Statistics:
    return statistics({"tsc_hz": 2_600_000_000, "tasks": tasks, "workers": workers, "ports": ports})


def p2p(direction: Direction = "unidirectional") -> Any:
    return flows(build("p2p"), direction)


def test_one_direction() -> None:
    came = stream(0, 980, duplicate_packets=1, reordered_packets=2, corrupt_packets=3)
    got = tester_counts(stats(generator("n0"), generator("n1"), monitor("n0"), monitor("n1", came)), p2p())
    (counts,) = got.directions
    assert counts.name == "n0->n1"
    assert (counts.intended_packets, counts.offered_packets, counts.forwarded_packets) == (1000, 990, 980)
    assert (counts.duplicate_packets, counts.reordered_packets, counts.corrupt_packets) == (1, 2, 3)
    assert (counts.unsent_late_packets, counts.unsent_ring_full_packets) == (4, 6)
    assert (counts.attempted_packets, counts.refused_packets) == (1010, 20)
    assert (counts.monitor_bursts, counts.monitor_full_bursts) == (50, 5)
    assert counts.lost_packets == 10 and counts.unsent_packets == 10
    assert counts.loss_ratio == pytest.approx(16 / 996)
    assert got.duration_ns == 100_000_000
    assert got.cycles == 260_000_000
    assert got.latency is None


def test_bytes_are_known_where_both_sides_count_them() -> None:
    sent = generator("n0", offered_bytes=63_360, profile={"bytes": 63_360, "sizes": [[64, 990]], "flows_sent": 3})
    got = tester_counts(stats(sent, monitor("n1", stream(0, 980, forwarded_bytes=62_720))), p2p())
    assert (got.directions[0].offered_bytes, got.directions[0].forwarded_bytes) == (63_360, 62_720)
    assert [(it.name, it.packets, it.bytes, it.flows_sent) for it in got.sent] == [("n0->n1", 990, 63_360, 3)]


def test_nothing_that_came_is_no_bytes_and_a_planed_that_does_not_count_is_none() -> None:
    (counts,) = tester_counts(stats(generator("n0"), monitor("n1")), p2p()).directions
    assert (counts.offered_bytes, counts.forwarded_bytes) == (None, 0)
    (counts,) = tester_counts(stats(generator("n0"), monitor("n1", stream(0, 980))), p2p()).directions
    assert counts.forwarded_bytes is None


def test_flat_out_intends_what_it_offers() -> None:
    sent = generator("n0", intended_packets=None, unsent_late_packets=0, unsent_ring_full_packets=0)
    (counts,) = tester_counts(stats(sent, monitor("n1", stream(0, 495))), p2p()).directions
    assert (counts.intended_packets, counts.offered_packets, counts.unsent_packets) == (990, 990, 0)
    assert counts.loss_ratio == pytest.approx(0.5)


def test_frames_that_came_on_several_queues_count_once() -> None:
    """What two monitors counted is a duplicate, and no number is known that has it in."""
    tenths = {"forwarded_by_tenth": [98] * 10, "forwarded_bytes": 62_720}
    came = (
        monitor("n1", stream(0, 980, duplicate_packets=1, elsewhere_packets=7, **tenths)),
        monitor("n1-q1", stream(0, 10, **tenths)),
    )
    for offered, uncertain in ((990, 0), (1 << 23, 0), ((1 << 23) + 1, 7)):
        sent = generator("n0", offered_packets=offered)
        got = tester_counts(stats(sent, generator("n0-q1", offered_packets=0), *came), p2p())
        (counts,) = got.directions
        assert (counts.forwarded_packets, counts.duplicate_packets, counts.forwarded_bytes) == (983, 8, None)
        assert (counts.forwarded_by_tenth, counts.lost_packets) == ((), offered - 983)
        assert got.elsewhere_packets == uncertain


def test_queues_of_a_direction_are_added_up() -> None:
    """The switch chooses the queue on which a frame leaves; one that returns to its own port is misdirected."""
    sent = (generator("n0"), generator("n0-q1", offered_packets=500, duration_ns=200_000_000))
    came = (monitor("n1", stream(0, 980)), monitor("n1-q1", stream(2, 397), stream(0, 3), stream(1, 4)))
    got = tester_counts(
        stats(*sent, generator("n1"), generator("n1-q1"), monitor("n0"), monitor("n0-q1"), *came), p2p()
    )
    (counts,) = got.directions
    assert (counts.intended_packets, counts.offered_packets, counts.forwarded_packets) == (2000, 1490, 1380)
    assert (counts.refused_packets, counts.monitor_bursts) == (40, 100)
    assert (got.duration_ns, got.misdirected_packets) == (200_000_000, 4)


def test_frames_have_come_when_some_of_every_queue_came() -> None:
    (flow,) = p2p()
    sent = (generator("n0"), generator("n0-q1"))
    one = stats(*sent, monitor("n1", stream(0, 5)), monitor("n1-q1", stream(0, 5)))
    both = stats(*sent, monitor("n1", stream(0, 5), stream(2, 1)), monitor("n1-q1"))
    assert not arrived(one, flow) and arrived(both, flow)


def test_frames_of_each_tenth_are_added_up_over_the_queues_if_all_have_them() -> None:
    def by_tenth(*tenths: list[int]) -> tuple[int, ...]:
        came = (stream(2 * queue, 5, forwarded_by_tenth=tenth) for queue, tenth in enumerate(tenths))
        return tester_counts(stats(generator("n0"), monitor("n1", *came)), p2p()).directions[0].forwarded_by_tenth

    assert by_tenth([3] * 10, [4] * 10) == (7,) * 10
    assert by_tenth([3] * 10, []) == by_tenth([1] * 9) == ()


def test_both_directions_are_kept_apart() -> None:
    both = (generator("n0"), generator("n1", offered_packets=500, duration_ns=7))
    monitors = (monitor("n0", stream(1, 400)), monitor("n1", stream(0, 980)))
    there, back = tester_counts(stats(*both, *monitors), p2p("bidirectional")).directions
    assert (there.name, there.offered_packets, there.forwarded_packets) == ("n0->n1", 990, 980)
    assert (back.name, back.offered_packets, back.forwarded_packets) == ("n1->n0", 500, 400)


def test_reversed_p2v_and_the_echo_of_v2v() -> None:
    reverse = flows(build("p2v"), "reversed")
    (counts,) = tester_counts(stats(generator("v0"), monitor("n0", stream(1, 7)), monitor("v0")), reverse).directions
    assert (counts.name, counts.forwarded_packets) == ("v0->n0", 7)
    echo = flows(build("v2v", echo=True), "unidirectional")
    (counts,) = tester_counts(stats(generator("v0"), monitor("v3", stream(0, 8)), monitor("v0")), echo).directions
    assert (counts.name, counts.forwarded_packets) == ("v0->v3", 8)


def test_a_stream_that_never_came_is_zero() -> None:
    (counts,) = tester_counts(stats(generator("n0"), monitor("n0"), monitor("n1")), p2p()).directions
    assert (counts.forwarded_packets, counts.lost_packets) == (0, 990)


def test_frames_at_the_wrong_port_are_misdirected() -> None:
    own = stream(0, 5)  # came back to where it was sent
    twice = stream(1, 3)  # of a generator that did not send
    got = tester_counts(stats(generator("n0"), monitor("n0", own), monitor("n1", stream(0, 900), twice)), p2p())
    assert got.misdirected_packets == 8
    assert got.directions[0].forwarded_packets == 900


def test_foreign_and_stale_frames_of_all_monitors() -> None:
    monitors = (
        monitor("n0", foreign_packets=1, stale_packets=10, received_packets=5),
        monitor("n1", foreign_packets=2, stale_packets=20, received_packets=7),
    )
    got = tester_counts(stats(generator("n0"), *monitors), p2p())
    assert (got.evidence.foreign_packets, got.evidence.stale_packets) == (3, 30)
    assert received_total(stats(generator("n0"), *monitors)) == 12


def test_gaps_are_those_of_the_worker_that_lost_most() -> None:
    workers = (
        worker(gaps=2, gap_sum_ns=300, gap_max_ns=200, busy_cycles=10),
        worker(gaps=3, gap_sum_ns=900, gap_max_ns=100, busy_cycles=30),
    )
    got = tester_counts(stats(generator("n0"), monitor("n1"), workers=workers), p2p())
    seen = got.evidence
    assert (seen.poll_gaps, seen.poll_gap_sum_ns, seen.poll_gap_max_ns) == (3, 900, 100)
    assert (seen.poll_gap_threshold_ns, seen.tester_busy_share) == (100_000, 30 / 260_000_000)


def test_drops_of_vnfs_by_ring_and_by_name() -> None:
    vnfs = (vnf("vnf0", runts=3, v0=0, v1=5), vnf("vnf1", v2=7, v3=0))
    got = tester_counts(stats(generator("n0"), monitor("n1"), *vnfs), p2p())
    assert got.tester_drops == {"v1:tx_full": 5, "vnf0:runt": 3, "v2:tx_full": 7}


def test_drops_of_the_testers_own_ports() -> None:
    ports = (port("n0", tx_errors=9), port("n1", rx_missed=4, rx_errors=2, rx_nombuf=6), port("v0", rx_packets=8))
    got = tester_counts(stats(generator("n0"), monitor("n1"), ports=ports), p2p())
    assert got.tester_drops == {"n0:tx_errors": 9, "n1:rx_missed": 4, "n1:rx_errors": 2, "n1:rx_nombuf": 6}


def test_damaged_and_misplaced_frames_are_no_drops_and_what_is_refused_is_not_one() -> None:
    sent = {**generator("n0", refused_packets=50), "drops_by_port": {"n0": {"tx_full": 0}}}
    came = monitor("n1", stream(0, 900, corrupt_packets=5), stream(1, 3))
    assert tester_counts(stats(sent, came, ports=(port("n0"),)), p2p()).tester_drops == {}


def test_probes_of_both_directions_go_into_one_histogram() -> None:
    there = stream(0, 990, probes_received=3, latency={"overflow": 1, "counts": [[1000, 2]]})
    back = stream(1, 990, probes_received=2, latency={"overflow": 0, "counts": [[3000, 2]]})
    sent = (generator("n0", probes_sent=4), generator("n1", probes_sent=2))
    got = tester_counts(stats(*sent, monitor("n0", back), monitor("n1", there)), p2p("bidirectional"))
    assert got.latency is not None
    assert (got.latency.probes_sent, got.latency.probes_received, got.latency.overflow) == (6, 5, 1)
    summary = summarise(merge([got.latency.histogram]))
    assert summary is not None
    assert summary.p50 <= 3.001 and summary.max >= 3.0


def values(histogram: str) -> dict[float, int]:
    """Count by value in ns; small values are exact."""
    counts = merge([histogram])
    return {int(at): int(counts[at]) for at in np.flatnonzero(counts)}


def test_jitter_of_both_directions_is_added_up_kind_by_kind() -> None:
    there = {"ipdv": {"overflow": 0, "counts": [[0, 1], [20, 4]]}, "burst_rises": {"overflow": 0, "counts": [[5, 2]]}}
    back = {"ipdv": {"overflow": 0, "counts": [[20, 3]]}, "burst_rises": {"overflow": 0, "counts": [[6, 1]]}}
    monitors = (
        monitor("n0", stream(1, 9, probes_received=4, stamped_packets=2, **back)),
        monitor("n1", stream(0, 9, stamped_packets=3, **there)),
    )
    sent = (generator("n0", probes_sent=6), generator("n1", probes_sent=4))
    latency = tester_counts(stats(*sent, *monitors), p2p("bidirectional")).latency
    assert latency is not None
    assert values(latency.ipdv) == {0: 1, 20: 7}
    assert (latency.stamped_packets, values(latency.burst_rises)) == (5, {5: 2, 6: 1})
    assert values(latency.histogram) == {}
    assert (latency.probes_stamped, latency.clock) == (10, "software")


def test_probes_that_all_got_lost_are_a_record_without_samples() -> None:
    got = tester_counts(stats(generator("n0", probes_sent=4), monitor("n1")), p2p())
    assert got.latency is not None
    assert (got.latency.probes_sent, got.latency.probes_stamped, got.latency.probes_received) == (4, 4, 0)
    assert values(got.latency.ipdv) == {}
    assert summarise(merge([got.latency.histogram])) is None


def test_every_reason_of_a_network_function_is_kept() -> None:
    firewall = vnf("vnf0", v1=2) | {"kind": "firewall"}
    firewall["drops"] |= {"rule": 7, "default": 0, "of_tomorrow": 3}
    watcher = vnf("vnf1-q1", runts=4) | {"kind": "load_balancer"}
    seen = stats(generator("n0"), monitor("n1"), firewall, watcher)
    assert tester_counts(seen, p2p()).tester_drops == {
        "v1:tx_full": 2,
        "vnf0:rule": 7,
        "vnf0:of_tomorrow": 3,
        "vnf1-q1:runt": 4,
    }
    assert vnf_drops(seen) == {"vnf0": {"rule": 7, "of_tomorrow": 3}, "vnf1-q1": {"runt": 4}}
    assert vnf_drops(stats(generator("n0"), vnf("vnf0", v1=9))) == {}


def test_what_a_firewall_drops_is_counted_by_rule_and_nothing_is_lost_or_counted_twice() -> None:
    def rule(number: int, action: str, packets: int, **name: str) -> dict[str, Any]:
        return {"rule": number, "action": action, "packets": packets, "bytes": 64 * packets, **name}

    firewall = vnf("vnf0")
    firewall["drops"] |= {"rule": 12, "default": 5}
    firewall["firewall"] = {"rules": [rule(1, "drop", 7, name="web:6"), rule(2, "permit", 90), rule(3, "drop", 4)]}
    expected = {"vnf0:rule 1 web.6": 7, "vnf0:rule 3": 4, "vnf0:rule": 1, "vnf0:default": 5}
    seen = stats(generator("n0"), monitor("n1"), firewall)
    assert tester_counts(seen, p2p()).tester_drops == expected
    assert vnf_drops(seen) == {"vnf0": {key.partition(":")[2]: count for key, count in expected.items()}}
    firewall["drops"]["rule"] = 10  # read while frames came: the sum is what counts
    seen = stats(generator("n0"), monitor("n1"), firewall)
    assert tester_counts(seen, p2p()).tester_drops == {"vnf0:rule": 10, "vnf0:default": 5}
