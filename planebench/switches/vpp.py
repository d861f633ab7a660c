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
from planebench.host.programs import PATH_OPTION, Found, NotFound, run_tool
from planebench.model.cpus import cpu_text
from planebench.model.errors import StartError
from planebench.model.records import SwitchCycles
from planebench.switches import common, vpp_counters
from planebench.switches.adapter import WORKERS_OPTION, Adapter, Situation, Traits
from planebench.switches.common import manifest
from planebench.testbed.request import SwitchRequest

FRAME_VECTORS = 256
"""VLIB_FRAME_SIZE: the maximum number of frames per call of a node."""
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
"""The plugin of each wire, since VPP 23.10; VNFs need that of vhost. VPP ignores enabled plugins that do not exist."""
VECTOR_NODE = "l2-patch"
"""The node that every received frame goes through once."""
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


def startup_conf(request: SwitchRequest, paths: VppPaths, plugins: Path) -> str:
    """Return startup.conf: one main thread on a control core, the workers on the switch's cores, all files in the
    working folder.

    The heap has 4 KiB pages, the default; hugepages are for packet buffers.
    """
    page_size = "default-hugepage" if request.hugepages else "4k"
    devices = [
        f"dev {it.address} {{ name {it.name} num-rx-desc {it.ring_size} num-tx-desc {it.ring_size} }}"
        for it in request.ports
        if it.kind == "pci"
    ]
    # Without NICs the plugin of DPDK would look at every device.
    wanted = (name for wire, name in PLUGINS.items() if wire != "pci" or devices)
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
            f"buffers {{ buffers-per-numa {BUFFERS} page-size {page_size} }}",
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
            names[port.name] = f"host-{port.interface}"
        elif port.kind == "af_xdp":
            names[port.name] = f"xdp-{port.interface}"
        else:  # of a NIC
            names[port.name] = port.name
    return names


def commands(request: SwitchRequest) -> list[str]:
    """Return the CLI commands that create, start and connect the interfaces and set them to polling."""
    names = interface_names(request)
    # Of a memif; those of a vhost-user interface are what the VNF enables.
    queues = f" rx-queues {request.queues} tx-queues {request.queues}" if request.queues > 1 else ""
    # As the tester's end and DPDK's driver: TPACKET_V2, slots of one frame (VPP's own default has slots of 64 KiB).
    slot = JUMBO_SLOT_BYTES if common.is_jumbo(request) else STANDARD_SLOT_BYTES
    lines: list[str] = []
    for number, port in enumerate(request.ports, start=1):
        ring = port.ring_size
        if port.kind == "memif":
            lines += [
                f"create memif socket id {number} filename {port.path}",
                f"create interface memif id 0 socket-id {number} slave ring-size {ring}{queues}",
            ]
        elif port.kind == "vhost-user":
            lines.append(f"create vhost-user socket {port.path} server")
        elif port.kind == "af_xdp":
            name = port.interface
            rings = f"rx-queue-size {ring} tx-queue-size {ring}"
            lines.append(f"create interface af_xdp host-if {name} name xdp-{name} {rings} num-rx-queues 1")
        elif port.kind == "af_packet":
            name = port.interface
            slots = f"rx-size {slot} tx-size {slot} rx-per-block {ring} tx-per-block {ring}"
            lines.append(f"create host-interface name {name} v2 {slots}")
        # Of a NIC its section of startup.conf makes the interface.
    for name in names.values():
        lines += [f"set interface state {name} up", f"set interface rx-mode {name} polling"]
    ways = [way for pair in request.cross_connects for way in (pair, pair[::-1])]
    return [*lines, *(f"test l2patch rx {names[a]} tx {names[b]}" for a, b in ways)]


