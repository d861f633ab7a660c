# SPDX-License-Identifier: BSD-3-Clause
"""Stamps of ports, joined: missing ones, those of other frames, wrapped ones, and the software clock beside them."""

from __future__ import annotations

from typing import Any

import pytest
from planed_answers import port_states, statistics

from planebench.analysis.histogram import Relation, decode, used_ns
from planebench.measure.latency import StampLog, by_clock, clock_readings, common_clock, join
from planebench.model.records import LatencyRecord
from planebench.model.scenarios import Flow

HZ = 1_000_000_000
"""One tick of the TSC is a nanosecond."""
MOST = 2**64 - 1


def logs(*probes: tuple[int, int, int, int]) -> tuple[StampLog, StampLog]:
    """Return the logs of a generator and a monitor: (software out, software in, port out, port in) of each probe."""
    sent, came = StampLog("gen-a"), StampLog("mon-b")
    sent.add([(0, n, out, out + 1, port_out) for n, (out, _, port_out, _) in enumerate(probes)])
    came.add([(0, n, into - 1, into, port_in) for n, (_, into, _, port_in) in enumerate(probes) if into])
    return sent, came


def test_both_clocks_have_the_same_probes() -> None:
    joined = join(*logs((1000, 6000, 71_500, 73_000), (9000, 15_000, 79_500, 81_500)), HZ)
    assert (joined.clock_ns, joined.software_ns) == ([1500.0, 2000.0], [5000.0, 6000.0])
    assert not joined.without


def test_a_counter_that_wraps_is_no_matter() -> None:
    sent, came = logs((1000, 6000, MOST - 99, 1400))
    assert join(sent, came, HZ).clock_ns == [1500.0]
    negative = StampLog("gen-a")
    negative.add([(0, 0, 1000, 1001, -100)])  # JSON of 64 bits with a sign
    assert join(negative, came, HZ).clock_ns == [1500.0]


@pytest.mark.parametrize(
    ("probe", "why"),
    [
        ((1000, 6000, 0, 73_000), "not stamped when sent"),
        ((1000, 6000, 71_500, 0), "not stamped when received"),
        ((1000, 0, 71_500, 0), "did not arrive"),
        ((1000, 6000, 71_500, 70_000), "stamp of another frame"),  # received before it was sent
        ((1000, 6000, 71_500, 78_000), "stamp of another frame"),  # longer than around it
    ],
)
def test_a_probe_without_a_latency_is_counted_by_why(probe: tuple[int, int, int, int], why: str) -> None:
    joined = join(*logs(probe, (9000, 15_000, 79_500, 81_500)), HZ)
    assert (joined.clock_ns, joined.without) == ([2000.0], {why: 1})


def test_a_probe_that_came_twice_has_no_latency() -> None:
    sent, came = logs((1000, 6000, 71_500, 73_000))
    came.add([(0, 0, 7000, 7001, 74_000)])
    assert join(sent, came, HZ).without == {"seen twice": 1}


def test_stamps_of_two_devices_are_put_together_by_their_relation() -> None:
    relation = Relation(at_ns=71_500, offset_ns=1_000_000, drift=1e-5)
    assert join(*logs((1000, 6000, 71_500, 1_073_000)), HZ, relation).clock_ns == [1500.0]
    assert join(*logs((1000, 6000, 71_500, 1_073_000)), HZ).without == {"stamp of another frame": 1}


@pytest.mark.parametrize(
    ("clocks", "common"),
    [
        (["kernel", "kernel"], "kernel"),
        (["hardware"], "hardware"),
        (["hardware", "software"], "software"),
        (["hardware", "kernel"], "software"),
        ([], "software"),
    ],
)
def test_the_clock_is_that_which_all_ports_have(clocks: list[str], common: str) -> None:
    assert common_clock(clocks) == common


