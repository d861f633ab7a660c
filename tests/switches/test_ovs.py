# SPDX-License-Identifier: BSD-3-Clause
"""Open vSwitch: what is put into its database, and what is made of what it prints."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from builders import verdict_of

from planebench.host.programs import Found, NotFound
from planebench.measure.trial import cycles_of_trial
from planebench.model.records import DirectionCounts, Evidence, SwitchCycles
from planebench.switches import ovs, ovs_counters
from planebench.switches.adapter import Situation
from planebench.testbed.request import SwitchPort, SwitchRequest

WORKDIR = Path("/tmp/w")
LOOPBACK = SwitchRequest(
    ports=(
        *(SwitchPort(name, "virtio-user", path=WORKDIR / f"{name}.sock") for name in ("n0", "n1")),
        *(SwitchPort(name, "vhost-user", path=WORKDIR / f"{name}.sock") for name in ("v0", "v1")),
    ),
    cross_connects=(("n0", "v0"), ("v1", "n1")),
    cpu=3,
    control_cpus=frozenset({0, 2}),
    workdir=WORKDIR,
    hugepages=False,
)


def test_without_a_device_for_the_interface_of_the_bridge_it_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ovs, "find_program", Path)
    monkeypatch.setattr(ovs, "_schema", lambda: Path("/schema"))
    monkeypatch.setattr(ovs, "version_lines", lambda _: ("ovs-vswitchd (Open vSwitch) 3.1.0", "DPDK 22.11.11"))
    monkeypatch.setattr(ovs, "TUN", Path(os.devnull))
    adapter = ovs.OvsDpdkAdapter({})
    assert isinstance(adapter.find(), Found)
    monkeypatch.setattr(ovs, "TUN", Path("/nosuch/tun"))
    found = adapter.find()
    assert isinstance(found, NotFound) and found.words.startswith("cannot open /nosuch/tun, by which"), found
    assert "--device=/dev/net/tun" in found.words


def test_ovs_configuration_and_flows() -> None:
    commands = [" ".join(command) for command in ovs.configuration(LOOPBACK, "pb-x")]
    assert "--no-huge" in commands[0] and "--legacy-mem" in commands[0] and "--in-memory" not in commands[0]
    assert "dpdk-lcore-mask=0x1" in commands[0] and "pmd-cpu-mask=0x8" in commands[0]
    assert "set Interface v0 ofport_request=3 type=dpdkvhostuser" in commands
    assert any(
        "type=dpdk options:dpdk-devargs=net_virtio_user1,path=/tmp/w/n0.sock,queue_size=256" in c for c in commands
    )
    assert not any("mtu_request" in command for command in commands)
    assert ovs.flows_of(LOOPBACK) == [
        "in_port=1,actions=output:3",
        "in_port=3,actions=output:1",
        "in_port=4,actions=output:2",
        "in_port=2,actions=output:4",
    ]
    huge = [" ".join(it) for it in ovs.configuration(replace(LOOPBACK, hugepages=True, max_frame_bytes=9018), "p")]
    assert "--in-memory" in huge[0] and "--no-huge" not in huge[0] and "--legacy-mem" not in huge[0]
    assert sum("mtu_request=9000" in command for command in huge) == 4


def test_ovs_refuses_large_frames_on_veth() -> None:
    refusal = ovs.ADAPTER.refusal(Situation("p2p", "veth", max_frame_bytes=9018))
    assert "veth wire" in refusal and "use the virtio wire" in refusal
    assert ovs.ADAPTER.refusal(Situation("p2p", "virtio", max_frame_bytes=9018)) == ""


OVS_PORTS = """OFPST_PORT reply (OF1.4) (xid=0x2): 3 ports
  port LOCAL: rx pkts=0, bytes=0, drop=0, errs=0, frame=0, over=0, crc=0
           tx pkts=0, bytes=0, drop=0, errs=0, coll=0
           duration=1.507s
  port  4: rx pkts=?, bytes=?, drop=?, errs=?, frame=?, over=?, crc=?
           tx pkts=?, bytes=?, drop=?, errs=?, coll=?
           duration=2.385s
           CUSTOM Statistics
                      ovs_tx_retries=7, ovs_tx_failure_drops=5470688, ovs_tx_mtu_exceeded_drops=0,
                      ovs_tx_qos_drops=0, ovs_rx_qos_drops=0, ovs_tx_invalid_hwol_drops=0,
  port  1: rx pkts=5544192, bytes=8393906688, drop=0, errs=0, frame=?, over=?, crc=?
           tx pkts=256, bytes=387584, drop=72896, errs=0, coll=?
           duration=1.588s
           CUSTOM Statistics
                      ovs_tx_failure_drops=72896, ovs_tx_mtu_exceeded_drops=1, ovs_tx_qos_drops=0,
                      ovs_rx_qos_drops=0, ovs_tx_invalid_hwol_drops=0, rx_missed_errors=5,
                      rx_errors=3, tx_errors=0, rx_mbuf_allocation_errors=2,
                      rx_q0_errors=0,
