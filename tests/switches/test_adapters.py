# SPDX-License-Identifier: BSD-3-Clause
"""What an adapter asks for, without starting anything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from planed_answers import statistics

from planebench.host import programs as finding
from planebench.host.evidence import ThreadRef
from planebench.host.programs import Found, NotFound, required
from planebench.model.conditions import FEATURE_KEYS, MANIFEST_KEYS, parse_claim
from planebench.model.errors import NotInstalledError, StartError, UsageError
from planebench.switches import common, ovs, planed, testpmd
from planebench.switches.adapter import Adapter
from planebench.switches.planed import switch_document
from planebench.switches.registry import ADAPTERS, get_adapter
from planebench.testbed.request import SwitchPort, SwitchRequest, af_packet_devargs

WORKDIR = Path("/tmp/w")
PROGRAMS = {name: adapter for name, adapter in ADAPTERS.items() if name != "sim" and "virtio" in adapter.wires}
"""The switches that are programs: a simulated one starts nothing."""


def vhost(name: str) -> SwitchPort:
    return SwitchPort(name, "vhost-user", path=WORKDIR / f"{name}.sock")


def virtio(name: str) -> SwitchPort:
    return SwitchPort(name, "virtio-user", path=WORKDIR / f"{name}.sock")


LOOPBACK = SwitchRequest(
    ports=(virtio("n0"), virtio("n1"), vhost("v0"), vhost("v1")),
    cross_connects=(("n0", "v0"), ("v1", "n1")),
    cpu=3,
    control_cpus=frozenset({0, 2}),
    workdir=WORKDIR,
    hugepages=False,
)


def test_get_adapter_by_name() -> None:
    assert {"planed", "ovs-dpdk", "testpmd"} <= set(PROGRAMS)
    assert all(get_adapter(name).name == name for name in ADAPTERS)


def test_an_unknown_switch_is_answered_with_the_valid_names_and_the_closest() -> None:
    with pytest.raises(UsageError, match=r'unknown switch "ovsdpdk", did you mean ovs-dpdk\? Valid: planed, ovs-dpdk'):
        get_adapter("ovsdpdk")
    with pytest.raises(UsageError, match=r'unknown switch "zzz"\. Valid: '):
        get_adapter("zzz")
    with pytest.raises(UsageError, match=r'unknown switch "2"\. .*; "workers=" was taken for a label'):
        get_adapter("workers=2")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_missing_switch_comes_with_its_remedy(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(f"PLANEBENCH_{name.upper().replace('-', '_')}", raising=False)
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    monkeypatch.setattr(finding, "_SYSTEM_FOLDERS", str(tmp_path))
    monkeypatch.setattr(ovs.OvsDpdkAdapter, "programs", (("ovs-vswitchd-dpdk",), ("ovs-vswitchd",)))
    adapter = get_adapter(name)
    found = adapter.find()
    assert isinstance(found, NotFound)
    assert adapter.remedy in found.remedy
    with pytest.raises(NotInstalledError, match="is not installed"):
        required(adapter.title, adapter.find())


def test_an_ovs_without_dpdk_is_not_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for tool in ("ovs-vswitchd", "ovsdb-tool", "ovsdb-server", "ovs-vsctl", "ovs-ofctl"):
        (tmp_path / tool).write_text("#!/bin/sh\necho 'ovs-vswitchd (Open vSwitch) 9.9.9'\n")
        (tmp_path / tool).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(finding, "_SYSTEM_FOLDERS", str(tmp_path))
    monkeypatch.setattr(ovs.OvsDpdkAdapter, "programs", (("ovs-vswitchd-dpdk",), ("ovs-vswitchd",)))
    monkeypatch.setattr(ovs, "_schema", lambda: tmp_path)
    found = ovs.ADAPTER.find()
    assert isinstance(found, NotFound) and "has no DPDK" in found.remedy
    (tmp_path / "ovs-vswitchd-dpdk").write_text(
        "#!/bin/sh\necho 'ovs-vswitchd (Open vSwitch) 9.9.9'\necho DPDK 99.11\n"
    )
    (tmp_path / "ovs-vswitchd-dpdk").chmod(0o755)
    assert ovs.ADAPTER.find() == Found("9.9.9 (DPDK 99.11)", tmp_path / "ovs-vswitchd-dpdk")


@pytest.mark.parametrize("adapter", PROGRAMS.values(), ids=lambda it: it.name)
def test_settings_are_text_and_state_ring_and_memory(adapter: Adapter) -> None:
    settings = adapter.settings(LOOPBACK)
    assert all(isinstance(value, str) for value in settings.values())
    assert settings["ring_size"] == "256" or adapter.vnf_interface == "veth", "no ring of the bench's in the kernel"
    assert "4 KiB" in settings["memory"]
    assert set(MANIFEST_KEYS) <= set(settings)
    assert {key: str(parse_claim(settings[key])) for key in FEATURE_KEYS} == {
        key: settings[key] for key in FEATURE_KEYS
    }


@pytest.mark.parametrize(("frame", "ring"), [(1518, 256), (1518, 1), (1518, 100), (9018, 256), (9018, 7)])
def test_af_packet_rings_are_such_as_kernel_and_driver_take(frame: int, ring: int) -> None:
    text = af_packet_devargs("n0-switch", ring, frame)
    values = dict(part.split("=") for part in text.split(","))
    slot, block, count = int(values["framesz"]), int(values["blocksz"]), int(values["framecnt"])
    assert values["iface"] == "n0-switch"
    assert block % 4096 == 0 and block % slot == 0 and slot % 16 == 0
    assert count % (block // slot) == 0 and count >= ring
    assert frame + 80 <= slot <= (2048 if frame == 1518 else 9728) + 32


def test_testpmd_pairs_follow_the_cross_connects() -> None:
    ports = common.paired_ports(LOOPBACK)
    assert [port.name for port in ports] == ["n0", "v0", "v1", "n1"]
    arguments = testpmd._arguments(Path("/bin/t"), LOOPBACK, ports, "pb-x")
    vdevs = [it.removeprefix("--vdev=") for it in arguments if it.startswith("--vdev=")]
    assert vdevs == [
        "net_virtio_user0,path=/tmp/w/n0.sock,queue_size=256",
        "net_vhost1,iface=/tmp/w/v0.sock,queues=1",
        "net_vhost2,iface=/tmp/w/v1.sock,queues=1",
        "net_virtio_user3,path=/tmp/w/n1.sock,queue_size=256",
    ]
    assert "--lcores=0@(0,2),1@3" in arguments
    assert "--no-huge" in arguments and "--in-memory" not in arguments
    assert not any(it.startswith("--max-pkt-len") for it in arguments)


def test_testpmd_with_hugepages_and_large_frames() -> None:
    wanted = replace(LOOPBACK, hugepages=True, max_frame_bytes=9018)
    arguments = testpmd._arguments(Path("/bin/t"), wanted, common.paired_ports(wanted), "pb-x")
    assert "--in-memory" in arguments and "--no-huge" not in arguments
    assert "--max-pkt-len=9018" in arguments
    assert "--mbuf-size=9856" in arguments


def test_planed_document() -> None:
    document = switch_document(LOOPBACK, "pb-AbC-switch").to_json()
    assert document["version"] == 1
    assert document["name"] == "pb-abc-switch"
    assert document["ports"][1] == {"name": "v0", "kind": "vhost-user", "ring_size": 256, "path": "/tmp/w/v0.sock"}
    assert [task["ports"] for task in document["tasks"]] == [["n0", "v0"], ["v1", "n1"]]
    assert document["workers"] == [{"name": "patch", "cpu": 3, "tasks": ["patch0", "patch1"]}]


def test_planed_limits_what_frames_make_of_a_vnfs_memory() -> None:
    """All that the VNF was given, with its rings and buffers; planed's own limit where nobody chose."""
    given = [replace(port, vnf_memory_mb={"v0": 64, "v1": 2**20}.get(port.name)) for port in LOOPBACK.ports]
    request = replace(LOOPBACK, ports=tuple(given), max_frame_bytes=9018, queues=2)
    limits = {port.name: port.max_charged_mb for port in switch_document(request, "x").ports}
    assert limits == {"n0": None, "n1": None, "v0": 64 + 1 + 8, "v1": 262144}
    dpdk = switch_document(request, "x", {"backend": "dpdk"}).ports
    assert {port.max_charged_mb for port in dpdk} == {None}


