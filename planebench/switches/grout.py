# SPDX-License-Identifier: BSD-3-Clause
"""grout: the graph router of the DPDK project. Ports in cross-connect mode, each the domain of the other.

It makes interfaces and routes in its network namespace, which is therefore its own. It is set up by ``grcli``, which
reads one command a line; counters come from its exporter of metrics (planebench.switches.grout_metrics).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from planebench.host.process import Process, Supervisor, wait_ready
from planebench.host.programs import PATH_OPTION, Found, NotFound, program_output, run_tool
from planebench.model.claims import everywhere
from planebench.model.cpus import cpu_text
from planebench.model.errors import PlanebenchError, StartError
from planebench.model.option import Option
from planebench.model.records import SwitchCycles
from planebench.switches import common, grout_metrics
from planebench.switches.manifest import manifest
from planebench.wiring.adapter import Adapter, Situation, ThreadRef, Traits
from planebench.wiring.request import SwitchRequest

VECTOR = 64
"""Frames that the graph takes at once, shared by the ports of a worker; as many from one port at most."""
VECTOR_MAX = 256
"""RTE_GRAPH_BURST_SIZE."""
MBUFS = 65535
"""GROUT_MEMPOOL_CHUNK_SIZE: the size of the pool that all ports share."""
TOOL_DEADLINE_S = 30.0
"""Each port is added to the graph of a worker that has to take notice: on a busy CPU that takes seconds."""
WORKER = "grout:w"
PLACES = ("/usr/local/bin/grout", "/opt/grout*/bin/grout", "/opt/grout*/build/grout", "~/grout/build/grout")
_VERSION = re.compile(r"^grout v?(\S.*)$", re.MULTILINE)


class GroutAdapter(Adapter):
    """``grout``: one control thread and one worker that polls every port."""

    name = "grout"
    title = "grout"
    remedy = (
        "build it: https://github.com/DPDK/grout (a compiler with C23 enums, such as clang), then "
        "PLANEBENCH_GROUT=/path/to/build"
    )
    wires = frozenset({"vhost"})
    hugepages_mb = 1536
    one_per_namespace = True  # its interfaces have the names of the ports
    options = (
        PATH_OPTION,
        Option("vector", "whole", "vector-max: frames taken at once", str(VECTOR), least=1, most=VECTOR_MAX),
        Option("burst", "whole", "rx-burst-max: the most from one port", str(VECTOR), least=1, most=VECTOR_MAX),
    )
    traits = Traits("self-contained", "structured", ("rtc",), "vhost-user", "low", ("C",), "router")

    def find(self) -> Found | NotFound:
        where = self.installation()
        binary = where.program("grout", PLACES)
        if binary is None:
            return NotFound(self.remedy)
        match = _VERSION.search(program_output(binary, "--version", env=where.env).stdout)
        if match is None:
            return NotFound(f"{binary} does not print a version of grout: `{binary} --version`")
        if not binary.with_name("grcli").is_file():
            return NotFound(f"{binary} has no grcli beside it; give the folder of a complete build")
        return Found(match[1], binary)

    def refusal(self, situation: Situation) -> str:
        if situation.wired and situation.wire not in self.wires:
            return f"grout has no {situation.wire} wire; use --wire vhost"
        if situation.max_frame_bytes > common.STANDARD_FRAME_BYTES:
            return f"grout was not set up for frames of more than {common.STANDARD_FRAME_BYTES} bytes"
        return ""

    def settings(self, request: SwitchRequest) -> dict[str, str]:
        return manifest(
            request,
            function="patch: cross-connect mode (xconnect), each way",
            nic_driver=common.nic_driver(request),
            vnf_interface="vhost-user (DPDK net_vhost)",
            burst=f"{self._burst(request)} ({self._vector} for all ports of the worker)",
            checksum_offload=everywhere("off", "offered to VNFs, not used by planed's"),
            segmentation_offload=everywhere("off"),
            mergeable_buffers=everywhere("offered"),
            buffers=f"{MBUFS} mbufs, one pool",
            idle="polls (-p)",
        )

    @property
    def _vector(self) -> int:
        return int(self.value("vector", VECTOR))

    def _burst(self, request: SwitchRequest) -> int:
        """Return how many frames it takes from a port at once: its share of the vector."""
        return min(int(self.value("burst", VECTOR)), max(1, self._vector // len(request.ports)))

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningGrout:
        common.check_frame_size(request, common.STANDARD_FRAME_BYTES)
        common.paired_ports(request)
        found = common.require(self)
        common.remove_sockets(request.ports)
        api, metrics = request.workdir / "grout.sock", request.workdir / "grout.metrics"
        for path in (api, metrics):
            path.unlink(missing_ok=True)
        process = supervisor.spawn(
            self.name,
            [str(found.binary), *arguments(request, api, metrics)],
            cpus=request.control_cpus | {request.cpu},
            env=self.installation().env,
            workdir=request.workdir,
            netns_pid=request.netns_pid,
            new_netns=request.netns_pid is None,
        )
        switch = RunningGrout(process, metrics, request)
        with switch.stopped_on_failure():
            wait_ready("grout", lambda: common.is_socket(api) and switch.answers(), [process])
            options = {"vector-max": self.values.get("vector"), "rx-burst-max": self.values.get("burst")}
            graph = [f"{key} {value}" for key, value in options.items() if value is not None]
            lines = [*([f"graph config set {' '.join(graph)}"] if graph else []), *commands(request)]
            self._configure(found.binary.with_name("grcli"), api, lines, process)
            wait_ready("grout's vhost-user ports", lambda: common.sockets_exist(request.ports), [process])
            common.check_workers("grout", switch.polling_threads(), request, process)
        return switch

    def _configure(self, grcli: Path, api: Path, lines: Sequence[str], process: Process) -> None:
        """Run the commands up to the first that fails. Raises StartError with what grcli says."""
        argv: list[str | Path] = [grcli, "--err-exit", "--trace-commands", "--socket", api]
        text = "".join(f"{line}\n" for line in lines)
        done = run_tool(argv, TOOL_DEADLINE_S, env=self.installation().env, stdin=text)
        if not done.ok:
            said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-2:])
            raise StartError(f"grout refused a command: {said}\n{process.exit_report()}")


class RunningGrout(common.ProcessGroup):
    """A grout that forwards. Counters come from its exporter of metrics."""

    def __init__(self, process: Process, metrics: Path, request: SwitchRequest) -> None:
        super().__init__("grout", [process])
        self._metrics = metrics
        self._ports = [port.name for port in request.ports]

    def answers(self) -> bool:
        """Return whether the exporter answers."""
        try:
            return bool(grout_metrics.scrape(self._metrics))
        except PlanebenchError:
            return False

    def polling_threads(self) -> tuple[ThreadRef, ...]:
        return common.threads_named(self.process.pid, (WORKER,))

    def counters(self) -> SwitchCycles:
        """Return the counters. There are no busy cycles (see grout_metrics)."""
        self.check()
        try:
            return grout_metrics.switch_cycles(grout_metrics.scrape(self._metrics), self._ports)
        except PlanebenchError as error:
            raise self.died(error) from error


def arguments(request: SwitchRequest, api: Path, metrics: Path) -> list[str]:
    """Return the arguments: it polls always; without hugepages it has its test mode, which differs in nothing else."""
    memory = [] if request.hugepages else ["--test-mode"]
    return ["--poll-mode", *memory, "--socket", str(api), "--metrics", f"unix:{metrics}"]


def commands(request: SwitchRequest) -> list[str]:
    """Return the commands that place its threads, add the ports, and connect them in pairs.

    By itself it takes the first CPU of its affinity for control. A port becomes a cross-connect by its domain, which
    has to exist; so the first port of a pair gets it last.
    """
    ports = {port.name: port for port in request.ports}
    number = {port.name: place for place, port in enumerate(request.ports)}
    lines = [f"affinity cpus set control {cpu_text(request.control_cpus)} datapath {request.cpu}"]
    for pair in request.cross_connects:
        for name, domain in zip(pair, ("", f" domain {pair[0]}"), strict=True):
            device = common.dpdk_vdev(number[name], ports[name], request)
            lines.append(f"interface add port {name} devargs {device} qsize {ports[name].ring_size}{domain}")
        lines.append(f"interface set port {pair[0]} domain {pair[1]}")
    return lines


ADAPTER = GroutAdapter()
