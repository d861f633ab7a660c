# SPDX-License-Identifier: BSD-3-Clause
"""VPP's counters: from what ``vpp_get_stats dump`` and ``show node NAME verbose`` print to ours.

The stats segment has counters for each interface and thread, the main thread and the workers; every one that is asked
for has a line for each, zero or not. A line that is not there, or is one too many, tells that the text is not of these
threads: then the number is unknown.

``/if/tx`` counts what is handed to the driver of an interface; what its ring did not take is among the errors of its
``-tx`` node, and of vhost-user once more in ``/if/drops``.

Node counters of the segment are not used: they are as old as its last update (10 s), and the main thread collects them
without stopping the worker, which adds to them at the same time (vlib_node_get_nodes without a barrier). ``show node``
reads one node, whose counters stand still when no frame passes. Clocks give no busy cycles: those of an input node are
of all its polls, also of those that found nothing (vlib_node_runtime_update_stats), and which were which, it keeps not.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from planebench.model.records import SwitchCycles
from planebench.switches import common

Counters = Mapping[str, Mapping[tuple[int, int], int]]
"""Name -> (index, thread) -> packets."""

_LINE = re.compile(r"\[(\d+) @ (\d+)\]: (\d+) packets(?:, \d+ bytes)? (/\S.*)")
_NAME = re.compile(r"\[(\d+)\]: (\S+) /if/names")
_NODE_HEAD = re.compile(r"^ *Thread +Calls +Clocks +Vectors +Max Clock +Max Vectors *$", re.MULTILINE)
_NODE_ROW = re.compile(r" *(\d+) +(\d+) +(\d+) +(\d+) +\d+ +\d+ *")

_EVENT, _DOUBTFUL = "", "?"
"""Errors that are no dropped frames; and those of which it cannot be told how many were: they must be zero."""
_VHOST_ERRORS = {
    "tx packet drops (no available descriptors)": "tx_full",
    "tx packet drops (cannot merge descriptors)": "tx_not_mergeable",
    "vhost vring not ready": "tx_not_ready",
    "vhost interface is down": "tx_not_ready",
    "indirect descriptor table overflow": "tx_error",
    "mmap failure": _DOUBTFUL,
    "no error": _EVENT,
}
_AF_PACKET_ERRORS = {
    "tx frame not ready": "tx_full",
    "tx ring overrun": "tx_full",
    "tx sendto temporary failure": _EVENT,  # what stays in the ring goes out later
    "tx sendto fatal failure": _DOUBTFUL,
}
TX_ERRORS: Mapping[str, Mapping[str, str]] = {
    # What memif rolls back, it counts as not sent too.
    "memif": {"no_free_slots": "tx_full", "rollback": _EVENT},
    "vhost-user": _VHOST_ERRORS,
    "pci": {"Tx packet drops (dpdk tx failure)": "tx_full"},
    "af_packet": _AF_PACKET_ERRORS,
    # A call that woke the kernel, or failed to: the frames stay in the ring and go out with the next.
    "af_xdp": {"no free tx slots": "tx_full", "syscall required": _EVENT, "syscall failures": _EVENT},
}
"""Kind of port -> errors of its -tx node -> reason. All must be there, and no others that are not zero."""


@dataclass(frozen=True, slots=True)
class VppPort:
    """A port: our name, its kind, and VPP's name of its interface."""

    name: str
    kind: str
    interface: str


def patterns(ports: Sequence[VppPort]) -> list[str]:
    """Return the counters to dump, as basic regular expressions."""
    return [
        "^/if/names$",
        "^/if/rx$",
        "^/if/tx$",
        "^/if/drops$",
        *(f"^/err/{re.escape(port.interface)}-tx/" for port in ports),
    ]


