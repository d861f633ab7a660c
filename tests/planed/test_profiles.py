# SPDX-License-Identifier: BSD-3-Clause
"""Traffic profiles: what a real planed writes, read by a decoder that is not ours, is what was asked for and what the
report says was sent; and a monitor finds all of it intact."""

from __future__ import annotations

import itertools
import struct
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dpkt
import pytest
from captures import frames, save
from planed_rig import Document, Planed, ethdev, ring, stream, task, until, vhost, virtio

from planebench.planed.client import RpcError

pytestmark = pytest.mark.dataplane

PPS, DURATION_S = 100_000, 0.02
FCS_BYTES = 4
UDP_PORT, MAGIC = 0x7062, 0x7062
OUR_BYTES = struct.Struct("!HBBHIQ")
MAC = bytes.fromhex("020000000100")
_DEVICES = itertools.count()


@dataclass(frozen=True)
class Seen:
    """A frame as dpkt and the model see it."""

    size: int
    dst_mac: bytes
    tags: tuple[int, ...]
    version: int
    protocol: int
    src: bytes
    dst: bytes
    ports: tuple[int, int]
    number: int
    flags: int


def checksum(*parts: bytes) -> int:
    """RFC 1071, over 16-bit words in network byte order."""
    data = b"".join(part + bytes(len(part) % 2) for part in parts)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def decode(frame: bytes) -> Seen:
    """Take a frame apart; every length, checksum and byte of the pattern has to be right."""
    ethernet = dpkt.ethernet.Ethernet(frame)
    ip = ethernet.data
    tags = tuple(tag.id for tag in getattr(ethernet, "vlan_tags", []))
    l3 = 14 + 4 * len(tags)
    version = 6 if isinstance(ip, dpkt.ip6.IP6) else 4
    l4 = l3 + (40 if version == 6 else 20)
    segment = frame[l4:]
    if version == 4:
        assert (ip.v, ip.hl, ip.len, ip.p) == (4, 5, len(frame) - l3, ip.p)
        assert checksum(frame[l3:l4]) == 0xFFFF
    else:
        assert (ip.v, ip.plen) == (6, len(segment))
    assert checksum(ip.src, ip.dst, struct.pack("!HH", ip.p, len(segment)), segment) == 0xFFFF
    transport = ip.data
    if isinstance(transport, dpkt.udp.UDP):
        assert transport.ulen == len(segment) and transport.sum != 0
        own = l4 + 8
    else:
        assert isinstance(transport, dpkt.tcp.TCP) and transport.off == 5
        own = l4 + 20
    magic, number_of_stream, flags, _, number, _ = OUR_BYTES.unpack_from(frame, own)
    assert (magic, number_of_stream) == (MAGIC, 0)
    end = own + OUR_BYTES.size
    assert frame[end:] == bytes((i * 7 + (i >> 8) * 13 + 1) & 0xFF for i in range(end, len(frame)))
    ports = (transport.sport, transport.dport)
    return Seen(len(frame) + FCS_BYTES, ethernet.dst, tags, version, ip.p, ip.src, ip.dst, ports, number, flags)


def of_profile(profile: Document, **more: Any) -> Document:
    rate = {} if profile.get("pcap", {}).get("timing") == "recorded" else {"rate_pps": PPS}
    return {"task": "gen", "profile": profile, **rate, **more}


def write(planed: Planed, path: Path, load: Document, duration_s: float = DURATION_S) -> tuple[list[Seen], Document]:
    """Have the generator write a capture file; its frames, and the generator's report."""
    port = ethdev("e0", f"net_pcap_profile{next(_DEVICES)},tx_pcap={path}")
    planed.apply([port], [task("gen", "generator", "e0")])
    report = planed.send(load, duration_s=duration_s)["gen"]["generator"]
    planed.apply()  # closes the file
    with path.open("rb") as file:
        frames = [bytes(frame) for _, frame in dpkt.pcap.Reader(file)]
    seen = [decode(frame) for frame in frames]
    # A try without a frame is repeated (Planed.send), into the same file.
    assert [s.number for s in seen] == list(range(report["offered_packets"]))
    assert_ledger(seen, report)
    return seen, report


