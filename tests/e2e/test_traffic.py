# SPDX-License-Identifier: BSD-3-Clause
"""Every traffic profile through a real switch: sent as the profile says, and every byte is accounted for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dpkt
import pytest
from builders import make_point
from captures import frames, save

from planebench.host import facts
from planebench.host.planed_program import find_planed
from planebench.host.process import Supervisor, high_priority
from planebench.measure.live import LiveSettings, LiveTopology
from planebench.measure.trial import TrialRequest, run_trial
from planebench.model.cpus import Cpus
from planebench.model.reasons import SUSPECT
from planebench.model.records import DirectionCounts, Load, TrafficSent, Trial
from planebench.model.scenarios import build
from planebench.model.traffic import Destinations, TrafficProfile
from planebench.switches.registry import get_adapter
from planebench.testbed.placement import place
from planebench.testbed.traffic import list_profiles, parse_traffic
from planebench.testbed.traffic_files import on_wire

pytestmark = [pytest.mark.dataplane, pytest.mark.timeout(120)]

PPS = 50_000.0
DURATION_S = 0.1
SIZE = 128
TRIES = 20


@pytest.fixture(scope="module")
def live() -> Iterator[LiveTopology]:
    planed, host = find_planed(), facts.collect()
    assert planed is not None
    placement = place(Cpus(host.cpus_allowed, host.siblings, host.numa_node))
    settings = LiveSettings(planed=planed, ring_size=256, hugepages=False, max_frame_bytes=1518, wire="virtio")
    with high_priority(), Supervisor(Path("/tmp")) as supervisor:
        it = LiveTopology.start("planed", get_adapter("planed"), build("p2p"), placement, settings, supervisor)
        yield it
        it.stop()


def measure(live: LiveTopology, text: str, pps: float | None = PPS) -> tuple[Trial, DirectionCounts, TrafficSent]:
    """One trial with a profile; tried again where a busy machine let too little through."""
    profile = on_wire(parse_traffic(text), "virtio")
    point = make_point("planed", traffic=profile.name, frame_size_bytes=round(profile.mean_frame_bytes or SIZE))
    for _ in range(TRIES):
        trial = run_trial(
            live, TrialRequest(point, "search", Load("x", pps), DURATION_S, profile=profile), lambda: None
        )
        if trial.directions[0].offered_packets > PPS * DURATION_S / 2 and not trial.directions[0].lost_packets:
            break
    (way,), (sent,) = trial.directions, trial.sent
    return trial, way, sent


@pytest.mark.parametrize("name", [name for name in list_profiles() if name not in ("pcap", "closed-loop")])
def test_a_shipped_profile_is_sent_as_it_says_and_arrives_whole(name: str, live: LiveTopology) -> None:
    trial, way, sent = measure(live, name)
    assert not [reason for reason in trial.verdict.reasons if reason.code in SUSPECT]
    assert (sent.name, sent.packets, sent.bytes) == ("n0->n1", way.offered_packets, way.offered_bytes)
    assert sum(count for _, count in sent.sizes) == sent.packets
    assert sum(size * count for size, count in sent.sizes) == sent.bytes
    assert (way.corrupt_packets, way.duplicate_packets, way.reordered_packets) == (0, 0, 0)
    if not way.lost_packets:
        assert way.forwarded_bytes == way.offered_bytes


def test_macs_are_in_turn_and_flows_are_those_asked_for(live: LiveTopology) -> None:
    _, _, sent = measure(live, "macs-7:flows=50")
    assert len(sent.dst_macs) == 7
    assert max(sent.dst_macs) - min(sent.dst_macs) <= 1
    assert sum(sent.dst_macs) == sent.packets
    assert sent.flows_sent == 50


def test_a_mix_is_exact_over_its_rounds(live: LiveTopology) -> None:
    _, _, sent = measure(live, "imix")
    counts = dict(sent.sizes)
    rounds = sent.packets // 12
    for size, weight in ((64, 7), (594, 4), (1518, 1)):
        assert 0 <= counts[size] - rounds * weight <= weight


def test_addresses_of_a_table_are_used(live: LiveTopology, tmp_path: Path) -> None:
    table = tmp_path / "routes.txt"
    table.write_text("10.1.0.0/16\n10.2.0.0/16\n")
    _, _, sent = measure(live, f"fib:count=100:routes={table}")
    assert sent.dst_ips_sent == 100  # of 2500 frames or more; one is missed once in 10^9 trials


def test_flat_out_has_no_arrival_process(live: LiveTopology) -> None:
    trial, way, _ = measure(live, "poisson", pps=None)
    assert way.intended_packets == way.offered_packets > 0, trial.verdict


def test_a_capture_is_replayed_at_a_rate_or_at_its_own_times(live: LiveTopology, tmp_path: Path) -> None:
    """100 frames of 100 to 199 B and FCS, 50 us apart: 20 kpps as recorded."""
    path = tmp_path / "x.pcap"
    with path.open("wb") as file:
        writer = dpkt.pcap.Writer(file, nano=True)
        for n in range(100):
            writer.writepkt(_udp(100 + n), 1000 + n * 50e-6)
    _, _, sent = measure(live, f"pcap:path={path}")
    assert (sent.pcap_frames, sent.pcap_enlarged, sent.pcap_skipped) == (100, 0, {})
    assert sent.pcap_loops == sent.packets // 100
    assert {size for size, _ in sent.sizes} == set(range(104, 204))
    _, way, _ = measure(live, f"pcap:path={path}:rate=100k", pps=None)
    assert way.intended_packets == pytest.approx(100_000 * DURATION_S, abs=2)


def test_a_capture_with_frames_of_gro_has_the_size_and_the_rate_of_what_is_sent(
    live: LiveTopology, tmp_path: Path
) -> None:
    records = [*frames(*(1000 + n / 1000 for n in range(100))), *frames(*range(1001, 1010), length=30_000)]
    path = save(tmp_path / "x.pcap", records)
    trial, way, sent = measure(live, f"pcap:path={path}:rate=50k", pps=None)
    assert trial.point.frame_size_bytes == 64 and {size for size, _ in sent.sizes} == {64}
    assert way.intended_packets == 50_000 * DURATION_S
    assert sent.pcap_skipped == {"too_long": 9}
    assert not [reason for reason in trial.verdict.reasons if reason.code in SUSPECT]


def test_a_profile_that_planed_refuses_makes_an_invalid_trial_with_its_words(
    live: LiveTopology, tmp_path: Path
) -> None:
    path = tmp_path / "ips.txt"
    path.write_text("10.0.0.1\nnonsense\n")
    profile = TrafficProfile("bad", "", dst_ips=Destinations(str(path)))
    point = make_point("planed", traffic="bad")
    trial = run_trial(live, TrialRequest(point, "search", Load("x", PPS), DURATION_S, profile=profile), lambda: None)
    (reason,) = trial.verdict.texts
    assert trial.verdict.kind == "invalid"
    assert str(path) in reason and "2" in reason
    _, way, _ = measure(live, "imix")
    assert way.forwarded_packets


def _udp(length: int) -> bytes:
    udp = dpkt.udp.UDP(sport=1000, dport=53, data=bytes(length - 42))
    udp.ulen = len(udp)
    ip = dpkt.ip.IP(src=b"\x0a\0\0\1", dst=b"\x0a\0\0\2", p=17, data=udp)
    ip.len = len(ip)
    return bytes(dpkt.ethernet.Ethernet(src=b"\2\0\0\0\0\1", dst=b"\2\0\0\0\0\2", data=ip))
