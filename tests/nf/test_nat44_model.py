# SPDX-License-Identifier: BSD-3-Clause
"""nat44 against a judge that is written from the RFCs (nat44_model.py): 120,000 random frames, every byte, every drop.

Few ports, so that they run out; times that fall on the cycle of an expiry and beside it; several bursts at a time.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from nf_rig import FrameIn, FrameOut, Record, Tick, nf_run

from nf.nat44_frames import Frames, World
from nf.nat44_model import Nat, Rules
from nf.nat44_packet import TCP, UDP, Endpoint

pytestmark = pytest.mark.dataplane

PEERS = ("02:00:00:00:aa:00", "02:00:00:00:aa:01")
OUTSIDE = (bytes((203, 0, 113, 1)), bytes((203, 0, 113, 2)))
STATIC = bytes((203, 0, 113, 9))
HOSTS = (*(bytes((10, 0, 0, n)) for n in range(1, 15)), bytes((172, 16, 0, 1)))
REMOTES: tuple[Endpoint, ...] = tuple((bytes((192, 0, 2, n)), port) for n in (1, 2) for port in (53, 80))
SERVER: Endpoint = (HOSTS[0], 80)


def _tsc_hz(folder: Path) -> int:
    return int(nf_run({"kind": "l2fwd"}, [], folder)[1]["tsc_hz"])


def _text(ip: bytes) -> str:
    return ".".join(map(str, ip))


def _settings(rules: Rules) -> dict[str, Any]:
    return {
        "outside": [_text(ip) for ip in rules.outside],
        "inside": ["10.0.0.0/28"],
        "forward": [
            {"protocol": "tcp", "outside": f"{_text(STATIC)}:80", "inside": f"{_text(SERVER[0])}:{SERVER[1]}"},
            {"protocol": "udp", "outside": f"{_text(OUTSIDE[0])}:{rules.ports[3]}", "inside": f"{_text(HOSTS[1])}:53"},
        ],
        "port_min": rules.ports[0],
        "port_max": rules.ports[-1],
        "sessions_max": rules.sessions_max,
        "sessions_per_host": rules.per_host,
        "udp_s": rules.udp,
        "tcp_established_s": rules.established,
        "tcp_transitory_s": rules.transitory,
        "icmp_s": rules.icmp,
        "hairpin": rules.hairpin,
        "tcp_loose": rules.loose,
    }


def _nat(rules: Rules, hz: int) -> Nat:
    """The judge, its times in cycles."""
    times = {name: getattr(rules, name) * hz for name in ("udp", "established", "transitory", "icmp", "second")}
    forwards = {(TCP, (STATIC, 80)): SERVER, (UDP, (OUTSIDE[0], rules.ports[3])): (HOSTS[1], 53)}
    return Nat(replace(rules, **times), forwards)


def _records(frames: Frames, count: int, hz: int, quiet: int) -> Iterator[Record]:
    """Bursts at times that are whole and half seconds, and a cycle beside; ticks enough after each long pause.

    ``quiet`` is the share of bursts, of ``quiet`` and 12, that follow at once.
    """
    rng = random.Random(45)
    halves, now, port, left = 2, hz, 0, 0
    for _ in range(count):
        if left == 0:
            port, left = int(rng.random() < 0.45), rng.choice((1, 3, 8, 31, 40))
            step = rng.choice((0,) * quiet + (1,) * 9 + (2, 4, 10))
            halves += step
            now = max(now, halves * hz // 2 + rng.choice((-1, 0, 0, 1)))
            yield from [Tick(now)] * (8 if step >= 4 else step)
        left -= 1
        yield FrameIn(frames(port), port, now)


RULES = Rules(
    outside=OUTSIDE,
    inside=((int.from_bytes(bytes((10, 0, 0, 0)), "big"), 0xFFFFFFF0),),
    ports=range(1024, 1054),
    sessions_max=400,
    per_host=0,
    udp=3,
    established=12,
    transitory=2,
    icmp=2,
    second=1,
)


def _world(rules: Rules) -> World:
    """More endpoints than ports, or than places in the table."""
    host_ports = (*range(rules.ports[0] - 3, rules.ports[0] + 14), 53, 80, 0)
    return World(HOSTS, host_ports, REMOTES, (*OUTSIDE, STATIC), (*rules.ports[:24], 80))


TALKERS = World(HOSTS[:2], range(1024, 1027), REMOTES[:2], OUTSIDE, range(1024, 1028))
"""So few that TCP connections go through all their states."""

_FEW = replace(RULES, ports=range(1001, 2100), sessions_max=100)
_LIMITED = replace(RULES, per_host=8, loose=False)
_PLAIN = replace(RULES, outside=OUTSIDE[:1], hairpin=False, ports=range(5000, 5100))
CASES = {
    "no_port": (RULES, _world(RULES), 40_000, 25),
    "table_full": (_FEW, _world(_FEW), 20_000, 25),
    "host_full": (_LIMITED, _world(_LIMITED), 20_000, 25),
    "hairpin": (_PLAIN, _world(_PLAIN), 15_000, 25),
    "no_session": (RULES, TALKERS, 25_000, 1),
}
"""By the drop reason that each is to bring about."""


class Wire:
    """What is in front of the EtherType: the peer's address and the port's own, which is learned."""

    def __init__(self) -> None:
        self.own: dict[int, bytes] = {}

    def check(self, out: bytes, port: int) -> None:
        assert out[:6] == bytes.fromhex(PEERS[port].replace(":", ""))
        assert self.own.setdefault(port, out[6:12]) == out[6:12]


def _judge(nat: Nat, records: list[Record], results: list[FrameOut], names: list[str]) -> None:
    wire = Wire()
    frames = (record for record in records if isinstance(record, FrameIn))
    for i, (given, got) in enumerate(zip(frames, results, strict=True)):
        drop = None if got.drop is None else names[got.drop]
        about = f"frame {i} from {given.port} at {given.now_tsc}: {given.data.hex()} -> {drop or got.data.hex()}"
        try:
            want = nat.frame(given.data, given.port, given.now_tsc, got.data, drop)
        except AssertionError as error:
            raise AssertionError(f"{about}: {error}") from error
        if isinstance(want, str) or drop:
            assert drop == want, about
            continue
        assert (got.port, got.data[12:].hex()) == (want[0], want[1][12:].hex()), about
        wire.check(got.data, want[0])


@pytest.mark.parametrize("name", CASES)
def test_every_frame_is_right(name: str, tmp_path: Path) -> None:
    rules, world, count, quiet = CASES[name]
    hz = _tsc_hz(tmp_path)
    records = list(_records(Frames(world, 44), count, hz, quiet))
    records += [Tick(records[-1].now_tsc + hz)] * 16  # type: ignore[union-attr]
    task = {"kind": "nat44", "settings": _settings(rules), "peer_macs": list(PEERS)}
    results, report = nf_run(task, records, tmp_path)
    names = list(report["drops"])[1:]
    nat = _nat(rules, hz)
    _judge(nat, records, results, names)  # type: ignore[arg-type]

    assert +Counter({k: n for k, n in report["drops"].items() if n}) == nat.drops
    assert report["rx_packets"] == count == report["tx_packets"] + nat.drops.total()
    seen = report["nat44"]
    assert (seen["created"], seen["expired"]) == (nat.created, nat.created - seen["sessions"])
    nat.now = records[-1].now_tsc  # type: ignore[union-attr]
    assert len(nat.dynamic()) <= seen["sessions"] <= len(nat.by_inside)
    assert nat.drops[name] >= 100
    assert len(nat.passed) == (11 if rules.hairpin else 8)
    assert min(nat.passed.values()) >= 10
