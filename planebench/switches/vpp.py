# SPDX-License-Identifier: BSD-3-Clause
"""FD.io VPP: ``test l2patch rx A tx B`` each way (conext19), one worker, VPP's own memif, vhost-user and af_packet.

startup.conf and the CLI commands are made in vpp_config, counters are read in vpp_counters. Commands go through
``vppctl``, one by one: it says nothing but the name of what was created, or why not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from planebench.host.process import Process, Supervisor, wait_ready
from planebench.host.programs import PATH_OPTION, Found, NotFound, run_tool, version_lines
from planebench.model.errors import StartError
from planebench.model.option import Option
from planebench.model.records import SwitchCycles
from planebench.switches import common, vpp_config, vpp_counters
from planebench.switches.manifest import manifest
from planebench.switches.taxonomy import published
from planebench.switches.vpp_config import Paths
from planebench.wiring.adapter import WORKERS_OPTION, Adapter, Situation, ThreadRef
from planebench.wiring.request import SwitchRequest

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
        Option("function", "text", "forwarding function", "l2patch", tuple(vpp_config.FUNCTIONS)),
        Option("rx_ring", "text", "receive ring of wire ports", "--ring-size", RINGS),
        Option("tx_ring", "text", "send ring of wire ports (a memif has one size)", "--ring-size", RINGS),
        Option("buffers", "whole", "buffers-per-numa", str(vpp_config.BUFFERS), least=2048, most=BUFFERS_MAX),
        Option("packed", "flag", "vhost-user: offer packed rings", "false"),
        Option("event_idx", "flag", "vhost-user: offer event indexes", "false"),
        Option("plugins", "text", "folder of the plugins", "beside the program"),
    )
    own_libraries = ("libv", "libsvm")  # libvlib, libvnet, libvppinfra, ...
    traits = published("vpp")

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
        if situation.wired and situation.wire not in self.wires:
            return vpp_config.NO_VIRTIO
        found = self.find()
        if isinstance(found, NotFound):
            return ""
        folder = self._plugins(found.binary) or Path()
        for wire in ((situation.wire,) if situation.wired else ()) + (("vhost",) if situation.has_vnfs else ()):
            name = vpp_config.PLUGINS[wire]
            built_in = wire in vpp_config.BUILT_IN and _release(found.version) < vpp_config.ALL_PLUGINS_SINCE
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
        rings = {vpp_config.ring_sizes(port, self.values) for port in wires if port.kind != "vhost-user"}
        usual = common.ring_size(request)
        others = sorted(rings - {(usual, usual)})
        told = "; ".join(f"{usual} (wires: receive {rx}, send {tx})" for rx, tx in others)
        return manifest(
            request,
            function=vpp_config.FUNCTIONS[self.function],
            nic_driver=", ".join(dict.fromkeys(drivers[port.kind] for port in wires)) or "-",
            vnf_interface="vhost-user (VPP's)",
            burst=str(FRAME_VECTORS),
            buffers=f"{self.value('buffers', vpp_config.BUFFERS)} per NUMA node, one pool",
            batch=f"a vector, i.e. a call of {vpp_config.VECTOR_NODES[self.function]}",
            **common.offloads(request, mergeable_wires=False),
            **({"ring_size": told} if told else {}),
        )

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningVpp:
        common.check_frame_size(request)
        common.paired_ports(request)
        lines = vpp_config.commands(request, self.values)
        found = common.require(self)
        paths = Paths(request.workdir, f"{supervisor.root.name}-{request.workdir.name}")
        for path in (paths.cli, paths.stats, paths.api):
            path.unlink(missing_ok=True)
        common.remove_sockets(request.ports)
        for path in paths.shared_memory:
            supervisor.track_path(path)
        conf = vpp_config.startup_conf(request, paths, self._plugins(found.binary) or Path(), self.values)
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
        return [folder / name for name in vpp_config.PLUGINS.values()]

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

    def __init__(
        self, process: Process, binary: Path, paths: Paths, request: SwitchRequest, adapter: VppAdapter
    ) -> None:
        super().__init__("VPP", [process])
        self._binary = binary
        self._paths = paths
        self._names = vpp_config.interface_names(request)
        self._node = vpp_config.VECTOR_NODES[adapter.function]
        self._ports = [vpp_counters.Port(port.name, port.kind, self._names[port.name]) for port in request.ports]
        self._workers = len(request.worker_cpus)
        self._env = adapter.installation().env

    def answers(self) -> bool:
        """Return whether the CLI answers."""
        return common.is_socket(self._paths.cli) and "vpp v" in (self._run("vppctl", *self._cli("show version")) or "")

    def configure(self, lines: Sequence[str]) -> None:
        """Run the commands. Raises StartError with the answer to the first that fails."""
        for line in lines:
            said = self._run("vppctl", *self._cli(line))
            if said is None or said.strip() not in ("", *self._names.values()):
                raise StartError(f'VPP answered "{line}" with: {said or "nothing"}\n{self.process.exit_report()}')

    def polling_threads(self) -> tuple[ThreadRef, ...]:
        return common.threads_named(self.process.pid, (WORKER,))

    def counters(self) -> SwitchCycles:
        """Return the counters. There are no busy cycles (see vpp_counters)."""
        self.check()
        wanted = vpp_counters.patterns(self._ports)
        dump = self._run("vpp_get_stats", "socket-name", str(self._paths.stats), "dump", *wanted)
        node = self._run("vppctl", *self._cli(f"show node {self._node} verbose"))
        if node is None:
            raise self.died("VPP does not answer")
        return vpp_counters.switch_cycles(dump or "", node, self._ports, self._workers)

    def _cli(self, line: str) -> tuple[str, ...]:
        return ("-s", str(self._paths.cli), *line.split())

    def _run(self, tool: str, *arguments: str) -> str | None:
        """Return the output of a tool of VPP; None if it fails or takes too long."""
        done = run_tool([_tool(self._binary, tool), *arguments], TOOL_DEADLINE_S, env=self._env)
        return done.stdout + done.stderr if done.ok else None


def _release(version: str) -> tuple[int, ...]:
    """Return year and month of a version such as ``26.06-release``; (0, 0) if there are none."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _tool(binary: Path, name: str) -> Path:
    """Return the path of a tool beside the program, or beside the file that the program links to."""
    beside = binary.with_name(name)
    return beside if beside.is_file() else binary.resolve().with_name(name)


ADAPTER = VppAdapter()
