# SPDX-License-Identifier: BSD-3-Clause
"""The veth wire: pairs of kernel interfaces in a network namespace of their own.

A process that only sleeps holds the namespace; when it and the users of the interfaces are gone, so are namespace and
interfaces, whoever killed them. As root the namespace is an ordinary one; without root it comes with a user namespace.

Checksum and segmentation offloads stay as the kernel sets them: packet sockets carry whole frames as they are
(no PACKET_VNET_HDR), so nothing on the way computes, strips or merges anything.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from planebench.host import procfs
from planebench.host.launch import NAMESPACE_REMEDY
from planebench.host.process import Process, Supervisor, on_failure, wait_ready

MTU_BYTES = 1500
"""Frames of 1518 bytes with their FCS, the largest of this wire. AF_XDP and netmap take no larger MTU as they are."""
SETUP_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class VethWire:
    """A network namespace with veth pairs. It lives until :meth:`close`, or as long as its supervisor."""

    pairs: Mapping[str, tuple[str, str]]
    """Wire name -> (interface of the tester, interface of the switch)."""
    holder: Process

    @property
    def netns_pid(self) -> int:
        """Return the process whose network namespace others join (``SwitchRequest.netns_pid``)."""
        return self.holder.pid

    @classmethod
    def create(cls, supervisor: Supervisor, names: Sequence[str], *, cpus: frozenset[int]) -> VethWire:
        """Make one veth pair for each name, up and with IPv6 off. The helper processes run on ``cpus``.

        ``names`` have 8 characters at most. Raises StartError if the system refuses.
        """
        pairs = {name: (f"{name}-tester", f"{name}-switch") for name in names}
        holder = supervisor.spawn("netns", ["sleep", "infinity"], cpus=cpus, new_netns=True, high_priority=False)
        with on_failure(holder.terminate):
            # The holder executes ``sleep`` when it is in its namespace.
            command = Path(f"/proc/{holder.pid}/comm")
            wait_ready("the network namespace", lambda: procfs.read_text(command) == "sleep", [holder])
            ends = [f"{tester}:{switch}" for tester, switch in pairs.values()]
            program = Path(__file__).with_name("veth_setup.py")
            setup = supervisor.spawn(
                "veth-setup",
                [sys.executable, "-I", str(program), str(MTU_BYTES), *ends],
                cpus=cpus,
                netns_pid=holder.pid,
                high_priority=False,
            )
            setup.finish(SETUP_TIMEOUT_S, f"cannot make veth pairs {', '.join(ends)}", NAMESPACE_REMEDY)
        return cls(pairs, holder)

    def close(self) -> None:
        """End the holder: the interfaces are removed with the last process that uses them. Safe to call twice."""
        self.holder.terminate()