def assert_ledger(seen: list[Seen], report: Document) -> None:
    """What the report says was sent is what is in the file."""
    sent = report["profile"]
    sizes = Counter(s.size for s in seen)
    assert sent["sizes"] == [[size, sizes[size]] for size in sorted(sizes)]
    assert sent["bytes"] == report["offered_bytes"] == sum(s.size for s in seen)
    assert sent["mean_frame_bytes"] == pytest.approx(sent["bytes"] / len(seen))
    unsent = report["unsent_late_packets"] + report["unsent_ring_full_packets"]
    assert report["intended_packets"] == report["offered_packets"] + unsent
    if "flows_sent" in sent:
        assert sent["flows_sent"] == len({(s.src, s.ports[0]) for s in seen})
        assert sent["dst_ips_sent"] == len({s.dst for s in seen})
        by_mac = Counter(s.dst_mac for s in seen)
        assert sorted(sent["dst_macs"], reverse=True)[: len(by_mac)] == sorted(by_mac.values(), reverse=True)


STACKS = [
    (ip, transport, vlan, 42 + 18 + 4 + (20 if ip == 6 else 0) + (12 if transport == "tcp" else 0) + (4 if vlan else 0))
    for ip in (4, 6)
    for transport in ("udp", "tcp")
    for vlan in (0, 9)
]


@pytest.mark.parametrize(("ip", "transport", "vlan", "least"), STACKS)
def test_header_stacks(planed: Planed, tmp_path: Path, ip: int, transport: str, vlan: int, least: int) -> None:
    headers: Document = {"ip": ip, "transport": transport} | ({"vlan": vlan} if vlan else {})
    sizes = {"sizes": [[least, 1], [least + 1, 1], [1000, 1]]}
    load = of_profile(headers | sizes, probe_rate_pps=5_000)
    seen, report = write(planed, tmp_path / "out.pcap", load)
    assert {s.version for s in seen} == {ip}
    assert {s.protocol for s in seen} == {6 if transport == "tcp" else 17}
    assert {s.tags for s in seen} == {(vlan,) if vlan else ()}
    assert {s.ports for s in seen} == {(49152, UDP_PORT)}
    assert sum(s.flags for s in seen) == report["probes_sent"] > 0
    with pytest.raises(RpcError, match=f"at least {least}"):
        refuse(planed, headers | {"sizes": [[least - 1, 1]]} if least > 64 else headers | {"sizes": [[2100, 1]]})


def refuse(planed: Planed, profile: Document, **more: Any) -> None:
    planed.apply()
    planed.apply([ring("r0")], [task("gen", "generator", "r0")])
    planed.start_traffic({"task": "gen", **more, "profile": profile} if more else of_profile(profile))


def test_sizes_are_in_proportion(planed: Planed, tmp_path: Path) -> None:
    profile = {"sizes": [[64, 7], [594, 4], [1518, 1]], "seed": 3}
    seen, report = write(planed, tmp_path / "out.pcap", of_profile(profile))
    whole = len(seen) - len(seen) % 12
    for start in range(0, whole, 12):
        assert Counter(s.size for s in seen[start : start + 12]) == {64: 7, 594: 4, 1518: 1}
    assert report["frame_size_bytes"] == round((7 * 64 + 4 * 594 + 1518) / 12)


