# SPDX-License-Identifier: BSD-3-Clause
"""VPP's adapter without VPP: its configuration, its CLI commands, and its counters, cut and garbled."""

from __future__ import annotations

from pathlib import Path

import pytest

from planebench.model.errors import UsageError
from planebench.model.manifest import MANIFEST_KEYS, UNKNOWN
from planebench.switches import vpp, vpp_config, vpp_counters
from planebench.switches.base import Found, NotFound, Situation, SwitchPort, SwitchRequest

N0 = SwitchPort("n0", "memif", path=Path("/w/n0"), ring_size=512)
V0 = SwitchPort("v0", "vhost-user", path=Path("/w/v0"))
V1 = SwitchPort("v1", "vhost-user", path=Path("/w/v1"))
N1 = SwitchPort("n1", "memif", path=Path("/w/n1"), ring_size=512)
K0 = SwitchPort("k0", "af_packet", interface="k0-switch", ring_size=256)
K1 = SwitchPort("k1", "af_packet", interface="k1-switch", ring_size=256)
PORTS = [
    vpp_counters.Port("n0", "memif", "memif1/0"),
    vpp_counters.Port("v0", "vhost-user", "VirtualEthernet0/0/0"),
]


def request(*ports: SwitchPort, hugepages: bool = False, max_frame_bytes: int = 1518) -> SwitchRequest:
    names = [port.name for port in ports]
    return SwitchRequest(
        ports=ports,
        cross_connects=tuple(zip(names[::2], names[1::2], strict=True)),
        cpu=1,
        control_cpus=frozenset({0}),
        workdir=Path("/w"),
        hugepages=hugepages,
        max_frame_bytes=max_frame_bytes,
    )


def simple(name: str, counts: dict[tuple[int, int], int]) -> str:
    return "".join(f"[{index} @ {thread}]: {n} packets {name}\n" for (index, thread), n in sorted(counts.items()))


def combined(name: str, per_interface: list[int]) -> str:
    return "".join(
        f"[{index} @ {thread}]: {n * thread} packets, {n * thread * 60} bytes {name}\n"
        for thread in (0, 1)
        for index, n in enumerate(per_interface)
    )


def error(node: str, name: str, count: int) -> str:
    return simple(f"/err/{node}/{name}", {(0, 0): 0, (0, 1): count})


def dump(
    *, full: int = 30, vhost_full: int = 7, mmap: int = 0, memif: tuple[str, str] = ("no_free_slots", "rollback")
) -> str:
    """As 26.06 prints it: 1000 + 500 frames in, 500 + 1000 handed to the drivers, some refused, 3 discarded."""
    memif_tx, vhost_tx = "memif1/0-tx", "VirtualEthernet0/0/0-tx"
    return (
        simple("/if/drops", {(0, 0): 0, (1, 0): 0, (2, 0): 0, (0, 1): 0, (1, 1): 3, (2, 1): vhost_full})
        + combined("/if/rx", [0, 1000, 500])
        + combined("/if/tx", [0, 500, 1000])
        + "[0]: local0 /if/names\n[1]: memif1/0 /if/names\n[2]: VirtualEthernet0/0/0 /if/names\n"
        + error(memif_tx, memif[0], full)
        + error(memif_tx, memif[1], 2)
        + error(vhost_tx, "no error", 0)
        + error(vhost_tx, "vhost vring not ready", 0)
        + error(vhost_tx, "vhost interface is down", 0)
        + error(vhost_tx, "tx packet drops (no available descriptors)", vhost_full)
        + error(vhost_tx, "tx packet drops (cannot merge descriptors)", 0)
        + error(vhost_tx, "mmap failure", mmap)
        + error(vhost_tx, "indirect descriptor table overflow", 0)
    )


NODE = """node l2-patch, type internal, state active, index 356

  known previous nodes:
    vhost-user-input (1)               memif-input (4)                    af-packet-input (6)

  Thread     Calls       Clocks       Vectors     Max Clock   Max Vectors
    0          0            0            0            0            0
    1         100        54321         1500          900          32
"""
DROPS = {
    "n0:tx_full": 30,
    "n0:discarded": 3,
    "v0:tx_full": 7,
    "v0:tx_not_mergeable": 0,
    "v0:tx_not_ready": 0,
    "v0:tx_error": 0,
    "v0:discarded": 0,
}


