# SPDX-License-Identifier: BSD-3-Clause
"""Read what the kernel knows of wires that are its interfaces: dropped frames, and the mode of AF_XDP sockets."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from planebench.host import af_xdp
from planebench.host.deadlines import stretched
from planebench.host.interfaces import interfaces_of
from planebench.host.process import Supervisor
from planebench.model.errors import StartError
from planebench.wiring.links import Ends

ASK_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class KernelWires:
    """The interfaces of the wires of a live topology, in the network namespace of process ``pid``.

    An end without a name is on another host.
    """

    ends: Mapping[str, Ends]
    pid: int

    def dropped(self) -> Counter[str]:
        """Return the frames that found the receive ring of the other end full: of the switch, and of the tester.

        They are counted by the interface that sends. Keys are as in ``Trial.tester_drops``: frames in ``n0:wire_full``
        were sent by the tester, those in ``n0:rx_dropped`` by the switch.
        """
        counts = interfaces_of(self.pid)
        found: Counter[str] = Counter()
        for cable, end in self.ends.items():
            for name, reason in ((end.tester, "wire_full"), (end.switch, "rx_dropped")):
                if name in counts:
                    found[f"{cable}:{reason}"] = counts[name].tx_dropped
        return found

    def xdp_mode(self, tester: int, switch: Collection[int], supervisor: Supervisor, cpus: frozenset[int]) -> str:
        """Return the mode of the AF_XDP sockets of both sides, given by their processes; empty without any.

        As ``copy, native, need-wakeup, busy-poll``; ``tester ...; switch ...`` if the sides differ. Raises StartError.
        """
        sides = {
            "tester": (af_xdp.xdp_sockets(tester), [end.tester for end in self.ends.values()]),
            "switch": (
                [found for pid in switch for found in af_xdp.xdp_sockets(pid)],
                [end.switch for end in self.ends.values()],
            ),
        }
        if not any(sockets for sockets, _ in sides.values()):
            return ""
        attached = self._attached(supervisor, cpus)
        words = {
            side: af_xdp.mode_words(sockets, [attached[name] for name in names if name in attached])
            for side, (sockets, names) in sides.items()
            if sockets
        }
        if len(words) == len(sides) and len(set(words.values())) == 1:
            return next(iter(words.values()))
        return "; ".join(f"{side} {text}" for side, text in words.items())

    def _attached(self, supervisor: Supervisor, cpus: frozenset[int]) -> Mapping[str, str]:
        """Ask for the XDP programs of all interfaces in their namespace."""
        names = [name for end in self.ends.values() for name in end.of(None) if name]
        argv = [sys.executable, "-I", str(Path(af_xdp.__file__)), *names]
        done = supervisor.spawn("xdp-mode", argv, cpus=cpus, netns_pid=self.pid)
        if done.wait(stretched(ASK_TIMEOUT_S)) != 0:
            text = done.exit_report()
            done.terminate()
            raise StartError(f"the XDP programs of {', '.join(names)} cannot be read: {text}")
        answer = json.loads(done.log_tail().splitlines()[-1])
        return {str(name): str(mode) for name, mode in answer.items()}
