# SPDX-License-Identifier: BSD-3-Clause
"""load_balancer against its model, whose Maglev table is made from the paper: every frame, whole."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from nf_rig import Answer, Call, FrameIn, FrameOut, RefusedError, Tick, nf_run

from nf.flow_key_model import Flow, ethernet, flow, ipv4, ipv6, random_frame, segment
from nf.load_balancer_model import DropError, LoadBalancer
from nf.packet_model import DESTINATION, FAULTS, FRAGMENT, GRE, ICMP, TCP, UDP

pytestmark = pytest.mark.dataplane

PEERS = ("02:00:00:00:aa:00", "02:00:00:00:aa:01")
REASONS = (*FAULTS, "fragment", "no_backend", "other")
FRAMES = 110_000
Item = FrameIn | Tick | Call


def backends(count: int, first: int = 0, **weights: int) -> list[dict[str, Any]]:
    """Backends b0, b1, ..., listed backwards."""
    return [
        {"name": f"b{i}", "mac": f"02:00:00:00:0b:{i:02x}", "weight": weights.get(f"b{i}", 1)}
        for i in reversed(range(first, first + count))
    ]


SERVICES: list[dict[str, Any]] = [
    {"address": "10.1.0.1", "protocol": "udp", "port": 53, "backends": backends(5)},
    {"address": "10.1.0.1", "protocol": "tcp", "port": 443, "backends": backends(3, 2)},
    {"address": "10.1.0.1", "protocol": "tcp", "backends": backends(2, 7)},
    {"address": "10.1.0.2", "backends": backends(10, b3=7, b4=100)},
    {"address": "2001:db8:1::1", "protocol": "udp", "backends": backends(7)},
    {"address": "2001:db8:1::2", "protocol": "any", "port": 80, "backends": backends(4)},
    {"address": "10.1.0.3", "protocol": "udp", "backends": [{**item, "up": False} for item in backends(2)]},
]
SETTINGS: dict[str, Any] = {
    "services": SERVICES,
    "table_size": 1009,
    "connections": 150,
    "connection_timeout_s": 2,
}


def task(settings: dict[str, Any] | None) -> dict[str, Any]:
    """A task object."""
    given = {} if settings is None else {"settings": settings}
    return {"kind": "load_balancer", "peer_macs": list(PEERS), "burst": 64, **given}


def hz(folder: Path) -> int:
    """Ticks of a second."""
    return int(nf_run(task(None), [], folder)[1]["tsc_hz"])


def flows_of(rng: random.Random, count: int) -> list[Flow]:
    """Flows to the services, and some beside them."""
    flows = []
    for _ in range(count):
        protocol, ports = (
            rng.choice((TCP, UDP, UDP, UDP, GRE, ICMP)),
            (rng.randrange(1, 999), rng.choice((53, 53, 80, 443))),
        )
        if rng.random() < 0.4:
            flows.append(
                flow(f"2001:db8::{rng.randrange(99):x}", f"2001:db8:1::{rng.randrange(1, 3):x}", protocol, *ports)
            )
        else:
            flows.append(flow(f"10.0.0.{rng.randrange(99)}", f"10.1.0.{rng.randrange(1, 5)}", protocol, *ports))
    return flows


def frame(of: Flow, size: int = 18) -> bytes:
    """A plain frame."""
    body = segment(random.Random(1), of, bytes(size))
    return ethernet(0x0800, ipv4(of, body)) if of.source.version == 4 else ethernet(0x86DD, ipv6(of, body))


class Comparison:
    """Records, and what the model says of them."""

    def __init__(self, settings: dict[str, Any], tsc_hz: int) -> None:
        self.model = LoadBalancer(settings, tsc_hz)
        self.records: list[Item] = []
        self.expected: list[Any] = []
        self.runts_back = 0

    def frame(self, data: bytes, side: int, now: int) -> None:
        """A frame comes in."""
        self.records.append(FrameIn(data, side, now))
        if side == 1:
            self.runts_back += len(data) < 14
            self.expected.append((0, None, "runt") if len(data) < 14 else (0, None, None))
            return
        try:
            self.expected.append((1, self.model.frame(data, now), None))
        except DropError as drop:
            self.expected.append((1, None, str(drop)))

    def call(self, method: str, want: dict[str, Any], now: int, **params: Any) -> None:
        """A method is called."""
        self.records.append(Call(method, {"task": "nf", **params}, now))
        self.expected.append(want)

    def backend(self, service: int, name: str, up: bool, now: int) -> None:
        """A backend comes or goes."""
        self.model.backend(service, name, up)
        self.call("backend", {"up": up}, now, service=service, backend=name, up=up)

    def run(self, settings: dict[str, Any], folder: Path) -> dict[str, Any]:
        """Run planed and compare all; the report."""
        now = max(item.now_tsc for item in self.records)
        self.records.append(Call("backends", {"task": "nf"}, now))
        results, report = nf_run(task(settings), self.records, folder)
        last = results.pop()
        assert isinstance(last, Answer)
        assert [service["backends"] for service in last.value["services"]] == self.model.backends(now)
        given = [item for item in self.records[:-1] if not isinstance(item, Tick)]
        for item, got, want in zip(given, results, self.expected, strict=True):
            if isinstance(got, Answer):
                assert got.value == want
            else:
                assert isinstance(item, FrameIn)
                assert_frame(item, got, *want)
        own = report["load_balancer"]
        assert {name: own[name] for name in self.model.counts} == self.model.counts
        assert own["connections"] == len(self.model.connections)
        return report


def assert_frame(given: FrameIn, got: FrameOut, port: int, mac: bytes | None, reason: str | None) -> None:
    """Dropped as it was, or with the MAC of its backend and nothing else new but the source's."""
    if reason:
        assert (got.port, got.drop, got.data) == (None, REASONS.index(reason), given.data)
        return
    assert got.port == port
    assert got.data[:6] == (mac or bytes.fromhex(PEERS[port].replace(":", "")))
    assert got.data[12:] == given.data[12:]


