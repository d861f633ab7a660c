# SPDX-License-Identifier: BSD-3-Clause
"""Open vSwitch with DPDK: a private database, one bridge, one PMD thread, an ``in_port`` flow each way (conext19).

Everything lives in ``<workdir>/ovs`` and, for vswitchd, in a network namespace of its own: the bridge's local interface
never shows on the host, and making it needs no root (a user namespace does).

Without hugepages OvS needs ``--legacy-mem`` in ``dpdk-extra``: it adds ``--in-memory`` by itself otherwise, which EAL
refuses together with ``--no-huge``.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from planebench.host.process import Process, Supervisor, wait_ready
from planebench.model.errors import DiedError, PlanebenchError, StartError, UsageError
from planebench.model.records import SwitchCycles
from planebench.planed import program_lines
from planebench.switches import common
from planebench.switches.base import Adapter, Found, NotFound, SwitchPort, SwitchRequest, ThreadRef, Traits
from planebench.switches.finding import find_program
from planebench.switches.manifest import manifest
from planebench.switches.unixctl import unixctl

BRIDGE = "br0"
EAL_MB = 128
VHOST_DESCRIPTORS = 2048
"""What OvS reckons with for a vhost-user port, whatever the ring of the VNF."""
MBUFS_PER_PORT = 16384 + 32
"""MIN_NB_MBUF and a burst, on top of the descriptors of a port (dpdk_calculate_mbufs)."""
MBUF_OVERHEAD_BYTES = 1024
"""Headroom, struct dp_packet, object header, rounding."""
TOOL_TIMEOUT_S = 10.0
PMD_MARK = "pmd-c"
DROP_COUNTERS = {
    "ovs_tx_failure_drops": "tx_full",
    "ovs_tx_mtu_exceeded_drops": "tx_mtu_exceeded",
    "ovs_tx_invalid_hwol_drops": "tx_invalid_offload",
    "rx_missed_errors": "rx_missed",
    "rx_errors": "rx_errors",
    "rx_mbuf_allocation_errors": "rx_nombuf",
}
"""What OvS counts at a port, and our word for it."""
_PORT = re.compile(r"^\s*port\s+\"?([\w-]+)\"?: rx pkts=", re.MULTILINE)
_REFUSED = re.compile(r"could not (?:open|add) network device (\S+)|WARN\|(\S+): could not set configuration")
_SCHEMAS = ("/usr/share/openvswitch/vswitch.ovsschema", "/usr/local/share/openvswitch/vswitch.ovsschema")
_DEBIAN_BINARY = Path("/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk")
_TOOLS = ("ovsdb-tool", "ovsdb-server", "ovs-vsctl", "ovs-ofctl")


class OvsDpdkAdapter(Adapter):
    """``ovs-dpdk``: ``ovs-vswitchd`` built with DPDK, userspace datapath, everything not named here at its default."""

    name = "ovs-dpdk"
    title = "Open vSwitch with DPDK"
    remedy = "install Open vSwitch with DPDK: `apt-get install openvswitch-switch-dpdk` (Debian, Ubuntu)"
    wires = frozenset({"virtio", "memif", "veth"})
    traits = Traits(
        "self-contained", "match/action", ("rtc",), "vhost-user", "medium", ("C",), "SDN switch", source="conext19"
    )

    def find(self) -> Found | NotFound:
        """An ovs-vswitchd that says it has DPDK, its tools and its database schema."""
        missing = [tool for tool in _TOOLS if find_program(tool) is None]
        if missing or _schema() is None:
            return NotFound(f"{self.remedy} (missing: {', '.join(missing) or 'vswitch.ovsschema'})")
        for binary in _candidates():
            lines = program_lines((str(binary), "--version"), binary.stat().st_mtime_ns) or ()
            dpdk = next((line for line in lines if line.startswith("DPDK ")), None)
            if dpdk:
                return Found(f"{lines[0].rpartition(' ')[2]} ({dpdk})", binary)
        return NotFound(f"{self.remedy} (the ovs-vswitchd found has no DPDK)")

    def settings(self, request: SwitchRequest) -> dict[str, str]:
        """How it is run, for the report."""
        return manifest(
            request,
            function="match/action: one in_port flow each way, userspace datapath (netdev)",
            nic_driver=common.nic_driver(request),
            vnf_interface="vhost-user (dpdkvhostuser)",
            burst="32",
            buffers="a pool of mbufs for each port (per-port-memory)",
            caches="EMC, SMC and megaflows at their defaults",
        )

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningOvs:
        """Start database and vswitchd, wait for every port, install the flows. Raises StartError with log lines."""
        _check(request)
        paths = Paths(request.workdir / "ovs")
        binary = common.require(self).binary
        started: list[Process] = []
        try:
            started.append(_start_database(request, supervisor, paths))
            _vsctl(paths, _configuration(request, f"{supervisor.root.name}-ovs"))
            _link_sockets(request, paths)
            vswitchd = _start_vswitchd(request, supervisor, paths, binary)
            started.append(vswitchd)
            wait_ready("Open vSwitch", lambda: _ports_added(request, vswitchd, paths), started)
            flows = "".join(f"{flow}\n" for flow in _flows(request))
            _tool(["ovs-ofctl", "add-flows", f"unix:{paths.bridge}", "-"], stdin=flows)
            switch = RunningOvs(vswitchd, started[0], paths, request)
            switch.check_placement()
        except BaseException:
            for process in reversed(started):
                process.terminate()
            raise
        return switch


@dataclass(frozen=True, slots=True)
class Paths:
    """Where the parts of one Open vSwitch are. ``root`` is OVS_RUNDIR too: vhost-user sockets appear in it."""

    root: Path

    @property
    def database(self) -> Path:
        """The database file."""
        return self.root / "conf.db"

    @property
    def database_socket(self) -> Path:
        """OVSDB protocol."""
        return self.root / "db.sock"

    @property
    def bridge(self) -> Path:
        """OpenFlow; the name is given by vswitchd."""
        return self.root / f"{BRIDGE}.mgmt"

    @property
    def control(self) -> Path:
        """vswitchd's unixctl socket: what ovs-appctl talks to."""
        return self.root / "vswitchd.ctl"

    def environment(self) -> dict[str, str]:
        """Keeps Open vSwitch out of the system's directories."""
        return {f"OVS_{name}": str(self.root) for name in ("RUNDIR", "LOGDIR", "DBDIR", "SYSCONFDIR")}