"""
"""Recorded from Open vSwitch 3.1 under overload; port 1 with numbers put in where it said 0."""


def test_ovs_drops_by_port() -> None:
    counted = ovs_counters.parse_ports(OVS_PORTS, ["n0", "v1"])
    assert counted.tx_drops is None, "port 2 is not in the text"
    assert ovs_counters.parse_ports(OVS_PORTS, ["n0"]).tx_drops == 72897
    assert ovs_counters.parse_ports(OVS_PORTS, ["n0", "n1", "v0", "v1"]).drops == {
        "v1:tx_full": 5470688,
        "v1:tx_mtu_exceeded": 0,
        "v1:tx_qos": 0,
        "v1:tx_invalid_offload": 0,
        "n0:tx_full": 72896,
        "n0:tx_mtu_exceeded": 1,
        "n0:tx_qos": 0,
        "n0:tx_invalid_offload": 0,
        "n0:rx_missed": 5,
        "n0:rx_errors": 3,
        "n0:rx_nombuf": 2,
    }


def test_ovs_tells_what_nics_count_of_lost_frames() -> None:
    text = OVS_PORTS.replace(
        "rx_q0_errors=0,", "rx_q0_errors=0, rx_crc_errors=4, rx_phy_discard_packets=6, rx_bytes=9,"
    )
    counted = ovs_counters.parse_ports(text, ["n0", "n1", "v0", "v1"])
    assert counted.nic == {"n0:rx_crc_errors": 4, "n0:rx_phy_discard_packets": 6}
    assert counted.drops["n0:rx_phy_discard_packets"] == 6 and "n0:rx_crc_errors" not in counted.drops


def test_ovs_text_that_is_not_whole_gives_no_key_but_never_a_wrong_number() -> None:
    names = ["n0", "n1", "v0", "v1"]
    for text in ("", "nonsense", "  port  9: rx pkts=1\n ovs_tx_failure_drops=5,\n", "ovs_tx_failure_drops=5,\n"):
        assert ovs_counters.parse_ports(text, names) == ovs_counters.PortCounters()
    garbled = "  port  1: rx pkts=1\n ovs_tx_failure_drops=?, rx_missed_errors=x,\n"
    assert ovs_counters.parse_ports(garbled, names) == ovs_counters.PortCounters()
    whole = ovs_counters.parse_ports(OVS_PORTS, names)
    for end in range(len(OVS_PORTS)):
        assert ovs_counters.parse_ports(OVS_PORTS[:end], names).drops.items() <= whole.drops.items()


OVS_STATS = """pmd thread numa_id 0 core_id 1:
  packets received: 42663
  packet recirculations: 0
  miss with failed upcall: 0
  avg. packets per output batch: 1.04
  idle cycles: 11636387644 (98.84%)
  processing cycles: 136650959 (1.16%)
  avg cycles per packet: 275954.31 (11773038603/42663)
main thread:
  packets received: 317
  packet recirculations: 0
"""
OVS_PERF = """
Time: 01:47:02.920
Measurement duration: 4.046 s

pmd thread numa_id 0 core_id 1:

  Iterations:             20436142  (0.20 us/it)
  - busy iterations:         27976  (  1.3 % of used cycles)
  Rx packets:                42663  (11 Kpps, 3203 cycles/pkt)
  Datapath passes:           42663  (1.00 passes/pkt)
  - Upcalls:                     4  (  0.0 %, 0.0 us/upcall)
  Tx packets:                42351  (10 Kpps)
  Tx batches:                40722  (1.04 pkts/batch)
