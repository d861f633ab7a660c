# SPDX-License-Identifier: BSD-3-Clause
"""Attach interfaces to VALE switches, say ``ready``, wait for the end of standard input, detach. For ``vale.py``.

    vale_guard.py VALE_CTL SWITCH:INTERFACE...

By path with ``python -I -S``, inside the network namespace of the interfaces; standard library only. What is attached
stays so without any process, and a namespace in which something is attached never goes, nor does an interface. So this
has to outlive whoever is killed: the work is done by a child in a session of its own (a signal to the process group of
the program, and its death signal, do not reach it), TERM, INT and HUP are ignored, and a harness that dies by SIGKILL
closes standard input too. Exit code 1: something could not be attached or detached; stderr says what.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Sequence
from itertools import takewhile

SOL_PACKET, PACKET_ADD_MEMBERSHIP, PACKET_MR_PROMISC = 263, 1, 1
IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def _told(vale_ctl: str, action: str, port: str) -> bool:
    """Run ``vale-ctl`` and return whether it succeeded. Its messages go to standard error."""
    try:
        code = subprocess.run([vale_ctl, action, port], stdin=subprocess.DEVNULL, check=False).returncode
    except OSError as error:
        code = -1
        print(f"{vale_ctl} cannot be executed: {error.strerror}", file=sys.stderr, flush=True)
    if code:
        print(f"{vale_ctl} {action} {port} failed ({code})", file=sys.stderr, flush=True)
    return code == 0


def _promiscuous(interface: str) -> socket.socket | None:
    """Return a socket: as long as it is open a NIC receives frames to all addresses. None where there is no such one.

    netmap leaves the filter of a NIC as it is."""
    with contextlib.suppress(OSError):
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        member = struct.pack("iHH8x", socket.if_nametoindex(interface), PACKET_MR_PROMISC, 0)
        opened.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, member)
        return opened
    return None


def guard(vale_ctl: str, ports: Sequence[str]) -> int:
    """Attach ports (``SWITCH:INTERFACE``) up to the first that fails, wait, detach the last first. Return the exit
    code."""
    attached = list(takewhile(lambda port: _told(vale_ctl, "-a", port), ports))
    sockets = [_promiscuous(port.partition(":")[2]) for port in attached]
    whole = len(attached) == len(ports)
    if whole:
        print("ready", flush=True)
        while os.read(0, 4096):
            pass
    for opened in filter(None, sockets):
        opened.close()
    failed = [port for port in reversed(attached) if not _told(vale_ctl, "-d", port)]
    return 0 if whole and not failed else 1


def main(vale_ctl: str, ports: Sequence[str]) -> int:
    """Run the guard in a child process and return its exit code."""
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    child = os.fork()
    if child == 0:
        os.setsid()
        os._exit(guard(vale_ctl, ports))
    _, status = os.waitpid(child, 0)
    return abs(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
