# SPDX-License-Identifier: BSD-3-Clause
"""Counters from the text that Open vSwitch prints about its threads and ports.

Versions before 3.5 print text only. Each number is matched with its label and with what follows it: truncated or
different text gives None, or no key, but never another number.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from planebench.host.process import stretched
from planebench.model.errors import PlanebenchError
from planebench.model.records import SwitchCycles
from planebench.switches.common import nic_counters, nic_drops, total

TIMEOUT_S = 5.0
MAIN_THREAD = "main thread:\n"
_PMD_THREAD = re.compile(r"^pmd thread numa_id \d+ core_id \d+:$", re.MULTILINE)
DROP_COUNTERS = {
    "ovs_tx_failure_drops": "tx_full",
    "ovs_tx_mtu_exceeded_drops": "tx_mtu_exceeded",
    "ovs_tx_qos_drops": "tx_qos",
    "ovs_tx_invalid_hwol_drops": "tx_invalid_offload",
    "rx_missed_errors": "rx_missed",
    "rx_errors": "rx_errors",
    "rx_mbuf_allocation_errors": "rx_nombuf",
}
"""The counters of OvS for a DPDK port, and our names."""
_TX_DROPS = tuple(key for key in DROP_COUNTERS if key.startswith("ovs_tx_"))
_PORT = re.compile(r"^\s*port\s+\"?([\w-]+)\"?: rx pkts=", re.MULTILINE)
_COUNTER = re.compile(r"\b(\w+)=(\d+)[,\s]")


@dataclass(frozen=True, slots=True)
class PortCounters:
    """Counters of a port, or of all ports together: None if one of them is unknown."""

    drops: dict[str, int] = field(default_factory=dict)
    """By reason; of all ports by ``PORT:REASON``."""
    nic: dict[str, int] = field(default_factory=dict)
    """Extended statistics that speak of lost frames; of all ports by ``PORT:NAME``."""
    tx_drops: int | None = None


def parse_ports(text: str, ports: Sequence[str]) -> PortCounters:
    """Return the counters in the output of ``ovs-ofctl -O OpenFlow14 dump-ports``.

    ``ports`` are our names; OvS has the numbers 1, 2, ... A port or a counter that is missing in the text gives no key.
    """
    names = {str(number): name for number, name in enumerate(ports, start=1)}
    _, *parts = _PORT.split(text)
    found: dict[str, PortCounters] = {}
    for number, block in zip(parts[::2], parts[1::2], strict=True):
        if number not in names:
            continue
        custom = {key: int(count) for key, count in _COUNTER.findall(block) if key in DROP_COUNTERS}
        of_driver = dict(_COUNTER.findall(block.partition("CUSTOM Statistics")[2]))
        found[names[number]] = PortCounters(
            {DROP_COUNTERS[key]: count for key, count in custom.items()},
            {key: int(count) for key, count in of_driver.items() if not key.startswith("ovs_")},
            sum(custom[key] for key in _TX_DROPS) if custom.keys() >= set(_TX_DROPS) else None,
        )
    every = [found.get(name, PortCounters()) for name in ports]
    nic = nic_counters({name: port.nic for name, port in found.items()})
    return PortCounters(
        drops={f"{name}:{reason}": count for name, port in found.items() for reason, count in port.drops.items()}
        | nic_drops(nic),
        nic=nic,
        tx_drops=total(port.tx_drops for port in every),
    )


def pmd_cycles(stats: str, perf: str, ports: PortCounters, workers: int = 1) -> SwitchCycles:
    """Return the sums over all PMD threads, from ``pmd-stats-show`` and ``pmd-perf-show``.

    Unknown unless there are as many threads as ``workers``. They forward the frames that they try to send without those
    that ports drop. All frames of a poll leave by one port in one batch, so batches sent are polls that found frames.
    """
    pmds, tried = stats.partition(MAIN_THREAD)[0], _of_threads("Tx packets", perf, workers)
    return SwitchCycles(
        busy_cycles=_of_threads("processing cycles", pmds, workers),
        packets=_of_threads("packets received", pmds, workers),
        drops=ports.drops,
        forwarded_packets=None if tried is None or ports.tx_drops is None else tried - ports.tx_drops,
        bursts=_of_threads("Tx batches", perf, workers),
        counters=ports.nic,
    )


def _of_threads(label: str, text: str, workers: int) -> int | None:
    """Return the sum of a number over the PMD threads of a text; None unless all of them tell it."""
    threads = _PMD_THREAD.split(text)[1:]
    return total(_number(label, thread) for thread in threads) if len(threads) == workers else None


def _number(label: str, text: str) -> int | None:
    """Return the number with this label; None without it.

    A 64-bit counter that has gone below zero is the number that it stands for. Seen with Open vSwitch 3.1: the cycles
    of a first reading after a start. Why they go below zero is not known.
    """
    match = re.search(rf"^(?:  )?{re.escape(label)}: +(\d+)\s", text, re.MULTILINE)
    count = int(match[1]) if match else None
    return count - 2**64 if count is not None and count >= 2**63 else count


def unixctl(path: Path, method: str, *arguments: str) -> str:
    """Return the output of ``ovs-appctl -t PATH METHOD ARGUMENTS``. Raises PlanebenchError on refusal or silence.

    The protocol is JSON-RPC 1.0 with one call per connection. Starting ovs-appctl instead takes 10 ms of CPU time on
    the core that the tester polls on: 0.8 s of waiting.
    """
    request = json.dumps({"id": 0, "method": method, "params": arguments}).encode()
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(stretched(TIMEOUT_S))
            connection.connect(str(path))
            connection.sendall(request)
            received = b""
            answer = None
            while not isinstance(answer, dict):
                chunk = connection.recv(1 << 16)
                if not chunk:
                    raise ConnectionResetError(f"the connection was closed after {len(received)} bytes")
                received += chunk
                with contextlib.suppress(ValueError):  # only its brackets mark the end of the object
                    answer, _ = json.JSONDecoder().raw_decode(received.decode())
    except OSError as error:
        raise PlanebenchError(f"Open vSwitch does not answer {method} on {path}: {error}") from error
    if answer.get("error") is not None:
        raise PlanebenchError(f"Open vSwitch refused {method} {' '.join(arguments)}: {str(answer['error']).strip()}")
    return str(answer.get("result", ""))
