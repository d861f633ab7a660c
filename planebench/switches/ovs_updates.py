# SPDX-License-Identifier: BSD-3-Clause
"""Updates of Open vSwitch's flow table while it forwards: a controller that changes the flows of VNFs by OpenFlow 1.0.

Each update is a FLOW_MOD (modify strict) of the flow of one VNF after the other. It has other actions than before, but
frames still go to the same VNF: ``strip_vlan`` before the output, which does nothing to frames without a tag, and then
without it. Barriers tell how many of them have been applied.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, cycle, islice
from pathlib import Path

from planebench.host.process import stretched
from planebench.model.errors import DiedError
from planebench.model.records import FibUpdates
from planebench.model.traffic import Updates

HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY, FLOW_MOD, BARRIER_REQUEST, BARRIER_REPLY = 0, 1, 2, 3, 14, 18, 19
"""ofp_type (OpenFlow 1.0, 5.1)."""
VERSION = 1
HEADER = struct.Struct("!BBHI")
MATCH = struct.Struct("!IH6s6sHBxHBBxxIIHH")
"""ofp_match (5.2.3)."""
MOD = struct.Struct("!QHHHHIHH")
"""ofp_flow_mod after the match (5.3.3)."""
IN_PORT_AND_DL_DST = 0x3FFFFF & ~(1 << 0 | 1 << 3)
"""Wildcards of all fields but these two."""
MODIFY_STRICT, DEFAULT_PRIORITY, NO_BUFFER, NO_PORT = 2, 0x8000, 0xFFFFFFFF, 0xFFFF
STRIP_VLAN = struct.pack("!HHxxxx", 3, 8)
BATCH = 64
"""The most flow-mods before a barrier; with a rate, those that are due in a millisecond."""
IN_FLIGHT = 4
"""Batches on their way at once."""
TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class VnfFlow:
    """The flow of a VNF: frames from ``in_port`` to ``mac`` leave by ``out_port``."""

    in_port: int
    mac: str
    out_port: int


def flow_mod(flow: VnfFlow, *, strip_vlan: bool) -> bytes:
    actions = (STRIP_VLAN if strip_vlan else b"") + struct.pack("!HHHH", 0, 8, flow.out_port, 0)
    mac = bytes.fromhex(flow.mac.replace(":", ""))
    match = MATCH.pack(IN_PORT_AND_DL_DST, flow.in_port, bytes(6), mac, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    change = MOD.pack(0, MODIFY_STRICT, 0, 0, DEFAULT_PRIORITY, NO_BUFFER, NO_PORT, 0)
    body = match + change + actions
    return HEADER.pack(VERSION, FLOW_MOD, HEADER.size + len(body), 0) + body


class FlowMods:
    """An OpenFlow session with a bridge that updates at a rate, or as fast as updates are applied, from a thread of its
    own."""

    def __init__(self, bridge: Path, flows: Sequence[VnfFlow], updates: Updates) -> None:
        """Connect, and begin. Raises DiedError."""
        self._rate = None if updates == "flat_out" else float(updates)
        self._messages = cycle([flow_mod(flow, strip_vlan=strip) for strip in (True, False) for flow in flows])
        self._sent = self._acknowledged = self._refused = 0
        self._waiting: dict[int, int] = {}
        """Flow-mods before each barrier that has not been answered, by its number."""
        self._over = threading.Event()
        self._problem: OSError | None = None
        self._duration_ns = 0
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(stretched(TIMEOUT_S))
        try:
            self._socket.connect(str(bridge))
            self._socket.sendall(HEADER.pack(VERSION, HELLO, HEADER.size, 0))
        except OSError as error:
            self._socket.close()
            raise DiedError(f"Open vSwitch takes no flow-mods on {bridge}: {error}") from error
        self._thread = threading.Thread(target=self._run, name="flow-mods", daemon=True)
        self._thread.start()

    def end(self) -> FibUpdates:
        """Stop, and return what was sent and applied. Raises DiedError if the session broke."""
        self._over.set()
        self._thread.join()
        self._socket.close()
        if self._problem is not None:
            raise DiedError(f"Open vSwitch ended the session of its controller: {self._problem}")
        # An error names no update, and a barrier does not know of errors before it.
        applied = max(0, self._acknowledged - self._refused)
        return FibUpdates(self._rate, self._duration_ns, self._sent, applied, self._refused)

    def _run(self) -> None:
        begun = time.monotonic_ns()
        barriers = count(1)
        try:
            while not self._over.is_set():
                due = BATCH
                if self._rate is not None:
                    elapsed_ns = time.monotonic_ns() - begun
                    due = min(int(elapsed_ns * self._rate / 1e9) - self._sent, BATCH)
                if not due:
                    self._over.wait(0.001)
                    continue
                while len(self._waiting) >= IN_FLIGHT:
                    self._read()
                barrier = next(barriers)
                self._waiting[barrier] = due
                batch = b"".join(islice(self._messages, due))
                self._socket.sendall(batch + HEADER.pack(VERSION, BARRIER_REQUEST, HEADER.size, barrier))
                self._sent += due
            self._duration_ns = time.monotonic_ns() - begun
            while self._waiting:
                self._read()
        except OSError as error:
            self._problem = error

    def _read(self) -> None:
        _, kind, length, number = HEADER.unpack(self._receive(HEADER.size))
        body = self._receive(length - HEADER.size)
        if kind == BARRIER_REPLY:
            self._acknowledged += self._waiting.pop(number, 0)
        elif kind == ERROR:
            self._refused += 1
        elif kind == ECHO_REQUEST:
            self._socket.sendall(HEADER.pack(VERSION, ECHO_REPLY, length, number) + body)

    def _receive(self, length: int) -> bytes:
        received = b""
        while len(received) < length:
            chunk = self._socket.recv(length - len(received))
            if not chunk:
                raise ConnectionResetError("the session was closed")
            received += chunk
        return received
