# SPDX-License-Identifier: BSD-3-Clause
"""Lines of text over a stream socket, each sent or received before a deadline."""

from __future__ import annotations

import socket
import time


class Lines:
    """Sends and receives lines over ``sock``, which it owns. Not thread-safe.

    The other end may send anything: a line of more than ``most_bytes`` raises ValueError. Every method raises OSError
    when the deadline passes (a time of ``time.monotonic``) or the other end closes.
    """

    def __init__(self, sock: socket.socket, most_bytes: int) -> None:
        self._socket = sock
        self._most_bytes = most_bytes
        self._received = bytearray()
        self.sent_bytes = 0
        self.received_bytes = 0

    def close(self) -> None:
        """Close the socket. Safe to call twice."""
        self._socket.close()

    def send(self, line: bytes, deadline: float) -> None:
        """Send one line, given without its newline."""
        self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
        self._socket.sendall(line + b"\n")
        self.sent_bytes += len(line) + 1

    def receive(self, deadline: float) -> bytes:
        """Return the next line without its newline. A line that is there already is returned after the deadline too."""
        searched = 0
        while (end := self._received.find(b"\n", searched)) < 0:
            searched = len(self._received)
            if searched > self._most_bytes:
                raise ValueError(f"answer exceeds {self._most_bytes} bytes")
            self._receive(deadline)
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return line

    def _receive(self, deadline: float) -> None:
        self.wait_until(deadline)
        chunk = self._socket.recv(1 << 16)
        if not chunk:
            raise ConnectionResetError("connection closed by the other end")
        self._received += chunk
        self.received_bytes += len(chunk)

    def wait_until(self, deadline: float) -> None:
        """Have the next receive wait at most until ``deadline``. Raises TimeoutError if it has passed."""
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("timed out")
        self._socket.settimeout(left_s)
