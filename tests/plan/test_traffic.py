# SPDX-License-Identifier: BSD-3-Clause
"""Traffic profiles and the anatomy in a plan: which points they make, and what is refused before anything starts."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from captures import UDP_FRAME, Record, frames, save, tagged

from planebench.model.errors import UsageError
from planebench.model.plan import Plan
from planebench.plan.expand import expand, max_frame_bytes, plain_frame_sizes
from planebench.plan.override import override
from planebench.plan.passes import group_points, interleave
from planebench.plan.schema import load_plan, plan_from_document
from planebench.store.codec import from_json, to_json


def plan(document: dict[str, Any], **options: Any) -> Plan:
    return override(plan_from_document(document, "small"), **{"scenario": "p2p", "switch": "planed", **options})


def test_a_mix_makes_one_point_and_everything_else_one_a_frame_size(document: dict[str, Any]) -> None:
    points = expand(plan(document, traffic="imix,flows-1k,plain"))
    assert [(p.traffic, p.frame_size_bytes) for p in points] == [
        ("imix", 362),
        ("flows-1k", 64),
        ("flows-1k", 1024),
        ("", 64),
        ("", 1024),
    ]
    assert points[0].point_id == "planed/p2p/unidirectional/362/virtio/process/imix"


def test_without_the_key_frames_are_plain_and_ids_as_before(document: dict[str, Any]) -> None:
    assert [p.point_id for p in expand(plan(document))] == [
        f"planed/p2p/unidirectional/{size}/virtio/process" for size in (64, 1024)
    ]


def test_the_key_of_a_plan_takes_names_and_paths(document: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("sizes: [[100, 1], [9000, 1]]")
    made = plan_from_document({**document, "traffic": ["imix", str(path)]}, "small")
    assert [profile.name for profile in made.traffic] == ["imix", "mine"]
    assert made.profile("mine").sizes == ((100, 1), (9000, 1))
    assert max_frame_bytes(made) == 9000
    assert plain_frame_sizes(made) == ()
    with pytest.raises(UsageError, match='small: unknown traffic "imux", did you mean imix'):
        plan_from_document({**document, "traffic": ["imux"]}, "small")


def test_a_plan_with_profiles_is_stored_and_read_back_the_same(document: dict[str, Any]) -> None:
    wanted = plan(document, traffic="facebook,zipf-1m,macs-4,fib,bursts,vlan")
    assert from_json(Plan, to_json(wanted), "a plan") == wanted


def test_headers_and_sizes_are_held_against_each_other(document: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"traffic ipv6: frames of 64 B are too short .* Use 84 B or more"):
        expand(plan(document, traffic="ipv6"))
    assert len(expand(plan(document, traffic="ipv6", frame_size="84,1500"))) == 2


def test_recorded_times_and_loads_do_not_go_together(document: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "recorded.yaml"
    path.write_text("pcap: {path: x}")
    with pytest.raises(UsageError, match=r"file .* does not exist"):
        plan(document, traffic=str(path))


def test_a_round_has_every_profile_of_one_mean_size_once(document: dict[str, Any]) -> None:
    (group,) = group_points(expand(plan(document, traffic="plain,flows-1k,macs-4", switch="planed,testpmd")))
    steps = interleave(group, 3, seed=1)
    assert len(steps) == len(set(steps)) == 3 * 2 * 3 * 2
    assert all(a.point != b.point for a, b in pairwise(steps))


@pytest.mark.parametrize("wire", ["veth", "memif"])
def test_jumbo_frames_do_not_fit_every_wire(document: dict[str, Any], tmp_path: Path, wire: str) -> None:
    with pytest.raises(UsageError, match=f"frames of 9000 B do not fit the {wire} wire, which carries at most 1518"):
        expand(plan(document, frame_size="64,9000", wire=wire))
    path = tmp_path / "big.yaml"
    path.write_text("sizes: [[64, 1], [9000, 1]]")
    with pytest.raises(UsageError, match="traffic big: frames of 9000 B"):
        expand(plan(document, traffic=str(path), wire=wire))
    fine = plan(document, traffic="imix", wire=wire, frame_size="9000")
    assert max_frame_bytes(fine) == 1518 and len(expand(fine)) == 1


@pytest.mark.dataplane
def test_a_point_of_a_capture_has_the_size_that_its_wire_sends(document: dict[str, Any], tmp_path: Path) -> None:
    """Frames of GRO go on no wire, and jumbo frames on some only."""
    records = [(1.0, UDP_FRAME, 60), (1.1, UDP_FRAME, 1996), (1.2, UDP_FRAME, 30_000)]
    path = save(tmp_path / "x.pcap", records)
    made = plan(document, traffic=f"pcap:path={path}")
    for wire, size, largest in (("virtio", 1032, 2000), ("veth", 64, 1518), ("virtio", 1032, 2000)):
        made = override(made, wire=wire)
        assert {point.frame_size_bytes for point in expand(made)} == {size}
        assert max_frame_bytes(made) == largest


@pytest.mark.dataplane
@pytest.mark.parametrize(
    ("records", "words"),
    [
        (frames(1, 2, data=tagged(0x8100, 0x8100, 0x8100)), "none of 2 frames can be sent: 2 are not IPv4 or IPv6"),
        (frames(1, 2, length=30_000), "2 are longer than this wire carries"),
        (frames(1, 1), "time stamps do not advance"),
    ],
)
def test_a_capture_that_planed_refuses_is_refused_with_the_plan(
    document: dict[str, Any], tmp_path: Path, records: list[Record], words: str
) -> None:
    path = save(tmp_path / "x.pcap", records)
    with pytest.raises(UsageError, match=f"^--traffic: traffic pcap:path=x.pcap:rate=50k: profile.pcap: .*{words}"):
        plan(document, traffic=f"pcap:path={path}:rate=50k")


@pytest.mark.dataplane
def test_a_second_capture_that_is_older_has_its_time_stamps(document: dict[str, Any], tmp_path: Path) -> None:
    path = save(tmp_path / "x.pcap", frames(2000, 2001, 1000, 1001))
    (profile,) = plan(document, traffic=f"pcap:path={path}:rate=50k").traffic
    assert profile.pcap is not None and profile.pcap.rate_pps == 50_000


def test_more_probes_than_a_task_can_note_are_refused(document: dict[str, Any]) -> None:
    latency = {"loads": [0.5], "duration_s": 5.0, "probe_rate_pps": 10_000, "anatomy": True}
    made = plan_from_document({**document, "latency": latency}, "small")
    assert made.latency.anatomy
    with pytest.raises(
        UsageError, match=r"anatomy: 10000 probes a second for 5 s in both directions are 100000; a task notes 65536"
    ):
        expand(made)
    assert expand(override(made, anatomy=False))
    assert expand(override(made, duration=3.0))


def test_the_option_asks_for_anatomy() -> None:
    assert not load_plan("quick").latency.anatomy
    assert override(load_plan("quick"), anatomy=True).latency.anatomy
