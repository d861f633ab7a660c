# SPDX-License-Identifier: BSD-3-Clause
"""The AF_XDP sockets of a process as the kernel has them: their mode, and the frames that they had no room for.

What a driver asked for says little: the kernel falls back to copies and to the generic hook without a word. So the
sockets themselves are asked, by pidfd_getfd(2), whatever program opened them.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import socket
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from planebench.host.facts import is_machine_root
from planebench.host.procfs import link_name

AF_XDP = 44
_SYS_PIDFD_GETFD = 438
_SOL_XDP, _XDP_MMAP_OFFSETS, _XDP_STATISTICS, _XDP_OPTIONS = 283, 1, 7, 8  # linux/if_xdp.h
_ZERO_COPY, _NEED_WAKEUP = 1, 1
_TX_RING = 0x8000_0000
_SO_DOMAIN, _SO_BUSY_POLL, _SO_PREFER_BUSY_POLL = 39, 46, 69
_OFFSETS = struct.Struct("16Q")  # producer, consumer, descriptors, flags: of RX, TX, fill and completion ring
_TX_FLAGS = 7
_STATISTICS = struct.Struct("6Q")
ATTACHED = {"xdp": "native", "xdpgeneric": "generic", "xdpoffload": "offloaded"}
"""Where an XDP program runs, by pyroute2's words for IFLA_XDP_ATTACHED."""


@dataclass(frozen=True, slots=True)
class XdpSocket:
    """One socket. None: the kernel does not say.

    ``no_room``: frames without a buffer in the fill ring, or without room in the receive ring. ``invalid``: descriptors
    that the kernel refused.
    """

    zero_copy: bool
    need_wakeup: bool | None
    busy_poll: bool | None
    no_room: int
    invalid: int


def xdp_sockets(pid: int) -> list[XdpSocket]:
    """Return the AF_XDP sockets of a process, by their numbers; none if it is gone or may not be asked."""
    found: list[XdpSocket] = []
    try:
        process = os.pidfd_open(pid)
    except OSError:
        return found
    try:
        with contextlib.suppress(OSError):
            for number in sorted(int(entry.name) for entry in Path(f"/proc/{pid}/fd").iterdir()):
                if not (link_name(Path(f"/proc/{pid}/fd/{number}")) or "").startswith("socket:["):
                    continue
                fd = ctypes.CDLL(None, use_errno=True).syscall(_SYS_PIDFD_GETFD, process, number, 0)
                if fd < 0:
                    continue
                with socket.socket(AF_XDP, socket.SOCK_RAW, 0, fileno=fd) as sock:  # a copy
                    if sock.getsockopt(socket.SOL_SOCKET, _SO_DOMAIN) == AF_XDP:
                        found.append(_read(sock))
    finally:
        os.close(process)
    return found


def missing() -> str:
    """Return what keeps this process from AF_XDP, as a sentence; empty if nothing does."""
    if not is_machine_root():
        return "XDP programs require root of the machine, not of a container or user namespace; use sudo"
    try:
        socket.socket(AF_XDP, socket.SOCK_RAW, 0).close()
    except OSError as error:
        return f"the kernel opens no AF_XDP socket ({error.strerror}); it needs CONFIG_XDP_SOCKETS and CAP_NET_RAW"
    return ""


def mode_words(sockets: Sequence[XdpSocket], attached: Iterable[str]) -> str:
    """Return ``copy, native, need-wakeup, busy-poll``; empty without sockets. What is not alike says so."""
    if not sockets:
        return ""
    words = [
        " and ".join(sorted({"zero-copy" if it.zero_copy else "copy" for it in sockets})),
        " and ".join(sorted(set(attached))) or "XDP program not found",
        _flag("need-wakeup", [it.need_wakeup for it in sockets]),
        _flag("busy-poll", [it.busy_poll for it in sockets]),
    ]
    return ", ".join(words)


def attached_modes(interfaces: Sequence[str]) -> Mapping[str, str]:
    """Return where the XDP program of each interface runs: native, generic, offloaded; without the ones that have none.

    Asks the network namespace of this process.
    """
    from pyroute2 import IPRoute

    found: dict[str, str] = {}
    with IPRoute() as route:
        for name in interfaces:
            for index in route.link_lookup(ifname=name):
                xdp = route.link("get", index=index)[0].get_attr("IFLA_XDP")
                mode = ATTACHED.get(xdp.get_attr("IFLA_XDP_ATTACHED") if xdp else "")
                if mode is not None:
                    found[name] = mode
    return found


def _read(sock: socket.socket) -> XdpSocket:
    (options,) = struct.unpack("I", sock.getsockopt(_SOL_XDP, _XDP_OPTIONS, 4))
    dropped, invalid_rx, invalid_tx, ring_full, _, _ = _STATISTICS.unpack(
        sock.getsockopt(_SOL_XDP, _XDP_STATISTICS, _STATISTICS.size)
    )
    need_wakeup = busy_poll = None
    with contextlib.suppress(OSError, ValueError, struct.error):  # a socket without a send ring
        offsets = _OFFSETS.unpack(sock.getsockopt(_SOL_XDP, _XDP_MMAP_OFFSETS, _OFFSETS.size))
        with mmap.mmap(sock.fileno(), mmap.PAGESIZE, mmap.MAP_SHARED, mmap.PROT_READ, offset=_TX_RING) as ring:
            # The kernel sets the flag of the send ring from the start if it was asked for it.
            need_wakeup = bool(struct.unpack_from("I", ring, offsets[_TX_FLAGS])[0] & _NEED_WAKEUP)
    with contextlib.suppress(OSError):  # before Linux 5.11
        prefers = sock.getsockopt(socket.SOL_SOCKET, _SO_PREFER_BUSY_POLL)
        busy_poll = bool(prefers and sock.getsockopt(socket.SOL_SOCKET, _SO_BUSY_POLL))
    return XdpSocket(
        zero_copy=bool(options & _ZERO_COPY),
        need_wakeup=need_wakeup,
        busy_poll=busy_poll,
        no_room=dropped + ring_full,
        invalid=invalid_rx + invalid_tx,
    )


def _flag(name: str, values: Sequence[bool | None]) -> str:
    if None in values:
        return f"{name} unknown"
    return name if all(values) else f"no {name}" if not any(values) else f"{name} on some sockets"


if __name__ == "__main__":
    import json
    import sys

    print(json.dumps(dict(attached_modes(sys.argv[1:]))))
