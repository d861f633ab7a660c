# SPDX-License-Identifier: BSD-3-Clause
"""Claims on CPUs: two runs that measure on the same CPUs ruin each other, so the second one is refused.

A claim is a listening socket in the kernel's abstract namespace, one for each CPU: it needs no folder and no rights,
all users see it, and it ends with its process, also with kill -9. Processes in other network namespaces do not see it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
from collections.abc import Iterable, Iterator

from planebench.host import procfs
from planebench.model.cpus import range_text
from planebench.model.errors import BusyError

SHARE = "PLANEBENCH_SHARE_CPUS"
_CREDENTIALS = struct.Struct("3i")


@contextlib.contextmanager
def claimed(cpus: Iterable[int]) -> Iterator[None]:
    """Claim CPUs for this process until exit; nothing is claimed where PLANEBENCH_SHARE_CPUS is set.

    Raises BusyError if another process has claimed one of them. A process may claim a CPU twice.
    """
    with contextlib.ExitStack() as stack:
        taken: dict[int, list[int]] = {}
        for cpu in () if os.environ.get(SHARE) else sorted(cpus):
            address = f"\0planebench.cpu.{cpu}"
            own = stack.enter_context(socket.socket(socket.AF_UNIX))
            try:
                own.bind(address)
                own.listen(4096)  # those that are refused stay in the queue, as nobody accepts them
            except OSError as error:
                if error.errno != errno.EADDRINUSE:  # no such sockets here: nobody is refused
                    continue
                taken.setdefault(_owner(address), []).append(cpu)
        taken.pop(os.getpid(), None)
        for pid, theirs in taken.items():
            command = " ".join(procfs.words(pid))
            who = (f"process {pid}" if pid else "unknown") + f", {' '.join(command.split())[:100]}" * bool(command)
            raise BusyError(
                f"another planebench measures on CPU {range_text(theirs)} ({who}), and two runs on the same CPUs ruin "
                f"each other. Wait until it ends, give each run its own CPUs, e.g. with taskset -c, or set {SHARE}=1"
            )
        yield


def _owner(address: str) -> int:
    """Return the process that listens at an address; 0 if it is unknown: it has just ended, or its queue is full, as
    it accepts nobody."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.setblocking(False)
        try:
            asking.connect(address)
            return int(
                _CREDENTIALS.unpack(asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))[0]
            )
        except OSError:
            return 0
