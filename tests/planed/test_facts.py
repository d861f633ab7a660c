# SPDX-License-Identifier: BSD-3-Clause
"""What planed tells of files before a run: the same reader that sends, with a way out for what it refuses."""

from __future__ import annotations

import gzip
import json
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from captures import ARP_FRAME, ETHERNET, FCS_OF_4_BYTES, UDP_FRAME, frames, save, tagged
from planed_rig import document, ethdev, planed_binary, task

from planebench.host.programs import ProgramOutput, run_tool

pytestmark = pytest.mark.dataplane

BOM = "\ufeff"
MS = 1_000_000
HUGE = {"data": UDP_FRAME, "length": 30_000}


def ask(asked: dict[str, Any]) -> ProgramOutput:
    return run_tool([planed_binary(), "--facts", "/dev/stdin"], stdin=json.dumps(asked))


def capture(path: Path, **more: Any) -> dict[str, Any]:
    said = ask({"generator": {"pcap": {"path": str(path), **more}}})
    assert said.ok, said.stderr
    facts: dict[str, Any] = json.loads(said.stdout)
    return facts


def refusal(asked: dict[str, Any]) -> str:
    said = ask(asked)
    assert (said.code, said.stdout) == (2, "")
    (line,) = said.stderr.splitlines()
    return line


@pytest.mark.parametrize(
    ("times_s", "period_ms", "fallen", "impossible"),
    [
        pytest.param([1000 + n / 100 for n in range(1000)], 10_000, 0, 0, id="as it was captured"),
        pytest.param(
            [*(1000 + n / 100 for n in range(1000)), *(1001 + n / 100 for n in range(100))], 10_989.9909, 1, 0,
            id="a clock set back",
        ),
        pytest.param([2000, 2001, 2002, 1000, 1001, 1002], 4.0 * 6 / 5 * 1000, 1, 0, id="two captures in one file"),
        pytest.param([5.0, 5.002, 5.001, 5.003], 4, 1, 0, id="not quite in order"),
        pytest.param([0, 1700000000, 1700000001, 0, 1700000002], 1250, 1, 2, id="some without a stamp"),
        pytest.param([2**31 - 1, 2**31, 2**31 + 1], 3000, 0, 0, id="over the end of 2038"),
        pytest.param([7, 7, 7], 0, 0, 0, id="one time"),
    ],
)  # fmt: skip
def test_time_stamps_never_fall_and_a_step_of_the_clock_takes_no_time(
    tmp_path: Path, times_s: list[float], period_ms: float, fallen: int, impossible: int
) -> None:
    found = capture(save(tmp_path / "x.pcap", frames(*times_s)))["pcap"]
    assert found["period_ns"] == pytest.approx(period_ms * MS, abs=len(times_s))
    assert (found["times_fallen"], found["times_impossible"]) == (fallen, impossible)


def test_a_fraction_of_a_second_that_is_none_is_impossible(tmp_path: Path) -> None:
    path = save(tmp_path / "x.pcap", frames(1.0, 2.0, 3.0))
    data = bytearray(path.read_bytes())
    at = 24 + 16 + len(UDP_FRAME) + 4
    for fraction in (1_000_000, 0xFFFFFFFF):
        data[at : at + 4] = struct.pack("<I", fraction)
        path.write_bytes(data)
        found = capture(path)["pcap"]
        assert (found["period_ns"], found["times_impossible"]) == (3000 * MS, 1)


def test_frames_that_are_not_sent_count_for_nothing(tmp_path: Path) -> None:
    """Neither in number nor in size nor in time: as in captures with GRO."""
    records = [*frames(*(1000 + n / 1000 for n in range(100))), *frames(*range(1001, 1010), **HUGE)]
    path = save(tmp_path / "x.pcap", records)
    facts = capture(path)
    assert (facts["mean_frame_bytes"], facts["max_frame_bytes"]) == (64, 64)
    found = facts["pcap"]
    assert (found["frames"], found["frames_in_file"], found["period_ns"]) == (100, 109, 100 * MS)
    assert found["skipped"]["too_long"] == 9


