# SPDX-License-Identifier: BSD-3-Clause
"""rate_limiter against a token bucket in exact fractions: verdict for verdict, not one may differ."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from nf_rig import FrameIn, FrameOut, RefusedError, Replace, Tick, nf_run

from nf.flow_key_model import Flow, ethernet, flow, ipv4, random_frame, segment
from nf.rate_limiter_model import Limiter

pytestmark = pytest.mark.dataplane

PEERS = ("02:00:00:00:aa:00", "02:00:00:00:aa:01")
REASONS = ("runt", "rate")
CASE_FRAMES = 17_000  # of seven cases: 119,000
FLOWS = [flow(f"10.0.0.{i}", f"10.1.0.{i % 7}") for i in range(60)] + [
    flow(f"2001:db8::{i:x}", f"2001:db8:1::{i % 5:x}") for i in range(40)
]


def task(**settings: Any) -> dict[str, Any]:
    """A task object."""
    return {"kind": "rate_limiter", "settings": settings, "peer_macs": list(PEERS)}


def hz(folder: Path) -> int:
    """Ticks of a second."""
    return int(nf_run(task(), [], folder)[1]["tsc_hz"])


def traffic(rng: random.Random, second: int, mean_gap_s: float, count: int) -> list[FrameIn | Tick]:
    """Bursts at random times, some of which are the same, and silences."""
    records: list[FrameIn | Tick] = []
    now, frames = rng.randrange(second), 0
    while frames < count:
        pace = rng.choice((0.0, 0.1, 1.0, 1.0, 3.0))
        burst, side = rng.choice((1, 1, 2, 3, 7, 32, 40)), rng.randrange(2)
        now += int(rng.expovariate(1.0) * pace * mean_gap_s * burst * second)
        if rng.random() < 0.02:
            records.append(Tick(now))
        records += [FrameIn(random_frame(rng, FLOWS), side, now) for _ in range(burst)]
        frames += burst
    return records


def expect(model: Limiter, records: list[FrameIn | Tick]) -> list[str | None]:
    """The model's verdicts."""
    return [model.frame(item.data, item.port, item.now_tsc) for item in records if isinstance(item, FrameIn)]


def compare(records: list[FrameIn | Tick], results: list[Any], verdicts: list[str | None]) -> None:
    """Verdicts, and whole frames."""
    given = [record for record in records if isinstance(record, FrameIn)]
    for frame, got, want in zip(given, results, verdicts, strict=True):
        assert isinstance(got, FrameOut)
        if want:
            assert (got.port, got.drop, got.data) == (None, REASONS.index(want), frame.data)
        else:
            assert got.port == 1 - frame.port
            assert got.data[:6] == bytes.fromhex(PEERS[got.port].replace(":", ""))
            assert got.data[12:] == frame.data[12:]


@pytest.mark.parametrize(
    ("settings", "mean_gap_s"),
    [
        ({"rate_bps": 1_000_003, "burst_bytes": 3000}, 1.2e-3),
        ({"rate_bps": 9_999_999_967, "burst_bytes": 1 << 16}, 6e-8),
        ({"rate_pps": 7919, "burst_packets": 20, "per": "direction"}, 4e-5),
        ({"rate_pps": 1, "burst_packets": 1, "per": "source"}, 7e-3),
        ({"rate_bps": 64_000, "burst_bytes": 1518, "per": "source", "buckets_max": 60}, 3e-4),
        ({"rate_bps": 64_007, "burst_bytes": 1600, "per": "destination", "buckets_max": 9}, 9e-4),
        ({"rate_pps": 3001, "burst_packets": 64, "directions": "from_servers"}, 1.2e-4),
    ],
)
def test_every_verdict_is_that_of_exact_arithmetic(tmp_path: Path, settings: dict[str, Any], mean_gap_s: float) -> None:
    rng = random.Random(str(settings))
    second = hz(tmp_path)
    records = traffic(rng, second, mean_gap_s, CASE_FRAMES)
    packets = "rate_pps" in settings
    model = Limiter(
        settings["rate_pps" if packets else "rate_bps"],
        settings["burst_packets" if packets else "burst_bytes"],
        second,
        settings.get("per", "all"),
        packets,
        settings.get("buckets_max", 65536),
        (1,) if settings.get("directions") == "from_servers" else (0, 1),
    )
    verdicts = expect(model, records)
    results, report = nf_run(task(**settings), records, tmp_path)
    assert report["tsc_hz"] == second
    compare(records, results, verdicts)
    assert report["drops"] == {"tx_full": 0, "runt": verdicts.count("runt"), "rate": verdicts.count("rate")}
    given = [record for record in records if isinstance(record, FrameIn)]
    passed = [
        [len(frame.data) + 4 for frame, why in zip(given, verdicts, strict=True) if not why and frame.port == side]
        for side in range(2)
    ]
    own = report["rate_limiter"]
    assert own["passed_packets"] == [len(passed[side]) if side in model.limited else 0 for side in range(2)]
    assert own["passed_bytes"] == [sum(passed[side]) if side in model.limited else 0 for side in range(2)]
    assert (own["overflow_packets"], own["no_address_packets"]) == (model.overflow, model.no_address)
    assert verdicts.count("rate") > 500 and verdicts.count(None) > 500
    if "buckets_max" in settings:
        assert model.overflow > 100