def test_a_record_keeps_both_histograms() -> None:
    pages = {
        "gen-a": [[0, 0, 1000, 1001, 71_500], [0, 1, 9000, 9001, 79_500], [0, 2, 20_000, 20_001, 0]],
        "mon-b": [[0, 0, 5999, 6000, 73_000], [0, 1, 14_999, 15_000, 81_500], [0, 2, 21_000, 21_001, 5]],
    }

    def call(method: str, params: dict[str, Any], **_: object) -> Any:
        assert method == "stamps.get"
        return {"stamps": pages[params["task"]], "next": None, "lost": 0}

    stats = statistics({"tsc_hz": HZ, "tasks": [{"name": name} for name in pages]})
    software = LatencyRecord(3, 3, "whole", probes_stamped=3, burst_rises="bursts")
    found = by_clock(software, "kernel", call, (Flow("a", "b", 0),), stats)
    assert (found.clock, found.probes_sent, found.probes_received, found.probes_stamped) == ("kernel", 3, 3, 2)
    assert found.unstamped == {"not stamped when sent": 1}
    assert used_ns(decode(found.histogram))[0] == pytest.approx([1500, 2000], rel=1e-3)
    assert used_ns(decode(found.software))[0] == pytest.approx([5000, 6000], rel=1e-3)
    assert used_ns(decode(found.ipdv))[0] == pytest.approx([500], rel=1e-3)
    assert found.burst_rises == "bursts"


def test_probes_that_met_a_gap_are_the_hosts_by_each_clock() -> None:
    pages = {
        "gen-a": [[0, n, 9000 * n, 9000 * n + 1, 70_000 + 9000 * n, 0, 0] for n in range(3)],
        "mon-b": [[0, n, 0, 9000 * n + 5000, 71_500 + 9000 * n + 100 * n, 0, met] for n, met in enumerate((0, 1, 2))],
    }

    def call(method: str, params: dict[str, Any], **_: object) -> Any:
        return {"stamps": pages[params["task"]], "next": None, "lost": 0}

    stats = statistics({"tsc_hz": HZ, "tasks": [{"name": name} for name in pages]})
    found = by_clock(LatencyRecord(3, 3, "whole"), "kernel", call, (Flow("a", "b", 0),), stats)
    times = {
        name: used_ns(decode(getattr(found, name)))[0].tolist() for name in ("histogram", "host", "stalled", "software")
    }
    assert times["histogram"] == pytest.approx([1500, 1700], rel=1e-3)
    assert times["host"] == pytest.approx([1600], rel=1e-3)
    assert times["stalled"] == pytest.approx([1700], rel=1e-3)
    assert times["software"] == pytest.approx([5000], rel=1e-3)


def test_a_clock_that_stamped_nothing_leaves_the_latency_to_software() -> None:
    def call(method: str, params: dict[str, Any], **_: object) -> Any:
        return {"stamps": [[0, 0, 1000, 6000, 0]], "next": None, "lost": 0}

    stats = statistics({"tsc_hz": HZ, "tasks": [{"name": "gen-a"}, {"name": "mon-b"}]})
    found = by_clock(LatencyRecord(1, 1, "whole"), "hardware", call, (Flow("a", "b", 0),), stats)
    assert (found.clock, found.histogram, found.unstamped) == ("software", "whole", {"not stamped when sent": 1})


def test_two_devices_are_related_by_readings_before_and_after() -> None:
    pages = {"gen-a": [[0, 0, 1000, 1001, 71_500]], "mon-b": [[0, 0, 5999, 6000, 1_073_000]]}

    def call(method: str, params: dict[str, Any], **_: object) -> Any:
        return {"stamps": pages[params["task"]], "next": None, "lost": 0}

    stats = statistics({"tsc_hz": HZ, "tasks": [{"name": name} for name in pages]})
    ports = port_states(
        {"name": "a", "clock_reading": [0, 70_000, 20]},
        {"name": "b", "clock_reading": [10, 1_070_010, 20]},
    )
    readings = [clock_readings(ports), clock_readings(ports)]
    found = by_clock(LatencyRecord(1, 1, "whole"), "hardware", call, (Flow("a", "b", 0),), stats, readings)
    assert (found.clock, found.probes_stamped) == ("hardware", 1)
    assert used_ns(decode(found.histogram))[0] == pytest.approx([1500], rel=1e-3)