class VppAdapter(Adapter):
    name = "vpp"
    title = "FD.io VPP"
    trial_overhead_s = 0.27  # its counters are asked of its command line
    remedy = (
        "install it from packagecloud.io/fdio (`apt-get install vpp vpp-plugin-core`), or build "
        "https://gerrit.fd.io/r/vpp (`make build-release`), then PLANEBENCH_VPP=/path/to/vpp"
    )
    wires = frozenset({"vhost", "memif", "veth", "pci", "af_xdp"})
    sends_on_one_queue = True  # a vector of 256 frames from each queue, and a ring of as many
    options = (PATH_OPTION, WORKERS_OPTION)
    own_libraries = ("libv", "libsvm")  # libvlib, libvnet, libvppinfra, ...
    traits = Traits("self-contained", "structured", ("rtc",), "vhost-user", "medium", ("C",), "full router", "conext19")

    def find(self) -> Found | NotFound:
        found = self.found_by_version("vpp", PLACES, _VERSION)
        if isinstance(found, Found):
            complete = "give the folder of a complete installation"
            if not _tool(found.binary, "vppctl").is_file():
                return NotFound(f"{found.binary} has no vppctl beside it; {complete}")
            if _plugins(found.binary) is None:
                return NotFound(f"{found.binary} has no {' or '.join(PLUGIN_FOLDERS)} beside it; {complete}")
        return found

    def refusal(self, situation: Situation) -> str:
        if situation.layout.wired and situation.wire not in self.wires:
            return NO_VIRTIO
        found = self.find()
        if isinstance(found, NotFound):
            return ""
        folder = _plugins(found.binary) or Path()
        layout = situation.layout
        wires = [situation.wire] if layout.wired else []
        for wire in [*wires, "vhost"] if layout.has_vnfs or layout.ends_in_vnfs else wires:
            name = PLUGINS[wire]
            if not (folder / name).is_file():
                package = "vpp-plugin-dpdk" if wire == "pci" else "vpp-plugin-core"
                return f"VPP {found.version} has no {name} in {folder}; get {package} of 23.10 or newer, or build it"
        return ""

    def settings(self, request: SwitchRequest) -> dict[str, str]:
        drivers = {
            "vhost-user": "VPP's vhost-user",
            "memif": "VPP's memif (zero copy)",
            "af_packet": "VPP's af_packet (TPACKET_V2)",
            "af_xdp": "VPP's AF_XDP",
            "pci": "VPP's dpdk plugin",
        }
        return manifest(
            request,
            function="patch: test l2patch rx A tx B, each way",
            nic_driver=common.nic_driver(request, drivers),
            vnf_interface="vhost-user (VPP's)",
            burst=str(FRAME_VECTORS),
            buffers=f"{BUFFERS} per NUMA node, one pool",
            batch=f"a vector, i.e. a call of {VECTOR_NODE}",
            **common.offloads(request, mergeable_wires=False),
        )

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningVpp:
        found, _ = common.prepared(self, request)
        lines = commands(request)
        paths = VppPaths(request.workdir, "-".join([supervisor.root.name, *request.workdir.parts[-2:]]))
        for path in (paths.cli, paths.stats, paths.api):
            path.unlink(missing_ok=True)
        for path in paths.shared_memory:
            supervisor.track_path(path)
        conf = startup_conf(request, paths, _plugins(found.binary) or Path())
        paths.config.write_text(conf, encoding="utf-8")
        process = self.spawn([str(found.binary), "-c", str(paths.config)], request, supervisor)
        switch = RunningVpp(process, found.binary, paths, request)
        with switch.stopped_on_failure():
            wait_ready("VPP", switch.answers, [process])
            switch.configure(lines)
            wait_ready("VPP's vhost-user ports", lambda: common.sockets_exist(request.ports), [process])
            common.check_workers("VPP", switch.polling_threads(), request, process)
            common.calm_others(process.pid, switch.polling_threads())
        return switch

    def plugins(self, found: Found) -> list[Path]:
        folder = _plugins(found.binary) or Path()
        return [folder / name for name in PLUGINS.values()]


def _plugins(binary: Path) -> Path | None:
    """Return the plugin folder of a program; symbolic links to the program are followed."""
    roots = dict.fromkeys((binary.parent.parent, binary.resolve().parent.parent))
    folders = (path for root in roots for pattern in PLUGIN_FOLDERS for path in sorted(root.glob(pattern)))
    return next((path for path in folders if path.is_dir()), None)


class RunningVpp(common.ProcessGroup):
    thread_marks = (WORKER,)

    def __init__(self, process: Process, binary: Path, paths: VppPaths, request: SwitchRequest) -> None:
        super().__init__("VPP", [process])
        self._binary = binary
        self._paths = paths
        self._names = interface_names(request)
        self._ports = [vpp_counters.VppPort(port.name, port.kind, self._names[port.name]) for port in request.ports]
        self._workers = len(request.worker_cpus)

    def answers(self) -> bool:
        return self._paths.cli.is_socket() and "vpp v" in (self._cli("show version") or "")

    def configure(self, lines: Sequence[str]) -> None:
        """Run the commands. Raises StartError with the answer to the first that fails."""
        for line in lines:
            said = self._cli(line)
            if said is None or said.strip() not in ("", *self._names.values()):
                raise StartError(f'VPP answered "{line}" with: {said or "nothing"}\n{self.process.exit_report()}')

    def counters(self) -> SwitchCycles:
        self.check()
        wanted = vpp_counters.patterns(self._ports)
        dump = self._run("vpp_get_stats", "socket-name", str(self._paths.stats), "dump", *wanted)
        node = self._cli(f"show node {VECTOR_NODE} verbose")
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