def test_the_limit_of_a_wire_is_told(tmp_path: Path) -> None:
    path = save(tmp_path / "x.pcap", [*frames(1.0, 1.1), *frames(1.2, data=UDP_FRAME, length=1996)])
    assert capture(path, frame_bytes_max=2000)["max_frame_bytes"] == 2000
    assert capture(path, frame_bytes_max=1518)["max_frame_bytes"] == 64


def test_frames_with_their_fcs_stay_as_long_as_they_are(tmp_path: Path) -> None:
    records = frames(1.0, 2.0, data=UDP_FRAME + bytes(4))
    plain, with_fcs = (save(tmp_path / f"{link}", records, link=link) for link in (ETHERNET, ETHERNET | FCS_OF_4_BYTES))
    assert capture(plain)["mean_frame_bytes"] == 68
    assert capture(with_fcs)["mean_frame_bytes"] == 64


def test_the_format_of_kuznetzov_is_read(tmp_path: Path) -> None:
    """Eight more bytes behind the header of each record."""
    text = struct.pack("<IHHIIII", 0xA1B2CD34, 2, 4, 0, 0, 65535, ETHERNET)
    for seconds in (1, 2, 3):
        text += struct.pack("<IIIIIHBB", seconds, 0, len(UDP_FRAME), len(UDP_FRAME), 2, 0x0800, 0, 0) + UDP_FRAME
    path = tmp_path / "x.pcap"
    path.write_bytes(text)
    found = capture(path)
    assert (found["pcap"]["frames"], found["pcap"]["period_ns"], found["mean_frame_bytes"]) == (3, 3000 * MS, 64)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda p: p.write_bytes(gzip.compress(UDP_FRAME)), "is compressed by gzip; unpack it: gunzip"),
        (lambda p: p.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(99)), "is compressed by zstd; unpack it: unzstd"),
        (lambda p: p.write_bytes(b"snoop\0\0\0" + bytes(99)), "is in snoop format; convert it: editcap"),
        (lambda p: p.write_bytes(b"no capture at all, only text"), "is no capture (unknown file format); convert it"),
        (lambda p: p.write_bytes(b""), "is empty; give a capture"),
        (lambda p: save(p, []), "has no frame; give another capture"),
        (lambda p: save(p, [], link=113), "link type 113 is not Ethernet; capture on an Ethernet interface"),
        (lambda p: save(p, frames(1, data=ARP_FRAME)), "none of 1 frames can be sent: 1 are not IPv4 or IPv6 behind"),
        (lambda p: save(p, frames(1, 2, data=tagged(0x8100, 0x8100, 0x8100))), "2 are not IPv4 or IPv6 behind 0 to 2"),
        (lambda p: save(p, frames(1, data=tagged(0x9100))), "VLAN tags (0x8100, 0x88a8); remove other tags"),
        (lambda p: save(p, frames(1, 2), snaplen=20), "2 end within their headers; capture at least 128 bytes of each"),
        (lambda p: save(p, frames(1, **HUGE)), "1 are longer than this wire carries; capture without GRO"),
        (lambda p: p.write_bytes(save(p, frames(1, 2)).read_bytes()[:-5]), "after 1 frames: truncated dump file"),
    ],
)  # fmt: skip
def test_a_capture_of_which_nothing_can_be_sent_is_refused_with_the_way_out(
    tmp_path: Path, make: Callable[[Path], object], words: str
) -> None:
    path = tmp_path / "x.pcap"
    make(path)
    assert words in refusal({"generator": {"pcap": {"path": str(path)}}})


def test_recorded_times_need_stamps_that_advance_and_a_rate_that_can_be(tmp_path: Path) -> None:
    def refused(path: Path, **more: object) -> str:
        return refusal({"generator": {"pcap": {"path": str(path), "timing": "recorded", **more}}})

    path = save(tmp_path / "x.pcap", frames(7, 7, 7))
    assert "its time stamps do not advance; leave out recorded times" in refused(path)
    path = save(tmp_path / "x.pcap", frames(1, 1.00001))
    assert "are more than 1e+09; give a smaller one" in refused(path, time_scale=1e6)
    assert "give time_scale or rate_pps, not both" in refused(path, time_scale=2, rate_pps=5)