def test_startup_conf_keeps_everything_in_the_folder() -> None:
    paths = vpp_config.Paths(Path("/w"), "pb-x-vpp")
    text = vpp_config.startup_conf(request(V0, V1), paths, Path("/opt/plugins"), {})
    for line in (
        "cli-listen /w/cli.sock runtime-dir /w log /w/vpp-cli.log",
        "api-segment { prefix pb-x-vpp }",
        "socksvr { socket-name /w/api.sock }",
        "statseg { socket-name /w/stats.sock page-size 4k }",
        "cpu { main-core 0 corelist-workers 1 }",
        "buffers { buffers-per-numa 16384 page-size 4k }",
        "plugins { path /opt/plugins plugin default { disable } plugin memif_plugin.so { enable }",
    ):
        assert line in text
    assert [path.name for path in paths.shared_memory] == ["pb-x-vpp-global_vm", "pb-x-vpp-vpe-api"]
    huge = vpp_config.startup_conf(request(V0, V1, hugepages=True), paths, Path("/p"), {"buffers": 4096})
    assert "buffers { buffers-per-numa 4096 page-size default-hugepage }" in huge


def test_commands_patch_each_way() -> None:
    v0, v1 = "VirtualEthernet0/0/0", "VirtualEthernet0/0/1"
    assert vpp_config.commands(request(N0, V0, V1, N1), {}) == [
        "create memif socket id 1 filename /w/n0",
        "create interface memif id 0 socket-id 1 slave ring-size 512",
        "create vhost-user socket /w/v0 server",
        "create vhost-user socket /w/v1 server",
        "create memif socket id 4 filename /w/n1",
        "create interface memif id 0 socket-id 4 slave ring-size 512",
        *(
            f"set interface {it}"
            for name in ("memif1/0", v0, v1, "memif4/0")
            for it in (f"state {name} up", f"rx-mode {name} polling")
        ),
        f"test l2patch rx memif1/0 tx {v0}",
        f"test l2patch rx {v0} tx memif1/0",
        f"test l2patch rx {v1} tx memif4/0",
        f"test l2patch rx memif4/0 tx {v1}",
    ]


def test_commands_follow_the_options() -> None:
    values = vpp.ADAPTER.with_options({"function": "xconnect", "rx_ring": "1024", "packed": "true"}).values
    lines = vpp_config.commands(request(N0, V0), values)
    assert "create interface memif id 0 socket-id 1 slave ring-size 1024" in lines
    assert "create vhost-user socket /w/v0 server packed" in lines
    assert lines[-2:] == [
        "set interface l2 xconnect memif1/0 VirtualEthernet0/0/0",
        "set interface l2 xconnect VirtualEthernet0/0/0 memif1/0",
    ]
    bridge = vpp_config.commands(request(N0, V0, V1, N1), {"function": "bridge", "event_idx": True})
    assert "create vhost-user socket /w/v0 server event-idx" in bridge
    assert [line.split()[-1] for line in bridge[-4:]] == ["1", "1", "2", "2"]


def test_kernel_interfaces_have_the_rings_of_the_tester() -> None:
    lines = vpp_config.commands(request(K0, K1), {"tx_ring": "1024"})
    assert (
        lines[0]
        == "create host-interface name k0-switch v2 rx-size 2048 tx-size 2048 rx-per-block 256 tx-per-block 1024"
    )
    assert "set interface rx-mode host-k1-switch polling" in lines
    assert "rx-size 10240 tx-size 10240" in vpp_config.commands(request(K0, K1, max_frame_bytes=9018), {})[0]


def test_it_is_no_driver_of_virtio() -> None:
    assert "use --wire memif" in vpp.ADAPTER.refusal(Situation("p2p", "virtio"))
    assert vpp.ADAPTER.refusal(Situation("v2v", "virtio")) == ""
    assert vpp.ADAPTER.refusal(Situation("loopback", "veth", 2)) == ""
    with pytest.raises(UsageError, match=r"port n0 \(virtio-user\)"):
        vpp_config.commands(request(SwitchPort("n0", "virtio-user", path=Path("/w/n0")), V0), {})


