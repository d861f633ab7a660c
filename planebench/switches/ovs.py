# SPDX-License-Identifier: BSD-3-Clause
"""Open vSwitch with DPDK: a private database, one bridge, an ``in_port`` flow each way (conext19), and a PMD thread for
each worker, which polls every port.

Everything is in ``<workdir>/ovs``. Without a given network namespace vswitchd gets its own: the bridge's local
interface is not visible on the host, and creating it needs no root (a user namespace does). Without hugepages OvS needs
``--legacy-mem`` in ``dpdk-extra``: it adds ``--in-memory`` by itself otherwise, which EAL refuses together with
``--no-huge``.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
from pathlib import Path

from planebench.host.process import Process, Supervisor, stretched, wait_ready
from planebench.host.programs import PATH_OPTION, Found, NotFound, find_program, run_tool, version_lines
from planebench.model.cpus import cpu_text
from planebench.model.errors import StartError, UsageError
from planebench.model.records import SwitchCycles
from planebench.model.traffic import Updates
from planebench.switches import common
from planebench.switches.adapter import STANDARD_FRAME_BYTES, WORKERS_OPTION, Adapter, Situation, Traits
from planebench.switches.common import manifest
from planebench.switches.ovs_counters import PortCounters, parse_ports, pmd_cycles, unixctl
from planebench.switches.ovs_updates import FlowMods, VnfFlow
from planebench.testbed.request import SwitchPort, SwitchRequest

BRIDGE = "br0"
BURST = 32
"""NETDEV_MAX_BURST."""
TOOL_TIMEOUT_S = 10.0
PMD_MARK = "pmd-c"
CACHES = "EMC 1 in 100, SMC off, megaflows on"
"""Its defaults, for the manifest."""
_REFUSED = re.compile(r"could not (?:open|add) network device (\S+)|WARN\|(\S+): could not set configuration")
_SCHEMAS = ("/usr/share/openvswitch/vswitch.ovsschema", "/usr/local/share/openvswitch/vswitch.ovsschema")
TUN = Path("/dev/net/tun")
TUN_REMEDY = "start the container with `--device=/dev/net/tun --cap-add=NET_ADMIN`; on a machine, `modprobe tun`"
_TOOLS = ("ovsdb-tool", "ovsdb-server", "ovs-vsctl", "ovs-ofctl")

EAL_MB = 128
MBUFS_PER_PORT = 16384 + 32
"""MIN_NB_MBUF and a burst, on top of the descriptors of a port (dpdk_calculate_mbufs)."""
SHARED_MBUFS = 262144
"""MAX_NB_MBUF: of the one pool of all ports, OvS's default. With many VNFs a pool for each would take GiBs."""
MBUF_OVERHEAD_BYTES = 1024
"""Headroom, struct dp_packet, object header, rounding."""
RING_MAX = 4096
"""The most descriptors of a ring; a vhost-user port has 2048, whatever the ring of the VNF is."""


