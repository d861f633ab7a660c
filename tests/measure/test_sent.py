# SPDX-License-Identifier: BSD-3-Clause
"""What generators say they sent, as a record, and held against the profile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from planed_answers import answered, whole

from planebench.measure.counts import (
    MAX_STILL_STEPS,
    Sender,
    Sending,
    not_as_intended,
    received_total,
    traffic_sent,
)
from planebench.model.reasons import ReasonCode
from planebench.model.records import TrafficSent
from planebench.model.scenarios import build, flows
from planebench.model.traffic import PLAIN, Pcap, TrafficProfile
from planebench.planed.statistics import Generator
from planebench.testbed.traffic import parse_traffic

IMIX = TrafficSent("n0->n1", 12_000, 12_000 * 4342 // 12, ((64, 7000), (594, 4000), (1518, 1000)))


def generator(packets: int, **profile: Any) -> Generator:
    return answered(Generator, {"offered_packets": packets, "profile": profile or None})


def test_reports_of_queues_are_added_up() -> None:
    sent = traffic_sent(
        "n0->n1",
        [
            generator(30, bytes=3000, sizes=[[64, 20], [128, 10]], flows_sent=5, dst_macs=[15, 15]),
            generator(10, bytes=640, sizes=[[64, 10]], flows_sent=7, dst_macs=[5, 5]),
        ],
    )
    assert sent == TrafficSent("n0->n1", 40, 3640, ((64, 30), (128, 10)), 7, (20, 20))
    assert sent is not None and sent.mean_frame_bytes == 91


def test_a_capture_tells_what_it_skipped() -> None:
    pcap = {"frames_in_file": 9, "frames": 6, "loops": 4, "enlarged": 2, "skipped": {"not_ip": 3, "fragment": 0}}
    sent = traffic_sent("n0->n1", [generator(24, bytes=2400, sizes=[[100, 24]], pcap=pcap)])
    assert sent is not None
    assert (sent.pcap_frames, sent.pcap_loops, sent.pcap_enlarged, sent.pcap_skipped) == (6, 4, 2, {"not_ip": 3})


@pytest.mark.parametrize(
    ("frames", "mean_bytes", "loops", "words"),
    [
        (6, 100.0, 400, []),
        (6, 70.0, 4, []),
        (5, 100.0, 400, ["suspect: n0->n1: the capture has 6 frames to send, and had 5 before"]),
        (6, 70.0, 400, ["suspect: n0->n1: the mean frame sent had 100.0 B, not 70.0 B as before"]),
    ],
)
def test_a_capture_that_is_another_one_now_is_told(
    frames: int, mean_bytes: float, loops: int, words: list[str]
) -> None:
    pcap = {"frames_in_file": 9, "frames": 6, "loops": loops, "enlarged": 0, "skipped": {}}
    sent = traffic_sent("n0->n1", [generator(24, bytes=2400, sizes=[[100, 24]], pcap=pcap)])
    assert sent is not None
    profile = TrafficProfile("x", "", pcap=Pcap("x.pcap", "rate", 1.0, frames, mean_bytes, 100))
    assert list(map(str, not_as_intended(profile, sent))) == words


def test_a_mix_as_intended_is_passed_over_in_silence() -> None:
    assert not list(not_as_intended(parse_traffic("imix"), IMIX))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"bytes": IMIX.bytes * 102 // 100}, "the mean frame sent had 369.1 B, not 361.8 B"),
        ({"sizes": ((64, 7200), (594, 3800), (1518, 1000))}, "the mix of frame sizes that was sent is not that"),
        ({"sizes": ((64, 7000), (594, 3990), (600, 10), (1518, 1000))}, "the mix of frame sizes that was sent is not"),
    ],
)
def test_a_mix_that_differs_is_remarked(changes: dict[str, Any], words: str) -> None:
    (text,) = not_as_intended(parse_traffic("imix"), replace(IMIX, **changes))
    assert text.code is ReasonCode.TRAFFIC_DIFFERS and str(text).startswith("suspect: n0->n1: ") and words in str(text)


def test_few_frames_tell_nothing() -> None:
    few = TrafficSent("n0->n1", 9_000, 9_000 * 64, ((64, 9_000),), flows_sent=1, dst_macs=(9_000,))
    assert not list(not_as_intended(parse_traffic("imix"), few))
    assert not list(not_as_intended(parse_traffic("flows-1k"), few))
    assert not list(not_as_intended(parse_traffic("macs-100"), few))


@pytest.mark.parametrize(
    ("profile", "flows_sent", "fine"),
    [
        ("flows-1k", 1000, True),
        ("flows-1k", 980, False),
        ("flows-1m", 19_801, True),  # a million times 1 - (1 - 1e-6) ^ 20 000
        ("flows-1m", 20_000 - 900, False),
        ("flows-1k:draw=round_robin", 1000, True),
        ("flows-1m:draw=round_robin", 20_000, True),
        ("zipf-1m", 12, True),
    ],
)
def test_the_number_of_flows_is_what_chance_gives(profile: str, flows_sent: int, fine: bool) -> None:
    sent = TrafficSent("n0->n1", 20_000, 20_000 * 64, ((64, 20_000),), flows_sent)
    assert (not list(not_as_intended(parse_traffic(profile), sent))) == fine


@pytest.mark.parametrize(
    ("macs", "fine"), [((5000, 5000), True), ((5049, 4951), True), ((5100, 4900), False), ((10_000,), False)]
)
def test_destinations_in_turn_are_even(macs: tuple[int, ...], fine: bool) -> None:
    sent = TrafficSent("n0->n1", 10_000, 640_000, ((64, 10_000),), dst_macs=macs)
    assert (not list(not_as_intended(parse_traffic("macs-2"), sent))) == fine


def test_plain_frames_are_never_amiss() -> None:
    assert not list(not_as_intended(PLAIN, IMIX))


@pytest.mark.parametrize(
    ("profile", "pps", "keys"),
    [
        (None, None, {"frame_size_bytes": 64, "flat_out": True}),
        ({"seed": 1}, 5.0, {"frame_size_bytes": 64, "rate_pps": 5.0, "profile": {"seed": 1}}),
        ({"sizes": [[64, 1]]}, None, {"flat_out": True, "profile": {"sizes": [[64, 1]]}}),
        ({"pcap": {"timing": "rate"}}, 5.0, {"rate_pps": 5.0, "profile": {"pcap": {"timing": "rate"}}}),
        ({"pcap": {"timing": "recorded"}}, None, {"profile": {"pcap": {"timing": "recorded"}}}),
    ],
)
def test_planed_is_told_size_and_rate_where_the_profile_has_none(profile: Any, pps: Any, keys: dict[str, Any]) -> None:
    asked: dict[str, Any] = {}

    def call(method: str, params: Any = None) -> dict[str, Any]:
        asked[method] = params
        return whole({"tasks": []}) | {"running": False}

    Sender(call).send(Sending(flows(build("p2p"), "unidirectional"), 64, 1e-6, pps, profile=profile, stamps=True))
    begin = asked["traffic.start"]
    assert begin["stamps"] is True
    assert 0 < begin["nonce"] < 2**63
    assert begin["generators"] == [{"task": "gen-n0", "probe_rate_pps": 0.0, **keys}]


@pytest.mark.parametrize(("stopped", "received"), [(0, 0), (2, 7), (MAX_STILL_STEPS + 1, 0)])
def test_silence_counts_where_all_pollers_had_a_cpu(stopped: int, received: int) -> None:
    """A switch that other programs keep from its CPU has frames in its rings, which come when it goes on."""
    asked = iter(range(100))  # before the first wait, then after each
    polled = [0]

    def ran() -> bool:
        polled[0] = next(asked)
        return polled[0] > stopped

    def call(method: str, params: Any = None) -> dict[str, Any]:
        came = 7 if received and polled[0] >= stopped else 0
        monitor = {"name": "mon-n1", "kind": "monitor", "monitor": {"received_packets": came}}
        return whole({"tasks": [monitor]}) | {"running": False}

    stats = Sender(call, ran=ran).end()
    assert received_total(stats) == received
    assert polled[0] == min(stopped + 1, MAX_STILL_STEPS)
