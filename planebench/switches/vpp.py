# SPDX-License-Identifier: BSD-3-Clause
"""FD.io VPP: ``test l2patch rx A tx B`` each way (conext19), one worker, VPP's own memif, vhost-user and af_packet.

Counters are read in vpp_counters. Commands go through
``vppctl``, one by one: it says nothing but the name of what was created, or why not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from planebench.host.process import Process, Supervisor, wait_ready
from planebench.host.programs import PATH_OPTION, Found, NotFound, run_tool, version_lines
from planebench.model.cpus import cpu_text
from planebench.model.errors import StartError, UsageError
from planebench.model.records import SwitchCycles
from planebench.model.switch import Option, Value
from planebench.switches import common, vpp_counters
from planebench.switches.adapter import WORKERS_OPTION, Adapter, Situation, Traits
from planebench.switches.common import manifest
from planebench.testbed.request import SwitchPort, SwitchRequest

FRAME_VECTORS = 256
"""VLIB_FRAME_SIZE: the maximum number of frames per call of a node."""
BUFFERS_MAX = 1 << 20
RINGS = tuple(str(2**n) for n in range(6, 15))
TOOL_DEADLINE_S = 5.0
WORKER = "vpp_wk_"
PLACES = (
    "/usr/bin/vpp",
    "/usr/local/bin/vpp",
    "/opt/vpp*/bin/vpp",
    "/opt/vpp*/build-root/install-vpp-native/vpp/bin/vpp",
    "~/vpp/build-root/install-vpp-native/vpp/bin/vpp",
)
PLUGIN_FOLDERS = ("lib/vpp_plugins", "lib/*/vpp_plugins", "lib64/vpp_plugins")
"""Relative to the parent of the program's folder."""
_VERSION = re.compile(r"^vpp v(\S+)")
BUFFERS = 16384
"""VPP's default for each NUMA node."""
MAIN_SLEEP_US = 5000
"""Between two loops of the main thread (src/vlib/unix/input.c). Else it polls a thousand times whenever it wakes up,
which takes 1 % of a control core: as much as a latency trial may lose."""
MAIN_HEAP_MB = 512
PLUGINS: Mapping[str, str] = {
    "memif": "memif_plugin.so",
    "vhost": "vhost_plugin.so",
    "veth": "af_packet_plugin.so",
    "af_xdp": "af_xdp_plugin.so",
    "pci": "dpdk_plugin.so",
}
"""The plugin of each wire; VNFs need that of vhost. VPP ignores enabled plugins that do not exist."""
BUILT_IN = frozenset({"vhost", "veth"})
"""What older versions have without a plugin: vhost-user before 23.02, af_packet before 23.10 at the latest."""
ALL_PLUGINS_SINCE = (23, 10)
FUNCTIONS: Mapping[str, str] = {
    "l2patch": "patch: test l2patch rx A tx B, each way",
    "xconnect": "patch: set interface l2 xconnect A B, each way",
    "bridge": "learning: a bridge domain for each pair of ports",
}
"""The functions by option, for the manifest."""
VECTOR_NODES: Mapping[str, str] = {"l2patch": "l2-patch", "xconnect": "l2-input", "bridge": "l2-input"}
"""The node that every received frame goes through once, by function."""
STANDARD_SLOT_BYTES, JUMBO_SLOT_BYTES = 2048, 10240
NO_VIRTIO = (
    "vpp has no virtio wire: DPDK's virtio-user does not share VPP's own buffers with the other side (with 26.06 the "
    "memory table contains DPDK's rings only, and no frame passes); use --wire memif or vhost"
)


class VppPaths:
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


