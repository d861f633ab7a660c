# SPDX-License-Identifier: BSD-3-Clause
"""The firewall against a model that walks the list: verdict, reason, changed bytes, counters of every rule."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from nf_rig import Answer, Call, FrameIn, FrameOut, Record, RefusedError, Replace, Result, nf_run

from nf.firewall_frames import frame, narrow_rule, rule
from nf.firewall_model import Firewall
from nf.packet_model import checksum

pytestmark = pytest.mark.dataplane

PEERS = ("02:00:00:00:aa:00", "02:00:00:00:aa:01")
SETS = 60
FRAMES_OF_A_SET = 1750


def task(firewall: Firewall, folder: Path, name: str) -> dict[str, Any]:
    """The task object of a model; its rules go to a file."""
    path = folder / f"{name}.rules"
    path.write_text("# rules of a test\n\n" + "".join(f"{one.text()}\n" for one in firewall.rules))
    settings = {
        "rules_file": str(path),
        "default": "permit" if firewall.default_permit else "drop",
        "not_ip": "permit" if firewall.not_ip_permit else "drop",
        "fragments": "drop" if firewall.fragments_drop else "match",
    }
    return {"kind": "firewall", "peer_macs": list(PEERS), "burst": 32, "settings": settings}


def frame_out(result: Result) -> FrameOut:
    assert isinstance(result, FrameOut)
    return result


def answer(result: Result) -> dict[str, Any]:
    assert isinstance(result, Answer)
    return result.value


class Case:
    """A list of rules, its frames, and what the model says of them."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        count = rng.choice((0, 1, 2, 5, 10, 30, 100)) if rng.random() < 0.8 else rng.randint(1, 300)
        self.model = Firewall(
            [rule(rng) for _ in range(count)], rng.random() < 0.5, rng.random() < 0.3, rng.random() < 0.1
        )
        self.frames: list[FrameIn] = []
        while len(self.frames) < FRAMES_OF_A_SET:
            port, time = rng.randrange(2), rng.randrange(1 << 40)
            burst = rng.choice((1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32))
            self.frames += [FrameIn(frame(rng, self.model.rules), port, time) for _ in range(burst)]
        self.expected = [self.model.decide(one.data) for one in self.frames]

    def check(self, results: list[FrameOut], names: list[str], own: dict[int, bytes]) -> Counter[str]:
        """Every frame; how often each verdict was."""
        seen: Counter[str] = Counter()
        for given, got, expected in zip(self.frames, results, self.expected, strict=True):
            name = None if got.drop is None else names[got.drop]
            assert name == expected, (given.data.hex(), name, expected)
            seen[name or "permitted"] += 1
            if got.port is None:
                assert got.data == given.data
                continue
            assert got.port == 1 - given.port
            own.setdefault(got.port, got.data[6:12])
            peer = bytes.fromhex(PEERS[got.port].replace(":", ""))
            assert got.data == peer + own[got.port] + given.data[12:]
        return seen


def drop_names(report: dict[str, Any]) -> list[str]:
    """The kind's reasons in their order."""
    return [name for name in report["drops"] if name != "tx_full"]


def test_firewall_decides_as_a_walk_down_the_list(tmp_path: Path) -> None:
    """105,000 frames and more, 60 lists of 0 to 300 rules."""
    cases = [Case(seed) for seed in range(SETS)]
    records: list[Record] = []
    for number, case in enumerate(cases):
        if number:
            records.append(Replace(task(case.model, tmp_path, str(number))))
        records += case.frames
        records.append(Call("rules", {"task": "nf", "limit": 300}))
    results, report = nf_run(task(cases[0].model, tmp_path, "0"), records, tmp_path)
    at, seen, own = 0, Counter[str](), dict[int, bytes]()
    for number, case in enumerate(cases):
        if number:
            assert answer(results[at]) == {}
            at += 1
        frames = [frame_out(result) for result in results[at : at + len(case.frames)]]
        seen += case.check(frames, drop_names(report), own)
        at += len(case.frames)
        listed = answer(results[at])
        at += 1
        assert [[one["packets"], one["bytes"]] for one in listed["rules"]] == case.model.counters[1:]
        assert listed["next"] is None
    last = cases[-1].model.counters
    assert report["firewall"]["default"] == {
        "packets": last[0][0],
        "bytes": last[0][1],
        "action": "permit" if cases[-1].model.default_permit else "drop",
    }
    assert at == len(results)
    assert sum(seen.values()) >= 100_000
    assert set(seen) == {*drop_names(report), "permitted"}  # each verdict was tried
    assert min(seen.values()) >= 20, seen


