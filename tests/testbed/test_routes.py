# SPDX-License-Identifier: BSD-3-Clause
"""Destination addresses drawn from a router's own table."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest

from planebench.measure.survey import check_draws
from planebench.model.errors import UsageError
from planebench.testbed.traffic import parse_all, parse_traffic
from planebench.testbed.traffic_files import draw_addresses, profile_document, router_settings

TABLE = """# a table, without 10.4.0.0/16
10.1.0.0/16
10.2.3.0/24 port 1   # with a port
2001:db8:1::/48
192.0.2.7
172.16.0.0/12 drop
10.3.0.0/30
"""
WANTED = [ipaddress.ip_network(prefix) for prefix in ("10.1.0.0/16", "10.2.3.0/24", "192.0.2.7/32", "10.3.0.0/30")]


pytestmark = pytest.mark.dataplane


def of(routes: Path) -> dict[str, str]:
    return {"routes_file": str(routes)}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "routes.txt"
    path.write_text(TABLE)
    return path


def test_every_address_is_in_a_prefix_and_every_prefix_gets_its_share(table: Path) -> None:
    drawn = [ipaddress.ip_address(text) for text in draw_addresses(of(table), 4, 4000, seed=1)]
    shares = [sum(address in network for address in drawn) for network in WANTED]
    assert len(drawn) == sum(shares) == 4000
    assert all(900 < share < 1100 for share in shares)  # uniform over prefixes: 1000 each, 27 is a deviation


def test_fewer_addresses_than_prefixes_are_of_different_prefixes(table: Path) -> None:
    drawn = [ipaddress.ip_address(text) for text in draw_addresses(of(table), 4, 4, seed=5)]
    assert sorted(sum(address in network for address in drawn) for network in WANTED) == [1, 1, 1, 1]


def test_a_seed_makes_it_the_same_again(table: Path) -> None:
    assert (
        draw_addresses(of(table), 4, 100, 7)
        == draw_addresses(of(table), 4, 100, 7)
        != draw_addresses(of(table), 4, 100, 8)
    )


def test_ipv6_prefixes_and_json(table: Path, tmp_path: Path) -> None:
    assert all(text.startswith("2001:db8:1:") for text in draw_addresses(of(table), 6, 50, 1))
    json = tmp_path / "routes.json"
    json.write_text('{"routes": [{"prefix": "10.9.0.0/16"}, {"prefix": "10.8.0.0/16", "drop": true}]}')
    assert all(text.startswith("10.9.") for text in draw_addresses(of(json), 4, 50, 1))


def test_no_address_that_a_router_keeps_off_the_wire(tmp_path: Path) -> None:
    path = tmp_path / "default.txt"
    path.write_text("0.0.0.0/0\n224.0.0.0/4\n127.0.0.0/8\n169.254.0.0/16\n")
    drawn = draw_addresses(of(path), 4, 3000, 1)
    first_bytes = {int(text.partition(".")[0]) for text in drawn}
    assert not first_bytes & {0, 127, *range(224, 256)}
    assert not any(text.startswith("169.254.") for text in drawn)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2001:db8::/32\n", "there is no IPv4 prefix"),
        ("10.0.0.0/33\n", 'bad.txt:1: "10.0.0.0/33": the length of an IPv4 prefix is 0 to 32'),
        ("[1, 2]", r"bad.txt: routes\[0\]: expected an object"),
        ("224.0.0.0/4\n", "no routable IPv4 prefix found"),
    ],
)
def test_a_table_that_cannot_be_drawn_from(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.txt"
    path.write_text(text)
    with pytest.raises(UsageError, match=words):
        draw_addresses(of(path), 4, 10, 1)


def test_a_million_routes_are_no_wait(tmp_path: Path) -> None:
    path = tmp_path / "internet.txt"
    path.write_text("".join(f"{1 + (n >> 16)}.{n >> 8 & 255}.{n & 255}.0/24\n" for n in range(1_000_000)))
    assert len(set(draw_addresses(of(path), 4, 65536, 1))) == 65536


@pytest.mark.parametrize(
    ("chain", "settings"),
    [
        ("", {}),
        ("firewall,l2fwd", {}),
        ("l3fwd", {}),
        ("firewall:rules=/r,l3fwd:routes=/t.txt,l3fwd:routes=/u.txt", {"routes_file": "/t.txt"}),
        ("vm:l3fwd:routes=/t.txt:rings=packed", {"routes_file": "/t.txt"}),
        ('exec:"my-vnf a,b:c",separate:l3fwd:fib=cuckoo:synthetic=10', {"fib": "cuckoo", "synthetic": 10}),
    ],
)
def test_the_table_of_a_chain_is_that_of_its_first_router(chain: str, settings: dict[str, object]) -> None:
    assert router_settings(chain) == settings


def test_a_chain_without_routes_of_a_version_is_told_before_the_run(table: Path) -> None:
    table.write_text("10.1.0.0/16\n")
    profiles = parse_all(["fib", "imix"])
    check_draws(profiles, [f"l3fwd:routes={table}", ""])
    with pytest.raises(UsageError, match=r"routes .*routes.txt: there is no IPv6 prefix to draw addresses from"):
        check_draws(parse_all(["fib:ip=6"]), [f"l3fwd:routes={table}"])


def test_planed_gets_a_file_of_addresses_made_once(table: Path, tmp_path: Path) -> None:
    fib = parse_traffic("fib:count=500")
    document = profile_document(fib, tmp_path, f"l3fwd:routes={table}", flat_out=True)
    assert document is not None
    path = Path(document["dst_ips_file"])
    lines = path.read_text().splitlines()
    assert path.parent == tmp_path and len(lines) == 500
    assert all(any(ipaddress.ip_address(line) in network for network in WANTED) for line in lines)
    stamp = path.stat().st_mtime_ns
    assert profile_document(fib, tmp_path, f"l3fwd:routes={table}", flat_out=False) == document
    assert path.stat().st_mtime_ns == stamp
    other = profile_document(fib, tmp_path, "", flat_out=True)
    assert other is not None and other["dst_ips_file"] != document["dst_ips_file"]


def test_without_a_table_the_default_routes_are_drawn_from() -> None:
    benchmark = [
        ipaddress.ip_network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "198.18.0.0/15")
    ]
    for text in draw_addresses({}, 4, 200, 1):
        assert any(ipaddress.ip_address(text) in network for network in benchmark)
    assert all(text.startswith("2001:2:") for text in draw_addresses({}, 6, 10, 1))