def startup_conf(request: SwitchRequest, paths: VppPaths, plugins: Path, values: Mapping[str, Value]) -> str:
    """Return startup.conf: one main thread on a control core, the workers on the switch's cores, all files in the
    working folder.

    The heap has 4 KiB pages, the default; hugepages are for packet buffers.
    """
    page_size = "default-hugepage" if request.hugepages else "4k"
    nics = any(port.kind == "pci" for port in request.ports)  # else the plugin of DPDK would look at every device
    wanted = (name for wire, name in PLUGINS.items() if wire != "pci" or nics)
    enabled = " ".join(f"plugin {name} {{ enable }}" for name in wanted)
    devices = []
    for port in request.ports:
        if port.kind == "pci":
            rx, tx = ring_sizes(port, values)
            rings = f"num-rx-desc {rx} num-tx-desc {tx}"
            devices.append(f"dev {common.pci_address(port)} {{ name {port.name} {rings} }}")
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
            *([f"dpdk {{ {' '.join(devices)} }}"] if devices else []),  # an allow-list
            "",
        ]
    )


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
    # Of a memif; those of a vhost-user interface are what the VNF enables.
    queues = f" rx-queues {request.queues} tx-queues {request.queues}" if request.queues > 1 else ""
    # As the tester's end and DPDK's driver: TPACKET_V2, slots of one frame (VPP's own default has slots of 64 KiB).
    slot = JUMBO_SLOT_BYTES if common.is_jumbo(request) else STANDARD_SLOT_BYTES
    lines: list[str] = []
    for number, port in enumerate(request.ports, start=1):
        rx, tx = ring_sizes(port, values)
        if port.kind == "memif":
            lines += [
                f"create memif socket id {number} filename {common.socket_path(port)}",
                f"create interface memif id 0 socket-id {number} slave ring-size {rx}{queues}",
            ]
        elif port.kind == "vhost-user":
            offered = {"packed": " packed", "event_idx": " event-idx"}
            more = "".join(word for key, word in offered.items() if values.get(key))
            lines.append(f"create vhost-user socket {common.socket_path(port)} server{more}")
        elif port.kind == "af_xdp":
            name = common.interface_name(port)
            rings = f"rx-queue-size {rx} tx-queue-size {tx}"
            lines.append(f"create interface af_xdp host-if {name} name xdp-{name} {rings} num-rx-queues 1")
        elif port.kind == "af_packet":
            name = common.interface_name(port)
            slots = f"rx-size {slot} tx-size {slot} rx-per-block {rx} tx-per-block {tx}"
            lines.append(f"create host-interface name {name} v2 {slots}")
        # Of a NIC its section of startup.conf makes the interface.
    for name in names.values():
        lines += [f"set interface state {name} up", f"set interface rx-mode {name} polling"]
    function = str(values.get("function", "l2patch"))
    for number, (first, second) in enumerate(request.cross_connects, start=1):
        a, b = names[first], names[second]
        if function == "l2patch":
            lines += [f"test l2patch rx {a} tx {b}", f"test l2patch rx {b} tx {a}"]
        elif function == "xconnect":
            lines += [f"set interface l2 xconnect {a} {b}", f"set interface l2 xconnect {b} {a}"]
        else:
            lines += [f"set interface l2 bridge {name} {number}" for name in (a, b)]
    return lines


def ring_sizes(port: SwitchPort, values: Mapping[str, Value]) -> tuple[int, int]:
    """Return the entries of the receive and send ring of a wire port; a memif has one size, the larger of both."""
    rx, tx = (int(str(values.get(key, port.ring_size))) for key in ("rx_ring", "tx_ring"))
    chosen = [size for key, size in (("rx_ring", rx), ("tx_ring", tx)) if key in values]
    if port.kind == "memif" and chosen:
        return max(chosen), max(chosen)
    return rx, tx