class RunningOvs(common.ProcessGroup):
    """An Open vSwitch that forwards; asked through its control socket."""

    def __init__(self, vswitchd: Process, database: Process, paths: Paths, request: SwitchRequest) -> None:
        super().__init__("Open vSwitch", [vswitchd, database])
        self._vswitchd = vswitchd
        self._paths = paths
        self._request = request

    def polling_threads(self) -> tuple[ThreadRef, ...]:
        """The one PMD thread."""
        return common.threads_named(self._vswitchd.pid, (PMD_MARK,))

    def counters(self) -> SwitchCycles:
        """Counters since the start: cycles and packets of the PMD thread, drops of the ports. Raises DiedError."""
        pmd = self._ask("dpif-netdev/pmd-stats-show").partition("main thread:")[0]
        return SwitchCycles(
            busy_cycles=_number(r"processing cycles: (\d+)", pmd),
            idle_cycles=_number(r"idle cycles: (\d+)", pmd),
            packets=_number(r"packets received: (\d+)", pmd),
            drops=self._drops(),
        )

    def _drops(self) -> dict[str, int]:
        """From OpenFlow 1.4 port statistics: they are live, and the only place where vhost-user ports count drops.

        OvS 3.1 switches rte_vhost's statistics on for dpdkvhostuserclient ports only, so ``dpctl/show -s`` has none;
        the database is refreshed every 5 s at best.
        """
        command = ["ovs-ofctl", "-OOpenFlow14", "--no-names", "dump-ports", f"unix:{self._paths.bridge}"]
        names = [port.name for port in self._request.ports]
        with contextlib.suppress(StartError):
            return parse_drops(_tool(command), names)
        # A vswitchd that was paused for long drops the first connection after it; the second tells.
        try:
            return parse_drops(_tool(command), names)
        except StartError as error:
            self.check()
            raise DiedError(f"{error}; {self._vswitchd.obituary()}") from error

    def check_placement(self) -> None:
        """Raise StartError unless the receive queue of every port is on the one PMD thread we asked for."""
        text = self._ask("dpif-netdev/pmd-rxq-show")
        cores = set(re.findall(r"core_id (\d+)", text))
        polled = set(re.findall(r"port: (\S+)", text))
        missing = {port.name for port in self._request.ports} - polled
        if cores != {str(self._request.cpu)} or missing or len(self.polling_threads()) != 1:
            raise StartError(f"Open vSwitch does not poll every port on CPU {self._request.cpu}:\n{text}")

    def _ask(self, *command: str) -> str:
        self.check()
        try:
            return unixctl(self._paths.control, *command)
        except PlanebenchError as error:
            raise DiedError(f"{error}; {self._vswitchd.obituary()}") from error