def test_routes_are_those_that_a_router_with_these_settings_forwards_by(tmp_path: Path) -> None:
    def prefixes(**settings: object) -> list[str]:
        said = ask({"l3fwd": settings})
        assert said.ok, said.stderr
        found: list[str] = json.loads(said.stdout)["prefixes"]
        return found

    path = tmp_path / "routes.txt"
    path.write_text(
        f"{BOM}10.2.0.0/16 port 1 # 10.9.0.0/16\n\n# 10.8.0.0/16\n10.1.2.3\n10.3.0.0/16 drop\n2001:db8::/32\n"
    )
    assert prefixes(routes_file=str(path)) == ["10.1.2.3/32", "10.2.0.0/16", "2001:db8::/32"]
    path.write_text(BOM + json.dumps({"routes": [{"prefix": "10.9.0.0/16"}, {"prefix": "10.8.0.0/16", "drop": True}]}))
    assert prefixes(routes_file=str(path)) == ["10.9.0.0/16"]
    assert prefixes(routes=[{"prefix": "10.7.0.0/16"}]) == ["10.7.0.0/16"]
    assert len(prefixes()) == 11
    path.write_text("10.1.0.0/16\n10.1.0.0/16\n")
    assert "10.1.0.0/16 is there already" in refusal({"l3fwd": {"routes_file": str(path)}})


def test_a_list_of_addresses_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "ips.txt"
    path.write_text(f"{BOM}10.0.0.1\n# one more\n10.0.0.2\n")
    said = ask({"generator": {"dst_ips_file": str(path)}})
    assert json.loads(said.stdout)["dst_ips"] == 2


@pytest.mark.parametrize("asked", [[], {}, {"monitor": {}}, {"generator": {}, "l3fwd": {}}])
def test_what_has_no_facts_is_refused(asked: Any) -> None:
    assert "expected an object with one kind of task that has facts: generator or l3fwd" in refusal(asked)


def test_a_byte_order_mark_is_skipped_in_documents_and_rules(tmp_path: Path) -> None:
    rules = tmp_path / "rules.txt"
    rules.write_text(f"{BOM}permit ip from any to any\n")
    firewall = task("f", "firewall", "e0", "e1", settings={"rules_file": str(rules)})
    path = tmp_path / "d.json"
    path.write_text(BOM + json.dumps(document("t", [ethdev("e0", "net_null0"), ethdev("e1", "net_null1")], [firewall])))
    assert run_tool([planed_binary(), "--check", path]).ok


@pytest.mark.parametrize(("mbufs", "fits"), [(7000, False), (1023, True)])
def test_a_document_is_valid_if_its_tables_fit(tmp_path: Path, mbufs: int, fits: bool) -> None:
    """Rules with ranges of ports at both ends, that overlap: DPDK's tries of them are large."""
    rng = random.Random(1)

    def end() -> str:
        port = rng.randrange(50_000)
        return f"{rng.randrange(1, 223)}.{rng.randrange(256)}.0.0/16 port {port}-{port + 9999}"

    rules = tmp_path / "rules.txt"
    rules.write_text("".join(f"permit tcp from {end()} to {end()}\n" for _ in range(4000)))
    firewall = task("f", "firewall", "e0", "e1", settings={"rules_file": str(rules)})
    made = document("t", [ethdev("e0", "net_null0"), ethdev("e1", "net_null1")], [firewall])
    path = tmp_path / "d.json"
    path.write_text(json.dumps(made | {"memory": {"size_mb": 32, "hugepages": False, "mbuf_count": mbufs}}))
    said = run_tool([planed_binary(), "--check", path], 60)
    assert said.ok == fits
    assert fits or "task f: no room for the tries of 4000 rules" in said.stderr
