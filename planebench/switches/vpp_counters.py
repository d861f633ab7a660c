# SPDX-License-Identifier: BSD-3-Clause
"""VPP's counters: from what ``vpp_get_stats dump`` and ``show node NAME verbose`` print to ours.

The stats segment has counters for each interface and thread; every one that is asked for has a line for each, zero or
not, so that a line that is not there tells that the text is not whole: then the number is unknown.

``/if/tx`` counts what is handed to the driver of an interface; what its ring did not take is among the errors of its
``-tx`` node, and of vhost-user once more in ``/if/drops``.

Node counters of the segment are not used: they are as old as its last update (10 s), and the main thread collects them
without stopping the worker, which adds to them at the same time (vlib_node_get_nodes without a barrier). ``show node``
reads one node, whose counters stand still when no frame passes. Clocks give no busy cycles: those of an input node are
of all its polls, also of those that found nothing (vlib_node_runtime_update_stats), and which were which, it keeps not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planebench.model.records import SwitchCycles
from planebench.switches import common

THREADS = 2
"""Main thread and worker."""

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
_TX_ERRORS: Mapping[str, tuple[Mapping[str, str], ...]] = {
    # What memif rolls back, it counts as not sent too. The words are those of 26.06, and of versions before 21.06.
    "memif": (
        {"no_free_slots": "tx_full", "rollback": _EVENT},
        {"no free tx slots": "tx_full", "no enough space in tx buffers": _EVENT},
    ),
    "vhost-user": (_VHOST_ERRORS,),
    "pci": ({"Tx packet drops (dpdk tx failure)": "tx_full"},),
    "af_packet": (_AF_PACKET_ERRORS,),
}
"""Kind of port -> errors of its -tx node -> reason. All of one set must be there, and no others that are not zero."""


@dataclass(frozen=True, slots=True)
class Port:
    """A port: our name, its kind, and VPP's name of its interface."""

    name: str
    kind: str
    interface: str


def patterns(ports: Sequence[Port]) -> list[str]:
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


def parse_node(text: str) -> tuple[int, int] | None:
    """Return calls and vectors of a node over all threads; None if the table or a thread is missing."""
    head = _NODE_HEAD.search(text)
    rows: dict[int, tuple[int, int]] = {}
    for line in text[head.end() :].splitlines() if head else ():
        if match := _NODE_ROW.fullmatch(line):
            rows[int(match[1])] = (int(match[2]), int(match[4]))
    if set(rows) != set(range(THREADS)):
        return None
    return sum(calls for calls, _ in rows.values()), sum(vectors for _, vectors in rows.values())


def switch_cycles(dump: str, node: str, ports: Sequence[Port]) -> SwitchCycles:
    """Return the counters since the start; figures that the text does not contain in the known form are unknown."""
    names, counters = parse_dump(dump)
    received = common.total(_of_interface(counters.get("/if/rx"), names.get(port.interface)) for port in ports)
    sent = common.total(_of_interface(counters.get("/if/tx"), names.get(port.interface)) for port in ports)
    refused = {port.name: _tx_drops(counters, port) for port in ports}
    drops: dict[str, int] = {}
    for port in ports:
        reasons = refused[port.name]
        if reasons is None:
            continue
        drops |= {f"{port.name}:{reason}": count for reason, count in reasons.items()}
        rest = _of_interface(counters.get("/if/drops"), names.get(port.interface))
        if rest is not None and (rest := rest - (sum(reasons.values()) if port.kind == "vhost-user" else 0)) >= 0:
            drops[f"{port.name}:discarded"] = rest
    lost = common.total(None if reasons is None else sum(reasons.values()) for reasons in refused.values())
    return SwitchCycles(
        packets=received,
        forwarded_packets=sent - lost if sent is not None and lost is not None and sent >= lost else None,
        drops=drops,
        bursts=_bursts(node, received),
    )


def _bursts(node: str, received: int | None) -> int | None:
    """Return the calls of the node that all frames pass; None if its vectors are not the received frames."""
    counts = parse_node(node)
    return counts[0] if counts is not None and counts[1] == received else None


def _of_interface(counter: Mapping[tuple[int, int], int] | None, index: int | None) -> int | None:
    """Return the sum over threads; None if a thread, the counter or the interface is missing."""
    if counter is None or index is None:
        return None
    return common.total(counter.get((index, thread)) for thread in range(THREADS))


def _tx_drops(counters: Counters, port: Port) -> dict[str, int] | None:
    """Return the frames that the port dropped by reason; None if VPP's errors are not the known ones."""
    start = f"/err/{port.interface}-tx/"
    errors = {name.removeprefix(start): _of_interface(counters[name], 0) for name in counters if name.startswith(start)}
    reasons = next((known for known in _TX_ERRORS[port.kind] if known.keys() <= errors.keys()), None)
    if reasons is None:
        return None
    drops: dict[str, int] = {}
    for error, count in errors.items():
        reason = reasons.get(error, _DOUBTFUL)
        if count is None or (reason == _DOUBTFUL and count):
            return None
        if reason not in (_EVENT, _DOUBTFUL):
            drops[reason] = drops.get(reason, 0) + count
    return drops