TESTPMD_STATS = b"""show fwd stats all

  ---------------------- Forward statistics for port 0  ----------------------
  RX-packets: 1003555        RX-dropped: 0             RX-total: 1003555
  TX-packets: 1003107        TX-dropped: 0             TX-total: 1003107
  ----------------------------------------------------------------------------

  ---------------------- Forward statistics for port 1  ----------------------
  RX-packets: 1003107        RX-dropped: 17            RX-total: 1003124
  RX-error: 2
  RX-nombufs: 3
  TX-packets: 1003075        TX-dropped: 480           TX-total: 1003555
  ----------------------------------------------------------------------------

  +++++++++++++++ Accumulated forward statistics for all ports+++++++++++++++
  RX-packets: 2006662        RX-dropped: 17            RX-total: 2006679
  RX-nombufs: 3
  TX-packets: 2006182        TX-dropped: 960           TX-total: 2007142
  ++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++

  CPU cycles/packet=205.55 (total cycles=824921002 / total io packets=4013196) at 2600 MHz Clock
testpmd> """
"""Recorded from testpmd of DPDK 22.11 under overload, two ports left out; port 1 as its source prints faults."""


def test_testpmd_drops_by_port() -> None:
    assert testpmd.parse_drops(TESTPMD_STATS, ["n0", "v0"]) == {
        "n0:rx_missed": 0,
        "n0:tx_full": 0,
        "v0:rx_missed": 17,
        "v0:rx_errors": 2,
        "v0:rx_nombuf": 3,
        "v0:tx_full": 480,
    }