def parse_drops(text: str, ports: Sequence[str]) -> dict[str, int]:
    """Drops by ``PORT:REASON`` from ``ovs-ofctl -O OpenFlow14 dump-ports``; ``ports`` are our names, OvS's 1, 2, ...

    Only what the text says: a port or a counter that is not there, or has no number, gives no key.
    """
    names = {str(number): name for number, name in enumerate(ports, start=1)}
    drops: dict[str, int] = {}
    _, *parts = _PORT.split(text)
    for number, block in zip(parts[::2], parts[1::2], strict=True):
        if number in names:
            counters = re.findall(r"\b(\w+)=(\d+)[,\s]", block)
            drops |= {f"{names[number]}:{DROP_COUNTERS[it]}": int(n) for it, n in counters if it in DROP_COUNTERS}
    return drops


def _number(pattern: str, text: str) -> int | None:
    match = re.search(pattern, text)
    return int(match[1]) if match else None


def _check(request: SwitchRequest) -> None:
    """Raise UsageError for what Open vSwitch cannot do."""
    common.check_frame_size(request)
    common.paired_ports(request)
    if common.is_jumbo(request) and any(port.kind == "af_packet" for port in request.ports):
        raise UsageError(
            f"ovs-dpdk takes no frames of {request.max_frame_bytes} bytes on the veth wire (DPDK's af_packet driver "
            f"refuses an MTU over 1500); use the virtio wire, or {common.STANDARD_FRAME_BYTES} bytes at most"
        )


def _candidates() -> tuple[Path, ...]:
    """Debian keeps the DPDK build aside; elsewhere it is the only one."""
    named = (find_program(name) for name in ("ovs-vswitchd-dpdk", "ovs-vswitchd"))
    return tuple(path for path in (_DEBIAN_BINARY, *named) if path is not None and path.is_file())


def _schema() -> Path | None:
    return next((Path(path) for path in _SCHEMAS if Path(path).is_file()), None)


def _start_database(request: SwitchRequest, supervisor: Supervisor, paths: Paths) -> Process:
    shutil.rmtree(paths.root, ignore_errors=True)  # of an earlier start in the same directory
    paths.root.mkdir(mode=0o700)
    _tool(["ovsdb-tool", "create", str(paths.database), str(_schema())])
    process = supervisor.spawn(
        "ovsdb-server",
        [
            str(find_program("ovsdb-server")),
            str(paths.database),
            f"--remote=punix:{paths.database_socket}",
            f"--unixctl={paths.root / 'ovsdb.ctl'}",
            "--no-chdir",
        ],
        cpus=request.control_cpus,
        env=paths.environment(),
        workdir=request.workdir,
        high_priority=False,
    )
    try:
        wait_ready("the database of Open vSwitch", lambda: common.is_socket(paths.database_socket), [process])
    except BaseException:
        process.terminate()
        raise
    return process


def _start_vswitchd(request: SwitchRequest, supervisor: Supervisor, paths: Paths, binary: Path) -> Process:
    return supervisor.spawn(
        "ovs-vswitchd",
        [str(binary), f"unix:{paths.database_socket}", f"--unixctl={paths.control}", "--no-chdir"],
        cpus=request.control_cpus,  # the PMD thread moves to request.cpu by itself
        env=paths.environment(),
        workdir=request.workdir,
        netns_pid=request.netns_pid,
        new_netns=request.netns_pid is None,
    )


def _vsctl(paths: Paths, commands: list[list[str]]) -> None:
    """All commands in one transaction; vswitchd reads the result when it starts."""
    argv = ["ovs-vsctl", f"--db=unix:{paths.database_socket}", "--timeout=10", "--no-wait", "init"]
    for command in commands:
        argv += ["--", *command]
    _tool(argv)


def _configuration(request: SwitchRequest, prefix: str) -> list[list[str]]:
    """The database content: EAL arguments, the PMD core, the bridge, the ports."""
    eal = ["--no-pci", "--no-telemetry", f"--file-prefix={prefix}"]
    memory = ["--in-memory", "--single-file-segments"]
    if not request.hugepages:
        memory = ["--legacy-mem", *common.eal_memory_arguments(hugepages=False, size_mb=_memory_mb(request))]
    options = [
        "other_config:dpdk-init=true",
        f"other_config:dpdk-extra={' '.join([*eal, *memory])}",
        f"other_config:dpdk-lcore-mask={_mask(min(request.control_cpus))}",
        f"other_config:pmd-cpu-mask={_mask(request.cpu)}",
        "other_config:vhost-sock-dir=.",
        "other_config:per-port-memory=true",
    ]
    bridge = [
        ["add-br", BRIDGE],
        ["set", "bridge", BRIDGE, "datapath_type=netdev", "fail_mode=secure"],
    ]
    ports = [_port_command(number, port, request) for number, port in enumerate(request.ports, start=1)]
    return [["set", "Open_vSwitch", ".", *options], *bridge, *(part for port in ports for part in port)]