class OvsPaths:
    """The files and sockets of one Open vSwitch. ``root`` is OVS_RUNDIR too: vhost-user sockets appear in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.database = root / "conf.db"
        self.database_socket = root / "db.sock"
        self.bridge = root / f"{BRIDGE}.mgmt"  # OpenFlow; vswitchd chooses the name
        self.control = root / "vswitchd.ctl"  # for ovs-appctl
        self.environment = {f"OVS_{name}": str(root) for name in ("RUNDIR", "LOGDIR", "DBDIR", "SYSCONFDIR")}
        """Keeps Open vSwitch out of the directories of the system."""


class OvsDpdkAdapter(Adapter):
    """``ovs-dpdk``: ``ovs-vswitchd`` built with DPDK, userspace datapath, everything not named here at its default."""

    name = "ovs-dpdk"
    title = "Open vSwitch with DPDK"
    start_s = 2.0  # a database to fill
    nic_ring_size = 2048  # NIC_PORT_DEFAULT_RXQ_SIZE
    remedy = "install Open vSwitch with DPDK: `apt-get install openvswitch-switch-dpdk` (Debian, Ubuntu)"
    programs = (
        ("ovs-vswitchd-dpdk", "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"),  # Debian's
        ("ovs-vswitchd", "/usr/local/sbin/ovs-vswitchd"),
    )
    own_libraries = ("librte_", "libopenvswitch")
    one_per_namespace = True  # the bridge's own interface
    wires = frozenset({"virtio", "vhost", "memif", "veth", "pci", "af_xdp"})
    queued_wires = frozenset({"virtio", "vhost"})  # on memif a thread sends on a queue of its own, whatever it received
    stations = True
    takes_updates = True
    functions = True
    memif_send_queue = 1
    """Queue 0 is that of its main thread (one queue for each thread, the main thread's first)."""
    options = (PATH_OPTION, WORKERS_OPTION)
    traits = Traits(
        "self-contained", "match/action", ("rtc",), "vhost-user", "medium", ("C",), "SDN switch", "conext19"
    )

    def refusal(self, situation: Situation) -> str:
        if situation.layout.bare and situation.chain:
            return "its flows by MAC are L2 functions; in the place of other VNFs it has none"
        if situation.layout.wired and situation.wire == "veth" and situation.max_frame_bytes > STANDARD_FRAME_BYTES:
            why = "DPDK's af_packet driver refuses an MTU over 1500"
            return f"ovs-dpdk carries frames up to 1518 bytes on the veth wire ({why}); use the virtio wire"
        return super().refusal(situation)

    def find(self) -> Found | NotFound:
        """Look for one with DPDK, whose version is e.g. ``3.1.0 (DPDK 22.11.11)``."""
        where = self.installation()
        binaries: list[Path] = []
        wrong = None
        for name, *places in self.programs:
            try:
                binaries += filter(None, [where.program(name, places)])
            except UsageError as error:  # it may have the other one
                wrong = error
        if wrong is not None and not binaries:
            raise wrong
        missing = [tool for tool in _TOOLS if find_program(tool) is None]
        if missing or _schema() is None:
            return NotFound(f"{self.remedy} (missing: {', '.join(missing) or 'vswitch.ovsschema'})")
        for binary in binaries:
            lines = version_lines(binary)
            dpdk = next((line for line in lines if line.startswith("DPDK ")), None)
            if dpdk and not os.access(TUN, os.R_OK | os.W_OK):
                return NotFound(TUN_REMEDY, f"cannot open {TUN}, by which it makes the interface of its bridge")
            if dpdk:
                return Found(f"{lines[0].rpartition(' ')[2]} ({dpdk})", binary)
        what = f"{binaries[0]} has no DPDK" if binaries else "no ovs-vswitchd"
        return NotFound(f"{self.remedy} ({what})")

    def settings(self, request: SwitchRequest) -> dict[str, str]:
        flows = "one in_port flow each way"
        if request.bare is not None:
            flows = f"{len(request.macs)} dl_dst flows that send frames straight back, in the place of L2 VNFs"
        elif request.stations:
            flows = f"{len(request.stations)} dl_dst flows to VNFs, one to the monitor"
        return manifest(
            request,
            function=f"match/action: {flows}, userspace datapath (netdev)",
            nic_driver=common.nic_driver(request, {"vhost-user": "vhost-user (dpdkvhostuser)"}),
            vnf_interface="vhost-user (dpdkvhostuser)",
            burst=str(BURST),
            buffers=f"a pool of {SHARED_MBUFS} mbufs"
            if request.stations
            else "one pool of mbufs per port (per-port-memory)",
            caches=CACHES,
            **common.offloads(request, mergeable_wires=True),
        )

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningOvs:
        paths = OvsPaths(request.workdir / "ovs")
        binary = common.prepared(self, request)[0].binary
        shutil.rmtree(paths.root, ignore_errors=True)  # of an earlier start in the same directory
        paths.root.mkdir(mode=0o700)
        _tool(["ovsdb-tool", "create", str(paths.database), str(_schema())])
        with contextlib.ExitStack() as started:
            database = supervisor.spawn(
                "ovsdb-server",
                [
                    str(find_program("ovsdb-server")),
                    str(paths.database),
                    f"--remote=punix:{paths.database_socket}",
                    f"--unixctl={paths.root / 'ovsdb.ctl'}",
                    "--no-chdir",
                ],
                cpus=request.control_cpus,
                env=paths.environment,
                workdir=request.workdir,
                high_priority=False,
            )
            started.callback(database.terminate)
            wait_ready("the database of Open vSwitch", lambda: _listens(paths.database_socket), [database])
            # All commands are one transaction; vswitchd reads the result when it starts.
            timeout = f"--timeout={stretched(TOOL_TIMEOUT_S):.0f}"
            vsctl = ["ovs-vsctl", f"--db=unix:{paths.database_socket}", timeout, "--no-wait", "init"]
            for command in configuration(request, f"{supervisor.root.name}-ovs"):
                vsctl += ["--", *command]
            _tool(vsctl)
            vswitchd = supervisor.spawn(
                "ovs-vswitchd",
                [str(binary), f"unix:{paths.database_socket}", f"--unixctl={paths.control}", "--no-chdir"],
                cpus=request.control_cpus,  # what forwards moves to request.cpu
                env=paths.environment,
                workdir=request.workdir,
                netns_pid=request.netns_pid,
                new_netns=request.netns_pid is None,
            )
            started.callback(vswitchd.terminate)
            wait_ready("Open vSwitch", lambda: _ports_added(request, vswitchd, paths), [database, vswitchd])
            # OvS makes a socket in OVS_RUNDIR with the name of the port: it gets the requested path as a second name,
            # which is no symbolic link, because a VNF sees the folder of its port only.
            for port in request.ports:
                if port.kind == "vhost-user":
                    port.path.hardlink_to(paths.root / port.name)
            flows = "".join(f"{flow}\n" for flow in flows_of(request))
            _tool(["ovs-ofctl", "add-flows", f"unix:{paths.bridge}", "-"], stdin=flows)
            switch = RunningOvs(vswitchd, database, paths, request)
            text, wanted = switch.ask("dpif-netdev/pmd-rxq-show"), request.worker_cpus
            cores, polled = set(re.findall(r"core_id (\d+)", text)), set(re.findall(r"port: (\S+)", text))
            everything = polled.issuperset(port.name for port in request.ports)
            if cores != set(map(str, wanted)) or not everything or len(switch.polling_threads()) != len(wanted):
                raise StartError(f"Open vSwitch does not poll every port on CPU {cpu_text(wanted)}:\n{text}")
            started.pop_all()
        return switch


def configuration(request: SwitchRequest, prefix: str) -> list[list[str]]:
    """Return the database content before vswitchd starts: its options, the bridge without flows, the ports.

    ``prefix`` is that of EAL's files. The OpenFlow number of a port is its place in the request, from 1.
    """
    eal = [*common.allow_list(request.ports), "--no-telemetry", f"--file-prefix={prefix}"]
    memory = ["--in-memory", "--single-file-segments"]
    if not request.hugepages:
        memory = ["--legacy-mem", *common.eal_memory_arguments(hugepages=False, size_mb=_memory_mb(request))]
    options = [
        "dpdk-init=true",
        f"dpdk-extra={' '.join([*eal, *memory])}",
        f"dpdk-lcore-mask={mask(min(request.control_cpus))}",
        "vhost-sock-dir=.",
        f"per-port-memory={str(not request.stations).lower()}",
        f"pmd-cpu-mask={mask(*request.worker_cpus)}",
    ]
    commands = [
        ["set", "Open_vSwitch", ".", *(f"other_config:{option}" for option in options)],
        ["add-br", BRIDGE],
        ["set", "bridge", BRIDGE, "datapath_type=netdev", "fail_mode=secure"],
    ]
    for number, port in enumerate(request.ports, start=1):
        columns = [f"ofport_request={number}", *_port_columns(number, port, request)]
        commands += [["add-port", BRIDGE, port.name], ["set", "Interface", port.name, *columns]]
    return commands


def _port_columns(number: int, port: SwitchPort, request: SwitchRequest) -> list[str]:
    mtu = [f"mtu_request={common.mtu_bytes(request)}"] if common.is_jumbo(request) else []
    if port.kind == "vhost-user":
        return ["type=dpdkvhostuser", *mtu]
    rings = [f"options:n_{way}q_desc={port.ring_size}" for way in ("rx", "tx")]
    queues = [f"options:n_rxq={request.queues}"] if request.queues > 1 else []  # of a vhost-user port: the VNF's
    device = port.address if port.kind == "pci" else common.dpdk_vdev(number, port, request)
    return ["type=dpdk", f"options:dpdk-devargs={device}", *queues, *rings, *mtu]


class RunningOvs(common.ProcessGroup):
    """An Open vSwitch whose ports are polled by a PMD thread for each worker. Counters come from its control socket."""

    thread_marks = (PMD_MARK,)

    def __init__(self, vswitchd: Process, database: Process, paths: OvsPaths, request: SwitchRequest) -> None:
        super().__init__("Open vSwitch", [vswitchd, database])
        self._paths = paths
        self._request = request

    def counters(self) -> SwitchCycles:
        stats, perf = self.ask("dpif-netdev/pmd-stats-show"), self.ask("dpif-netdev/pmd-perf-show", "-nh")
        return pmd_cycles(stats, perf, self._ports(), len(self._request.worker_cpus))

    def _ports(self) -> PortCounters:
        """Return OpenFlow 1.4 port statistics, which are live and the only place with drops of vhost-user ports.

        OvS 3.1 enables the statistics of rte_vhost for dpdkvhostuserclient ports only, so ``dpctl/show -s`` has none;
        the database is refreshed every 5 s at best. Raises DiedError.
        """
        command = ["ovs-ofctl", "-OOpenFlow14", "--no-names", "dump-ports", f"unix:{self._paths.bridge}"]
        names = [port.name for port in self._request.ports]
        with contextlib.suppress(StartError):
            return parse_ports(_tool(command), names)
        # A vswitchd that was paused for long drops the first connection after it; the second tells.
        with self.answering():
            return parse_ports(_tool(command), names)

    def begin_updates(self, updates: Updates) -> FlowMods:
        """Change the flows of VNFs side by side, at a rate or as fast as they are applied. Raises DiedError."""
        return FlowMods(self._paths.bridge, flows_to_vnfs(self._request), updates)

    def ask(self, *command: str) -> str:
        with self.answering():
            return unixctl(self._paths.control, *command)


def flows_of(request: SwitchRequest) -> list[str]:
    """Return an in_port flow each way of every cross-connect. Ports have the numbers of their places in the request.

    With stations there is one by MAC for each of them, and one for the monitor. In the place of L2 VNFs it has one by
    MAC for each of them, straight to the other wire (ic16 Fig. 11).
    """
    if request.bare is not None:
        return [f"in_port=1,dl_dst={mac},actions=output:2" for mac in request.macs]
    number = {port.name: index for index, port in enumerate(request.ports, start=1)}
    if not request.stations:
        pairs = [(number[a], number[b]) for a, b in request.cross_connects]
        return [f"in_port={a},actions=output:{b}" for pair in pairs for a, b in (pair, pair[::-1])]
    last = [number[port.name] for port in request.ports if not port.of_vnf][-1]
    to_stations = [
        f"in_port={it.in_port},dl_dst={it.mac},actions=output:{it.out_port}" for it in flows_to_vnfs(request)
    ]
    return [*to_stations, f"dl_dst={request.monitor_mac},actions=output:{last}"]


def flows_to_vnfs(request: SwitchRequest) -> list[VnfFlow]:
    """Return the flow to each VNF side by side, from the first wire."""
    number = {port.name: index for index, port in enumerate(request.ports, start=1)}
    wire = next(number[port.name] for port in request.ports if not port.of_vnf)
    return [VnfFlow(wire, station.mac, number[station.port]) for station in request.stations]


def mask(*cpus: int) -> str:
    """Return CPUs in the form of ``pmd-cpu-mask``."""
    return hex(sum(1 << cpu for cpu in cpus))


def _schema() -> Path | None:
    return next((Path(path) for path in _SCHEMAS if Path(path).is_file()), None)


def _ports_added(request: SwitchRequest, vswitchd: Process, paths: OvsPaths) -> bool:
    """Return whether the bridge has every port. Raises StartError as soon as one is refused."""
    with contextlib.suppress(OSError):
        log = vswitchd.log_path.read_text(errors="replace")
        refused = _REFUSED.search(log)
        if refused:
            complaints = [line for line in log.splitlines() if "|ERR|" in line or "|WARN|" in line]
            what = "\n".join(complaints[-12:])
            raise StartError(f"Open vSwitch refuses port {refused[1] or refused[2]}; its last log lines:\n{what}")
        added = set(re.findall(rf"bridge {BRIDGE}: added interface (\S+) on port", log))
        return added.issuperset(port.name for port in request.ports) and _listens(paths.bridge)
    return False


def _listens(path: Path) -> bool:
    """Return whether a unix socket accepts connections: between bind() and listen() it exists but refuses."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        return connection.connect_ex(str(path)) == 0


def _tool(argv: list[str], *, stdin: str = "") -> str:
    """Run a short-lived tool of Open vSwitch and return its output. Raises StartError with its standard error."""
    done = run_tool([find_program(argv[0]) or argv[0], *argv[1:]], TOOL_TIMEOUT_S, stdin=stdin)
    what = " ".join(argv[:3])
    if done.code is None:
        raise StartError(f"{what}: {done.stderr}")
    if done.code != 0:
        raise StartError(f"{what} ended with {done.code}: {done.stderr.strip()}")
    return done.stdout


def _memory_mb(request: SwitchRequest) -> int:
    """Return twice the size of a pool of mbufs per port, as OvS sizes them: OvS makes a new pool before it frees the
    old one.

    Unused pages cost nothing without hugepages; with hugepages EAL allocates on demand. OvS's default, one pool of
    262144 mbufs for all ports, takes 800 MB. If that does not fit, OvS halves it only for ENOMEM, but DPDK may return
    ENOBUFS.
    """
    data_bytes = -(-(common.mtu_bytes(request) + 26) // 1024) * 1024
    if request.stations:
        return EAL_MB + 2 * -(-SHARED_MBUFS * (data_bytes + MBUF_OVERHEAD_BYTES) // 2**20)
    total = 0
    for port in request.ports:
        descriptors = max(port.ring_size, RING_MAX)
        total += (MBUFS_PER_PORT + 3 * descriptors * request.queues) * (data_bytes + MBUF_OVERHEAD_BYTES)
    return EAL_MB + 2 * -(-total // 2**20)


ADAPTER = OvsDpdkAdapter()
