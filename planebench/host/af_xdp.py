# SPDX-License-Identifier: BSD-3-Clause
"""The AF_XDP sockets of a process as the kernel has them: their mode.

What a driver asked for says little: the kernel falls back to copies and to the generic hook without a word. So the
sockets themselves are asked, by pidfd_getfd(2), whatever program opened them.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from planebench.host.facts import is_machine_root
from planebench.host.procfs import link_name

AF_XDP = 44
_SYS_PIDFD_GETFD = 438
_SOL_XDP, _XDP_OPTIONS = 283, 8  # linux/if_xdp.h
_ZERO_COPY = 1
_SO_DOMAIN = 39
ATTACHED = {"xdp": "native", "xdpgeneric": "generic", "xdpoffload": "offloaded"}
"""Where an XDP program runs, by pyroute2's words for IFLA_XDP_ATTACHED."""


def socket_modes(pid: int) -> list[str]:
    """Return ``zero-copy`` or ``copy`` for each AF_XDP socket of a process; none if it is gone or may not be asked."""
    found: list[str] = []
    try:
        process = os.pidfd_open(pid)
    except OSError:
        return found
    try:
        with contextlib.suppress(OSError):
            for link in Path(f"/proc/{pid}/fd").iterdir():
                if not (link_name(link) or "").startswith("socket:["):
                    continue
                fd = ctypes.CDLL(None, use_errno=True).syscall(_SYS_PIDFD_GETFD, process, int(link.name), 0)
                if fd < 0:
                    continue
                with socket.socket(AF_XDP, socket.SOCK_RAW, 0, fileno=fd) as sock:  # a copy
                    if sock.getsockopt(socket.SOL_SOCKET, _SO_DOMAIN) == AF_XDP:
                        options = sock.getsockopt(_SOL_XDP, _XDP_OPTIONS)
                        found.append("zero-copy" if options & _ZERO_COPY else "copy")
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


def mode_words(sockets: Iterable[str], attached: Iterable[str]) -> str:
    """Return ``copy, native`` of the modes of sockets and of XDP programs. What is not alike says so."""
    programs = " and ".join(sorted(set(attached))) or "XDP program not found"
    return f"{' and '.join(sorted(set(sockets)))}, {programs}"


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


if __name__ == "__main__":
    import json
    import sys

    print(json.dumps(dict(attached_modes(sys.argv[1:]))))