class VppAdapter(Adapter):
    """``vpp``: one main thread and its workers."""

    name = "vpp"
    title = "FD.io VPP"
    trial_overhead_s = 0.27  # its counters are asked of its command line
    remedy = (
        "install it from packagecloud.io/fdio (`apt-get install vpp vpp-plugin-core`), or build "
        "https://gerrit.fd.io/r/vpp (`make build-release`), then PLANEBENCH_VPP=/path/to/vpp"
    )
    wires = frozenset({"vhost", "memif", "veth", "pci", "af_xdp"})
    sends_on_one_queue = True  # a vector of 256 frames from each queue, and a ring of as many
    options = (
        PATH_OPTION,
        WORKERS_OPTION,
        Option("function", "text", "forwarding function", "l2patch", tuple(FUNCTIONS)),
        Option("rx_ring", "text", "receive ring of wire ports", "--ring-size", RINGS),
        Option("tx_ring", "text", "send ring of wire ports (a memif has one size)", "--ring-size", RINGS),
        Option("buffers", "whole", "buffers-per-numa", str(BUFFERS), least=2048, most=BUFFERS_MAX),
        Option("packed", "flag", "vhost-user: offer packed rings", "false"),
        Option("event_idx", "flag", "vhost-user: offer event indexes", "false"),
        Option("plugins", "text", "folder of the plugins", "beside the program"),
    )
    own_libraries = ("libv", "libsvm")  # libvlib, libvnet, libvppinfra, ...
    traits = Traits("self-contained", "structured", ("rtc",), "vhost-user", "medium", ("C",), "full router", "conext19")

    def find(self) -> Found | NotFound:
        binary = self.installation().program("vpp", PLACES)
        if binary is None:
            return NotFound(self.remedy)
        lines = version_lines(binary)
        match = _VERSION.match(lines[0]) if lines else None
        if match is None:
            return NotFound(f"{binary} does not print a version of VPP: `{binary} --version`")
        if not _tool(binary, "vppctl").is_file():
            return NotFound(f"{binary} has no vppctl beside it; give the folder of a complete installation")
        if self._plugins(binary) is None:
            return NotFound(f"{binary} has no {' or '.join(PLUGIN_FOLDERS)} beside it; give vpp.plugins=FOLDER")
        return Found(match[1], binary)

    def refusal(self, situation: Situation) -> str:
        if situation.layout.wired and situation.wire not in self.wires:
            return NO_VIRTIO
        found = self.find()
        if isinstance(found, NotFound):
            return ""
        folder = self._plugins(found.binary) or Path()
        layout = situation.layout
        wires = [situation.wire] if layout.wired else []
        for wire in [*wires, "vhost"] if layout.has_vnfs or layout.ends_in_vnfs else wires:
            name = PLUGINS[wire]
            built_in = wire in BUILT_IN and common.release(found.version) < ALL_PLUGINS_SINCE
            if not built_in and not (folder / name).is_file():
                package = "vpp-plugin-dpdk" if wire == "pci" else "vpp-plugin-core"
                return f"VPP has no {name} in {folder}; install {package}, or build that plugin"
        return ""

    def settings(self, request: SwitchRequest) -> dict[str, str]:
        drivers = {
            "vhost-user": "VPP's vhost-user",
            "memif": "VPP's memif (zero copy)",
            "af_packet": "VPP's af_packet (TPACKET_V2)",
            "af_xdp": "VPP's AF_XDP",
            "pci": "VPP's dpdk plugin",
        }
        wires = [port for port in request.ports if not port.of_vnf]
        rings = {ring_sizes(port, self.values) for port in wires if port.kind != "vhost-user"}
        usual = common.ring_size(request)
        others = sorted(rings - {(usual, usual)})
        told = "; ".join(f"{usual} (wires: receive {rx}, send {tx})" for rx, tx in others)
        return manifest(
            request,
            function=FUNCTIONS[self.function],
            nic_driver=", ".join(dict.fromkeys(drivers[port.kind] for port in wires)) or "-",
            vnf_interface="vhost-user (VPP's)",
            burst=str(FRAME_VECTORS),
            buffers=f"{self.value('buffers', BUFFERS)} per NUMA node, one pool",
            batch=f"a vector, i.e. a call of {VECTOR_NODES[self.function]}",
            **common.offloads(request, mergeable_wires=False),
            **({"ring_size": told} if told else {}),
        )

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningVpp:
        found, _ = common.prepared(self, request)
        lines = commands(request, self.values)
        paths = VppPaths(request.workdir, f"{supervisor.root.name}-{request.workdir.name}")
        for path in (paths.cli, paths.stats, paths.api):
            path.unlink(missing_ok=True)
        for path in paths.shared_memory:
            supervisor.track_path(path)
        conf = startup_conf(request, paths, self._plugins(found.binary) or Path(), self.values)
        paths.config.write_text(conf, encoding="utf-8")
        process = self.spawn([str(found.binary), "-c", str(paths.config)], request, supervisor)
        switch = RunningVpp(process, found.binary, paths, request, self)
        with switch.stopped_on_failure():
            wait_ready("VPP", switch.answers, [process])
            switch.configure(lines)
            wait_ready("VPP's vhost-user ports", lambda: common.sockets_exist(request.ports), [process])
            common.check_workers("VPP", switch.polling_threads(), request, process)
            common.calm_others(process.pid, switch.polling_threads())
        return switch

    def plugins(self, found: Found) -> list[Path]:
        folder = self._plugins(found.binary) or Path()
        return [folder / name for name in PLUGINS.values()]

    @property
    def function(self) -> str:
        """Return the way in which ports are connected."""
        return str(self.value("function", "l2patch"))

    def _plugins(self, binary: Path) -> Path | None:
        """Return the plugin folder of a program; symbolic links to the program are followed."""
        if "plugins" in self.values:
            return Path(str(self.values["plugins"]))
        roots = dict.fromkeys((binary.parent.parent, binary.resolve().parent.parent))
        folders = (path for root in roots for pattern in PLUGIN_FOLDERS for path in sorted(root.glob(pattern)))
        return next((path for path in folders if path.is_dir()), None)