"""
"""Recorded from Open vSwitch 3.1, some lines left out; the main thread with a number put in where it said 0."""


def test_ovs_counts_what_it_forwards_and_in_which_bursts() -> None:
    ports = ovs_counters.PortCounters(tx_drops=51)
    assert ovs_counters.pmd_cycles(OVS_STATS, OVS_PERF, ports) == SwitchCycles(
        136650959, packets=42663, forwarded_packets=42300, bursts=40722
    )


def several(text: str, threads: int) -> str:
    """Return a text with the block of its PMD thread for each of several."""
    head, mark, rest = text.partition("pmd thread numa_id 0 core_id ")
    block, main, tail = rest.partition(ovs_counters.MAIN_THREAD)
    return head + "".join(mark + f"{core}{block.removeprefix('1')}" for core in range(1, 1 + threads)) + main + tail


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_ovs_counts_are_of_all_pmd_threads(workers: int) -> None:
    ports = ovs_counters.PortCounters(tx_drops=51)
    stats, perf = several(OVS_STATS, workers), several(OVS_PERF, workers)
    found = ovs_counters.pmd_cycles(stats, perf, ports, workers)
    assert found.busy_cycles == workers * 136650959
    assert (found.packets, found.forwarded_packets) == (workers * 42663, workers * 42351 - 51)
    assert found.bursts == workers * 40722
    for other in {1, 2, 3} - {workers}:
        assert ovs_counters.pmd_cycles(stats, perf, ports, other) == SwitchCycles(), "more or fewer than they are"


def test_an_ovs_whose_pmd_threads_are_all_busy_limits_a_trial() -> None:
    hz = 2_000_000_000
    zero = SwitchCycles(busy_cycles=0, idle_cycles=0, packets=0, forwarded_packets=0)
    stats = several(OVS_STATS.replace("136650959", str(hz)), 2)
    after = ovs_counters.pmd_cycles(stats, several(OVS_PERF, 2), ovs_counters.PortCounters(tx_drops=0), 2)
    cycles = cycles_of_trial(zero, after, 2 * hz)
    way = DirectionCounts(
        "n0->n1",
        20_000_000,
        20_000_000,
        10_000_000,
        attempted_packets=40_000_000,
        refused_packets=20_000_000,
        monitor_bursts=10,
    )
    verdict = verdict_of("r_plus", True, 10**9, [way], Evidence(), cycles)
    assert (cycles.busy_share, verdict.kind, verdict.texts) == (1.0, "valid", ())


def test_ovs_cycles_below_zero_are_no_great_number() -> None:
    """Seen as the first reading of a start: the trial after it had -1.8e19 busy cycles."""
    below = OVS_STATS.replace("136650959 (", "18446744073709551000 (")
    found = ovs_counters.pmd_cycles(below, OVS_PERF, ovs_counters.PortCounters())
    assert found.busy_cycles == -616


@pytest.mark.parametrize("workers", [1, 2])
def test_ovs_threads_that_are_not_told_whole_are_unknown(workers: int) -> None:
    ports = ovs_counters.PortCounters(tx_drops=51)
    all_stats, all_perf = several(OVS_STATS, workers), several(OVS_PERF, workers)
    whole = ovs_counters.pmd_cycles(all_stats, all_perf, ports, workers)
    for end in range(len(all_perf)):
        found = ovs_counters.pmd_cycles(all_stats[:end], all_perf[:end], ports, workers)
        for key in ("busy_cycles", "packets", "forwarded_packets", "bursts"):
            assert getattr(found, key) in (None, getattr(whole, key)), (key, end)
    worded = OVS_STATS.replace("received:", "received so far:").replace("cycles:", "cycles/s:")
    assert ovs_counters.pmd_cycles(worded, OVS_PERF.replace("Tx", "tx"), ovs_counters.PortCounters()) == SwitchCycles()


def test_ovs_has_rings_in_the_database_and_caches_in_the_manifest() -> None:
    commands = [" ".join(command) for command in ovs.configuration(LOOPBACK, "pb-x")]
    assert any("options:n_rxq_desc=256 options:n_txq_desc=256" in command for command in commands)
    settings = ovs.ADAPTER.settings(LOOPBACK)
    assert settings["caches"] == "EMC 1 in 100, SMC off, megaflows on"
    assert settings["mergeable_buffers"] == "wires on, VNFs off"
    assert "emc-insert" not in " ".join(ovs.configuration(LOOPBACK, "pb-x")[0])