def one(of: Flow, bytes_: int) -> bytes:
    """A frame of so many bytes without FCS."""
    return ethernet(0x0800, ipv4(of, segment(random.Random(1), of, bytes(bytes_ - 42))))


def test_a_frame_passes_at_the_tick_that_brings_its_last_bit_and_not_before(tmp_path: Path) -> None:
    second = hz(tmp_path)
    frame = one(FLOWS[0], 1514)  # 1518 with FCS: the whole burst
    wait = -(-1518 * 8 * second // 1_000_003)
    records = [FrameIn(frame, 0, now) for now in (9, 9, 9 + wait - 1, 9 + wait, 9 + 2 * wait - 1, 9 + 2 * wait)]
    results, _ = nf_run(task(rate_bps=1_000_003, burst_bytes=1518), records, tmp_path)
    verdicts = [result.drop for result in results if isinstance(result, FrameOut)]
    model = Limiter(1_000_003, 1518, second)
    assert verdicts == [None, 1, 1, None, *[None if why is None else 1 for why in expect(model, list(records))][4:]]


def test_time_that_steps_back_brings_nothing(tmp_path: Path) -> None:
    second = hz(tmp_path)
    times = (second, second // 2, second, second // 2, 2 * second)
    for per in ("all", "source"):
        records = [FrameIn(one(FLOWS[0], 60), 0, now) for now in times]
        results, _ = nf_run(task(rate_pps=1, burst_packets=1, per=per), records, tmp_path)
        assert [result.drop for result in results if isinstance(result, FrameOut)] == [None, 1, 1, 1, None]


def test_a_new_task_of_the_same_settings_keeps_the_credit(tmp_path: Path) -> None:
    same = task(rate_pps=1, burst_packets=2, per="source")
    frame = FrameIn(one(FLOWS[0], 60), 0, 50)
    more = task(rate_pps=1, burst_packets=3, per="source")
    results, report = nf_run(same, [frame, Replace(same), frame, frame, Replace(more), *[frame] * 4], tmp_path)
    assert [r.drop for r in results if isinstance(r, FrameOut)] == [None, None, 1, None, None, None, 1]
    assert report["rate_limiter"]["buckets"] == 1


def test_the_default_lets_the_tester_through(tmp_path: Path) -> None:
    second = hz(tmp_path)
    gap = 64 * second // 14_880_952  # 14.88 Mpps, in bursts
    records = [FrameIn(one(FLOWS[0], 60), i // 64 % 2, i // 64 * gap) for i in range(20_000)]
    _, report = nf_run({"kind": "rate_limiter"}, records, tmp_path)
    assert report["tx_packets"] == 20_000


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"rate": 1}, 'unknown key "rate"; valid keys: rate_bps rate_pps burst_bytes burst_packets per'),
        ({"rate_bps": 1, "rate_pps": 1}, '"rate_bps" and "rate_pps" exclude each other; leave one out'),
        ({"rate_pps": 1, "burst_bytes": 2000}, 'burst_bytes: a rate in packets has "burst_packets"'),
        ({"burst_packets": 1}, 'burst_packets: a rate in bits has "burst_bytes"'),
        ({"burst_bytes": 1517}, "burst_bytes: 1517 is not valid: expected a whole number from 1518 to 134217728"),
        ({"buckets_max": 5}, 'buckets_max: only "per" source or destination has buckets to count'),
        ({"per": "flow"}, "expected one of all direction source destination"),
        ({"rate_bps": 0}, "rate_bps: 0 is not valid: expected a whole number from 1 to 1000000000000"),
    ],
)
def test_settings_are_refused(tmp_path: Path, settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(RefusedError) as refused:
        nf_run(task(**settings), [], tmp_path)
    assert sentence in str(refused.value)
