# SPDX-License-Identifier: BSD-3-Clause
"""The forwarder's side of FIB messages (dataplane/fib/fib_pipe.c, the real thing without packets), and links to it."""

from __future__ import annotations

import random
import struct
import subprocess
from collections import deque
from typing import NamedTuple

from nf_rig import program

MAC = bytes.fromhex("020000000001")
GATEWAY = bytes.fromhex("020000000101")


class Installed(NamedTuple):
    """A route that lookups find."""

    hop: int
    kind: int
    port: int
    mac: str
    stale: bool
    vlan: int = 0


class Forwarder:
    """One VNF's session; time stands still. A context manager."""

    def __init__(self, quota_routes: int = 10000, quota_hops: int = 16, mac: bytes = MAC) -> None:
        command = [str(program("fib_pipe")), str(quota_routes), str(quota_hops), mac.hex(":")]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.frames = 0

    def handle(self, frame: bytes) -> bytes:
        """The answer; empty if there is none."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(struct.pack("=I", len(frame)) + frame)
        self._process.stdin.flush()
        self.frames += 1
        (length,) = struct.unpack("=I", self._process.stdout.read(4))
        return self._process.stdout.read(length)

    def routes(self) -> dict[str, Installed]:
        """By prefix."""
        lines = [line.split() for line in self.handle(b"").decode().splitlines()]
        return {
            prefix: Installed(int(hop), int(kind), int(port), mac, stale == "1", int(vlan))
            for prefix, hop, kind, port, mac, stale, vlan in lines
        }

    def __enter__(self) -> Forwarder:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        assert self._process.wait(timeout=60) == 0


class Link:
    """A transport to a forwarder that loses and delays frames. ``now``: its own time; it moves when a client waits."""

    def __init__(self, forwarder: Forwarder, *, loss: float = 0.0, delay_s: float = 0.0, seed: int = 1) -> None:
        self.forwarder = forwarder
        self.mac = MAC
        self.now = 0.0
        self.loss = loss
        self.delay_s = delay_s
        self.sent: list[bytes] = []
        self.closed = False
        self._random = random.Random(seed)
        self._answers: deque[tuple[float, bytes]] = deque()
        self._under_way: list[tuple[float, bytes]] = []

    def clock(self) -> float:
        """Seconds."""
        return self.now

    def send(self, frame: bytes) -> None:
        """Towards the forwarder."""
        self.sent.append(frame)
        if self._random.random() >= self.loss:
            self._under_way.append((self.now + self._random.random() * self.delay_s, frame))

    def receive(self, timeout_s: float) -> bytes | None:
        """The next answer that gets through."""
        end = self.now + timeout_s
        while True:
            self._arrive()
            due = [answer for answer in self._answers if answer[0] <= self.now]
            if due:
                self._answers.remove(due[0])
                return due[0][1]
            if self.now >= end:
                return None
            self.now = min(end, self.now + 0.001)

    def _arrive(self) -> None:
        for due, frame in [one for one in self._under_way if one[0] <= self.now]:
            self._under_way.remove((due, frame))
            answer = self.forwarder.handle(frame)
            if answer and self._random.random() >= self.loss:
                self._answers.append((self.now + self._random.random() * self.delay_s, answer))

    def close(self) -> None:
        """Nothing comes any more."""
        self.closed = True
