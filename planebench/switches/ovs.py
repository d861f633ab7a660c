# SPDX-License-Identifier: BSD-3-Clause
"""The common part of every Open vSwitch: a private database, one bridge, an ``in_port`` flow each way (conext19).

Everything is in ``<workdir>/ovs``. Without a given network namespace vswitchd gets its own: the bridge's local
interface is not visible on the host, and creating it needs no root (a user namespace does).
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path

from planebench.host.process import Process, Supervisor, stretched, wait_ready
from planebench.host.programs import Found, NotFound, find_program, run_tool, version_lines
from planebench.model.cpus import cpu_text
from planebench.model.errors import StartError, UsageError
from planebench.model.records import SwitchCycles
from planebench.model.switch import Option
from planebench.model.traffic import Updates
from planebench.switches import common
from planebench.switches.adapter import Adapter
from planebench.switches.ovs_counters import PortCounters, parse_ports, pmd_cycles, unixctl
from planebench.switches.ovs_updates import FlowMods, VnfFlow
from planebench.testbed.request import SwitchPort, SwitchRequest

BRIDGE = "br0"
BURST = 32
"""NETDEV_MAX_BURST."""
TOOL_TIMEOUT_S = 10.0
PMD_MARK = "pmd-c"
EMC_DEFAULT, EMC_MAX = 100, 2**32 - 1
CACHE_OPTIONS = (
    Option("emc", "whole", "insert one in N flows into the exact match cache (0: none)", "100", most=EMC_MAX),
    Option("smc", "flag", "signature match cache", "false"),
)
_REFUSED = re.compile(r"could not (?:open|add) network device (\S+)|WARN\|(\S+): could not set configuration")
_SCHEMAS = ("/usr/share/openvswitch/vswitch.ovsschema", "/usr/local/share/openvswitch/vswitch.ovsschema")
TUN = Path("/dev/net/tun")
TUN_REMEDY = "start the container with `--device=/dev/net/tun --cap-add=NET_ADMIN`; on a machine, `modprobe tun`"
_TOOLS = ("ovsdb-tool", "ovsdb-server", "ovs-vsctl", "ovs-ofctl")

Commands = list[list[str]]
"""The commands of one call of ovs-vsctl."""


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


class OvsAdapter(Adapter):
    """An ovs-vswitchd with the userspace datapath. A subclass chooses the program, the ports and the threads."""

    one_per_namespace = True  # the bridge's own interface
    programs: Sequence[tuple[str, ...]]
    """Names of programs that may be the right ovs-vswitchd, each with its usual places, the best first."""
    unfit = "is none"
    """The reason why a program that was found is not the right one."""
    own_libraries = ("librte_", "libopenvswitch")
    kernel_ports = False
    """Whether all ports are kernel interfaces, which have drop counters of their own."""

    def configuration(self, request: SwitchRequest, prefix: str) -> Commands:
        """Return the database content before vswitchd starts: its options, the bridge without flows, the ports.

        The OpenFlow number of a port is its place in the request, from 1.
        """
        options = [*self.vswitchd_options(request, prefix), f"pmd-cpu-mask={mask(*request.worker_cpus)}"]
        if "emc" in self.values:
            options.append(f"emc-insert-inv-prob={self.values['emc']}")
        if "smc" in self.values:
            options.append(f"smc-enable={str(self.values['smc']).lower()}")
        commands = [
            ["set", "Open_vSwitch", ".", *(f"other_config:{option}" for option in options)],
            ["add-br", BRIDGE],
            ["set", "bridge", BRIDGE, "datapath_type=netdev", "fail_mode=secure"],
        ]
        for number, port in enumerate(request.ports, start=1):
            name, settings = self.interface(port), self.port_settings(number, port, request)
            commands += [
                ["add-port", BRIDGE, name],
                ["set", "Interface", name, f"ofport_request={number}", *settings],
            ]
        return commands

    def running(self, vswitchd: Process, database: Process, paths: OvsPaths, request: SwitchRequest) -> RunningOvs:
        """Return the running switch. Raises StartError unless the PMD threads, one on each core of a worker, poll every
        port."""
        switch = RunningOvs(vswitchd, database, paths, request, kernel_ports=self.kernel_ports)
        text = switch.ask("dpif-netdev/pmd-rxq-show")
        cores = set(re.findall(r"core_id (\d+)", text))
        polled = set(re.findall(r"port: (\S+)", text))
        wanted = request.worker_cpus
        everything = all(self.interface(port) in polled for port in request.ports)
        if cores != set(map(str, wanted)) or not everything or len(switch.polling_threads()) != len(wanted):
            raise StartError(f"Open vSwitch does not poll every port on CPU {cpu_text(wanted)}:\n{text}")
        return switch

    def vswitchd_options(self, request: SwitchRequest, prefix: str) -> list[str]:
        """Return ``other_config`` of vswitchd beside its PMD core and its caches; ``prefix`` is that of EAL's files."""
        return []

    @abstractmethod
    def port_settings(self, number: int, port: SwitchPort, request: SwitchRequest) -> list[str]:
        """Return the columns of a port's ``Interface``."""

    def check(self, request: SwitchRequest) -> None:
        """Raise UsageError for a request that the switch does not support."""

    @abstractmethod
    def version(self, lines: tuple[str, ...]) -> str | None:
        """Return the version in the output of ``--version``; None if the program does not fit this adapter."""

    def interface(self, port: SwitchPort) -> str:
        """Return the name of a port in Open vSwitch."""
        return port.name

    def find(self) -> Found | NotFound:
        where = self.installation()
        binaries = []
        if where.path is not None and where.path.is_file() and where.path.name.startswith("ovs-vswitchd"):
            binaries.append(where.path)
        else:
            for name, *places in self.programs:
                with contextlib.suppress(UsageError):  # not what the user names
                    binaries += filter(None, [where.program(name, places)])
        missing = [tool for tool in _TOOLS if find_program(tool) is None]
        if missing or _schema() is None:
            return NotFound(f"{self.remedy} (missing: {', '.join(missing) or 'vswitch.ovsschema'})")
        for binary in binaries:
            version = self.version(version_lines(binary))
            if version and not os.access(TUN, os.R_OK | os.W_OK):
                return NotFound(TUN_REMEDY, f"cannot open {TUN}, by which it makes the interface of its bridge")
            if version:
                return Found(version, binary)
        what = f"{binaries[0]} {self.unfit}" if binaries else "no ovs-vswitchd"
        return NotFound(f"{self.remedy} ({what})")

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningOvs:
        common.check_frame_size(request)
        common.ordered_ports(request)
        self.check(request)
        names = [self.interface(port) for port in request.ports]
        paths = OvsPaths(request.workdir / "ovs")
        binary = common.require(self).binary
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
            for command in self.configuration(request, f"{supervisor.root.name}-ovs"):
                vsctl += ["--", *command]
            _tool(vsctl)
            # OvS creates a socket in OVS_RUNDIR with the name of the port: each requested path is a link to it.
            for port in request.ports:
                if port.kind == "vhost-user":
                    path = common.socket_path(port)
                    path.unlink(missing_ok=True)
                    path.symlink_to(paths.root / port.name)
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
            wait_ready("Open vSwitch", lambda: _ports_added(names, vswitchd, paths), [database, vswitchd])
            flows = "".join(f"{flow}\n" for flow in flows_of(request))
            _tool(["ovs-ofctl", "add-flows", f"unix:{paths.bridge}", "-"], stdin=flows)
            switch = self.running(vswitchd, database, paths, request)
            started.pop_all()
        return switch

    def caches(self) -> str:
        """Return the options of the datapath's caches for the manifest."""
        emc, smc = self.value("emc", EMC_DEFAULT), self.value("smc", False)
        return f"EMC {f'1 in {emc}' if emc else 'off'}, SMC {'on' if smc else 'off'}, megaflows on"