def test_model_and_planed_balance_the_same(tmp_path: Path) -> None:
    rng = random.Random(21)
    second = hz(tmp_path)
    run = Comparison(SETTINGS, second)
    pool = flows_of(rng, 4000)
    now, frames = 1000, 0
    while frames < FRAMES:
        now += rng.choice((0, 1, second // 1000, second // 100, second // 100))
        if rng.random() < 0.001:
            now += 2 * second - rng.randrange(2)
        side, n, active = int(rng.random() < 0.1), rng.choice((1, 3, 31, 64, 70)), (now // second) * 400 % 3500
        for _ in range(n):
            run.frame(random_frame(rng, pool[active : active + 500]), side, now)
        frames += n
        if rng.random() < 0.12:
            service = rng.randrange(len(SERVICES))
            name = rng.choice(SERVICES[service]["backends"])["name"]
            run.backend(service, name, rng.random() < 0.6, now)
        elif rng.random() < 0.003:
            run.records.append(Tick(now))
    report = run.run(SETTINGS, tmp_path)
    assert report["tsc_hz"] == second
    reasons = [want[2] for want in run.expected if isinstance(want, tuple)]
    assert report["drops"] == {"tx_full": 0, **{reason: reasons.count(reason) for reason in REASONS}}
    counts = {reason: reasons.count(reason) for reason in REASONS if reason not in ("not_ip", "other")}
    assert min(counts.values()) > 20, counts
    assert min(run.model.counts.values()) > 100


def test_without_connections_and_with_others_dropped(tmp_path: Path) -> None:
    rng = random.Random(22)
    settings = {**SETTINGS, "connections": 0, "other": "drop"}
    run = Comparison(settings, 1)
    pool = flows_of(rng, 3000)
    for now in range(0, 10_000, 10):
        for _ in range(10):
            run.frame(random_frame(rng, pool), 0, now)
    report = run.run(settings, tmp_path)
    assert report["drops"]["not_ip"] > 20 and report["drops"]["other"] > 100
    assert report["load_balancer"]["other_packets"] == 0


def test_shares_are_even_and_follow_weights(tmp_path: Path) -> None:
    services = [
        {"address": "10.1.0.1", "backends": backends(100)},
        {"address": "10.1.0.2", "backends": backends(4, b0=1, b1=2, b2=3, b3=4)},
    ]
    results, _ = nf_run(task({"services": services, "table_size": 65537}), [Call("backends", {})], tmp_path)
    assert isinstance(results[0], Answer)
    even, weighted = results[0].value["services"]
    slots = [backend["slots"] for backend in even["backends"]]
    assert (sum(slots), min(slots), max(slots)) == (65537, 655, 656)  # in turns: the paper's 1 % and better
    for backend in weighted["backends"]:
        assert abs(backend["slots"] - 65537 * backend["weight"] / 10) <= 4


def test_a_backend_that_goes_takes_little_else_with_it(tmp_path: Path) -> None:
    services = [{"address": "10.1.0.1", "backends": backends(20)}]
    run = Comparison({**SETTINGS, "services": services, "table_size": 65537, "connections": 5000}, 1 << 40)
    flows = [flow(f"10.0.{i >> 8}.{i & 255}", "10.1.0.1", UDP, 1024) for i in range(4000)]
    for of in flows:
        run.frame(frame(of), 0, 1)
    before = list(run.expected)
    table = list(run.model.services[0].table)
    run.backend(0, "b7", False, 2)
    changed = sum(a != b for a, b in zip(table, run.model.services[0].table, strict=True))
    own = bytes.fromhex("02000000 0b07")
    for of in flows:
        run.frame(frame(of), 0, 3)
    assert 3276 <= changed < 3277 + 65537 * 0.03  # its own twentieth, and little else
    run.run({**SETTINGS, "services": services, "table_size": 65537, "connections": 5000}, tmp_path)
    for was, now in zip(before, run.expected[4001:], strict=True):
        assert was[1] == now[1] if was[1] != own else now[1] != own  # connections of live backends stay
    assert run.model.counts["moved_connections"] == sum(was[1] == own for was in before) > 100


def test_fragments_of_a_datagram_stay_together(tmp_path: Path) -> None:
    rng = random.Random(23)
    services: list[dict[str, Any]] = [
        {"address": "10.1.0.2", "protocol": "udp", "port": 53, "backends": backends(9)},
        {"address": "2001:db8:1::1", "protocol": "udp", "port": 53, "backends": backends(9)},
        {"address": "2001:db8:1::1", "protocol": "tcp", "port": 53, "backends": backends(9)},
    ]
    settings = {"services": services, "table_size": 1009}
    frames: list[FrameIn] = []
    for i in range(1000):
        extensions = rng.choice(((FRAGMENT,), (FRAGMENT, DESTINATION)))
        of = (
            flow(f"10.0.0.{i % 250}", "10.1.0.2", UDP, i + 1, 53)
            if i % 2
            else flow(f"2001:db8::{i}", "2001:db8:1::1", UDP, i + 1, 53)
        )
        first = segment(rng, of, bytes(16))
        for offset, more, body in ((6, False, rng.randbytes(7)), (0, True, first), (3, True, rng.randbytes(24))):
            data = (
                ethernet(0x0800, ipv4(of, body, b"", offset, more))
                if i % 2
                else ethernet(0x86DD, ipv6(of, body, extensions if not offset else extensions[:1], offset, more))
            )
            if not i % 2 and offset and len(extensions) == 2:  # the Fragment header names the extension behind it
                data = data[:54] + bytes([DESTINATION]) + data[55:]
            frames.append(FrameIn(data))
    results, report = nf_run(task(settings), frames, tmp_path)
    outs = [result for result in results if isinstance(result, FrameOut)]
    together = [{out.data[:6] for out in outs[at : at + 3]} for at in range(0, 3000, 3)]
    assert {len(macs) for macs in together} == {1}
    assert len({next(iter(macs)) for macs in together}) == 10  # nine backends, and the peer: extensions are no UDP
    assert report["tx_packets"] == 3000
    assert 2000 < report["load_balancer"]["fragment_packets"] == 3000 - report["load_balancer"]["other_packets"]


def test_the_default_is_for_the_tester(tmp_path: Path) -> None:
    frames = [frame(flow("198.18.0.1", f"198.19.{i % 8}.1", UDP, i, 28770)) for i in range(1, 801)]
    results, report = nf_run(task(None), [*map(FrameIn, frames), *(FrameIn(f, 1) for f in frames)], tmp_path)
    assert report["tx_packets"] == 1600
    macs = [result.data[:6].hex() for result in results[:800] if isinstance(result, FrameOut)]
    assert all(macs.count(f"02000000020{i}") > 150 for i in range(4))


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"service": 7, "backend": "b0", "up": True}, "params.service: 7 is not valid: there are 7, counted from 0"),
        ({"service": 0, "backend": "b9", "up": True}, 'services[0] has no "b9"; see load_balancer.backends'),
        ({"service": 0, "backend": "b0"}, 'key "up" is missing'),
        ({"service": 0, "backend": "b0", "up": 1}, "params.up: 1 is not valid: expected true or false"),
    ],
)
def test_methods_refuse(tmp_path: Path, params: dict[str, Any], sentence: str) -> None:
    results, _ = nf_run(task(SETTINGS), [Call("backend", params)], tmp_path)
    assert isinstance(results[0], Answer)
    assert sentence in results[0].value["error"]


