# SPDX-License-Identifier: BSD-3-Clause
"""VPP's adapter without VPP: its configuration, its CLI commands, and its counters, cut and garbled."""

from __future__ import annotations

from pathlib import Path

import pytest

from planebench.host.programs import Found, NotFound
from planebench.model.conditions import MANIFEST_KEYS, UNKNOWN
from planebench.model.scenario import ScenarioName
from planebench.model.wire import WireName
from planebench.switches import vpp, vpp_counters
from planebench.switches import vpp as vpp_config
from planebench.switches.adapter import Situation
from planebench.switches.overview import overview
from planebench.testbed.request import SwitchPort, SwitchRequest

N0 = SwitchPort("n0", "memif", path=Path("/w/n0"), ring_size=512)
V0 = SwitchPort("v0", "vhost-user", path=Path("/w/v0"))
V1 = SwitchPort("v1", "vhost-user", path=Path("/w/v1"))
N1 = SwitchPort("n1", "memif", path=Path("/w/n1"), ring_size=512)
K0 = SwitchPort("k0", "af_packet", interface="k0-switch", ring_size=256)
K1 = SwitchPort("k1", "af_packet", interface="k1-switch", ring_size=256)
PORTS = [
    vpp_counters.VppPort("n0", "memif", "memif1/0"),
    vpp_counters.VppPort("v0", "vhost-user", "VirtualEthernet0/0/0"),
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


def of_workers(index: int, n: int, workers: int) -> dict[tuple[int, int], int]:
    """Return the counts of an interface: none of the main thread, as many of each worker."""
    return {(index, thread): n if thread else 0 for thread in range(1 + workers)}


def combined(name: str, per_interface: list[int], workers: int) -> str:
    return "".join(
        f"[{index} @ {thread}]: {n} packets, {n * 60} bytes {name}\n"
        for number, many in enumerate(per_interface)
        for (index, thread), n in of_workers(number, many, workers).items()
    )


def error(node: str, name: str, count: int, workers: int = 1) -> str:
    return simple(f"/err/{node}/{name}", of_workers(0, count, workers))


def dump(
    *,
    full: int = 30,
    vhost_full: int = 7,
    mmap: int = 0,
    memif: tuple[str, str] = ("no_free_slots", "rollback"),
    workers: int = 1,
) -> str:
    """As 26.06 prints it. Each worker: 1000 + 500 frames in, 500 + 1000 handed to the drivers, some refused, 3
    discarded."""
    memif_tx, vhost_tx = "memif1/0-tx", "VirtualEthernet0/0/0-tx"
    dropped = (of_workers(number, n, workers) for number, n in enumerate((0, 3, vhost_full)))
    return (
        "".join(simple("/if/drops", counts) for counts in dropped)
        + combined("/if/rx", [0, 1000, 500], workers)
        + combined("/if/tx", [0, 500, 1000], workers)
        + "[0]: local0 /if/names\n[1]: memif1/0 /if/names\n[2]: VirtualEthernet0/0/0 /if/names\n"
        + error(memif_tx, memif[0], full, workers)
        + error(memif_tx, memif[1], 2, workers)
        + error(vhost_tx, "no error", 0, workers)
        + error(vhost_tx, "vhost vring not ready", 0, workers)
        + error(vhost_tx, "vhost interface is down", 0, workers)
        + error(vhost_tx, "tx packet drops (no available descriptors)", vhost_full, workers)
        + error(vhost_tx, "tx packet drops (cannot merge descriptors)", 0, workers)
        + error(vhost_tx, "mmap failure", mmap, workers)
        + error(vhost_tx, "indirect descriptor table overflow", 0, workers)
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
    paths = vpp_config.VppPaths(Path("/w"), "pb-x-vpp")
    text = vpp_config.startup_conf(request(V0, V1), paths, Path("/opt/plugins"))
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
    huge = vpp_config.startup_conf(request(V0, V1, hugepages=True), paths, Path("/p"))
    assert "buffers { buffers-per-numa 16384 page-size default-hugepage }" in huge


def test_commands_patch_each_way() -> None:
    v0, v1 = "VirtualEthernet0/0/0", "VirtualEthernet0/0/1"
    assert vpp_config.commands(request(N0, V0, V1, N1)) == [
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


def test_kernel_interfaces_have_the_rings_of_the_tester() -> None:
    lines = vpp_config.commands(request(K0, K1))
    assert (
        lines[0]
        == "create host-interface name k0-switch v2 rx-size 2048 tx-size 2048 rx-per-block 256 tx-per-block 256"
    )
    assert "set interface rx-mode host-k1-switch polling" in lines
    assert "rx-size 10240 tx-size 10240" in vpp_config.commands(request(K0, K1, max_frame_bytes=9018))[0]


def test_it_is_no_driver_of_virtio() -> None:
    assert "use --wire memif" in vpp.ADAPTER.refusal(Situation("p2p", "virtio"))
    assert vpp.ADAPTER.refusal(Situation("v2v", "virtio")) == ""
    assert vpp.ADAPTER.refusal(Situation("loopback", "veth", 2)) == ""


def test_manifest_is_whole() -> None:
    settings = vpp.ADAPTER.settings(request(N0, V0))
    assert all(settings[key] not in ("", UNKNOWN) for key in MANIFEST_KEYS)
    assert settings["function"].startswith("patch: ")
    assert vpp.ADAPTER.settings(request(V0, V1))["nic_driver"] == "-"


def node(workers: int) -> str:
    row = NODE.splitlines()[-1]
    return NODE + "".join(f"{row.replace('    1  ', f'    {number}  ', 1)}\n" for number in range(2, 1 + workers))


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_counters_are_of_all_workers(workers: int) -> None:
    cycles = vpp_counters.switch_cycles(dump(workers=workers), node(workers), PORTS, workers)
    assert (cycles.packets, cycles.forwarded_packets) == (workers * 1500, workers * (1500 - 30 - 7))
    assert cycles.drops == {key: workers * count for key, count in DROPS.items()}
    assert (cycles.bursts, cycles.batch_size) == (workers * 100, 15)
    assert (cycles.busy_cycles, cycles.idle_cycles) == (None, None)


@pytest.mark.parametrize(("there", "wanted"), [(1, 2), (2, 1), (3, 2)])
def test_counters_of_more_or_fewer_workers_are_unknown(there: int, wanted: int) -> None:
    cycles = vpp_counters.switch_cycles(dump(workers=there), node(there), PORTS, wanted)
    assert (cycles.packets, cycles.forwarded_packets, cycles.bursts, cycles.drops) == (None, None, None, {})


def test_errors_that_are_not_known_make_what_was_sent_unknown() -> None:
    for text in (dump(memif=("full", "rollback")), dump(mmap=1), dump() + error("memif1/0-tx", "lost somehow", 1)):
        cycles = vpp_counters.switch_cycles(text, NODE, PORTS)
        assert cycles.packets == 1500
        assert cycles.forwarded_packets is None
    harmless = vpp_counters.switch_cycles(dump() + error("memif1/0-tx", "lost somehow", 0), NODE, PORTS)
    assert harmless.drops == DROPS


@pytest.mark.parametrize("workers", [1, 2])
def test_text_that_is_cut_gives_no_wrong_number(workers: int) -> None:
    whole, table = dump(workers=workers), node(workers)
    drops = {key: workers * count for key, count in DROPS.items()}
    for size in range(len(whole)):
        cycles = vpp_counters.switch_cycles(whole[:size], table, PORTS, workers)
        assert cycles.packets in (None, workers * 1500)
        assert cycles.forwarded_packets is None
        assert cycles.bursts == (None if cycles.packets is None else workers * 100)
        assert cycles.drops.items() <= drops.items()
    for size in range(len(table)):
        assert vpp_counters.parse_node(table[:size], workers) in (None, (workers * 100, workers * 1500))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_line_that_is_not_there_gives_no_wrong_number(workers: int) -> None:
    lines = dump(workers=workers).splitlines(keepends=True)
    drops = {key: workers * count for key, count in DROPS.items()}
    for number in range(len(lines)):
        text = "".join(lines[:number] + lines[number + 1 :])
        cycles = vpp_counters.switch_cycles(text, node(workers), PORTS, workers)
        assert cycles.packets in (None, workers * 1500)
        assert cycles.forwarded_packets in (None, workers * 1463)
        assert cycles.drops.items() <= drops.items()


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
    assert vpp_counters.switch_cycles(dump(), garbled, PORTS, 1).bursts is None


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
    assert "vpp_plugins beside it" in found.remedy
    (tmp_path / "lib" / "x86_64-linux-gnu" / "vpp_plugins").mkdir(parents=True)
    assert vpp.ADAPTER.find() == Found("26.06-release", binary)
    program(tmp_path, "vpp", "Usage: vpp")
    found = vpp.ADAPTER.find()
    assert isinstance(found, NotFound)
    assert "--version" in found.remedy


@pytest.mark.parametrize(
    ("wire", "scenario", "plugin", "package"),
    [
        ("memif", "p2p", "memif_plugin.so", "vpp-plugin-core"),
        ("vhost", "p2p", "vhost_plugin.so", "vpp-plugin-core"),
        ("veth", "p2p", "af_packet_plugin.so", "vpp-plugin-core"),
        ("af_xdp", "p2p", "af_xdp_plugin.so", "vpp-plugin-core"),
        ("pci", "p2p", "dpdk_plugin.so", "vpp-plugin-dpdk"),
        ("memif", "loopback", "vhost_plugin.so", "vpp-plugin-core"),
        ("memif", "p2v", "vhost_plugin.so", "vpp-plugin-core"),
        ("virtio", "v2v", "vhost_plugin.so", "vpp-plugin-core"),
    ],
)
def test_a_plugin_that_is_missing_is_named_before_the_start(
    wire: WireName,
    scenario: ScenarioName,
    plugin: str,
    package: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PLANEBENCH_VPP", str(tmp_path))
    program(tmp_path, "vpp", "vpp v26.06-release built by root")
    program(tmp_path, "vppctl")
    folder = tmp_path / "lib" / "vpp_plugins"
    folder.mkdir(parents=True)
    for name in vpp_config.PLUGINS.values():
        (folder / name).touch()
    situation = Situation(scenario, wire)
    assert vpp.ADAPTER.refusal(situation) == ""
    (folder / plugin).unlink()
    words = f"has no {plugin} in {folder}; get {package} of 23.10 or newer, or build it"
    assert words in vpp.ADAPTER.refusal(situation)
    shown = overview(vpp.ADAPTER).wires.get(wire)
    assert shown is None or (words in shown[scenario].remark and not shown[scenario].supported)


def test_what_af_xdp_did_not_send_is_dropped() -> None:
    """Calls that woke the kernel, or failed to, are no frames."""
    text = dump(memif=("no free tx slots", "syscall required"), full=5) + error("memif1/0-tx", "syscall failures", 1)
    cycles = vpp_counters.switch_cycles(text, NODE, [vpp_counters.VppPort("n0", "af_xdp", "memif1/0"), PORTS[1]], 1)
    assert (cycles.drops["n0:tx_full"], cycles.forwarded_packets) == (5, 1500 - 5 - 7)
