# SPDX-License-Identifier: BSD-3-Clause
"""grout: the graph router of the DPDK project. Ports in cross-connect mode, each the domain of the other.

It makes interfaces and routes in its network namespace, which is therefore its own. It is set up by ``grcli``, which
reads one command a line; counters come from its exporter of metrics, in the text format of Prometheus, by HTTP on a
unix socket.

A counter that is not in the text is unknown. Drops of a port (``iface_port_*``) are its driver's; frames are counted by
the nodes of the graph, of which each queue of a port has its own. ``iface_rx_packets`` is not used: of a cross-connect
two nodes add to it, so it is twice the number of frames.

There are no busy cycles. Those of a port's receive node are of all its polls, also of those that found nothing; and
``busy_cycles`` is the time of every 256 turns of the graph in which one frame passed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from planebench.host.process import Process, Supervisor, wait_ready
from planebench.host.programs import Found, NotFound, run_tool
from planebench.model.conditions import everywhere
from planebench.model.cpus import cpu_text
from planebench.model.errors import PlanebenchError, StartError
from planebench.model.records import SwitchCycles
from planebench.switches import common
from planebench.switches.adapter import STANDARD_FRAME_BYTES, Adapter, Traits
from planebench.switches.common import manifest
from planebench.testbed.request import SwitchRequest

VECTOR = 64
"""Frames that the graph takes at once, shared by the ports of a worker; as many from one port at most."""
MBUFS = 65535
"""GROUT_MEMPOOL_CHUNK_SIZE: the size of the pool that all ports share."""
TOOL_DEADLINE_S = 30.0
"""Each port is added to the graph of a worker that has to take notice: on a busy CPU that takes seconds."""
WORKER = "grout:w"
PLACES = ("/usr/local/bin/grout", "/opt/grout*/bin/grout", "/opt/grout*/build/grout", "~/grout/build/grout")
_VERSION = re.compile(r"^grout v?(\S.*)$", re.MULTILINE)
TIMEOUT_S = 5.0
REQUEST = b"GET /metrics HTTP/1.1\r\nHost: grout\r\nConnection: close\r\n\r\n"
RX_DROPS = {"missed": "rx_missed", "errors": "rx_errors", "nobufs": "rx_nombuf"}
"""Counters of a port, and our names of them."""
DROP_NODES = (
    "port_tx_down",
    "port_output_invalid",
    "xconnect_no_port",
    "error_no_headroom",
    "iface_mode_unknown",
    "iface_input_admin_down",
    "iface_input_unknown_vlan",
)
"""Nodes on the path of a cross-connect that free frames, but for ``port_tx_error``: the port counts those as well."""
_SAMPLE = re.compile(r"grout_(\w+)\{([^}]*)\} ([0-9]+)")
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_QUEUE = re.compile(r"-p[0-9]+q[0-9]+$")

Samples = Mapping[tuple[str, str, str], int]
"""(metric, label ``name`` or ``iface``, label ``le``) -> value."""


def scrape(path: Path) -> Samples:
    """Return all metrics. Raises PlanebenchError if nobody answers, or not the whole text came."""
    try:
        received = common.answer_on(path, REQUEST, TIMEOUT_S)
    except OSError as error:
        raise PlanebenchError(f"grout's metrics on {path} do not answer: {error}") from error
    return parse(body_of(received))


def body_of(received: bytes) -> str:
    """Return the body of an HTTP answer. Raises PlanebenchError unless it is whole."""
    head, _, body = received.partition(b"\r\n\r\n")
    length = re.search(rb"(?im)^content-length: *([0-9]+)\r?$", head)
    if not re.match(rb"HTTP/1\.[01] 200 ", head) or length is None or int(length[1]) != len(body):
        raise PlanebenchError(f"unexpected answer of grout's metrics: {received[:80]!r}, {len(body)} bytes of text")
    return body.decode(errors="replace")


def parse(text: str) -> Samples:
    """Return the samples of a text, from lines of the known form only."""
    found: dict[tuple[str, str, str], int] = {}
    for line in text.splitlines():
        if match := _SAMPLE.fullmatch(line):
            labels: dict[str, str] = dict(_LABEL.findall(match[2]))
            found[match[1], labels.get("name") or labels.get("iface", ""), labels.get("le", "")] = int(match[3])
    return found


def switch_cycles(samples: Samples, ports: Sequence[str]) -> SwitchCycles:
    """Return the counters since the start; what is not among the samples is unknown.

    Each queue of a port has its copy of a node; here they are one. ``cycles.NODE`` is of every node that took time.
    """
    drops = {
        f"{port}:{ours}": count
        for port in ports
        for name, ours in (*((f"rx_{key}", ours) for key, ours in RX_DROPS.items()), ("tx_errors", "tx_full"))
        if (count := samples.get((f"iface_port_{name}", port, ""))) is not None
    }
    for node in DROP_NODES:
        if (count := samples.get(("node_packets", node, ""))) is not None:
            drops[node] = count
    cycles: Counter[str] = Counter()
    of_queues: dict[str, list[int]] = {"port_rx": [], "port_tx": []}
    for (metric, name, _), count in samples.items():
        node = _QUEUE.sub("", name)
        if metric == "node_cycles" and count:
            cycles[f"cycles.{node}"] += count
        elif metric == "node_packets" and node in of_queues:
            of_queues[node].append(count)
    received, sent = (sum(found) if len(found) == len(ports) else None for found in of_queues.values())
    refused = samples.get(("node_packets", "port_tx_error", ""))
    # Polls that found frames, from the histograms of what each poll found.
    polls = common.total(samples.get(("rx_burst_size_count", port, "")) for port in ports)
    empty = common.total(samples.get(("rx_burst_size_bucket", port, "0")) for port in ports)
    return SwitchCycles(
        packets=received,
        forwarded_packets=None if sent is None or refused is None else sent - refused,
        bursts=None if polls is None or empty is None else polls - empty,
        drops=drops,
        counters=dict(cycles),
    )


class GroutAdapter(Adapter):
    name = "grout"
    title = "grout"
    remedy = (
        "build it: https://github.com/DPDK/grout (a compiler with C23 enums, such as clang), then "
        "PLANEBENCH_GROUT=/path/to/build"
    )
    wires = frozenset({"vhost"})
    max_frame_bytes = STANDARD_FRAME_BYTES
    hugepages_mb = 1536
    one_per_namespace = True  # its interfaces have the names of the ports
    traits = Traits("self-contained", "structured", ("rtc",), "vhost-user", "low", ("C",), "router")

    def find(self) -> Found | NotFound:
        found = self.found_by_version("grout", PLACES, _VERSION)
        if isinstance(found, Found) and not found.binary.with_name("grcli").is_file():
            return NotFound(f"{found.binary} has no grcli beside it; give the folder of a complete build")
        return found

    def settings(self, request: SwitchRequest) -> dict[str, str]:
        burst = max(1, VECTOR // len(request.ports))  # it takes from a port its share of the vector
        return manifest(
            request,
            function="patch: cross-connect mode (xconnect), each way",
            nic_driver=common.nic_driver(request),
            vnf_interface="vhost-user (DPDK net_vhost)",
            burst=f"{burst} ({VECTOR} for all ports of the worker)",
            checksum_offload=everywhere("off", "offered to VNFs, not used by planed's"),
            segmentation_offload=everywhere("off"),
            mergeable_buffers=everywhere("offered"),
            buffers=f"{MBUFS} mbufs, one pool",
            idle="polls (-p)",
        )

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningGrout:
        found, _ = common.prepared(self, request)
        api, metrics = request.workdir / "grout.sock", request.workdir / "grout.metrics"
        for path in (api, metrics):
            path.unlink(missing_ok=True)
        memory = [] if request.hugepages else ["--test-mode"]  # which differs in nothing else
        argv = [str(found.binary), "--poll-mode", *memory, "--socket", str(api), "--metrics", f"unix:{metrics}"]
        process = self.spawn(argv, request, supervisor)
        switch = RunningGrout(process, metrics, request)
        scraped = partial(common.answers, partial(scrape, metrics))
        with switch.stopped_on_failure():
            wait_ready("grout", lambda: api.is_socket() and scraped(), [process])
            # grcli ends at the first command that fails.
            grcli = found.binary.with_name("grcli")
            text = "".join(f"{line}\n" for line in commands(request))
            done = run_tool([grcli, "--err-exit", "--trace-commands", "--socket", api], TOOL_DEADLINE_S, stdin=text)
            if not done.ok:
                said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-2:])
                raise StartError(f"grout refused a command: {said}\n{process.exit_report()}")
            wait_ready("grout's vhost-user ports", lambda: common.sockets_exist(request.ports), [process])
            common.check_workers("grout", switch.polling_threads(), request, process)
        return switch


class RunningGrout(common.ProcessGroup):
    thread_marks = (WORKER,)

    def __init__(self, process: Process, metrics: Path, request: SwitchRequest) -> None:
        super().__init__("grout", [process])
        self._metrics = metrics
        self._ports = [port.name for port in request.ports]

    def counters(self) -> SwitchCycles:
        with self.answering():
            return switch_cycles(scrape(self._metrics), self._ports)


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