def test_flows_addresses_and_macs(planed: Planed, tmp_path: Path) -> None:
    table = tmp_path / "addresses"
    addresses = [bytes([10, 1, i // 256, i % 256]) for i in range(500)]
    table.write_text("".join(f"{'.'.join(map(str, a))}\n" for a in addresses))
    profile = {"flows": {"count": 100}, "dst_mac_count": 7, "dst_ips_file": str(table), "seed": 5}
    load = of_profile(profile, frame_size_bytes=64)
    seen, _ = write(planed, tmp_path / "out.pcap", load)
    for s in seen:
        assert (s.dst_mac, s.src) == (MAC[:5] + bytes([s.number % 7]), bytes([198, 18, 0, 1 + s.number % 100]))
        assert s.ports == (49152 + s.number % 100, UDP_PORT)
        assert s.dst in addresses
    counts = Counter(s.dst for s in seen)
    if len(seen) > 1000:
        assert len(counts) > 400 and max(counts.values()) < 20  # uniform, 4 on average
    again, _ = write(planed, tmp_path / "again.pcap", load)
    both = min(len(seen), len(again))
    assert seen[:both] == again[:both]
    other, _ = write(planed, tmp_path / "other.pcap", of_profile(profile | {"seed": 6}, frame_size_bytes=64))
    assert [s.dst for s in other[:20]] != [s.dst for s in seen[:20]]


def test_popular_flows_are_sent_more_often(planed: Planed, tmp_path: Path) -> None:
    profile = {"ip": 6, "flows": {"count": 1000, "draw": "zipf", "exponent": 1.2}, "sizes": [[100, 1]]}
    seen, _ = write(planed, tmp_path / "out.pcap", of_profile(profile))
    counts = Counter(s.src for s in seen)
    (first, often), *_ = counts.most_common(1)
    assert first == bytes.fromhex("200100020000000000000000c6120001")
    assert 0.15 < often / len(seen) < 0.32  # 1 / sum of n^-1.2 is 0.23


def frames_to_replay() -> list[tuple[float, bytes]]:
    """UDP, TCP, IPv6, a tag, and what cannot be replayed; 50 us apart."""
    ip = dpkt.ip.IP(id=7, ttl=33, tos=8, src=b"\x0a\0\0\x01", dst=b"\x0a\0\0\x02", p=17)
    ip.data = dpkt.udp.UDP(sport=1000, dport=53, data=b"x" * 300, ulen=308)
    tcp = dpkt.ip.IP(src=b"\x0a\0\0\x03", dst=b"\x0a\0\0\x04", p=6)
    tcp.data = dpkt.tcp.TCP(sport=2000, dport=80, seq=5, flags=2, opts=b"\x02\x04\x05\xb4", data=b"")
    tcp.data.off = 6
    six = dpkt.ip6.IP6(src=bytes(15) + b"\1", dst=bytes(15) + b"\2", nxt=17, hlim=9)
    six.data = dpkt.udp.UDP(sport=3000, dport=4000, data=b"y" * 99, ulen=107)
    six.plen = 107
    icmp = dpkt.ip.IP(src=b"\x0a\0\0\x01", dst=b"\x0a\0\0\x02", p=1, data=dpkt.icmp.ICMP(type=8))
    part = dpkt.ip.IP(src=b"\x0a\0\0\x01", dst=b"\x0a\0\0\x02", p=17, data=b"z" * 50)
    part.offset = 800
    for each in (ip, tcp, icmp, part):
        each.len = len(bytes(each))
    macs = b"\x02\xaa\0\0\0\1" + b"\x02\xbb\0\0\0\2"
    v4, v6, tag = b"\x08\0", b"\x86\xdd", b"\x81\0\0\x05"
    bodies = [
        v4 + bytes(ip),
        v4 + bytes(tcp),
        tag + v6 + bytes(six),
        v4 + bytes(icmp),
        v4 + bytes(part),
        b"\x08\x06arp",
    ]
    return [(i * 50e-6, macs + body) for i, body in enumerate([*bodies, v4 + bytes(ip) + bytes(3000)])]


def save_capture(path: Path, order: str = "<", nano: bool = False) -> Path:
    """The file format as in its specification (draft-ietf-opsawg-pcap)."""
    data = struct.pack(order + "IHHiIII", 0xA1B23C4D if nano else 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    for time_s, frame in frames_to_replay():
        units = round(time_s * (1e9 if nano else 1e6))
        data += struct.pack(order + "IIII", 1_700_000_000, units, len(frame), len(frame)) + frame
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(("order", "nano"), [("<", False), (">", True)])
@pytest.mark.parametrize("timing", ["rate", "recorded"])
def test_a_capture_is_replayed(planed: Planed, tmp_path: Path, order: str, nano: bool, timing: str) -> None:
    path = save_capture(tmp_path / "in.pcap", order, nano)
    scale = {"time_scale": 0.5} if timing == "recorded" else {}
    seen, report = write(
        planed, tmp_path / "out.pcap", of_profile({"pcap": {"path": str(path), "timing": timing, **scale}})
    )
    originals = [len(frame) + FCS_BYTES for _, frame in frames_to_replay()]
    udp, tcp, six = ((originals[0], 17, (1000, 53)), (76, 6, (2000, 80)), (originals[2], 17, (3000, 4000)))
    for s, wanted in zip(seen, itertools.cycle([udp, tcp, six]), strict=False):
        assert (s.size, s.protocol, s.ports) == wanted
        assert s.dst_mac == b"\x02\xaa\0\0\0\1"
        assert s.tags == ((5,) if s.ports[0] == 3000 else ())
    assert report["profile"]["pcap"] == {
        "frames_in_file": 7,
        "frames": 3,
        "skipped": {
            "truncated": 0,
            "not_ip": 1,
            "not_udp_tcp": 1,
            "fragment": 1,
            "ipv6_extension": 0,
            "too_long": 1,
        },
        "enlarged": 1,
        "options_removed": 1,
        "period_ns": 150_000,
        "times_fallen": 0,
        "times_impossible": 0,
        "loops": len(seen) // 3,
    }
    if timing == "recorded":  # a round is 100 us and a mean gap of 50, at half the speed: 66 2/3 of them
        assert report["intended_packets"] == 200


@pytest.mark.parametrize("rate_pps", [5_000, 50_000])
def test_a_rate_of_recorded_times_is_that_of_what_is_sent(planed: Planed, tmp_path: Path, rate_pps: int) -> None:
    """Half a round into the file the clock goes back, and long frames that are not sent are far behind the others."""
    records = [*frames(*(1000 + n / 100 for n in range(50))), *frames(*(900 + n / 100 for n in range(50)))]
    path = save(tmp_path / "in.pcap", [*records, *frames(1900, 1950, length=30_000)])
    pcap = {"path": str(path), "timing": "recorded", "rate_pps": rate_pps, "frame_bytes_max": 1518}
    _, report = write(planed, tmp_path / "out.pcap", of_profile({"pcap": pcap}))
    assert report["intended_packets"] == rate_pps * DURATION_S
    assert report["profile"]["pcap"]["times_fallen"] == 1


def test_damaged_captures_are_refused(planed: Planed, tmp_path: Path) -> None:
    whole = save_capture(tmp_path / "in.pcap").read_bytes()
    path = tmp_path / "bad.pcap"
    cases = {
        b"nonsense, and more of it, and more": "unknown file format",
        whole[:300]: "truncated dump file",
        whole[:24]: "has no frame",
        whole[:20] + struct.pack("<I", 101) + whole[24:]: "link type 12 is not Ethernet",
    }
    for data, why in cases.items():
        path.write_bytes(data)
        with pytest.raises(RpcError, match=why):
            refuse(planed, {"pcap": {"path": str(path)}})


IMIX = {"sizes": [[64, 7], [594, 4], [1518, 1]]}
MANY = {"flows": {"count": 1_000_000, "draw": "uniform"}, "dst_mac_count": 5}


@pytest.mark.parametrize(
    "profile",
    [
        IMIX | MANY,
        {"sizes": [[84, 1], [1400, 2]], "ip": 6} | MANY,
        {"sizes": [[80, 1], [81, 1], [300, 1]], "transport": "tcp", "vlan": 3, "arrival": {"process": "poisson"}},
        IMIX | {"arrival": {"process": "on_off", "on_ns": 100_000, "off_ns": 400_000}},
    ],
)
def test_a_monitor_finds_all_of_it(planed: Planed, profile: Document) -> None:
    planed.apply([ring("r0")], [task("gen", "generator", "r0"), task("mon", "monitor", "r0")])
    tasks = planed.send(of_profile(profile, probe_rate_pps=1_000), duration_s=0.05)
    sent, monitor = tasks["gen"]["generator"], tasks["mon"]
    came = stream(monitor)
    assert (
        sent["intended_packets"]
        == sent["offered_packets"] + sent["unsent_late_packets"] + sent["unsent_ring_full_packets"]
    )
    assert came["forwarded_packets"] == sent["offered_packets"] > 0
    assert came["forwarded_bytes"] == sent["offered_bytes"] == sent["profile"]["bytes"]
    assert came["sizes"] == sent["profile"]["sizes"]
    assert came["probes_received"] == sent["probes_sent"]
    odd = ("foreign_packets", "stale_packets", "corrupt_packets")
    assert [monitor["monitor"][key] for key in odd] == [0, 0, 0]
    if "bursts" in sent["profile"]:
        # The last may begin at the very end: 0.5 ms is no whole number of ticks.
        assert 1 <= sent["profile"]["bursts"] <= 101


@pytest.mark.parametrize("backend", ["planed", "dpdk"])
@pytest.mark.parametrize("sender", ["vhost", "virtio"])
def test_every_way_to_a_port(planed: Planed, other: Planed, sender: str, backend: str) -> None:
    """By a copy into a guest's buffers, in buffers that are lent, and in mbufs: flat out too, so that rings refuse."""
    wire = planed.workdir / f"{sender}-{backend}.sock"
    ends = (vhost("n0", wire), virtio("v0", wire) | {"backend": backend})
    here, there = [task("gen", "generator", "n0")], [task("mon", "monitor", "v0")]
    if sender == "virtio":
        here, there = [task("mon", "monitor", "n0")], [task("gen", "generator", "v0")]
    planed.apply([ends[0]], here)
    other.apply([ends[1]], there)
    planed.links_up()
    other.links_up()
    gen, mon = (planed, other) if sender == "vhost" else (other, planed)
    profile = {"sizes": [[100, 3], [101, 3], [1518, 1]], "ip": 6, "transport": "tcp", "vlan": 5, "seed": 1} | MANY
    for epoch, load in enumerate([{"rate_pps": PPS}, {"flat_out": True}, {"rate_pps": PPS}]):
        mon.start_traffic(epoch=epoch)
        whole = {"task": "gen", "probe_rate_pps": 1_000} | ({"frame_size_bytes": 300} if epoch == 2 else {})
        sent = gen.send(whole | load | ({"profile": profile} if epoch < 2 else {}), epoch=epoch)["gen"]["generator"]
        monitor = mon.settled()["mon"]
        came = stream(monitor)
        assert monitor["monitor"]["corrupt_packets"] == monitor["monitor"]["foreign_packets"] == 0
        assert 0 < came["forwarded_packets"] == sent["offered_packets"]
        assert came["forwarded_bytes"] == sent["offered_bytes"]
        assert came.get("sizes") == (sent["profile"]["sizes"] if epoch < 2 else None)


def test_a_plain_load_after_a_profile_is_plain(planed: Planed, tmp_path: Path) -> None:
    """Long heads write over the pattern of buffers: those of the next load must have it."""
    planed.apply([ring("r0")], [task("gen", "generator", "r0"), task("mon", "monitor", "r0")])
    profile = {"ip": 6, "transport": "tcp", "vlan": 3}
    for epoch, load in enumerate([of_profile(profile, frame_size_bytes=200), of_profile({}, frame_size_bytes=100)] * 2):
        tasks = planed.send(load, epoch=epoch)
        assert stream(tasks["mon"])["forwarded_packets"] == tasks["gen"]["generator"]["offered_packets"] > 0
        plain = planed.send({"task": "gen", "frame_size_bytes": 128, "rate_pps": PPS}, epoch=epoch + 100)
        came, sent = stream(plain["mon"]), plain["gen"]["generator"]
        assert came["forwarded_packets"] == sent["offered_packets"] > 0
        assert sent["offered_bytes"] == 128 * sent["offered_packets"]
        assert "profile" not in sent and "sizes" not in came


def test_addresses_are_read_again_only_when_touched(planed: Planed, tmp_path: Path) -> None:
    table = tmp_path / "addresses"
    table.write_text("10.0.0.1\n")
    planed.apply([ring("r0")], [task("gen", "generator", "r0"), task("mon", "monitor", "r0")])
    load = of_profile({"dst_ips_file": str(table)}, frame_size_bytes=64)
    for _ in range(2):
        assert planed.send(load)["gen"]["generator"]["profile"]["dst_ips_sent"] == 1
    table.write_text("10.0.0.1\n10.0.0.2\n")
    assert planed.send(load, duration_s=0.05)["gen"]["generator"]["profile"]["dst_ips_sent"] == 2


BAD: list[tuple[Document, Document, str]] = [
    ({}, {"rate_pps": PPS}, 'generators.0.: key "frame_size_bytes" is missing'),
    (IMIX, {"rate_pps": PPS, "flat_out": True}, "exactly one of rate_pps, line_share and flat_out"),
    (IMIX | {"arrival": {"process": "poisson"}}, {"flat_out": True}, "give a rate"),
    (IMIX | {"nonsense": 1}, {"rate_pps": PPS}, 'generators.0..profile: unknown key "nonsense"; valid keys: sizes'),
    (IMIX | {"ip": 6}, {"rate_pps": PPS}, "generators.0..profile.sizes: .* at least 84"),
    ({"dst_ips_file": "/dev/null"}, {"rate_pps": PPS, "frame_size_bytes": 64}, "/dev/null: is not a regular file"),
    ({"pcap": {"path": "/x"}, "ip": 6}, {"rate_pps": PPS}, "profile.ip: a capture has its own"),
]


@pytest.mark.parametrize(("profile", "load", "why"), BAD)
def test_bad_profiles_are_refused_and_nothing_starts(
    planed: Planed, profile: Document, load: Document, why: str
) -> None:
    planed.apply([ring("r0")], [task("gen", "generator", "r0")])
    before = planed.send({"task": "gen", "frame_size_bytes": 64, "rate_pps": PPS})["gen"]["tx_packets"]
    with pytest.raises(RpcError, match=why):
        planed.start_traffic({"task": "gen", "profile": profile, **load})
    assert planed.tasks()["gen"]["tx_packets"] == before


def test_a_bad_line_is_named(planed: Planed, tmp_path: Path) -> None:
    table = tmp_path / "addresses"
    table.write_text("10.0.0.1\n2001:db8::1\n")
    with pytest.raises(RpcError, match='addresses:2: "2001:db8::1" is not an IPv4 address'):
        refuse(planed, {"dst_ips_file": str(table)}, rate_pps=PPS, frame_size_bytes=64)


def test_recorded_times_are_the_rate(planed: Planed, tmp_path: Path) -> None:
    path = save_capture(tmp_path / "in.pcap")
    profile = {"pcap": {"path": str(path), "timing": "recorded"}}
    with pytest.raises(RpcError, match="recorded times are the rate"):
        refuse(planed, profile, rate_pps=PPS)
    planed.start_traffic({"task": "gen", "profile": profile})
    until(lambda: not planed.call("traffic.get")["running"], "the generator ends")