def test_the_default_rules_are_ten_and_permit_the_testers_frames(tmp_path: Path) -> None:
    frames = [FrameIn(tester_frame(stream)) for stream in range(8)]
    stranger = FrameIn(tester_frame(0).replace(bytes([198, 19]), bytes([198, 20])))  # its checksum is wrong now
    results, report = nf_run({"kind": "firewall"}, [*frames, stranger], tmp_path)
    assert [frame_out(one).port for one in results] == [1] * 8 + [None]
    assert report["drops"]["checksum"] == 1
    assert report["firewall"]["rule_count"] == 10
    assert [one["packets"] for one in report["firewall"]["rules"]] == [0] * 8 + [8, 0]
    assert report["firewall"]["rules"][8]["name"] == "tester"


def tester_frame(stream: int) -> bytes:
    """As dataplane/tester/frame.c makes it, 64 bytes with FCS."""
    rng = random.Random(stream)
    udp = (49152 + stream).to_bytes(2, "big") + (28770).to_bytes(2, "big") + bytes(22)
    head = bytes([0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17, 0, 0, 198, 18, stream, 1, 198, 19, stream, 1])
    return rng.randbytes(12) + b"\x08\x00" + head[:10] + checksum(head).to_bytes(2, "big") + head[12:] + udp


# --- What a rule matches, one by one


def packet(*, protocol: int = 17, flags: int = 0, ports: tuple[int, int] = (1000, 53), size: int = 26) -> bytes:
    """IPv4 from 10.0.0.1 to 10.0.0.2."""
    payload = (ports[0].to_bytes(2, "big") + ports[1].to_bytes(2, "big") + bytes(size))[:size]
    head = bytes([0x45, 0, 0, 20 + size, 0, 0, *flags.to_bytes(2, "big"), 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2])
    head = head[:10] + checksum(head).to_bytes(2, "big") + head[12:]
    return bytes(12) + b"\x08\x00" + head + payload


DNS = ["drop udp from any to any port 53", "permit ip from any to any"]


MATCHES: list[tuple[list[str], bytes, str | None]] = [
    (DNS, packet(), "rule"),
    (DNS, packet(ports=(53, 54)), None),
    (DNS, packet(flags=0x2000), "rule"),
    (DNS, packet(flags=0x2001), None),  # a later fragment: its first four bytes are no ports
    (["permit udp from any port 0-65535 to any"], packet(flags=1), "default"),
    (["permit udp from any to any"], packet(flags=1), None),
    (["permit ip from any to any port 53"], packet(protocol=132), None),
    (["permit ip from any to any port 53"], packet(protocol=47), "default"),
    (["permit ip from any to any"], packet(protocol=6, flags=0x2000, size=19), "truncated"),
    (["permit ip from any to any"], packet(protocol=6, flags=0x2000, size=20), None),
    (["permit ip from any to any"], packet(protocol=6, flags=0x2001), "tiny_fragment"),
    (["permit ip from any to any"], packet(protocol=17, flags=0x2001), None),
    (["permit ip from ::/0 to any", "drop ip from any to any"], packet(), "rule"),
    ([], packet(), "default"),
]


def test_a_rule_matches(tmp_path: Path) -> None:
    tasks = [{"kind": "firewall", "settings": {"rules": rules}} for rules, _, _ in MATCHES]
    records: list[Record] = []
    for given, (_, data, _) in zip(tasks, MATCHES, strict=True):
        records += [Replace(given), FrameIn(data)]
    results, report = nf_run(tasks[0], records, tmp_path)
    names = drop_names(report)
    for got, (rules, data, expected) in zip(results[1::2], MATCHES, strict=True):
        drop = frame_out(got).drop
        assert (None if drop is None else names[drop]) == expected, (rules, data.hex())


