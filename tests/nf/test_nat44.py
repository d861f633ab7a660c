# SPDX-License-Identifier: BSD-3-Clause
"""What nat44 does by hand: its defaults with the tester's traffic, settings, methods, sessions that outlive a task."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from nf_rig import Answer, Call, FrameIn, FrameOut, Record, Replace, Tick, nf_run, program

from nf.nat44_frames import echo, frame, tcp, udp
from nf.nat44_packet import ACK, SYN, Packet, parse, segment_residue, word

pytestmark = pytest.mark.dataplane

HOST, REMOTE, OUTSIDE = (bytes((10, 0, 0, 1)), 5000), (bytes((192, 0, 2, 1)), 53), bytes((203, 0, 113, 1))
TASK: dict[str, Any] = {"kind": "nat44", "settings": {"outside": ["203.0.113.1"]}}
TESTER_PORT = 28770


def _tester(stream: int) -> bytes:
    """A frame of the tester (dataplane/tester/generator.c), but for what is in it."""
    src, dst = bytes((198, 18, stream, 1)), bytes((198, 19, stream, 1))
    return frame(udp((src, 49152 + stream), (dst, TESTER_PORT), bytes(18), fragment=0x4000))


def _sound(data: bytes) -> Packet:
    p = parse(data)
    assert isinstance(p, Packet) and segment_residue(data, p) == 0
    assert p.ports[1] == TESTER_PORT and word(data, p.l4 + 6) != 0
    return p


def test_defaults_pass_the_testers_streams_through_a_chain_of_them(tmp_path: Path) -> None:
    """Even streams from inside, odd ones from outside, through three; the monitor knows them by port and checksum."""
    for port in (0, 1):
        frames = [FrameIn(_tester(stream), port) for stream in range(port, 8, 2) for _ in range(40)]
        for _ in range(3):
            results, report = nf_run({"kind": "nat44"}, frames, tmp_path)
            assert report["tx_packets"] == report["rx_packets"] == 160
            for given, got in zip(frames, results, strict=True):
                assert isinstance(got, FrameOut) and got.port == 1 - port
                before, after = _sound(given.data), _sound(got.data)
                assert after.src == (bytes((198, 18, 255, 1)) if port == 0 else before.src)
                assert (after.dst != before.dst) == (port == 1)
            frames = [FrameIn(got.data, port) for got in results if isinstance(got, FrameOut)]
        assert report["nat44"]["sessions"] == (4 if port == 0 else 0)
        assert report["nat44"]["forwards"] == 16  # of UDP and of TCP


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"ports": 3}, 'task nf: settings: unknown key "ports"; valid keys: outside inside forward'),
        ({"outside": []}, "task nf: settings.outside: expected an array of 1 to 64 items"),
        ({"outside": ["10.0.0.1", 7]}, r"outside\[1\]: expected a unicast IPv4 address like 198.18.255.1"),
        ({"outside": ["224.0.0.1"]}, r"outside\[0\]: expected a unicast"),
        ({"outside": ["10.0.0.1", "10.0.0.1"]}, r"outside\[1\]: 10.0.0.1 is there twice; name it once"),
        ({"inside": ["10.0.0.0/33"]}, r"inside\[0\]: expected a prefix like 10.0.0.0/8"),
        ({"inside": ["10.0.0.0/"]}, r"inside\[0\]: expected a prefix"),
        ({"inside": ["10.0.0.1/8"]}, r'inside\[0\]: "10.0.0.1/8" has bits set beyond its length'),
        ({"port_min": 0}, "port_min: 0 is not valid: expected a whole number from 1 to 65535"),
        ({"port_min": 9, "port_max": 8}, "port_min 9 is above port_max 8"),
        ({"sessions_max": 1 << 24}, "sessions_max: 16777216 is not valid"),
        ({"udp_s": 0}, "udp_s: 0 is not valid"),
        ({"hairpin": 1}, "hairpin: 1 is not valid: expected true or false"),
        ({"forward": {}}, "forward: expected an array of 0 to 256 items"),
        ({"forward": [{"protocol": "icmp"}]}, r'forward\[0\].protocol: "icmp" is not valid: expected one of udp tcp'),
        ({"forward": [{"protocol": "udp"}]}, r'forward\[0\]: key "outside" is missing'),
        (
            {"forward": [{"protocol": "udp", "outside": "10.0.0.1:0", "inside": "10.0.0.1:1"}]},
            r"forward\[0\].outside: expected a unicast IPv4 address and a port like 198.18.255.1:80",
        ),
        (
            {"forward": [{"protocol": "udp", "outside": f"9.0.0.{i}:1", "inside": "10.0.0.1:1"} for i in (1, 2)]},
            r"forward\[1\]: its inside is that of forward\[0\]; an endpoint is forwarded once",
        ),
        (
            {"forward": [{"protocol": "tcp", "outside": f"9.0.0.{i}:1", "inside": f"8.0.0.{i}:1"} for i in range(65)]},
            '65 addresses that are not in "outside"; at most 64',
        ),
    ],
)
def test_settings_are_refused(settings: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    assert re.search(sentence, _refusal(tmp_path, settings=settings))


def test_it_takes_two_different_ports(tmp_path: Path) -> None:
    assert "kind nat44 takes 2 to 2 ports, not 1" in _refusal(tmp_path, ports=["p0"])
    assert "port p0 is named twice; kind nat44 takes an inside and an outside port" in _refusal(
        tmp_path, ports=["p0", "p0"]
    )


def _refusal(folder: Path, **task: Any) -> str:
    """What planed says of a document with such a task."""
    file = folder / "document.json"
    ports = [{"name": name, "kind": "ethdev", "device": "net_null0"} for name in ("p0", "p1")]
    tasks = [{"name": "nf", "kind": "nat44", "ports": ["p0", "p1"], **task}]
    worker = {"name": "w", "cpu": 0, "tasks": ["nf"]}
    file.write_text(json.dumps({"version": 1, "name": "x", "ports": ports, "tasks": tasks, "workers": [worker]}))
    done = subprocess.run([program("planed"), "--check", file], capture_output=True, text=True)
    assert done.returncode == 2
    return done.stderr


def _from_inside(port: int = 5000, now: int = 0) -> list[Record]:
    """A packet of each protocol."""
    host = (HOST[0], port)
    packets = (udp(host, REMOTE), tcp(host, REMOTE, SYN), echo(host[0], REMOTE[0], 8, port))
    return [FrameIn(frame(packet), 0, now) for packet in packets]


def _answers(results: list[Any]) -> list[dict[str, Any]]:
    return [result.value for result in results if isinstance(result, Answer)]


def test_sessions_are_listed_page_by_page_and_flushed(tmp_path: Path) -> None:
    hz = int(nf_run({"kind": "l2fwd"}, [], tmp_path)[1]["tsc_hz"])
    forward = [{"protocol": "tcp", "outside": "203.0.113.1:80", "inside": "10.0.0.9:8080"}]
    task = {"kind": "nat44", "settings": {**TASK["settings"], "forward": forward}}
    reply = tcp(REMOTE, (OUTSIDE, 5000), SYN | ACK)
    records: list[Record] = [
        *_from_inside(now=hz),
        FrameIn(frame(reply), 1, 2 * hz),
        Call("sessions", {"task": "nf"}, 11 * hz),
        Call("sessions", {"task": "nf", "limit": 3}, 11 * hz),
        Call("sessions", {"task": "nf", "from": 4}, 11 * hz),
        Call("sessions", {"task": "nf", "limit": 0}, 11 * hz),
        Call("sessions", {"task": "nf"}, 300 * hz),
        Call("flush", {"task": "nf"}, 11 * hz),
        Call("flush", {"task": "nf", "all": True}, 11 * hz),
        Call("sessions", {}, 11 * hz),
        Call("session", {}, 11 * hz),
    ]
    results, report = nf_run(task, records, tmp_path)
    whole, first, rest, bad, late, flush, unknown, empty, none = _answers(results)
    static = {"protocol": "tcp", "inside": "10.0.0.9:8080", "outside": "203.0.113.1:80", "state": "static"}
    ends = {"inside": "10.0.0.1:5000", "outside": "203.0.113.1:5000"}
    assert whole == {
        "sessions": [
            static,
            {"protocol": "udp", **ends, "idle_s": 10.0, "expires_in_s": 290.0},
            {"protocol": "tcp", **ends, "state": "established", "idle_s": 9.0, "expires_in_s": 7431.0},
            {"protocol": "icmp", **ends, "idle_s": 10.0, "expires_in_s": 50.0},
        ],
        "next": None,
    }
    assert first == {"sessions": whole["sessions"][:3], "next": 4}
    assert rest == {"sessions": whole["sessions"][3:], "next": None}
    assert bad == {"error": "params.limit: 0 is not valid: expected a whole number from 1 to 10000"}
    assert [session["protocol"] for session in late["sessions"]] == ["tcp", "udp", "tcp"]
    assert flush == {"flushed": 3}
    assert unknown["error"].startswith('params: unknown key "all"')
    assert empty == {"sessions": [static], "next": None}
    assert none == {"error": 'kind nat44 has no method "session"; valid: sessions flush'}
    assert report["nat44"]["created"] == 3 and report["nat44"]["expired"] == 0


def test_report_counts_sessions_and_ports(tmp_path: Path) -> None:
    hz = int(nf_run({"kind": "l2fwd"}, [], tmp_path)[1]["tsc_hz"])
    records = [*_from_inside(5000), *_from_inside(5001), Tick(60 * hz - 1), Tick(60 * hz)]
    _, report = nf_run(TASK, records, tmp_path)
    seen = report["nat44"]
    assert {
        key: seen[key] for key in ("sessions", "sessions_max", "by_protocol", "created", "expired", "forwards")
    } == {
        "sessions": 4,
        "sessions_max": 65536,
        "by_protocol": {"udp": 2, "tcp": 2, "icmp": 0},
        "created": 6,
        "expired": 2,
        "forwards": 0,
    }
    assert seen["addresses"] == [{"address": "203.0.113.1", "ports": {"udp": 2, "tcp": 2, "icmp": 0}}]
    assert 65537 * (64 + 16) < seen["memory_bytes"] < 16 << 20


def _inbound(port: int, now: int = 0) -> Record:
    return FrameIn(frame(udp(REMOTE, (OUTSIDE, port))), 1, now)


def test_sessions_outlive_their_task_as_far_as_they_fit(tmp_path: Path) -> None:
    """What the new task may not have is forgotten: ports out of its range, hosts it does not translate."""
    settings = TASK["settings"]
    other = FrameIn(frame(udp((bytes((172, 16, 0, 1)), 6000), REMOTE)))
    forward = [{"protocol": "udp", "outside": "203.0.113.1:5001", "inside": "10.0.0.7:1"}]
    narrow = {**settings, "outside": ["203.0.113.7", "203.0.113.1"], "inside": ["10.0.0.0/8"]}
    narrow |= {"port_max": 5002, "forward": forward}
    records = [
        *(record for port in (5000, 5001, 5003) for record in _from_inside(port)),
        other,
        Replace({"kind": "nat44", "settings": narrow}),
        *(_inbound(port) for port in (5000, 5001, 5003, 6000)),
        *_from_inside(5000),
        Replace({"kind": "nat44", "settings": {"outside": ["203.0.113.7"]}}),
        _inbound(5000),
        Call("sessions", {}),
    ]
    results, report = nf_run(TASK, records, tmp_path)
    names = list(report["drops"])[1:]
    frames = [result for result in results if isinstance(result, FrameOut)][10:]
    came = [(names[got.drop] if got.drop is not None else got.data[30:34]) for got in frames]
    assert came[:4] == [HOST[0], bytes((10, 0, 0, 7)), "no_mapping", "no_mapping"]
    assert all(got.data[26:30] == OUTSIDE for got in frames[4:7])
    assert came[7] == "not_ours"
    assert _answers(results)[-1] == {"sessions": [], "next": None}


def test_a_smaller_table_keeps_the_sessions_that_were_used_last(tmp_path: Path) -> None:
    """Of whatever protocol; and the lists by which they expire stay in order."""
    hosts = [(bytes((10, 0, 1, n)), 7000 + n) for n in range(6)]
    seconds = [n * 10**10 for n in range(7)]  # 2 to 10 of them, whatever the clock
    first = [
        FrameIn(frame(udp(host, REMOTE) if n % 2 else tcp(host, REMOTE, SYN)), 0, seconds[n])
        for n, host in enumerate(hosts)
    ]
    again = FrameIn(frame(udp(hosts[1], REMOTE)), 0, seconds[6])
    smaller = {**TASK["settings"], "sessions_max": 3}
    records = [*first, again, Replace({"kind": "nat44", "settings": smaller}), Call("sessions", {}, seconds[6])]
    results, _ = nf_run(TASK, records, tmp_path)
    kept = {one["inside"] for one in _answers(results)[-1]["sessions"]}
    assert kept == {"10.0.1.1:7001", "10.0.1.4:7004", "10.0.1.5:7005"}


def test_a_million_sessions_of_one_host_only_fill_the_table(tmp_path: Path) -> None:
    """Whoever opens without end is refused; who has a session keeps it."""
    flood = [FrameIn(frame(udp((bytes((10, n >> 16, n >> 8 & 255, n & 255)), 1), REMOTE))) for n in range(20000)]
    task = {"kind": "nat44", "settings": {**TASK["settings"], "sessions_max": 5000}}
    results, report = nf_run(task, [*_from_inside(), *flood, _inbound(5000), *_from_inside()], tmp_path)
    assert report["drops"]["table_full"] == 20000 - 4997 and report["nat44"]["sessions"] == 5000
    assert all(isinstance(got, FrameOut) and got.drop is None for got in results[-4:])
