# SPDX-License-Identifier: BSD-3-Clause
"""A switch in a page of Python, between kernel interfaces; and, if asked to be, a bad one in exactly one way.

pyswitch.py FAULT CPU|any COUNTERS IF:IF...

COUNTERS is a file with numbers of 8 bytes: received, sent, and which of FAULTS it has; who writes the last changes it.
"""

from __future__ import annotations

import mmap
import os
import select
import socket
import struct
import sys
import threading
import time
from pathlib import Path

SOL_PACKET, PACKET_AUXDATA, PACKET_IGNORE_OUTGOING, SO_RCVBUFFORCE = 263, 8, 23, 33
VLAN_VALID = 1 << 4
AUXDATA = struct.Struct("=IIIHHHH")
EVERY = 10
FAULTS = (
    "none",
    "loses",
    "damages",
    "rewrites-macs",
    "overtakes",
    "doubles",
    "sends-back",
    "dies-of-runts",
    "oversleeps",
    "has-company",
)
NUMBERS = struct.Struct("<QQQ")
ASLEEP_S = 0.25


class Switch:
    def __init__(self, fault: str, counters: Path, pairs: list[list[str]]) -> None:
        counters.write_bytes(NUMBERS.pack(0, 0, FAULTS.index(fault)))
        with counters.open("r+b") as file:
            self.counters = mmap.mmap(file.fileno(), NUMBERS.size)
        self.sockets = {name: opened(name) for pair in pairs for name in pair}
        self.peers = {a: b for pair in pairs for a, b in (pair, pair[::-1])}
        self.number = 0
        self.held: tuple[str, bytes] | None = None
        self.received = self.sent = 0

    @property
    def fault(self) -> str:
        return FAULTS[self.counters[16]]

    def run(self) -> None:
        poller = select.poll()
        names = {}
        for name, it in self.sockets.items():
            names[it.fileno()] = name
            poller.register(it, select.POLLIN)
        while True:
            before = time.monotonic()
            ready = poller.poll(1)
            if self.fault == "oversleeps" and time.monotonic() - before > ASLEEP_S:
                time.sleep(1000)
            for number, _ in ready:
                self.receive(names[number])
            if not ready and self.held:
                self.release()
                self.tell()

    def receive(self, name: str) -> None:
        for _ in range(64):
            try:
                data, extra, _, _ = self.sockets[name].recvmsg(65536, 64)
            except OSError:
                return
            self.received += 1
            self.forward(name, tagged(data, extra))
            self.tell()

    def tell(self) -> None:
        """Each count in one store: struct.pack_into() would write zeros first, and the adapter may read them."""
        counts = memoryview(self.counters)[:16].cast("Q")
        counts[0], counts[1] = self.received, self.sent

    def forward(self, name: str, data: bytes) -> None:
        self.number += 1
        peer, chosen = self.peers[name], self.number % EVERY == 0
        if self.fault == "dies-of-runts" and len(data) < 30:
            print(f"a runt of {len(data)} bytes, and no idea what to do", flush=True)
            os.abort()
        if chosen and self.fault == "loses":
            return
        if chosen and self.fault == "damages" and len(data) > 55:
            data = data[:50] + bytes([data[50] ^ 1]) + data[51:]
        if self.fault == "rewrites-macs":
            data = b"\x02\xbb\xbb\xbb\xbb\xbb" + data[6:]
        if chosen and self.fault == "overtakes" and self.held is None:
            self.held = (peer, data)
            return
        self.send(peer, data)
        self.sent += 1
        if chosen and self.fault == "doubles":
            self.send(peer, data)
        if chosen and self.fault == "sends-back":
            self.send(name, data)
        if self.held:
            self.release()

    def release(self) -> None:
        if self.held:
            self.send(*self.held)
            self.sent += 1
            self.held = None

    def send(self, name: str, data: bytes) -> None:
        try:
            self.sockets[name].send(data)
        except OSError:
            return


def opened(name: str) -> socket.socket:
    it = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    it.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    it.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    try:
        it.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 24)
    except OSError:
        it.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
    it.bind((name, 0))
    it.setblocking(False)
    return it


def tagged(data: bytes, extra: list[tuple[int, int, bytes]]) -> bytes:
    """With the tag that the kernel took off."""
    for _, kind, value in extra:
        if kind == PACKET_AUXDATA and len(value) >= AUXDATA.size:
            status, _, _, _, _, tci, tpid = AUXDATA.unpack_from(value)
            if status & VLAN_VALID:
                return data[:12] + struct.pack(">HH", tpid or 0x8100, tci) + data[12:]
    return data


def main() -> None:
    fault, cpu, counters, *pairs = sys.argv[1:]
    every = os.sched_getaffinity(0)
    if cpu != "any":
        os.sched_setaffinity(0, {int(cpu)})
    if fault == "has-company":
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    switch = Switch(fault, Path(counters), [pair.split(":") for pair in pairs])
    print(f"{len(switch.sockets)} interfaces, allowed on {sorted(every)}", flush=True)
    switch.run()


if __name__ == "__main__":
    main()