class RunningVpp(common.ProcessGroup):
    """A VPP that forwards."""

    thread_marks = (WORKER,)

    def __init__(
        self, process: Process, binary: Path, paths: VppPaths, request: SwitchRequest, adapter: VppAdapter
    ) -> None:
        super().__init__("VPP", [process])
        self._binary = binary
        self._paths = paths
        self._names = interface_names(request)
        self._node = VECTOR_NODES[adapter.function]
        self._ports = [vpp_counters.VppPort(port.name, port.kind, self._names[port.name]) for port in request.ports]
        self._workers = len(request.worker_cpus)

    def answers(self) -> bool:
        """Return whether the CLI answers."""
        return common.is_socket(self._paths.cli) and "vpp v" in (self._cli("show version") or "")

    def configure(self, lines: Sequence[str]) -> None:
        """Run the commands. Raises StartError with the answer to the first that fails."""
        for line in lines:
            said = self._cli(line)
            if said is None or said.strip() not in ("", *self._names.values()):
                raise StartError(f'VPP answered "{line}" with: {said or "nothing"}\n{self.process.exit_report()}')

    def counters(self) -> SwitchCycles:
        """Return the counters. There are no busy cycles (see vpp_counters)."""
        self.check()
        wanted = vpp_counters.patterns(self._ports)
        dump = self._run("vpp_get_stats", "socket-name", str(self._paths.stats), "dump", *wanted)
        node = self._cli(f"show node {self._node} verbose")
        if node is None:
            raise self.died("VPP does not answer")
        return vpp_counters.switch_cycles(dump or "", node, self._ports, self._workers)

    def _cli(self, line: str) -> str | None:
        return self._run("vppctl", "-s", str(self._paths.cli), *line.split())

    def _run(self, tool: str, *arguments: str) -> str | None:
        """Return the output of a tool of VPP; None if it fails or takes too long."""
        done = run_tool([_tool(self._binary, tool), *arguments], TOOL_DEADLINE_S)
        return done.stdout + done.stderr if done.ok else None


def _tool(binary: Path, name: str) -> Path:
    """Return the path of a tool beside the program, or beside the file that the program links to."""
    beside = binary.with_name(name)
    return beside if beside.is_file() else binary.resolve().with_name(name)


ADAPTER = VppAdapter()
