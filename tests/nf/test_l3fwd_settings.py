# SPDX-License-Identifier: BSD-3-Clause
"""l3fwd's settings and route files: what is refused with which words, and that it changes nothing; large tables."""

from __future__ import annotations

import ipaddress
import itertools
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nf_rig import Answer, Call, FrameIn, FrameOut, nf_run
from planed_rig import Planed, document, planed_binary, ring, task

from nf.packet_model import checksum
from planebench.host.process import Supervisor
from planebench.planed.client import RpcError

pytestmark = pytest.mark.dataplane

MILLION = 1_000_000


def check(folder: Path, ports: tuple[str, ...] = ("a", "b"), **settings: Any) -> str:
    """What ``planed --check`` says of an l3fwd with these settings; nothing if it is fine."""
    names = dict.fromkeys(ports)
    config = folder / "config.json"
    l3fwd = task("r", "l3fwd", *ports, settings=settings)
    config.write_text(json.dumps(document("t", [ring(name) for name in names], [l3fwd])))
    done = subprocess.run([planed_binary(), "--check", config], capture_output=True, text=True, timeout=60)
    assert done.returncode == (2 if done.stderr else 0)
    return done.stderr


def udp4(source: str, to: str) -> bytes:
    """A frame of 60 bytes with a right header checksum."""
    head = bytes.fromhex("4500002e00000000 4011")
    addresses = ipaddress.ip_address(source).packed + ipaddress.ip_address(to).packed
    ip = head + checksum(head + bytes(2) + addresses).to_bytes(2) + addresses
    return bytes.fromhex("020000000100020000000000 0800") + ip + bytes.fromhex("00010002001a0000") + bytes(18)


HOP = {"mac": "02:00:00:00:00:01"}
ROUTE = {"prefix": "10.0.0.0/8"}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"mask": 1},
            'settings: unknown key "mask"; valid keys: fib routes routes_file synthetic next_hops own_mac_only mtu',
        ),
        ({"fib": "hash"}, 'task r: settings.fib: "hash" is not valid: expected one of lpm cuckoo'),
        ({"mtu": 67}, "task r: settings.mtu: 67 is not valid: expected a whole number from 68 to 65535"),
        ({"own_mac_only": 1}, "task r: settings.own_mac_only: 1 is not valid: expected true or false"),
        ({"routes": []}, "task r: settings.routes: no route; a router without routes forwards nothing"),
        ({"routes": {}}, "task r: settings.routes: expected an array of objects"),
        ({"routes": [ROUTE, ROUTE]}, "task r: settings.routes[1]: 10.0.0.0/8 is there already, in routes[0]; keep one"),
        ({"routes": [ROUTE | {"port": 2}]}, "settings.routes[0]: there is no port 2: the task has ports 0 to 1"),
        ({"routes": [ROUTE | {"via": 0}]}, 'settings.routes[0]: there is no next hop 0: "next_hops" has 0, from 0'),
        ({"routes": [ROUTE], "routes_file": "x"}, 'there are "routes" and a "routes_file"; leave one of them out'),
        ({"fib": "cuckoo", "routes": [ROUTE], "synthetic": 1}, 'there are routes and "synthetic" ones; leave one of'),
        ({"synthetic": 5}, 'settings: "synthetic" makes host routes; it needs "fib": "cuckoo"'),
        (
            {"fib": "cuckoo", "synthetic": 10**9 + 1},
            "synthetic: 1000000001 is not valid: expected a whole number",
        ),
        ({"routes_file": "/nowhere/r.txt"}, "/nowhere/r.txt: No such file or directory; name a file of routes"),
        ({"routes_file": 5}, "task r: settings.routes_file: 5 is not valid: expected a string"),
        ({"next_hops": []}, "settings.next_hops: expected an array of objects"),
        ({"next_hops": [HOP, {"mac": "x"}]}, "settings.next_hops[1].mac: expected a MAC address like"),
        ({"next_hops": [{"port": 2}]}, "settings.next_hops[0]: there is no port 2: the task has ports 0 to 1"),
        ({"next_hops": [{"mac": "01:00:00:00:00:01"}]}, "the MAC of a next hop is not zero, and not of a group"),
        ({"next_hops": [{"prefix": "::/0"}]}, 'settings.next_hops[0]: unknown key "prefix"; valid keys: port mac'),
    ],
)
def test_bad_settings_are_named(tmp_path: Path, settings: dict[str, Any], words: str) -> None:
    assert words in check(tmp_path, **settings)


