# SPDX-License-Identifier: BSD-3-Clause
"""The configuration of VPP: startup.conf, and the CLI commands that make ports and connect them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from planebench.model.cpus import cpu_text
from planebench.model.errors import UsageError
from planebench.model.option import Value
from planebench.switches import common
from planebench.wiring.request import SwitchPort, SwitchRequest

BUFFERS = 16384
"""VPP's default for each NUMA node."""
MAIN_SLEEP_US = 5000
"""Between two loops of the main thread (src/vlib/unix/input.c). Else it polls a thousand times whenever it wakes up,
which takes 1 % of a control core: as much as a latency trial may lose."""
MAIN_HEAP_MB = 512
PLUGINS: Mapping[str, str] = MappingProxyType(
    {
        "memif": "memif_plugin.so",
        "vhost": "vhost_plugin.so",
        "veth": "af_packet_plugin.so",
        "af_xdp": "af_xdp_plugin.so",
        "pci": "dpdk_plugin.so",
    }
)
"""The plugin of each wire; VNFs need that of vhost. VPP ignores enabled plugins that do not exist."""
BUILT_IN = frozenset({"vhost", "veth"})
"""What older versions have without a plugin: vhost-user before 23.02, af_packet before 23.10 at the latest."""
ALL_PLUGINS_SINCE = (23, 10)
FUNCTIONS: Mapping[str, str] = MappingProxyType(
    {
        "l2patch": "patch: test l2patch rx A tx B, each way",
        "xconnect": "patch: set interface l2 xconnect A B, each way",
        "bridge": "learning: a bridge domain for each pair of ports",
    }
)
"""The functions by option, for the manifest."""
VECTOR_NODES: Mapping[str, str] = MappingProxyType(
    {"l2patch": "l2-patch", "xconnect": "l2-input", "bridge": "l2-input"}
)
"""The node that every received frame goes through once, by function."""
STANDARD_SLOT_BYTES, JUMBO_SLOT_BYTES = 2048, 10240
NO_VIRTIO = (
    "vpp has no virtio wire: DPDK's virtio-user does not share VPP's own buffers with the other side (with 26.06 the "
    "memory table contains DPDK's rings only, and no frame passes); use --wire memif or vhost"
)


class Paths:
    """The sockets and files of one VPP in the working folder, and shared memory of the API (named by ``prefix``)."""

    def __init__(self, folder: Path, prefix: str) -> None:
        self.folder = folder
        self.prefix = prefix
        self.config = folder / "vpp.conf"
        self.cli = folder / "cli.sock"  # for vppctl
        self.stats = folder / "stats.sock"  # for vpp_get_stats
        self.api = folder / "api.sock"  # the binary API, which nobody uses; in /run/vpp by default
        self.shared_memory = tuple(Path("/dev/shm", f"{prefix}-{name}") for name in ("global_vm", "vpe-api"))
        """Made by VPP, and removed only if it ends in order."""


def startup_conf(request: SwitchRequest, paths: Paths, plugins: Path, values: Mapping[str, Value]) -> str:
    """Return startup.conf: one main thread on a control core, the workers on the switch's cores, all files in the
    working folder.

    The heap has 4 KiB pages, the default; hugepages are for packet buffers.
    """
    page_size = "default-hugepage" if request.hugepages else "4k"
    nics = any(port.kind == "pci" for port in request.ports)  # else the plugin of DPDK would look at every device
    wanted = (name for wire, name in PLUGINS.items() if wire != "pci" or nics)
    enabled = " ".join(f"plugin {name} {{ enable }}" for name in wanted)
    return "\n".join(
        [
            f"unix {{ nodaemon nosyslog nocolor cli-listen {paths.cli} runtime-dir {paths.folder} "
            f"log {paths.folder}/vpp-cli.log poll-sleep-usec {MAIN_SLEEP_US} }}",
            f"api-segment {{ prefix {paths.prefix} }}",
            f"socksvr {{ socket-name {paths.api} }}",
            f"statseg {{ socket-name {paths.stats} page-size 4k }}",
            f"cpu {{ main-core {min(request.control_cpus)} corelist-workers {cpu_text(request.worker_cpus)} }}",
            f"memory {{ main-heap-size {MAIN_HEAP_MB}M main-heap-page-size 4k }}",
            f"buffers {{ buffers-per-numa {values.get('buffers', BUFFERS)} page-size {page_size} }}",
            f"plugins {{ path {plugins} plugin default {{ disable }} {enabled} }}",
            *_dpdk(request, values),
            "",
        ]
    )


