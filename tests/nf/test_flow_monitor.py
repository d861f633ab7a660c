# SPDX-License-Identifier: BSD-3-Clause
"""flow_monitor against its model: every frame, every counter, every flow, the top lists, at times from here."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from nf_rig import Answer, Call, FrameIn, FrameOut, RefusedError, Replace, Tick, nf_run

from nf.flow_key_model import Flow, ethernet, flow, ipv4, random_frame, segment
from nf.flow_monitor_model import FlowMonitor
from nf.packet_model import GRE, ICMP, ICMPV6, TCP, UDP

pytestmark = pytest.mark.dataplane

PEERS = ("02:00:00:00:aa:00", "02:00:00:00:aa:01")
FRAMES = 110_000


def task(**settings: Any) -> dict[str, Any]:
    """A task object."""
    return {"kind": "flow_monitor", "settings": settings, "peer_macs": list(PEERS), "burst": 64}


def hz(folder: Path) -> int:
    """Ticks of a second."""
    return int(nf_run(task(), [], folder)[1]["tsc_hz"])


def flows_of(rng: random.Random, count: int) -> list[Flow]:
    """Flows that differ in one field from others, and some without ports."""
    flows = []
    for _ in range(count):
        protocol = rng.choice((TCP, TCP, UDP, UDP, GRE, ICMP))
        ports = (rng.randrange(1, 40), rng.choice((53, 443)))
        if rng.random() < 0.4:
            protocol = ICMPV6 if protocol == ICMP else protocol
            flows.append(
                flow(f"2001:db8::{rng.randrange(99):x}", f"2001:db8:1::{rng.randrange(9):x}", protocol, *ports)
            )
        else:
            flows.append(flow(f"10.0.0.{rng.randrange(99)}", f"10.1.0.{rng.randrange(9)}", protocol, *ports))
    return flows


def assert_left(given: FrameIn, got: FrameOut, stays: bool) -> None:
    """The addresses are new and nothing else, or the runt is as it was."""
    if not stays:
        assert (got.drop, got.data) == (0, given.data)
        return
    assert got.port == 1 - given.port
    assert got.data[:6] == bytes.fromhex(PEERS[got.port].replace(":", ""))
    assert got.data[12:] == given.data[12:]


def canonical(listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """In an order that is ours."""
    return sorted(listed, key=lambda item: tuple(map(str, item.values())))


def test_model_and_planed_count_the_same(tmp_path: Path) -> None:
    rng = random.Random(20)
    second = hz(tmp_path)
    settings = {"flows_max": 700, "idle_timeout_s": 2}
    model = FlowMonitor(700, 2 * second)
    pool = flows_of(rng, 2500)
    now, records, expected = 1000, [], []
    while len(expected) < FRAMES:
        now += rng.choice((0, 1, second // 1000, second // 1000, second // 1000, second // 50, second // 50))
        if rng.random() < 0.0005:
            now += 2 * second - rng.randrange(2)
        elif rng.random() < 0.003:
            records.append(Tick(now))
        active = (now // (second // 2)) * 211 % 2000
        for _ in range(rng.choice((1, 3, 31, 64, 70))):
            given = FrameIn(random_frame(rng, pool[active : active + 300]), rng.randrange(2), now)
            if rng.random() < 0.9 and records and isinstance(records[-1], FrameIn):
                given = FrameIn(given.data, records[-1].port, now)
            records.append(given)
            expected.append(model.frame(given.data, now))
        if rng.random() < 0.01:
            by, limit = rng.choice(("packets", "bytes")), rng.choice((1, 10, 1000))
            records.append(Call("top", {"task": "nf", "by": by, "limit": limit}, now))
            expected.append({"flows": model.top(by, limit, now)})
        elif rng.random() < 0.002:
            records.append(Call("flush", {"task": "nf"}, now))
            expected.append({"flushed": model.flush()})
    records.append(Call("flows", {"task": "nf", "limit": 65536}, now))
    results, report = nf_run(task(**settings), records, tmp_path)
    assert report["tsc_hz"] == second
    listed = results.pop()
    assert isinstance(listed, Answer)
    assert listed.value["next"] is None
    assert canonical(listed.value["flows"]) == canonical(model.listed(now))
    asked = [record for record in records if isinstance(record, FrameIn | Call)][:-1]
    for given, got, want in zip(asked, results, expected, strict=True):
        if isinstance(got, Answer):
            assert got.value == want
        else:
            assert isinstance(given, FrameIn) and isinstance(want, bool)
            assert_left(given, got, want)
    assert report["flow_monitor"] == model.report(now)
    frames = [want for want in expected if isinstance(want, bool)]
    assert report["drops"] == {"tx_full": 0, "runt": frames.count(False)}
    counted = report["flow_monitor"]
    assert min(counted[name]["packets"] for name in ("tracked", "expired", "untracked", "other")) > 100
    for unit in ("packets", "bytes"):
        parts = (counted[name][unit] for name in ("tracked", "expired", "untracked", "other"))
        assert sum(parts) == counted["all"][unit]


def test_a_flow_is_over_at_the_tick_of_its_timeout(tmp_path: Path) -> None:
    second = hz(tmp_path)
    body = ethernet(0x0800, ipv4(flow("10.0.0.1", "10.0.0.2"), segment(random.Random(1), flow("::", "::"), b"")))
    records = [FrameIn(body, 0, 5), FrameIn(body, 0, 5 + second - 1), FrameIn(body, 0, 5 + 2 * second - 1)]
    _, report = nf_run(task(idle_timeout_s=1), records, tmp_path)
    assert report["flow_monitor"]["expired"] == {"packets": 2, "bytes": 92, "flows": 1}
    assert report["flow_monitor"]["tracked"]["packets"] == 1


def test_room_is_made_at_the_tick_of_the_timeout(tmp_path: Path) -> None:
    second = hz(tmp_path)
    first, next_ = (
        ethernet(0x0800, ipv4(flow(source, "10.0.0.2"), segment(random.Random(1), flow("::", "::"), b"")))
        for source in ("10.0.0.1", "10.0.0.3")
    )
    records = [FrameIn(first, 0, 5), FrameIn(next_, 0, 5 + second - 1), FrameIn(next_, 0, 5 + second)]
    _, report = nf_run(task(idle_timeout_s=1, flows_max=1), records, tmp_path)
    counted = report["flow_monitor"]
    assert [counted[name]["packets"] for name in ("tracked", "expired", "untracked")] == [1, 1, 1]


def test_pages_list_every_flow_once(tmp_path: Path) -> None:
    rng = random.Random(3)
    flows = [flow("10.0.0.1", "10.0.0.2", UDP, port) for port in range(1, 101)]
    records: list[Any] = [FrameIn(ethernet(0x0800, ipv4(of, segment(rng, of, b"")))) for of in flows]
    records += [Call("flows", {"task": "nf", "limit": 33, "from": 33 * page}) for page in range(4)]
    results, _ = nf_run(task(flows_max=128), records, tmp_path)
    pages = [result.value for result in results if isinstance(result, Answer)]
    assert [page["next"] for page in pages] == [33, 66, 99, None]
    assert sorted(item["source_port"] for page in pages for item in page["flows"]) == list(range(1, 101))


def test_a_new_task_takes_over_what_fits(tmp_path: Path) -> None:
    rng = random.Random(4)
    model = FlowMonitor(100, 1 << 62)
    records: list[Any] = []
    for port in [*range(1, 101), 7]:
        of = flow("10.0.0.1", "10.0.0.2", UDP, port)
        frame = ethernet(0x0800, ipv4(of, segment(rng, of, bytes(port))))
        records.append(FrameIn(frame, 0, port))
        model.frame(frame, port)
    model.shrink(40)
    records += [
        Replace(task(flows_max=40)),
        Call("flows", {}, 101),
        Call("top", {"limit": 3}, 101),
        Call("top", {"limit": 0}, 101),
        Call("tops", {}, 101),
    ]
    results, report = nf_run(task(flows_max=100), records, tmp_path)
    _, listed, top, refused, unknown = (result.value for result in results if isinstance(result, Answer))
    assert canonical(listed["flows"]) == canonical(model.listed(101))
    assert top["flows"] == model.top("packets", 3, 101)
    assert "params.limit: 0 is not valid: expected a whole number from 1 to 1000" in refused["error"]
    assert unknown["error"] == 'kind flow_monitor has no method "tops"; valid: top flows flush'
    assert report["flow_monitor"] == model.report(101)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"flows": 1}, 'unknown key "flows"; valid keys: flows_max idle_timeout_s'),
        ({"flows_max": 0}, "flows_max: 0 is not valid: expected a whole number from 1 to 4194304"),
        ({"idle_timeout_s": -1}, "idle_timeout_s: -1 is not valid"),
    ],
)
def test_settings_are_refused(tmp_path: Path, settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(RefusedError) as refused:
        nf_run(task(**settings), [], tmp_path)
    assert sentence in str(refused.value)