def test_testpmd_text_that_is_not_whole_gives_no_key_but_never_a_wrong_number() -> None:
    whole = testpmd.parse_drops(TESTPMD_STATS, ["n0", "v0"])
    for end in range(len(TESTPMD_STATS)):
        assert testpmd.parse_drops(TESTPMD_STATS[:end], ["n0", "v0"]).items() <= whole.items()
    for start in range(len(TESTPMD_STATS)):
        assert testpmd.parse_drops(TESTPMD_STATS[start:], ["n0", "v0"]).items() <= whole.items()
    assert set(testpmd.parse_drops(TESTPMD_STATS, ["n0"])) == {"n0:rx_missed", "n0:tx_full"}
    garbled = TESTPMD_STATS.replace(b"TX-dropped: 480 ", b"TX-dropped: 48x ")
    assert "v0:tx_full" not in testpmd.parse_drops(garbled, ["n0", "v0"])


NIC_STATS = b"""show port stats all

  ######################## NIC statistics for port 0  ########################
  RX-packets: 1003555    RX-missed: 0          RX-bytes:  60213300
  RX-errors: 0
  RX-nombuf:  0
  TX-packets: 1003107    TX-errors: 0          TX-bytes:  60186420

  Throughput (since last show)
  Rx-pps:            0          Rx-bps:            0
  Tx-pps:            0          Tx-bps:            0
  ############################################################################

  ######################## NIC statistics for port 1  ########################
  RX-packets: 1003107    RX-missed: 17         RX-bytes:  60186420
  RX-errors: 2
  RX-nombuf:  3
  TX-packets: 1003075    TX-errors: 240        TX-bytes:  60184500

  Throughput (since last show)
  Rx-pps:            0          Rx-bps:            0
  Tx-pps:            0          Tx-bps:            0
  ############################################################################
testpmd> """
"""As testpmd prints it, of net_vhost from DPDK 23.11 on: it counts as errors what it could not send."""