def test_frames_that_are_not_ip_leave_if_they_may(tmp_path: Path) -> None:
    arp = bytes(12) + b"\x08\x06" + bytes(46)
    results, report = nf_run({"kind": "firewall", "settings": {"not_ip": "permit"}}, [FrameIn(arp)], tmp_path)
    assert frame_out(results[0]).port == 1
    assert report["firewall"]["not_ip_permitted"] == {"packets": 1, "bytes": 64}


def test_rules_are_listed_in_pages(tmp_path: Path) -> None:
    path = tmp_path / "many.rules"
    path.write_text("".join(f"permit udp from any to any port {n} name=r{n}\n" for n in range(1, 101)))
    calls = [
        FrameIn(packet()),
        Call("rules", {"task": "nf", "from": 52, "limit": 1}),
        Call("rules", {"from": 99}),
        Call("rules", {"from": 1000}),
        Call("rules", {"limit": 0}),
        Call("flush", {}),
    ]
    results, report = nf_run({"kind": "firewall", "settings": {"rules_file": str(path)}}, calls, tmp_path)
    hit = {"rule": 53, "line": 53, "name": "r53", "action": "permit", "packets": 1, "bytes": 64}
    assert answer(results[1]) == {"rules": [hit], "next": 53}
    assert [one["rule"] for one in answer(results[2])["rules"]] == [100]
    assert answer(results[2])["next"] is None
    assert answer(results[3]) == {"rules": [], "next": None}
    assert "params.limit: 0 is not valid" in answer(results[4])["error"]
    assert answer(results[5])["error"] == 'kind firewall has no method "flush"; valid: rules'
    assert len(report["firewall"]["rules"]) == 64
    assert report["firewall"]["rules"][52] == hit
    assert report["firewall"]["rule_count"] == 100


# --- What is refused


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rule": []}, 'task nf: settings: unknown key "rule"; valid keys: rules rules_file default not_ip fragments'),
        ({"default": "allow"}, 'settings.default: "allow" is not valid: expected one of drop permit'),
        ({"rules": [], "rules_file": "x"}, 'task nf: settings has both "rules" and "rules_file"; leave one out'),
        ({"rules": "permit"}, "task nf: settings.rules: expected an array of rules"),
        ({"rules": [{"action": "drop", "to": "10.0.0.1/8"}]}, "task nf: settings.rules[0].to: .* say 10.0.0.0/8"),
        ({"rules_file": "/nowhere"}, "task nf: /nowhere: No such file or directory"),
    ],
)
def test_settings_are_refused(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=message.replace("[0]", r"\[0\]")):
        nf_run({"kind": "firewall", "settings": settings}, [], tmp_path)


def test_a_bad_file_is_told_by_its_line_and_nothing_of_it_is_applied(tmp_path: Path) -> None:
    path = tmp_path / "bad.rules"
    path.write_text("permit ip from any to any\n\npermit upd from any to any\n")
    records: list[Record] = [
        FrameIn(packet()),
        Replace({"kind": "firewall", "settings": {"rules_file": str(path)}}),
        FrameIn(packet()),
    ]
    drop_all = {"kind": "firewall", "settings": {"rules": ["drop ip from any to any"]}}
    results, report = nf_run(drop_all, records, tmp_path)
    assert 'bad.rules:3: "permit upd from any to any": "upd" is no protocol; say ip' in answer(results[1])["error"]
    assert report["drops"]["rule"] == 2


def test_ten_thousand_rules_are_loaded(tmp_path: Path) -> None:
    rng = random.Random(10)
    rules = [rule(rng) if rng.random() < 0.01 else narrow_rule(rng) for _ in range(10_000)]
    model = Firewall(rules)
    frames = [FrameIn(frame(rng, rules)) for _ in range(500)]
    path = tmp_path / "rules.json"
    path.write_text(json.dumps({"rules": [one.text() for one in rules]}))
    given = {"kind": "firewall", "settings": {"rules_file": str(path)}}
    results, report = nf_run(given, frames, tmp_path, size_mb=512)
    names = drop_names(report)
    got = [frame_out(one).drop for one in results]
    assert [None if one is None else names[one] for one in got] == [model.decide(one.data) for one in frames]
    assert report["firewall"]["rule_count"] == 10_000