class RunningOvs(common.ProcessGroup):
    """An Open vSwitch whose ports are polled by a PMD thread for each worker. Counters come from its control socket."""

    thread_marks: tuple[str, ...] = (PMD_MARK,)

    def __init__(
        self, vswitchd: Process, database: Process, paths: OvsPaths, request: SwitchRequest, *, kernel_ports: bool
    ) -> None:
        super().__init__("Open vSwitch", [vswitchd, database])
        self._kernel_ports = kernel_ports
        self._paths = paths
        self._request = request

    def counters(self) -> SwitchCycles:
        stats, perf = self.ask("dpif-netdev/pmd-stats-show"), self.ask("dpif-netdev/pmd-perf-show", "-nh")
        return pmd_cycles(stats, perf, self.ports(), len(self._request.worker_cpus))

    def ports(self) -> PortCounters:
        """Return OpenFlow 1.4 port statistics, which are live and the only place with drops of vhost-user ports.

        OvS 3.1 enables the statistics of rte_vhost for dpdkvhostuserclient ports only, so ``dpctl/show -s`` has none;
        the database is refreshed every 5 s at best. Raises DiedError.
        """
        command = ["ovs-ofctl", "-OOpenFlow14", "--no-names", "dump-ports", f"unix:{self._paths.bridge}"]
        names = [port.name for port in self._request.ports]
        with contextlib.suppress(StartError):
            return parse_ports(_tool(command), names, kernel=self._kernel_ports)
        # A vswitchd that was paused for long drops the first connection after it; the second tells.
        try:
            return parse_ports(_tool(command), names, kernel=self._kernel_ports)
        except StartError as error:
            self.check()
            raise self.died(error) from error

    def begin_updates(self, updates: Updates) -> FlowMods:
        """Change the flows of VNFs side by side, at a rate or as fast as they are applied. Raises DiedError."""
        return FlowMods(self._paths.bridge, flows_to_vnfs(self._request), updates)

    def ask(self, *command: str) -> str:
        """Return the output of ``ovs-appctl``. Raises DiedError."""
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


def _ports_added(names: Sequence[str], vswitchd: Process, paths: OvsPaths) -> bool:
    """Return whether the bridge has every port. Raises StartError as soon as one is refused."""
    with contextlib.suppress(OSError):
        log = vswitchd.log_path.read_text(errors="replace")
        refused = _REFUSED.search(log)
        if refused:
            complaints = [line for line in log.splitlines() if "|ERR|" in line or "|WARN|" in line]
            what = "\n".join(complaints[-12:])
            raise StartError(f"Open vSwitch refuses port {refused[1] or refused[2]}; its last log lines:\n{what}")
        added = set(re.findall(rf"bridge {BRIDGE}: added interface (\S+) on port", log))
        return added.issuperset(names) and _listens(paths.bridge)
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
