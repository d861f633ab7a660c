# SPDX-License-Identifier: BSD-3-Clause
"""l3fwd against a router that is written from the RFCs (l3fwd_model): whole frames, reasons, ICMP and route counts."""

from __future__ import annotations

import ipaddress
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nf_rig import Answer, Call, FrameIn, FrameOut, nf_run

from nf.l3fwd_model import Route, Router, resolve
from nf.packet_model import checksum

pytestmark = pytest.mark.dataplane

TABLES = 12
FRAMES = 9000  # of each table
PEERS = ("02:00:00:00:aa:00", "02:00:00:00:aa:01")
OWN = bytes(6)  # what ring-backed ports have
MARTIANS4 = (
    "0.1.2.3",
    "127.0.0.1",
    "224.0.0.5",
    "240.1.1.1",
    "255.255.255.255",
    "169.254.7.7",
    "0.0.0.0",
    "223.255.255.255",
)
MARTIANS6 = ("::", "::1", "::2", "ff02::1", "fe80::1", "febf::1", "fec0::1", "fe7f::1", "1::")


def mac(text: str) -> bytes:
    """Bytes of a MAC address."""
    return bytes.fromhex(text.replace(":", ""))


def macs(ports: int) -> list[tuple[bytes, bytes]]:
    """(peer, own) of each port."""
    return [(mac(PEERS[i]) if i < 2 else bytes([2, 0, 0, 0, 1, i]), OWN) for i in range(ports)]