def parse_dump(text: str) -> tuple[dict[str, int], Counters]:
    """Return the index of each interface, and the counters, from complete lines only."""
    names: dict[str, int] = {}
    counters: dict[str, dict[tuple[int, int], int]] = {}
    for line in text.splitlines(keepends=True):
        whole = line.endswith("\n")
        if whole and (match := _NAME.fullmatch(line[:-1])):
            names[match[2]] = int(match[1])
        elif whole and (match := _LINE.fullmatch(line[:-1])):
            counters.setdefault(match[4], {})[int(match[1]), int(match[2])] = int(match[3])
    return names, counters


def parse_node(text: str, workers: int = 1) -> tuple[int, int] | None:
    """Return calls and vectors of a node over all threads; None unless the table has main thread and ``workers``."""
    head = _NODE_HEAD.search(text)
    rows: dict[int, tuple[int, int]] = {}
    for line in text[head.end() :].splitlines() if head else ():
        if match := _NODE_ROW.fullmatch(line):
            rows[int(match[1])] = (int(match[2]), int(match[4]))
    if not _is_whole(rows, workers):
        return None
    return sum(calls for calls, _ in rows.values()), sum(vectors for _, vectors in rows.values())


def switch_cycles(dump: str, node: str, ports: Sequence[VppPort], workers: int = 1) -> SwitchCycles:
    """Return the counters since the start, of ``workers`` and the main thread.

    Figures that the text does not contain in the known form, or not for each thread, are unknown.
    """
    names, counters = parse_dump(dump)

    def of_port(counter: str, port: VppPort) -> int | None:
        return _of_interface(counters.get(counter), names.get(port.interface), workers)

    received = common.total(of_port("/if/rx", port) for port in ports)
    sent = common.total(of_port("/if/tx", port) for port in ports)
    refused = {port.name: _tx_drops(counters, port, workers) for port in ports}
    drops: dict[str, int] = {}
    for port in ports:
        reasons = refused[port.name]
        if reasons is None:
            continue
        drops |= {f"{port.name}:{reason}": count for reason, count in reasons.items()}
        rest = of_port("/if/drops", port)
        if rest is not None and (rest := rest - (sum(reasons.values()) if port.kind == "vhost-user" else 0)) >= 0:
            drops[f"{port.name}:discarded"] = rest
    # All frames pass the node, once; if its vectors are not the received frames, its calls are not their bursts.
    calls, vectors = parse_node(node, workers) or (None, None)
    lost = common.total(None if reasons is None else sum(reasons.values()) for reasons in refused.values())
    return SwitchCycles(
        packets=received,
        forwarded_packets=sent - lost if sent is not None and lost is not None and sent >= lost else None,
        drops=drops,
        bursts=calls if vectors == received else None,
    )


def _is_whole(threads: Collection[int], workers: int) -> bool:
    """Return whether these are the main thread, 0, and the workers, 1, 2, ..., all of them."""
    return set(threads) == set(range(1 + workers))


def _of_interface(counter: Mapping[tuple[int, int], int] | None, index: int | None, workers: int) -> int | None:
    """Return the sum over threads; None if one of them, the counter or the interface is missing."""
    if counter is None or index is None:
        return None
    of_threads = {thread: count for (which, thread), count in counter.items() if which == index}
    return sum(of_threads.values()) if _is_whole(of_threads, workers) else None


def _tx_drops(counters: Counters, port: VppPort, workers: int) -> dict[str, int] | None:
    """Return the frames that the port dropped by reason; None if VPP's errors are not the known ones."""
    start = f"/err/{port.interface}-tx/"
    errors = {
        name.removeprefix(start): _of_interface(counters[name], 0, workers)
        for name in counters
        if name.startswith(start)
    }
    reasons = TX_ERRORS[port.kind]
    if not reasons.keys() <= errors.keys():
        return None
    drops: dict[str, int] = {}
    for error, count in errors.items():
        reason = reasons.get(error, _DOUBTFUL)
        if count is None or (reason == _DOUBTFUL and count):
            return None
        if reason not in (_EVENT, _DOUBTFUL):
            drops[reason] = drops.get(reason, 0) + count
    return drops
