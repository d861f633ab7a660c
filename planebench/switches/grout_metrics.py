# SPDX-License-Identifier: BSD-3-Clause
"""grout's counters: its exporter of metrics in the text format of Prometheus, by HTTP on a unix socket.

A counter that is not in the text is unknown. Drops of a port (``iface_port_*``) are its driver's; frames are counted by
the nodes of the graph, of which each queue of a port has its own. ``iface_rx_packets`` is not used: of a cross-connect
two nodes add to it, so it is twice the number of frames.

There are no busy cycles. Those of a port's receive node are of all its polls, also of those that found nothing; and
``busy_cycles`` is the time of every 256 turns of the graph in which one frame passed.
"""

from __future__ import annotations

import re
import socket
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from planebench.host.deadlines import stretched
from planebench.model.errors import PlanebenchError
from planebench.model.records import SwitchCycles
from planebench.switches import common

TIMEOUT_S = 5.0
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
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(stretched(TIMEOUT_S))
            connection.connect(str(path))
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: grout\r\nConnection: close\r\n\r\n")
            received = b"".join(iter(lambda: connection.recv(1 << 16), b""))
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
    """Return the counters since the start; what is not among the samples is unknown."""
    drops = {
        f"{port}:{ours}": count
        for port in ports
        for name, ours in (*((f"rx_{key}", ours) for key, ours in RX_DROPS.items()), ("tx_errors", "tx_full"))
        if (count := samples.get((f"iface_port_{name}", port, ""))) is not None
    }
    for node in DROP_NODES:
        if (count := samples.get(("node_packets", node, ""))) is not None:
            drops[node] = count
    received, sent = (_of_queues(samples, node, len(ports)) for node in ("port_rx", "port_tx"))
    refused = samples.get(("node_packets", "port_tx_error", ""))
    return SwitchCycles(
        packets=received,
        forwarded_packets=None if sent is None or refused is None else sent - refused,
        bursts=_bursts(samples, ports),
        drops=drops,
        counters=cycles_by_node(samples),
    )


def cycles_by_node(samples: Samples) -> dict[str, int]:
    """Return ``cycles.NODE`` of every node that took time; the nodes of the queues of all ports are one."""
    total: Counter[str] = Counter()
    for (metric, node, _), count in samples.items():
        if metric == "node_cycles" and count:
            total[f"cycles.{_node(node)}"] += count
    return dict(total)


def _of_queues(samples: Samples, node: str, ports: int) -> int | None:
    """Return the frames of a node that each queue of a port has; None unless all ports have one."""
    found = [count for (metric, name, _), count in samples.items() if metric == "node_packets" and _node(name) == node]
    return sum(found) if len(found) == ports else None


def _node(name: str) -> str:
    """Return the node of which this is the copy for one queue of a port."""
    return _QUEUE.sub("", name)


def _bursts(samples: Samples, ports: Sequence[str]) -> int | None:
    """Return the polls that found frames, from the histograms of what each poll found."""
    every = common.total(samples.get(("rx_burst_size_count", port, "")) for port in ports)
    empty = common.total(samples.get(("rx_burst_size_bucket", port, "0")) for port in ports)
    return None if every is None or empty is None else every - empty
