# SPDX-License-Identifier: BSD-3-Clause
"""The firewall against a model that walks the list: verdict, reason, changed bytes, counters of every rule."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from nf.firewall_frames import frame, rule
from nf.firewall_model import Firewall, checksum
from nf_rig import Answer, Call, FrameIn, FrameOut, Record, Replace, Result, nf_run

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
