# SPDX-License-Identifier: BSD-3-Clause
"""The transport of frames to the forwarder and back: a packet socket on the VNF's interface, or any other."""

from __future__ import annotations

import errno
import fcntl
import socket
import struct
from types import TracebackType
from typing import Protocol, Self

from planebench_fib.exceptions import Error
from planebench_fib.messages import ETHER_TYPE, FRAME_BYTES_MAX, FRAME_BYTES_NEEDED

_RECEIVE_BYTES_MAX = 2048
_ETHERNET_BYTES = 14
_SIOCGIFMTU, _INTERFACE = 0x8921, struct.Struct("16si20x")


class TransportError(Error):
    """The transport failed: the interface is missing, not permitted, or down."""


class FrameTooLongError(TransportError):
    """A frame is longer than the interface takes by now."""


class Transport(Protocol):
    """A transport, which may lose frames. ``mac``: the VNF's address, six bytes. One that does not take frames of 1514
    bytes says so by a method ``frame_bytes()``, and raises FrameTooLongError."""

    mac: bytes

    def send(self, frame: bytes) -> None:
        """Send a frame, or lose it."""

    def receive(self, timeout_s: float) -> bytes | None:
        """Return the next frame of the forwarder; None if there is none in time."""

    def close(self) -> None:
        """Stop sending and receiving."""


class PacketTransport:
    """An AF_PACKET socket (packet(7)) on an interface; needs CAP_NET_RAW. ``fileno()`` is for select()."""

    def __init__(self, interface: str) -> None:
        self.interface = interface
        try:
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHER_TYPE))
        except PermissionError:
            raise TransportError(
                "a packet socket needs CAP_NET_RAW: run as root, or give the program that capability"
            ) from None
        try:
            self._socket.bind((interface, ETHER_TYPE))
        except OSError as error:
            self._socket.close()
            raise TransportError(f"interface '{interface}': {error.strerror}; 'ip link' lists the interfaces") from None
        self.mac: bytes = self._socket.getsockname()[4]

    def fileno(self) -> int:
        """Return the file descriptor of the socket."""
        return self._socket.fileno()

    def frame_bytes(self) -> int:
        """Return how long frames may be by the MTU, at most 1514. Raises TransportError if that is too little."""
        name = self._socket.getsockname()[0]
        try:
            asked = fcntl.ioctl(self._socket, _SIOCGIFMTU, _INTERFACE.pack(name.encode(), 0))
        except OSError as error:
            raise TransportError(f"interface '{self.interface}': {error.strerror}") from None
        mtu = int(_INTERFACE.unpack(asked)[1])
        if mtu + _ETHERNET_BYTES < FRAME_BYTES_NEEDED:
            needed = FRAME_BYTES_NEEDED - _ETHERNET_BYTES
            raise TransportError(f"interface '{self.interface}' has MTU {mtu}; messages need {needed}")
        return min(mtu + _ETHERNET_BYTES, FRAME_BYTES_MAX)

    def send(self, frame: bytes) -> None:
        """Send a frame. It is lost if the queue is full or the interface is down, and sent again later."""
        try:
            self._socket.send(frame)
        except OSError as error:
            if error.errno == errno.EMSGSIZE:
                raise FrameTooLongError(f"the MTU of interface '{self.interface}' has become smaller") from None

    def receive(self, timeout_s: float) -> bytes | None:
        """Return the next frame, or None."""
        self._socket.settimeout(max(timeout_s, 0))
        try:
            return self._socket.recv(_RECEIVE_BYTES_MAX)
        except (TimeoutError, BlockingIOError, InterruptedError):
            return None
        except OSError as error:
            if error.errno == errno.ENETDOWN:  # told once; frames come again when it is up again
                return None
            raise TransportError(f"interface '{self.interface}': {error.strerror}") from None

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