class Maker:
    """Random tables, and frames that have to do with them."""

    def __init__(self, seed: int, ports: int) -> None:
        self.rng = random.Random(seed)
        self.ports = ports
        self.networks: list[Any] = []

    def routes(self, hops: int) -> list[dict[str, Any]]:
        """Nested, neighbouring and scattered prefixes of both versions; /0, /32 and /128 among them."""
        rng = self.rng
        chosen: set[Any] = set()
        while len(chosen) < 400:
            version = rng.choice((4, 6))
            bits = 32 if version == 4 else 128
            same = [n for n in rng.sample(sorted(chosen, key=str), min(4, len(chosen))) if n.version == version]
            if same and rng.random() < 0.7:
                length = min(bits, same[0].prefixlen + rng.choice((1, 1, 2, 7, 8, 9, 64, 128)))
                address = int(same[0].network_address) | rng.getrandbits(bits) >> same[0].prefixlen
                address = rng.choice((address, int(same[0].network_address), int(same[0].broadcast_address)))
            else:
                length = rng.randint(1, bits)
                address = rng.getrandbits(bits) if version == 4 else 0x2 << 124 | rng.getrandbits(124)
            chosen.add(
                ipaddress.ip_network(
                    (address >> (bits - length) << (bits - length), length)
                    if version == 4
                    else (ipaddress.IPv6Address(address >> (bits - length) << (bits - length)), length)
                )
            )
        for default in ("0.0.0.0/0", "::/0"):
            if rng.random() < 0.5:
                chosen.add(ipaddress.ip_network(default))
        self.networks = sorted(chosen, key=str)
        rng.shuffle(self.networks)
        return [self._route(network, hops) for network in self.networks]

    def _route(self, network: Any, hops: int) -> dict[str, Any]:
        route: dict[str, Any] = {"prefix": str(network)}
        kind = self.rng.randrange(8)
        if kind == 0:
            return route | {"drop": True}
        if kind == 1 and hops:
            return route | {"via": self.rng.randrange(hops)}
        if kind in (2, 3):
            route["port"] = self.rng.randrange(self.ports)
        if kind in (3, 4):
            route["mac"] = ":".join(f"{b:02x}" for b in (2, *self.rng.randbytes(5)))
        return route

    def address(self, version: int) -> bytes:
        """In or beside a prefix of the table; now and then one that may not be."""
        rng, bits = self.rng, 32 if version == 4 else 128
        network = rng.choice(self.networks)
        if rng.random() < 0.03:
            return ipaddress.ip_address(rng.choice(MARTIANS4 if version == 4 else MARTIANS6)).packed
        if network.version != version or rng.random() < 0.05:
            return rng.randbytes(bits // 8)
        first, last = int(network.network_address), int(network.broadcast_address)
        where = rng.choice((first, last, first - 1, last + 1, rng.randint(first, last), rng.randint(first, last)))
        return (where % (1 << bits)).to_bytes(bits // 8)

    def frames(self, count: int) -> Iterator[FrameIn]:
        """Runs of one port each, of one version or of both."""
        made = 0
        while made < count:
            port, version, now = self.rng.randrange(self.ports), self.rng.choice((4, 6, 0)), self.rng.getrandbits(32)
            for _ in range(min(self.rng.choice((1, 2, 15, 16, 17, 31, 32, 33, 64)), count - made)):
                made += 1
                yield FrameIn(self.frame(version or self.rng.choice((4, 6))), port, now)

    def frame(self, version: int) -> bytes:
        """Mostly sound; else broken in one way."""
        rng = self.rng
        broken = rng.choice((*[None] * 12, "cut", "byte", "tail", "tail", "type", "group"))
        packet = self.ipv4() if version == 4 else self.ipv6()
        tags = b"".join(
            rng.choice((b"\x81\x00", b"\x88\xa8")) + rng.randbytes(2)
            for _ in range(rng.choice((0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 3)))
        )
        kind = b"\x08\x00" if version == 4 else b"\x86\xdd"
        if broken == "type":
            kind = rng.choice((b"\x08\x06", b"\x86\xdd", b"\x08\x00"))
        target = rng.choice(
            (OWN, OWN, bytes([2, 0, 0, 0, 1, 0]), b"\x01" + rng.randbytes(5) if broken == "group" else OWN)
        )
        frame = bytearray(target + rng.randbytes(6) + tags + kind + packet)
        if broken == "cut":
            del frame[rng.randrange(len(frame)) :]
        elif broken == "byte":
            frame[rng.randrange(len(frame))] ^= 1 << rng.randrange(8)
        elif broken == "tail":
            frame += bytes(rng.randrange(40))
        return bytes(frame)

    def transport(self) -> tuple[int, bytes]:
        """A protocol and what it carries, whole or too short."""
        rng = self.rng
        protocol = rng.choice((17, 17, 17, 6, 6, 1, 1, 58, 58, 132, 33, 136, 47, 50, 59, 4))
        data = bytearray(rng.randbytes(rng.choice((0, 7, 8, 11, 12, 19, 20, *[26] * 4, *[40] * 12, 90))))
        if data and protocol in (1, 58):
            data[0] = rng.choice((0, 3, 4, 5, 8, 11, 12, 1, 2, 127, 128, 137, 13))
        return protocol, bytes(data)

    def ipv4(self) -> bytes:
        """A header with what is asked of it, and its payload."""
        rng = self.rng
        protocol, data = self.transport()
        options = self.options() if rng.random() < 0.25 else b""
        fragment = rng.choice((0, 0, 0, 0x4000, 0x2000, 0x2003, 0x0007, 0x8000))
        ttl = rng.choice((0, 1, 2, *[64] * 10, 255))
        words = [
            0x4500 + (len(options) // 4 << 8),
            20 + len(options) + len(data),
            rng.getrandbits(16),
            fragment,
            ttl << 8 | protocol,
        ]
        head = b"".join(word.to_bytes(2) for word in words)
        rest = self.address(4) + self.address(4) + options
        return head + checksum(head + rest).to_bytes(2) + rest + data

    def options(self) -> bytes:
        """Of RFC 791, sound or not, a multiple of four bytes."""
        rng = self.rng
        options = b""
        while len(options) < 36 and rng.random() < 0.7:
            kind = rng.choice((0, 1, 1, 7, 68, 131, 137, 148))
            size = rng.choice((2, 3, 4, 4, 7, 0, 1, 40)) if kind > 1 else 1
            options += bytes([kind]) if kind < 2 else bytes([kind, size]) + bytes(max(0, min(size, 8) - 2))
        return (options + bytes(-len(options) % 4))[:40]

    def ipv6(self) -> bytes:
        """Extension headers in any order, sometimes too many or too long."""
        rng = self.rng
        kind, data = self.transport()
        for _ in range(rng.choice((0, 0, 0, 0, 0, 0, 1, 1, 2, 3, 9))):
            outer = rng.choice((0, 43, 44, 44, 51, 60, 135))
            size = rng.choice((0, 0, 0, 1, 200))
            body = rng.choice((0, 0, 1, 8, 0x101)).to_bytes(2) if outer == 44 else rng.randbytes(2)
            data = bytes([kind, size]) + body + bytes(4 + 8 * (size % 8 if outer not in (44, 51) else 0)) + data
            kind = outer
        hops = rng.choice((0, 1, 2, *[64] * 10, 255))
        return (
            b"\x60"
            + rng.randbytes(3)
            + len(data).to_bytes(2)
            + bytes([kind, hops])
            + self.address(6)
            + self.address(6)
            + data
        )


def routes_of(results: list[Any]) -> list[dict[str, Any]]:
    """The answers of l3fwd.routes."""
    return [route for a in results if isinstance(a, Answer) for route in a.value.get("routes", [])]


def is_host(route: Route) -> bool:
    return route.network.prefixlen == route.network.max_prefixlen


def compare_counts(router: Router, listed: list[dict[str, Any]], seen: dict[str, Any], apart: bool) -> None:
    """Of every route; of those to hosts, if they are apart, of every next hop."""
    hits = {str(r.network): router.hits[r.network] for r in router.routes if not (apart and is_host(r))}
    assert {r["prefix"]: r["packets"] for r in listed if "packets" in r} == hits
    assert [route["packets"] for route in seen["top"]] == sorted(hits.values(), reverse=True)[:32]
    if not apart:
        assert "top_next_hops" not in seen
        return
    hosts = [route for route in router.routes if is_host(route)]
    versions = [sum(route.network.version == version for route in hosts) for version in (4, 6)]
    assert [seen["host_routes"], seen["host_routes_ipv6"]] == versions
    by_hop: Counter[Any] = Counter()
    for route in hosts:
        by_hop[route.port, route.mac, route.drop] += router.hits[route.network]
    assert seen["next_hops"] == len(by_hop)
    assert [hop["packets"] for hop in seen["top_next_hops"]] == sorted(by_hop.values(), reverse=True)[:32]
    for hop in seen["top_next_hops"]:
        assert hop["packets"] == by_hop[hop.get("port"), mac(hop["mac"]) if "mac" in hop else None, "drop" in hop]
    assert {r["prefix"] for r in listed if "next_hop" in r} == {str(route.network) for route in hosts}


def compare(router: Router, records: list[Any], results: list[Any], report: dict[str, Any]) -> None:
    """Every frame, and every count."""
    names = list(report["drops"])[1:]
    frames = [record for record in records if isinstance(record, FrameIn)]
    got = [result for result in results if isinstance(result, FrameOut)]
    for given, result in zip(frames, got, strict=True):
        port, reason, data = router.handle(given.data, given.port)
        seen = None if result.drop is None else names[result.drop]
        assert (result.port, seen, result.data.hex()) == (port, reason, data.hex()), given.data.hex()
    assert {k: v for k, v in report["drops"].items() if v} == dict(router.drops)
    rare = {"too_big", "unfragmented"} if router.mtu == 65535 else set()
    rare |= (
        {"no_route"}
        if router.longest(ipaddress.ip_address("9.9.9.9")) and router.longest(ipaddress.ip_address("::9"))
        else set()
    )
    rare |= set() if router.own_mac_only else {"l2_other"}
    assert set(names) - set(router.drops) <= rare, "the frames do not reach all there is"
    assert report["tx_packets"] > FRAMES / 6
    assert {k: v for k, v in report["l3fwd"]["icmp"].items() if v} == dict(router.icmp)


@pytest.mark.parametrize(("fib", "seed"), [*(("lpm", i) for i in range(TABLES)), *(("cuckoo", i) for i in range(6))])
def test_random_frames_and_tables(tmp_path: Path, fib: str, seed: int) -> None:
    ports = 2 + seed % 3
    maker = Maker(seed, ports)
    hops = [{"port": 0, "mac": "02:00:00:00:bb:00"}, {"port": 1}, {"mac": "02:00:00:00:bb:02"}] if seed % 2 else []
    routes = maker.routes(len(hops))
    settings: dict[str, Any] = {"fib": fib, "own_mac_only": seed % 4 == 3, "mtu": 100 if seed % 3 else 65535}
    if seed % 2:
        settings |= {"routes_file": str(write_text(tmp_path / "routes.txt", routes, maker.rng)), "next_hops": hops}
    else:
        settings |= {"routes": routes}
    router = Router(resolve(routes, hops, mac), macs(ports), settings["mtu"], settings["own_mac_only"])
    records: list[Any] = [
        *maker.frames(FRAMES),
        Call("routes", {"task": "nf", "limit": 300}),
        Call("routes", {"from": 300}),
    ]
    addresses = [maker.address(rng_version) for rng_version in (4, 6) * 100]
    records += [Call("lookup", {"address": str(ipaddress.ip_address(address))}) for address in addresses]
    task = {
        "kind": "l3fwd",
        "ports": ports,
        "settings": settings,
        "peer_macs": list(PEERS),
        "burst": (32, 64)[seed & 1],
    }
    results, report = nf_run(task, records, tmp_path)
    compare(router, records, results, report)
    compare_counts(router, routes_of(results), report["l3fwd"], fib == "cuckoo")
    for address, answer in zip(addresses, results[-200:], strict=True):
        route = router.longest(ipaddress.ip_address(address))
        assert isinstance(answer, Answer)
        assert (answer.value["route"] or {}).get("prefix") == (str(route.network) if route else None)
    assert report["l3fwd"]["routes"] + report["l3fwd"]["routes_ipv6"] == len(routes)


def write_text(path: Path, routes: list[dict[str, Any]], rng: random.Random) -> Path:
    """The routes as a person would write them."""
    lines = ["# a table", ""]
    for route in routes:
        words = [route["prefix"]]
        words += ["drop"] if route.get("drop") else []
        words += [f"{key} {route[key]}" for key in rng.sample(("port", "mac", "via"), 3) if key in route]
        prefix, _, length = words[0].partition("/")
        if length == ("128" if ":" in prefix else "32") and rng.random() < 0.5:
            words[0] = prefix
        lines.append(
            rng.choice(("", " ", "\t")) + rng.choice((" ", "\t ")).join(words) + rng.choice(("", " # said", "  "))
        )
    path.write_text("\r\n".join(lines) if rng.random() < 0.5 else "\n".join(lines) + "\n")
    return path


def test_every_checksum_follows_the_ttl(tmp_path: Path) -> None:
    """Incremental and from nothing are the same for each of the 65536 sums, two zeros among them (RFC 1624 s3)."""
    head = bytes.fromhex("020000000100020000000000 0800 4500001c")
    tail = bytes.fromhex("0000 4011")
    addresses = ipaddress.ip_address("198.18.0.1").packed + ipaddress.ip_address("10.0.0.1").packed
    frames = []
    for number in range(0x10000):
        header = head[14:] + number.to_bytes(2) + tail
        sound = header + checksum(header + addresses).to_bytes(2) + addresses
        frames.append(FrameIn(head[:14] + sound + bytes.fromhex("0001000200080000") + bytes(18)))
    router = Router([Route(ipaddress.ip_network("10.0.0.0/8"))], macs(2))
    settings = {"routes": [{"prefix": "10.0.0.0/8"}]}
    task = {"kind": "l3fwd", "settings": settings, "peer_macs": list(PEERS), "burst": 64}
    results, _ = nf_run(task, frames, tmp_path)
    for frame, result in zip(frames, results, strict=True):
        assert isinstance(result, FrameOut)
        assert (result.port, None, result.data) == router.handle(frame.data, 0)