def test_manifest_is_whole() -> None:
    settings = vpp.ADAPTER.with_options({"rx_ring": "1024"}).settings(request(N0, V0))
    assert all(settings[key] not in ("", UNKNOWN) for key in MANIFEST_KEYS)
    assert settings["function"].startswith("patch: ")
    assert settings["ring_size"] == "512 (wires: receive 1024, send 1024)"
    assert vpp.ADAPTER.settings(request(V0, V1))["nic_driver"] == "-"


def test_counters() -> None:
    cycles = vpp_counters.switch_cycles(dump(), NODE, PORTS)
    assert (cycles.packets, cycles.forwarded_packets) == (1500, 1500 - 30 - 7)
    assert cycles.drops == DROPS
    assert (cycles.bursts, cycles.batch_size) == (100, 15)
    assert (cycles.busy_cycles, cycles.idle_cycles) == (None, None)


def test_words_of_an_older_memif() -> None:
    text = dump(memif=("no free tx slots", "no enough space in tx buffers"))
    assert vpp_counters.switch_cycles(text, NODE, PORTS).drops == DROPS


def test_errors_that_are_not_known_make_what_was_sent_unknown() -> None:
    for text in (dump(memif=("full", "rollback")), dump(mmap=1), dump() + error("memif1/0-tx", "lost somehow", 1)):
        cycles = vpp_counters.switch_cycles(text, NODE, PORTS)
        assert cycles.packets == 1500
        assert cycles.forwarded_packets is None
    harmless = vpp_counters.switch_cycles(dump() + error("memif1/0-tx", "lost somehow", 0), NODE, PORTS)
    assert harmless.drops == DROPS


def test_text_that_is_cut_gives_no_wrong_number() -> None:
    whole = dump()
    for size in range(len(whole)):
        cycles = vpp_counters.switch_cycles(whole[:size], NODE, PORTS)
        assert cycles.packets in (None, 1500)
        assert cycles.forwarded_packets is None
        assert cycles.bursts == (None if cycles.packets is None else 100)
        assert cycles.drops.items() <= DROPS.items()
    for size in range(len(NODE)):
        assert vpp_counters.parse_node(NODE[:size]) in (None, (100, 1500))


def test_a_line_that_is_not_there_gives_no_wrong_number() -> None:
    lines = dump().splitlines(keepends=True)
    for number in range(len(lines)):
        cycles = vpp_counters.switch_cycles("".join(lines[:number] + lines[number + 1 :]), NODE, PORTS)
        assert cycles.packets in (None, 1500)
        assert cycles.forwarded_packets in (None, 1463)
        assert cycles.drops.items() <= DROPS.items()


@pytest.mark.parametrize(
    "garbled",
    [
        NODE.replace("Calls", "Called"),
        NODE.replace("    1         100", "    2         100"),
        NODE.replace("54321", "5.43e4"),
        NODE.replace("1500", "1499"),  # not what the interfaces received
        "show node: unknown input `verbose'\n",
        "",
    ],
)
def test_batch_size_is_unknown_where_the_table_is_another(garbled: str) -> None:
    assert vpp_counters.switch_cycles(dump(), garbled, PORTS).bursts is None


def program(folder: Path, name: str, said: str = "") -> Path:
    path = folder / "bin" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{said}'\n")
    path.chmod(0o755)
    return path


def test_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANEBENCH_VPP", str(tmp_path))
    binary = program(tmp_path, "vpp", "vpp v26.06-release built by root on vm at 2026-11-22T01:16:35")
    found = vpp.ADAPTER.find()
    assert isinstance(found, NotFound)
    assert "no vppctl" in found.remedy
    program(tmp_path, "vppctl")
    found = vpp.ADAPTER.find()
    assert isinstance(found, NotFound)
    assert "vpp.plugins=" in found.remedy
    (tmp_path / "lib" / "x86_64-linux-gnu" / "vpp_plugins").mkdir(parents=True)
    assert vpp.ADAPTER.find() == Found("26.06-release", binary)
    program(tmp_path, "vpp", "Usage: vpp")
    found = vpp.ADAPTER.find()
    assert isinstance(found, NotFound)
    assert "--version" in found.remedy