def test_ports_of_a_router_differ(tmp_path: Path) -> None:
    assert "task r: port a is named twice; a router has it once" in check(tmp_path, ("a", "b", "a"))
    assert "kind l3fwd takes 1 to 8 ports, not 9" in check(tmp_path, tuple("abcdefghi"))
    assert check(tmp_path, tuple("abcdefgh"), routes=[ROUTE | {"port": 7}]) == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("10.0.0.0/8\n# x\n10.0.0.0/33\n", ':3: "10.0.0.0/33": the length of an IPv4 prefix is 0 to 32'),
        ("10.0.0.0/8\n\n10.0.0.0/8 port 1\n", ":3: 10.0.0.0/8 is there already, in line 1; keep one of them"),
        ("10.0.0.0/8 via 1\n", ':1: "10.0.0.0/8 via 1": there is no next hop 1: "next_hops" has 1, from 0'),
        ("# nothing\n", "no route; a router without routes forwards nothing"),
        ('{"routes":\n[{"prefix": "::/0"}', ":2: no JSON: ']' expected near end of file"),
        (
            '[{"prefix": "::/0"}, {"prefix": "::1/0"}]',
            ': routes[1].prefix: "::1/0": bits are set behind its length; write ::/0',
        ),
    ],
)
def test_bad_files_are_named_with_their_line(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "routes"
    file.write_text(text)
    said = check(tmp_path, routes_file=str(file), next_hops=[HOP])
    assert words in said
    assert "/routes:" in said


@pytest.fixture
def planed() -> Iterator[Planed]:
    """A planed without ports."""
    with Supervisor(Path("/tmp")) as supervisor:
        yield Planed(supervisor, "l3fwd")


def test_a_bad_file_changes_nothing(planed: Planed, tmp_path: Path) -> None:
    """Applied whole or not at all, and what was in force goes on; a better file replaces it."""
    file = tmp_path / "routes.txt"
    file.write_text("10.0.0.0/8 port 1\n")
    ports = (ring("a"), ring("b"))
    router = task("r", "l3fwd", "a", "b", settings={"routes_file": str(file)})
    planed.apply(ports, [router])
    file.write_text("10.0.0.0/8 port 1\n172.16.0.0/12\n172.16.0.0/11\n")
    with pytest.raises(RpcError, match=r"routes\.txt:3: .*bits are set behind its length; write 172\.0\.0\.0/11"):
        planed.apply(ports, [router])
    assert planed.call("l3fwd.routes", {"task": "r"}) == {
        "routes": [{"prefix": "10.0.0.0/8", "packets": 0, "port": 1}],
        "next": None,
    }
    file.write_text("10.0.0.0/8 port 1\n172.16.0.0/12 drop\n")
    planed.apply(ports, [router])
    found = planed.call("l3fwd.lookup", {"task": "r", "address": "172.31.0.1"})
    assert found == {"route": {"prefix": "172.16.0.0/12", "packets": 0, "drop": True}}
    with pytest.raises(RpcError, match=r"params\.address: expected an IPv4 or IPv6 address"):
        planed.call("l3fwd.lookup", {"task": "r", "address": "10.0.0.0/8"})


def host_lines(count: int, host: Callable[[int], str], hops: int) -> str:
    """Host routes to MACs of which there are as many, in turn."""
    macs = [f"02:00:{i >> 24:02x}:{i >> 16 & 255:02x}:{i >> 8 & 255:02x}:{i & 255:02x}" for i in range(hops)]
    return "".join(f"{host(i)} mac {macs[i % hops]}\n" for i in range(count))


def host4(number: int) -> str:
    number += 10 << 24
    return f"{number >> 24}.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


def host6(number: int) -> str:
    return f"2001:db8::{number >> 16:x}:{number & 0xFFFF:x}"


def test_host_routes_have_65535_next_hops(tmp_path: Path) -> None:
    """One more is refused with the way out; prefixes do not count, nor do hops that are the same."""
    file = tmp_path / "hosts.txt"
    file.write_text(host_lines(65537, host4, 65536))
    settings = {"routes_file": str(file), "fib": "cuckoo"}
    assert (
        'hosts.txt: host routes to more than 65535 next hops, which "fib": "cuckoo" cannot tell apart; use "lpm"'
        in (check(tmp_path, **settings))
    )
    assert check(tmp_path, **(settings | {"fib": "lpm"})) == ""
    file.write_text(host_lines(65537, host4, 65535) + "0.0.0.0/0 mac 02:00:00:00:bb:00\n")
    assert check(tmp_path, **settings) == ""
    calls = [Call("lookup", {"address": host4(i)}) for i in (0, 65534, 65535, 65536, 65537)]
    results, report = nf_run({"kind": "l3fwd", "settings": settings}, calls, tmp_path)
    assert (report["l3fwd"]["routes"], report["l3fwd"]["host_routes"], report["l3fwd"]["next_hops"]) == (
        65538,
        65537,
        65535,
    )
    hops = [answer.value["route"].get("next_hop") for answer in results if isinstance(answer, Answer)]
    assert hops == [1, 65535, 1, 2, None]


def test_a_router_on_a_stick_with_synthetic_routes(tmp_path: Path) -> None:
    """One port, and routes by a formula: 10.0.0.0 + i, by hop i modulo the hops."""
    hops = [{"mac": f"02:00:00:00:bb:{i:02x}"} for i in range(3)]
    settings = {"fib": "cuckoo", "synthetic": 1000, "next_hops": hops}
    calls = [Call("routes", {"from": 998}), *(Call("lookup", {"address": host4(i)}) for i in (999, 1000))]
    frames = [FrameIn(udp4("198.18.0.1", host4(i))) for i in (0, 1, 2, 3, 999, 1000)]
    results, report = nf_run({"kind": "l3fwd", "ports": 1, "settings": settings}, [*frames, *calls], tmp_path)
    sent = [r for r in results if isinstance(r, FrameOut)]
    assert [(r.port, r.data[5]) for r in sent[:5]] == [(0, 0), (0, 1), (0, 2), (0, 0), (0, 0)]
    assert sent[5].drop == list(report["drops"])[1:].index("no_route")
    listed, found, absent = (answer.value for answer in results if isinstance(answer, Answer))
    routes = [{"prefix": f"{host4(i)}/32", "next_hop": i % 3 + 1, "mac": hops[i % 3]["mac"]} for i in (998, 999)]
    assert (listed, found, absent) == ({"routes": routes, "next": None}, {"route": routes[1]}, {"route": None})
    seen = report["l3fwd"]
    assert (seen["routes"], seen["host_routes"], seen["next_hops"], seen["top"]) == (1000, 1000, 3, [])
    assert [hop["packets"] for hop in seen["top_next_hops"]] == [3, 1, 1]


def test_a_million_host_routes(tmp_path: Path) -> None:
    """Beside prefixes that cover them, of both versions, in the memory of a small task."""
    file = tmp_path / "hosts.txt"
    many = [host_lines(MILLION, host4, 16), host_lines(MILLION // 10, host6, 7)]
    file.write_text("".join(many) + "10.0.0.0/8 port 0\n2001:db8::/32 port 0\n0.0.0.0/0 drop\n")
    asked = [0, 1, 15, 16, 999_999, MILLION, MILLION + 1]
    calls = [Call("lookup", {"address": host4(i)}) for i in asked]
    calls += [Call("lookup", {"address": host6(i)}) for i in (0, 8, 99_999, 100_000)]
    task = {"kind": "l3fwd", "settings": {"routes_file": str(file), "fib": "cuckoo"}}
    results, report = nf_run(task, calls, tmp_path, size_mb=64)
    assert (report["l3fwd"]["host_routes"], report["l3fwd"]["host_routes_ipv6"]) == (MILLION, MILLION // 10)
    assert (report["l3fwd"]["routes"], report["l3fwd"]["routes_ipv6"]) == (MILLION + 2, MILLION // 10 + 1)
    assert report["l3fwd"]["next_hops"] == 16  # the seven of IPv6 are seven of them
    found = [answer.value["route"] for answer in results if isinstance(answer, Answer)]
    assert [route["prefix"] for route in found] == [
        *(f"{host4(i)}/32" for i in asked[:5]),
        *["10.0.0.0/8"] * 2,
        *("2001:db8::/128", "2001:db8::8/128", "2001:db8::1:869f/128", "2001:db8::/32"),
    ]
    assert [route.get("mac", "")[-2:] for route in found[:5]] == ["00", "01", "0f", "00", "0f"]
    assert [route.get("mac", "")[-2:] for route in found[7:10]] == ["00", "01", "04"]


def test_default_routes_take_the_testers_frames(tmp_path: Path) -> None:
    """Ten and one of IPv6, and the eight streams of the tester (198.18.STREAM.1 to 198.19.STREAM.1) are forwarded."""
    frames = [FrameIn(udp4(f"198.18.{stream}.1", f"198.19.{stream}.1")) for stream in range(8)]
    results, report = nf_run({"kind": "l3fwd"}, [*frames, Call("routes", {})], tmp_path)
    assert [r.port for r in results if isinstance(r, FrameOut)] == [1] * 8
    hits = {route["prefix"]: route["packets"] for route in report["l3fwd"]["top"]}
    assert len(hits) == 11 and "2001:2::/48" in hits
    assert {k: v for k, v in hits.items() if v} == {"198.19.0.0/16": 4} | {f"198.19.{i}.0/24": 1 for i in range(4)}


@pytest.mark.all
def test_a_million_prefixes(tmp_path: Path) -> None:
    """One prefix a line, with no more memory than any other task; lookups in it by an LPM of Python's."""
    rng = np.random.default_rng(7)
    lengths = rng.choice(np.repeat(np.arange(8, 33), [2] * 16 + [60] + [1] * 8), MILLION * 5 // 4)
    networks = rng.integers(0, 1 << 32, len(lengths)) >> (32 - lengths) << (32 - lengths)
    prefixes = set(itertools.islice(dict.fromkeys(zip(networks.tolist(), lengths.tolist(), strict=True)), MILLION))
    file = tmp_path / "million.txt"
    file.write_text("".join(f"{a >> 24}.{a >> 16 & 255}.{a >> 8 & 255}.{a & 255}/{n}\n" for a, n in prefixes))
    addresses = rng.integers(0, 1 << 32, 2000).tolist()
    calls = [Call("lookup", {"address": str(ipaddress.IPv4Address(address))}) for address in addresses]
    results, report = nf_run({"kind": "l3fwd", "settings": {"routes_file": str(file)}}, calls, tmp_path, size_mb=64)
    assert report["l3fwd"]["routes"] == MILLION
    for address, answer in zip(addresses, results, strict=True):
        assert isinstance(answer, Answer)
        route = answer.value["route"]
        masks = ((address >> (32 - length) << (32 - length), length) for length in range(32, -1, -1))
        longest = next((prefix for prefix in masks if prefix in prefixes), None)
        assert (route and route["prefix"]) == (longest and f"{ipaddress.IPv4Address(longest[0])}/{longest[1]}")