ONE = SERVICES[:1]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"service": []}, 'unknown key "service"; valid keys: services table_size connections'),
        ({"services": {}}, "settings.services: expected an array of 1 to 256 objects"),
        ({"table_size": 1000}, "table_size: 1000 is no prime; try 65537 or 655373"),
        ({"table_size": 397}, "4 are too many for a table_size of 397; it should be a prime of 400 or more"),
        ({"other": "keep"}, "expected one of forward drop"),
        ({"services": ONE + ONE}, "services[1]: the same address, protocol and port as services[0]"),
        ({"services": [{"address": "10.1.0.1"}]}, "services[0].backends: expected an array of 1 to 4096 objects"),
        ({"services": [{"backends": []}]}, 'services[0]: key "address" is missing'),
        ({"services": [{"address": "10.1.0", "backends": []}]}, '"10.1.0" is no IPv4 or IPv6 address'),
        ({"services": [{"address": "::1", "port": 65536}]}, "port: 65536 is not valid"),
        ({"services": [{"address": "::1", "backends": [{"name": "a"}]}]}, 'backends[0]: key "mac" is missing'),
        (
            {"services": [{"address": "::1", "backends": [{"name": "a", "mac": "03:00:00:00:00:01"}]}]},
            "backends[0].mac: a group address; a backend is one station",
        ),
        ({"services": [{"address": "::1", "backends": backends(1) * 2}]}, 'backends: "b0" is named twice'),
        (
            {"services": [{"address": f"10.0.0.{i}", "backends": backends(256)} for i in range(65)]},
            "services[64].backends: with those of the services before more than 16384; use fewer",
        ),
    ],
)
def test_settings_are_refused(tmp_path: Path, settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(RefusedError) as refused:
        nf_run(task(settings), [], tmp_path)
    assert sentence in str(refused.value)
