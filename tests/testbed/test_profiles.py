# SPDX-License-Identifier: BSD-3-Clause
"""Traffic profiles: those that are shipped, options, files of the user, and every way to get one wrong."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

import pytest
from captures import ARP_FRAME, UDP_FRAME, frames, save

from planebench.model.errors import UsageError
from planebench.model.traffic import PLAIN, Arrival, Destinations, Flows, TrafficProfile
from planebench.plan.override import items
from planebench.testbed.rates import line_rate_pps
from planebench.testbed.traffic import (
    check_methods,
    check_sizes,
    largest_frame_bytes,
    list_profiles,
    parse_all,
    parse_traffic,
    traffic_infos,
    traffic_rows,
)
from planebench.testbed.traffic_files import on_wire, profile_document, remarks

FACEBOOK_MPPS_AT_10G = 8.662
"""can17: web-server mix at 10 Gb/s (METHODOLOGY section 3)."""


@pytest.mark.parametrize("name", [name for name in list_profiles() if name != "pcap"])
def test_every_profile_that_is_shipped_can_be_sent(name: str, tmp_path: Path) -> None:
    profile = parse_traffic(name)
    assert profile.name == name and profile.summary
    check_sizes(profile, (128,))
    for flat_out in (True, False):
        document = profile_document(profile, tmp_path, "", flat_out=flat_out)
        if profile.closed_loop:  # plain frames, which need none
            assert document is None
        else:
            assert document is not None and ("arrival" in document) == (profile.arrival is not None and not flat_out)


def test_simple_imix_is_seven_four_one() -> None:
    imix = parse_traffic("imix")
    assert dict(imix.sizes) == {64: 7, 594: 4, 1518: 1}
    assert imix.mean_frame_bytes == pytest.approx((7 * 64 + 4 * 594 + 1518) / 12)


def test_the_facebook_mix_has_the_published_properties() -> None:
    """Median about 120 B, most below 256 B, 8.662 Mpps at 10 Gb/s."""
    facebook = parse_traffic("facebook")
    total = sum(weight for _, weight in facebook.sizes)
    upto = dict(zip((size for size, _ in facebook.sizes), accumulate(w for _, w in facebook.sizes), strict=True))
    assert list(upto) == sorted(upto)
    assert upto[96] < total / 2 <= upto[120]
    assert sum(weight for size, weight in facebook.sizes if size < 256) == 0.98 * total
    assert facebook.mean_frame_bytes is not None
    assert round(line_rate_pps(facebook.mean_frame_bytes) / 1e6, 3) == FACEBOOK_MPPS_AT_10G


def test_options_replace_keys_and_name_the_profile() -> None:
    assert parse_traffic("flows-1k:flows=5k:draw=zipf:exponent=2").flows == Flows(5000, "zipf", 2.0)
    assert parse_traffic("macs:count=63").dst_mac_count == parse_traffic("macs-63").dst_mac_count == 63
    assert parse_traffic("fib:count=1M").dst_ips == Destinations("", 1_000_000)
    assert parse_traffic("fib:count=all").dst_ips == Destinations("", "all")
    assert parse_traffic("bursts:on_ns=5000").arrival == Arrival("on_off", 5000, 300_000)
    assert parse_traffic("imix:vlan=7:seed=3").vlan == 7
    assert [parse_traffic(text).name for text in ("macs-63", "macs:count=63", "imix:name=mine")] == [
        "macs-63",
        "macs:count=63",
        "mine",
    ]


def test_a_list_of_profiles_counts_each_once() -> None:
    assert [p.name for p in parse_all(["imix", "plain", "imix"])] == ["imix", ""]
    with pytest.raises(UsageError, match='two traffic profiles have the name "imix"'):
        parse_all(["imix", "facebook:name=imix"])


def test_a_file_of_the_user(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("sizes: {64: 1, 1518: 3}\nip: 4\ndst_macs: {list: ['02:00:00:00:00:0A']}\n")
    mine = parse_traffic(f"{path}:vlan=9:name=mine")
    assert (mine.name, mine.sizes, mine.dst_macs, mine.vlan) == (
        "mine",
        ((64, 1), (1518, 3)),
        ("02:00:00:00:00:0a",),
        9,
    )
    assert parse_traffic(str(path)).name == "mine"


def test_a_count_of_a_section_that_is_none_is_told(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("flows: 1000\n")
    with pytest.raises(UsageError, match="count does not apply"):
        parse_traffic(f"{path}:count=5")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("imx", ['unknown traffic "imx"', "did you mean imix?", "imx.yaml"]),
        ("imix:sises=1", ['unknown option "sises"', "Valid: name, count, ip"]),
        ("imix:ip=5", ["imix:ip=5", "ip:", "4 or 6"]),
        ("imix:ip", ["is not key=value"]),
        ("imix:ip=4:ip=6", ["given twice"]),
        ("imix:count=3", ["count does not apply"]),
        ("imix:name=a/b", ['name "a/b" is not valid']),
        ("plain:ip=6", ["plain has no options"]),
        ("flows-1k:count=99M", ["flows.count", "99000000"]),
        ("flows-1k:exponent=2", ["exponent applies only to draw zipf"]),
        ("macs-5000", ["dst_macs.count", "4096"]),
        ("bursts:process=poisson", ["on_ns and off_ns", "process on_off needs"]),
        ("pcap", ["key pcap.path is missing"]),
        ("pcap:path=/no/such.pcap", ["file /no/such.pcap does not exist"]),
        ("fib:routes=/no/such.txt", ["file /no/such.txt does not exist"]),
        ("/no/such.yaml", ["/no/such.yaml cannot be read"]),
    ],
)
def test_a_bad_name_or_option_is_told_in_one_sentence(text: str, words: list[str]) -> None:
    with pytest.raises(UsageError) as error:
        parse_traffic(text)
    assert "\n" not in str(error.value)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("yaml", "words"),
    [
        ("[1, 2]", ["must be a mapping"]),
        ("a: [", ["is not YAML"]),
        ("sizs: []", ['unknown key "sizs"', "did you mean sizes?"]),
        ("flows: {cont: 3}", ['unknown key "flows.cont"', "flows.count"]),
        ("flows: {draw: zipf}", ["key flows.count is missing"]),
        ("sizes: []", ["sizes", "at least 1"]),
        ("sizes: [[63, 1]]", ["frame size", "63"]),
        ("sizes: [[64, 0]]", ["sizes.0.1", "greater than or equal to 1"]),
        ("dst_macs: {list: ['01:00:00:00:00:00']}", ["dst_macs.list.0", "01:00"]),
        ("dst_macs: {}", ["give either count or list"]),
        ("dst_ips: {}", ["give either file"]),
        ("dst_ips: {file: x, routes: y}", ["routes needs fib"]),
        ("vlan: 4095", ["vlan", "4094"]),
        ("sizes: [[64, 1]]\npcap: {path: x}", ["sizes cannot be combined with pcap"]),
        ("pcap: {path: x, time_scale: 2, rate_pps: 5}", ["time_scale and rate_pps are mutually exclusive"]),
        ("name: 'a b'", ["name", "a b"]),
        ("name: no", ["name:", "write it in quotes"]),
        ("sizes: {64: 7, 64: 9, 1518: 1}", ["line 1, column 16: key 64 is there twice, first in line 1; remove one"]),
        ("dst_macs:\n  list: [52:54:00:12:34:56]", ["line 2, column 10: YAML reads 52:54", "; write it in quotes"]),
        ("sizes: {64: 58.33, 1518: 8.33}", ["sizes.0.1: weights are whole numbers of frames, not percent", "or hundr"]),
        ("sizes: {64: 58%, 1518: 42%}", ["sizes.0.1: weights are whole numbers", "hundredths of a percent, 5800"]),
    ],
)
def test_a_bad_file_is_told_with_file_key_and_way_out(yaml: str, words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(yaml)
    with pytest.raises(UsageError) as error:
        parse_traffic(str(path))
    assert str(error.value).startswith(str(path))
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("text", "least"), [("plain", 64), ("vlan", 68), ("tcp", 76), ("ipv6", 84), ("vlan:ip=6:transport=tcp", 100)]
)
def test_the_smallest_frame_follows_from_the_headers(text: str, least: int) -> None:
    profile = parse_traffic(text)
    check_sizes(profile, (least, 1518))
    if least > 64:
        with pytest.raises(UsageError, match=rf"Use {least} B or more for --frame-size"):
            check_sizes(profile, (1518, least - 1))


def test_a_mix_is_held_against_its_headers_too() -> None:
    with pytest.raises(UsageError, match=r"too short for IPv6/UDP .* for sizes"):
        check_sizes(parse_traffic("imix:ip=6"), (1518,))


def test_the_largest_frame_is_that_of_the_mix_where_it_has_one() -> None:
    assert largest_frame_bytes(parse_traffic("imix"), (64, 9000)) == 1518
    assert largest_frame_bytes(PLAIN, (64, 9000)) == 9000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """1000 frames a second: of 64, 100 and 1500 B with FCS; one of ARP, and one that only some wires carry."""
    records = [(10.0, UDP_FRAME, 60), (10.001, UDP_FRAME, 96), (10.0015, ARP_FRAME, 60), (10.002, UDP_FRAME, 1496)]
    return save(tmp_path / "x.pcap", [*records, (10.003, UDP_FRAME, 8996)])


@pytest.mark.dataplane
@pytest.mark.parametrize(("wire", "frames", "largest"), [("virtio", 4, 9000), ("veth", 3, 1500), ("memif", 3, 1500)])
def test_of_a_capture_counts_what_its_wire_sends(path: Path, wire: str, frames: int, largest: int) -> None:
    profile = on_wire(parse_traffic(f"pcap:path={path}"), wire)
    pcap = profile.pcap
    assert pcap is not None
    assert (pcap.frames, pcap.max_frame_bytes, pcap.frames_in_file, pcap.timing) == (frames, largest, 5, "rate")
    sizes = [64, 100, 1500, 9000][:frames]
    assert profile.mean_frame_bytes == pytest.approx(sum(sizes) / frames)
    assert largest_frame_bytes(profile, (64,)) == largest


@pytest.mark.dataplane
def test_what_is_not_sent_of_a_capture_is_told(path: Path) -> None:
    (text,) = remarks(on_wire(parse_traffic(f"pcap:path={path}:name=web"), "veth"))
    assert text == (
        "traffic web: 2 of 5 frames are not sent: 1 are not IPv4 or IPv6, 1 are longer than the 1518 B of this wire"
    )
    save(path, frames(5, 6, 1, 2))
    (text,) = remarks(on_wire(parse_traffic(f"pcap:path={path}:name=web"), "veth"))
    assert text.startswith("traffic web: of 4 time stamps, 1 fall and 0 cannot be")
    save(path, frames(5, 6))
    assert not list(remarks(on_wire(parse_traffic(f"pcap:path={path}"), "veth"))) + list(remarks(PLAIN))


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ("", {"timing": "rate"}),
        (":timing=recorded", {"timing": "recorded", "time_scale": 1.0}),
        (":scale=4", {"timing": "recorded", "time_scale": 4}),
        (":rate=50k", {"timing": "recorded", "rate_pps": 50_000}),
    ],
)
def test_planed_is_told_at_what_times_a_capture_is_replayed(
    path: Path, options: str, wanted: dict[str, object]
) -> None:
    profile = parse_traffic(f"pcap:path={path}{options}")
    assert profile.recorded == bool(options)
    document = profile_document(profile, path.parent, "", flat_out=True)
    assert document == {"seed": 1, "pcap": {"path": str(path), "frame_bytes_max": 0, **wanted}}


@pytest.mark.dataplane
@pytest.mark.parametrize(
    ("options", "data", "words"),
    [
        ("", b"no capture at all, only text", "x.pcap: is no capture (unknown file format); convert it: editcap"),
        (":rate=5k", None, "x.pcap: its time stamps do not advance; leave out recorded times"),
    ],
)
def test_a_bad_capture_is_refused_before_the_run(path: Path, options: str, data: bytes | None, words: str) -> None:
    if data is None:
        save(path, frames(1, 1))
    else:
        path.write_bytes(data)
    profile = parse_traffic(f"pcap:path={path}:name=web{options}")
    with pytest.raises(UsageError, match=r"traffic web: profile\.pcap: ") as error:
        on_wire(profile, "virtio")
    assert words in str(error.value)


@pytest.mark.dataplane
def test_a_bad_list_of_addresses_is_refused_before_the_run(tmp_path: Path) -> None:
    path = tmp_path / "ips.txt"
    path.write_text("10.0.0.1\nnonsense\n")
    with pytest.raises(UsageError, match=r'ips.txt:2: "nonsense" is not an IPv4 address'):
        on_wire(TrafficProfile("x", "", dst_ips=Destinations(str(path))), "virtio")
    path.write_text("10.1.0.0/16 # 10.2.0.0/16\n10.3.0.0/16 nowhere\n")
    with pytest.raises(UsageError, match=r"traffic fib.*ips.txt:2: .*no word of a route"):
        on_wire(parse_traffic(f"fib:routes={path}"), "virtio")


@pytest.mark.parametrize("name", ["a b.pcap", "10:30.pcap", "a,b=c:d.pcap"])
def test_a_path_may_have_what_separates_options(tmp_path: Path, name: str) -> None:
    path = save(tmp_path / name, frames(1, 2))
    (quoted, plain) = parse_all([f'pcap:path="{path}":rate=5k', "plain"])
    assert quoted.pcap is not None and quoted.pcap.path == str(path) and quoted.recorded and plain is PLAIN
    if "=" not in name:
        assert parse_traffic(f"pcap:path={path}:rate=5k") == quoted
    assert items("traffic", f'imix,pcap:path="{path}",plain') == ("imix", f'pcap:path="{path}"', "plain")


def test_recorded_times_leave_no_load_to_set(tmp_path: Path) -> None:
    path = save(tmp_path / "x.pcap", frames(1.0, 1.1))
    recorded = parse_traffic(f"pcap:path={path}:timing=recorded")
    check_methods(recorded, (), (), rate_set=False)
    for searches, loads, rate_set, word in (
        (("ndr",), (), False, "a search"),
        ((), (0.5,), False, "latency"),
        ((), (), True, "rate"),
    ):
        with pytest.raises(UsageError, match=word):
            check_methods(recorded, searches, loads, rate_set)
    check_methods(parse_traffic(f"pcap:path={path}"), ("ndr",), (0.5,), rate_set=True)


def test_planed_is_told_everything_that_is_not_as_usual(tmp_path: Path) -> None:
    document = profile_document(parse_traffic("imix:vlan=5:flows=10:draw=zipf:macs=3"), tmp_path, "", flat_out=False)
    assert document == {
        "seed": 1,
        "ip": 4,
        "transport": "udp",
        "vlan": 5,
        "sizes": [[64, 7], [594, 4], [1518, 1]],
        "flows": {"count": 10, "draw": "zipf", "exponent": 1.0},
        "dst_mac_count": 3,
    }
    bursts = profile_document(parse_traffic("bursts"), tmp_path, "", flat_out=False)
    assert bursts is not None and bursts["arrival"] == {"process": "on_off", "on_ns": 100_000, "off_ns": 300_000}
    assert profile_document(PLAIN, tmp_path, "", flat_out=True) is None


def test_the_list_has_every_profile_with_its_mean_and_what_varies() -> None:
    rows = {row["traffic"]: row for row in traffic_rows()}
    assert set(rows) == {"plain", *list_profiles()}
    assert rows["imix"]["mean frame"] == "361.8 B" and rows["imix"]["varies"] == "frame size"
    assert rows["macs"]["varies"] == "8 destination MACs"
    assert rows["plain"]["mean frame"] == "each frame size"


def test_the_header_of_a_run_says_what_is_not_as_usual() -> None:
    (info,) = traffic_infos(parse_all(["plain", "ipv6"]))
    assert (info.name, info.mean_frame_bytes, info.settings) == ("ipv6", None, {"ip": "6"})


def test_control_packets_go_with_a_profile_and_cause_the_updates() -> None:
    profile = parse_traffic("fib:control=2")
    assert (profile.control_pps, profile.updates, profile.has_control) == (2, None, True)
    (info,) = traffic_infos([profile])
    assert info.settings["control_pps"] == "2.0"
    for text in ("fib:control=0", "fib:control=1001", "fib:control=2:updates=2"):
        with pytest.raises(UsageError, match="control"):
            parse_traffic(text)


@pytest.mark.parametrize(("text", "updates"), [("fib:updates=64k", 64000.0), ("fib:updates=2", 2.0), ("fib", None)])
def test_updates_of_a_fib_go_with_a_profile(text: str, updates: float | None) -> None:
    assert parse_traffic(text).updates == updates
    assert parse_traffic("fib:updates=flat_out").updates == "flat_out"
    with pytest.raises(UsageError, match="updates"):
        parse_traffic("fib:updates=0")