def _dpdk(request: SwitchRequest, values: Mapping[str, Value]) -> list[str]:
    """Return the section of the dpdk plugin: its devices are an allow-list."""
    devices = [_device(port, values) for port in request.ports if port.kind == "pci"]
    return [f"dpdk {{ {' '.join(devices)} }}"] if devices else []


def _device(port: SwitchPort, values: Mapping[str, Value]) -> str:
    rx, tx = ring_sizes(port, values)
    return f"dev {common.pci_address(port)} {{ name {port.name} num-rx-desc {rx} num-tx-desc {tx} }}"


def interface_names(request: SwitchRequest) -> dict[str, str]:
    """Return VPP's interface name of each port: vhost-user interfaces are numbered in the order of creation."""
    names: dict[str, str] = {}
    for number, port in enumerate(request.ports, start=1):
        if port.kind == "memif":
            names[port.name] = f"memif{number}/0"
        elif port.kind == "vhost-user":
            vhosts = sum(name.startswith("VirtualEthernet") for name in names.values())
            names[port.name] = f"VirtualEthernet0/0/{vhosts}"
        elif port.kind == "af_packet":
            names[port.name] = f"host-{common.interface_name(port)}"
        elif port.kind == "af_xdp":
            names[port.name] = f"xdp-{common.interface_name(port)}"
        elif port.kind == "pci":
            names[port.name] = port.name
        else:
            raise UsageError(f"port {port.name} ({port.kind}): {NO_VIRTIO}")
    return names


def commands(request: SwitchRequest, values: Mapping[str, Value]) -> list[str]:
    """Return the CLI commands that create, start and connect the interfaces and set them to polling."""
    names = interface_names(request)
    lines: list[str] = []
    for number, port in enumerate(request.ports, start=1):
        lines += _create(number, port, request, values)
    for name in names.values():
        lines += [f"set interface state {name} up", f"set interface rx-mode {name} polling"]
    function = str(values.get("function", "l2patch"))
    for number, (a, b) in enumerate(request.cross_connects, start=1):
        lines += _connect(function, number, names[a], names[b])
    return lines


def ring_sizes(port: SwitchPort, values: Mapping[str, Value]) -> tuple[int, int]:
    """Return the entries of the receive and send ring of a wire port; a memif has one size, the larger of both."""
    rx, tx = (int(str(values.get(key, port.ring_size))) for key in ("rx_ring", "tx_ring"))
    chosen = [size for key, size in (("rx_ring", rx), ("tx_ring", tx)) if key in values]
    if port.kind == "memif" and chosen:
        return max(chosen), max(chosen)
    return rx, tx


def _create(number: int, port: SwitchPort, request: SwitchRequest, values: Mapping[str, Value]) -> list[str]:
    rx, tx = ring_sizes(port, values)
    if port.kind == "memif":
        return [
            f"create memif socket id {number} filename {common.socket_path(port)}",
            f"create interface memif id 0 socket-id {number} slave ring-size {rx}{_memif_queues(request)}",
        ]
    if port.kind == "vhost-user":
        words = {"packed": " packed", "event_idx": " event-idx"}
        more = "".join(word for key, word in words.items() if values.get(key))
        return [f"create vhost-user socket {common.socket_path(port)} server{more}"]
    if port.kind == "af_xdp":
        name = common.interface_name(port)
        return [
            f"create interface af_xdp host-if {name} name xdp-{name} rx-queue-size {rx} tx-queue-size {tx} "
            "num-rx-queues 1"
        ]
    if port.kind == "pci":
        return []  # its section of startup.conf makes it
    # As the tester's end and DPDK's driver: TPACKET_V2, slots of one frame (VPP's own default has slots of 64 KiB).
    slot = JUMBO_SLOT_BYTES if common.is_jumbo(request) else STANDARD_SLOT_BYTES
    return [
        f"create host-interface name {common.interface_name(port)} v2 rx-size {slot} tx-size {slot} "
        f"rx-per-block {rx} tx-per-block {tx}"
    ]


def _memif_queues(request: SwitchRequest) -> str:
    """Return the queues of a memif if they are several. Those of a vhost-user interface are what the VNF enables."""
    return f" rx-queues {request.queues} tx-queues {request.queues}" if request.queues > 1 else ""


def _connect(function: str, number: int, a: str, b: str) -> list[str]:
    if function == "l2patch":
        return [f"test l2patch rx {a} tx {b}", f"test l2patch rx {b} tx {a}"]
    if function == "xconnect":
        return [f"set interface l2 xconnect {a} {b}", f"set interface l2 xconnect {b} {a}"]
    return [f"set interface l2 bridge {name} {number}" for name in (a, b)]