def test_frames_that_later_testpmds_count_twice_are_counted_once() -> None:
    drops = testpmd.parse_drops(TESTPMD_STATS + NIC_STATS, ["n0", "v0"], errors_in_dropped=True)
    assert (drops["n0:tx_full"], drops["v0:tx_full"], drops["v0:rx_missed"]) == (0, 240, 17)
    assert "v0:tx_full" not in testpmd.parse_drops(TESTPMD_STATS, ["n0", "v0"], errors_in_dropped=True)


@pytest.mark.parametrize(
    ("version", "asked"), [("DPDK 22.11.11", False), ("DPDK 23.03.0", True), ("DPDK 24.11.4-rc1", True), ("?", False)]
)
def test_testpmd_of_every_release_is_read(version: str, asked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    running = testpmd.RunningTestpmd(SimpleNamespace(pid=1), ["n0", "v0"], version)  # type: ignore[arg-type]
    stats = TESTPMD_STATS.replace(b"(total cycles", b"(busy cycles") if asked else TESTPMD_STATS
    answers = {b"show fwd stats all": stats, b"show port stats all": NIC_STATS}
    monkeypatch.setattr(running, "_ask", lambda command: answers[command.encode()])
    counted = running.counters()
    assert counted.drops["v0:tx_full"] == (240 if asked else 480)
    assert counted.busy_cycles == 824921002


@pytest.mark.parametrize(("workers", "there"), [(1, 0), (2, 1), (1, 2)])
def test_a_switch_without_all_of_its_workers_did_not_start(workers: int, there: int) -> None:
    process = SimpleNamespace(exit_report=lambda: "its last log lines")
    threads = [ThreadRef(1, tid, "w") for tid in range(there)]
    wanted = SimpleNamespace(worker_cpus=tuple(range(workers)))
    with pytest.raises(StartError, match=f"^T has {there} of {workers} workers; its last log lines$"):
        common.check_workers("T", threads, wanted, process)  # type: ignore[arg-type]


XSTATS = b"""show port xstats all
###### NIC extended statistics for port 0 \r
rx_good_packets: 1003555\r
rx_missed_errors: 5\r
rx_crc_errors: 4\r
###### NIC extended statistics for port 1 \r
rx_good_packets: 7\r
rx_phy_discard_packets: 6\r
testpmd> """


def test_testpmd_tells_what_nics_count_of_lost_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    running = testpmd.RunningTestpmd(SimpleNamespace(pid=1), ["n0", "n1"], "DPDK 22.11", nics=True)  # type: ignore[arg-type]
    answers = {b"show fwd stats all": TESTPMD_STATS, b"show port xstats all": XSTATS}
    monkeypatch.setattr(running, "_ask", lambda command: answers[command.encode()])
    counted = running.counters()
    assert counted.counters == {"n0:rx_crc_errors": 4, "n1:rx_phy_discard_packets": 6}
    assert counted.drops["n1:rx_phy_discard_packets"] == 6 and "n0:rx_crc_errors" not in counted.drops
    assert testpmd.parse_xstats(XSTATS, ["n0"]).keys() == {"n0"}


def test_planed_drops_by_port() -> None:
    none = {"rx_missed": 0, "rx_nombuf": 0, "rx_errors": 0, "tx_errors": 0}
    stats = {
        "tasks": [
            {"drops": {"tx_full": 7}, "drops_by_port": {"n0": {"tx_full": 2}, "v0": {"tx_full": 5}}},
            {"drops": {"tx_full": 0, "fault": 3}, "drops_by_port": {"n1": {"tx_full": 0}, "v1": {"tx_full": 0}}},
            {"drops": {"tx_full": 0, "fault": 4}, "drops_by_port": {}},
        ],
        "ports": [{"name": "n0", **none, "rx_missed": 11}, {"name": "v0", **none, "rx_nombuf": 12, "tx_errors": 9}],
    }
    drops = {key: count for key, count in planed.parse_drops(statistics(stats)).items() if count}
    by_port = {"n0:tx_full": 2, "v0:tx_full": 5, "n0:rx_missed": 11, "v0:rx_nombuf": 12, "v0:tx_errors": 9}
    assert drops == {**by_port, "fault": 7}


def test_planed_with_a_fault_has_it_in_every_task_and_in_its_settings() -> None:
    faulty = planed.ADAPTER.with_options({"drop_one_in": "1000"})
    assert faulty.values.get("drop_one_in") == 1000 and "drop_one_in" not in planed.ADAPTER.values
    assert faulty.settings(LOOPBACK)["drop_one_in"] == "1000"
    assert "drop_one_in" not in planed.ADAPTER.settings(LOOPBACK)
    tasks = switch_document(LOOPBACK, "pb", faulty.values).to_json()["tasks"]
    assert [task["fault"] for task in tasks] == [{"drop_one_in": 1000}] * 2
    assert not any("fault" in task for task in switch_document(LOOPBACK, "pb").to_json()["tasks"])
    assert "drop_one_in" not in planed.ADAPTER.with_options({}).values
    assert faulty.with_options({}).values.get("drop_one_in") == 1000
    assert faulty.with_options({"drop_one_in": "1"}).values.get("drop_one_in") == 1
    assert faulty.name == "planed"


@pytest.mark.parametrize(
    "value", ["0", "-1", "", "1.5", "1e3", " 5", "5 ", "+5", "\u0665", "4294967296", "9" * 5000, "every"]
)
def test_planed_refuses_a_fault_that_cannot_be(value: str) -> None:
    with pytest.raises(UsageError, match=r'switch planed: drop_one_in ".*" is not valid\. Valid: 1\.\.4294967295'):
        planed.ADAPTER.with_options({"drop_one_in": value})


def test_planed_with_a_backend_has_it_in_its_ports_and_in_its_settings() -> None:
    chosen = planed.ADAPTER.with_options({"backend": "planed"}).with_options({"drop_one_in": "7"})
    assert (chosen.values.get("backend"), chosen.values.get("drop_one_in"), planed.ADAPTER.values.get("backend")) == (
        "planed",
        7,
        None,
    )
    assert chosen.settings(LOOPBACK)["backend"] == planed.ADAPTER.settings(LOOPBACK)["backend"] == "planed"
    assert planed.ADAPTER.with_options({"backend": "dpdk"}).settings(LOOPBACK)["backend"] == "dpdk"
    assert "index_look" in planed.ADAPTER.settings(LOOPBACK)
    assert "index_look" not in planed.ADAPTER.with_options({"backend": "dpdk"}).settings(LOOPBACK)
    ports = switch_document(LOOPBACK, "pb", chosen.values).to_json()["ports"]
    assert {(port["kind"], port["backend"]) for port in ports} == {("vhost-user", "planed"), ("virtio-user", "planed")}
    assert not any("backend" in port for port in switch_document(LOOPBACK, "pb").to_json()["ports"])
    with pytest.raises(UsageError, match=r'backend "ring" is not valid\. Valid: dpdk, planed'):
        planed.ADAPTER.with_options({"backend": "ring"})


def test_planed_offers_guests_offloads_only_if_asked_to() -> None:
    chosen = planed.ADAPTER.with_options({"guest_offloads": "on"})
    ports = switch_document(LOOPBACK, "pb", chosen.values).to_json()["ports"]
    assert {(port["kind"], port.get("offloads")) for port in ports} == {("vhost-user", True), ("virtio-user", None)}
    plain = planed.ADAPTER.with_options({"guest_offloads": "off"})
    assert not any("offloads" in port for port in switch_document(LOOPBACK, "pb", plain.values).to_json()["ports"])
    for key in ("checksum_offload", "segmentation_offload"):
        assert str(chosen.settings(LOOPBACK)[key]) == "wires off, VNFs offered"
        assert str(plain.settings(LOOPBACK)[key]) == str(planed.ADAPTER.settings(LOOPBACK)[key]) == "off"
    with pytest.raises(UsageError, match="backend=dpdk does not support guest_offloads=on"):
        chosen.with_options({"backend": "dpdk"})


def test_planed_as_a_bridge_has_it_in_every_task_and_in_its_settings() -> None:
    bridge = planed.ADAPTER.with_options({"function": "bridge"}).with_options({"backend": "dpdk"})
    assert bridge.values == {"function": "bridge", "backend": "dpdk"}
    assert bridge.settings(LOOPBACK)["function"].startswith("bridge: ")
    assert planed.ADAPTER.settings(LOOPBACK)["function"].startswith("patch: ")
    document = switch_document(LOOPBACK, "pb", {"function": "bridge"}).to_json()
    assert [(task["name"], task["kind"]) for task in document["tasks"]] == [
        ("bridge0", "bridge"),
        ("bridge1", "bridge"),
    ]
    assert document["workers"] == [{"name": "bridge", "cpu": 3, "tasks": ["bridge0", "bridge1"]}]
    with pytest.raises(UsageError, match=r'function "hub" is not valid\. Valid: patch, bridge'):
        planed.ADAPTER.with_options({"function": "hub"})


@pytest.mark.parametrize("options", [{"function": "bridge", "drop_one_in": "5"}, {"function": "bridge"}])
def test_planed_drops_on_purpose_only_as_a_patch(options: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="function bridge does not support drop_one_in"):
        planed.ADAPTER.with_options({"drop_one_in": "7"}).with_options(options)


def test_planed_with_workers_has_a_queue_for_each_on_every_port() -> None:
    adapter = planed.ADAPTER.with_options({"workers": "3"})
    assert adapter.queues == 3 and planed.ADAPTER.queues == get_adapter("testpmd").queues == 1
    assert adapter.with_options({"backend": "dpdk"}).queues == 3
    assert adapter.queued_wires == {"virtio", "vhost", "memif"}, "a kernel interface pair has one queue"
    request = replace(LOOPBACK, queues=3)
    alone = switch_document(request, "pb", adapter.values).to_json()
    assert {port["queues"] for port in alone["ports"]} == {3}
    assert [(task["name"], task["ports"], task.get("queue", 0)) for task in alone["tasks"]] == [
        (f"patch{index}{suffix}", ["n0", "v0"] if index == 0 else ["v1", "n1"], queue)
        for queue, suffix in enumerate(("", "-q1", "-q2"))
        for index in (0, 1)
    ]
    names = [task["name"] for task in alone["tasks"]]
    assert alone["workers"] == [{"name": "patch", "cpu": 3, "tasks": names}], "two on one core would share it"
    shared = switch_document(replace(request, more_cpus=(5,)), "pb", adapter.values).to_json()["workers"]
    assert [(worker["name"], worker["cpu"]) for worker in shared] == [("patch", 3), ("patch-q1", 5)]
    assert [worker["tasks"] for worker in shared] == [names[:2] + names[4:], names[2:4]]
    assert adapter.settings(request)["queues"] == "3" and adapter.settings(request)["workers"] == "1"
    assert planed.ADAPTER.settings(LOOPBACK)["queues"] == "1"


@pytest.mark.parametrize("value", ["0", "5", "", "two", "1.0", "+1"])
def test_planed_refuses_workers_that_cannot_be(value: str) -> None:
    with pytest.raises(UsageError, match=r'switch planed: workers ".*" is not valid\. Valid: 1\.\.4'):
        planed.ADAPTER.with_options({"workers": value})


def test_planed_refuses_an_option_it_has_not() -> None:
    with pytest.raises(UsageError, match=r'unknown option of switch planed "drop".* Valid: path, function, backend'):
        planed.ADAPTER.with_options({"drop_one_in": "5", "drop": "5"})


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_unknown_option_is_answered_with_the_valid_ones(name: str) -> None:
    with pytest.raises(UsageError, match=rf"switch {name}.*wheels.*Valid: .*(path|function)"):
        get_adapter(f"{name}:wheels=4")