def _memory_mb(request: SwitchRequest) -> int:
    """Twice the room of a pool of mbufs for each port, as OvS sizes them: it makes a new one before it frees the old.

    Pages that are not used cost nothing without hugepages; with them EAL takes what it needs as it goes. OvS's default,
    one pool of 262144 mbufs for all, takes 800 MB; and where that does not fit, OvS halves it only if the allocation
    fails with ENOMEM, while DPDK may as well say ENOBUFS.
    """
    data_bytes = -(-(common.mtu_bytes(request) + 26) // 1024) * 1024
    total = 0
    for port in request.ports:
        descriptors = VHOST_DESCRIPTORS if port.kind == "vhost-user" else port.ring_size
        total += (MBUFS_PER_PORT + 3 * descriptors) * (data_bytes + MBUF_OVERHEAD_BYTES)
    return EAL_MB + 2 * -(-total // 2**20)


def _port_command(number: int, port: SwitchPort, request: SwitchRequest) -> list[list[str]]:
    """One port; its OpenFlow number is its place in the request, from 1."""
    settings = [f"ofport_request={number}"]
    if port.kind == "vhost-user":
        settings += ["type=dpdkvhostuser"]
    else:
        rings = [f"options:n_rxq_desc={port.ring_size}", f"options:n_txq_desc={port.ring_size}"]
        settings += ["type=dpdk", f"options:dpdk-devargs={_devargs(number, port, request)}", *rings]
    if common.is_jumbo(request):
        settings.append(f"mtu_request={common.mtu_bytes(request)}")
    return [["add-port", BRIDGE, port.name], ["set", "Interface", port.name, *settings]]


def _devargs(number: int, port: SwitchPort, request: SwitchRequest) -> str:
    return common.dpdk_vdev(number, port, request)


def _mask(cpu: int) -> str:
    return hex(1 << cpu)


def _flows(request: SwitchRequest) -> list[str]:
    """An in_port flow each way of every cross-connect."""
    number = {port.name: index for index, port in enumerate(request.ports, start=1)}
    pairs = [(number[a], number[b]) for a, b in request.cross_connects]
    return [f"in_port={a},actions=output:{b}" for pair in pairs for a, b in (pair, pair[::-1])]


def _link_sockets(request: SwitchRequest, paths: Paths) -> None:
    """OvS names a vhost-user socket after its port, under OVS_RUNDIR: the path asked for becomes a link to it."""
    for port in request.ports:
        if port.kind == "vhost-user":
            path = common.socket_path(port)
            path.unlink(missing_ok=True)
            path.symlink_to(paths.root / port.name)


def _ports_added(request: SwitchRequest, vswitchd: Process, paths: Paths) -> bool:
    """Whether the bridge has every port; StartError as soon as one is refused."""
    with contextlib.suppress(OSError):
        log = vswitchd.log_path.read_text(errors="replace")
        refused = _REFUSED.search(log)
        if refused:
            complaints = [line for line in log.splitlines() if "|ERR|" in line or "|WARN|" in line]
            what = "\n".join(complaints[-12:])
            raise StartError(f"Open vSwitch refuses port {refused[1] or refused[2]}; its last log lines:\n{what}")
        added = set(re.findall(rf"bridge {BRIDGE}: added interface (\S+) on port", log))
        return all(port.name in added for port in request.ports) and common.is_socket(paths.bridge)
    return False


def _tool(argv: list[str], *, stdin: str | None = None) -> str:
    """Run one of Open vSwitch's short-lived tools; its stdout. Raises StartError with its stderr."""
    program = find_program(argv[0])
    try:
        done = subprocess.run(
            [str(program or argv[0]), *argv[1:]],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=TOOL_TIMEOUT_S,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise StartError(f"{' '.join(argv[:3])}: {error}") from error
    if done.returncode != 0:
        raise StartError(f"{' '.join(argv[:3])} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


ADAPTER = OvsDpdkAdapter()
