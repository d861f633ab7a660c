# SPDX-License-Identifier: BSD-3-Clause
"""A tester with generator and monitor at both ends of one hosted VNF, nothing between: what is counted is exact."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pytest
from hosting_rig import port_socket
from planed_rig import CPU, OTHER_CPU, PATIENCE_S, Document, Planed, load, planed_binary, stream, task, until, vhost
from typed_document import typed

from planebench.host.planed_program import REMEDY, find_planed
from planebench.host.process import Supervisor, high_priority
from planebench.host.programs import NotFound
from planebench.testbed.hosting import guest_image, qemu
from planebench.testbed.hosting.base import HostedPort, HostedRequest, RunningVnf
from planebench.testbed.hosting.inside import hand_over_ports

PACED: Document = {"rate_pps": 5_000}
"""An emulated CPU that shares one of the host's forwards that much; its rings hold what comes while it sleeps."""
GUEST_MEMORY: Document = {"hugepages": False, "size_mb": 128, "mbuf_count": 4095, "mbuf_data_bytes": 2176}
_NUMBERS = itertools.count()


@contextmanager
def guest_supervisor() -> Iterator[Supervisor]:
    """What starts guests, at a high priority; skips with what to install where there is no guest."""
    if find_planed() is None:
        pytest.skip(f"planed is not here: {REMEDY}")
    if isinstance(found := qemu.find(), NotFound):
        pytest.skip(found.remedy)
    if remedy := guest_image.remedy():
        pytest.skip(remedy)
    with high_priority(), Supervisor(Path("/tmp")) as supervisor:
        yield supervisor


class Bed:
    """The tester's ports n0 and n1 are those of the VNF, v0 and v1."""

    def __init__(self, supervisor: Supervisor, queues: int = 1) -> None:
        self.supervisor = supervisor
        self.queues = queues
        self.requests: list[HostedRequest] = []
        self.names = [f"{end}{queue}" for queue in range(queues) for end in "ab"]
        self.workdir = supervisor.workdir(f"bed{next(_NUMBERS)}")
        self.begin()

    def begin(self) -> None:
        """A tester that listens; on each queue of both ends a monitor and a generator with a stream of its own."""
        self.tester = Planed(self.supervisor, f"tester{next(_NUMBERS)}")
        wires = [{**vhost(f"n{end}", self.socket(end)), "queues": self.queues} for end in (0, 1)]
        tasks = [
            task(f"{kind[:3]}-{name}", kind, f"n{number % 2}", queue=number // 2, **more)
            for number, name in enumerate(self.names)
            for kind, more in (("monitor", {}), ("generator", {"stream": number}))
        ]
        self.tester.apply(wires, tasks, cpu=OTHER_CPU)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """A tester polls until it is ended."""
        self.tester.process.kill()

    def restart(self) -> None:
        """Another process at the same sockets."""
        self.tester.process.kill()
        for end in (0, 1):
            self.socket(end).unlink(missing_ok=True)
        self.begin()
        hand_over_ports(self.requests[-1])

    def socket(self, end: int) -> Path:
        return port_socket(self.workdir, f"n{end}")

    def request(self, name: str, document: Document | None, **more: Any) -> HostedRequest:
        ports = tuple(HostedPort(f"v{end}", self.socket(end), f"02:00:00:00:04:0{end + 1}") for end in (0, 1))
        made: dict[str, Any] = {
            "name": name,
            "ports": ports,
            "values": {},
            "document": None if document is None else typed(document),
            "files": (),
            "cpus": (CPU,),
            "control_cpus": frozenset({OTHER_CPU}),
            "workdir": self.workdir,
            "planed": Path(planed_binary()),
            "queues": self.queues,
            "shares_cpu": True,
        }
        self.requests.append(HostedRequest(**(made | more)))
        return self.requests[-1]

    def document(self, kind: str = "l2fwd", cpus: Sequence[int] = (CPU,), **settings: Any) -> Document:
        """As ``separate`` gets it, with a worker on each of ``cpus``."""
        ports = [
            {"name": f"v{end}", "kind": "virtio-user", "path": str(self.socket(end)), "queues": self.queues}
            for end in (0, 1)
        ]
        peers = ["02:00:00:00:00:01", "02:00:00:00:00:02"]
        tasks = [
            task(f"vnf{queue}", kind, "v0", "v1", queue=queue, peer_macs=peers, **settings)
            for queue in range(self.queues)
        ]
        names = [it["name"] for it in tasks]
        workers = [
            {"name": f"w{place}", "cpu": cpu, "tasks": names[place :: len(cpus)], "idle": "sleep"}
            for place, cpu in enumerate(cpus)
        ]
        parts = {"memory": GUEST_MEMORY, "ports": ports, "tasks": tasks, "workers": workers}
        return {"version": 1, "name": "vnf", "nice": -20, **parts}

    def until_it_forwards(self, vnf: RunningVnf, shut: Sequence[str] = ()) -> None:
        """On each queue both ways, but from generators that it ``shut`` out: readiness is told by frames that cross."""
        ways = [number for number, name in enumerate(self.names) if name not in shut]

        def crossed() -> bool:
            vnf.check()
            self._send(64, PACED)
            return all(self._came("forwarded_packets", [number]) for number in ways)

        until(crossed, f"frames cross {vnf.name}")

    def exchange(self, vnf: RunningVnf, frame_bytes: int = 64) -> tuple[dict[str, int], Document]:
        """All generators send; waits until every frame has come, once, intact, in order, or was dropped with a reason.

        Returns how many each has sent and, of a planed, what it dropped.
        """
        before = drops(vnf)
        seen = self._send(frame_bytes, PACED)
        sent = {name: int(seen[f"gen-{name}"]["tx_packets"]) for name in self.names}
        total = sum(sent.values())

        def lost() -> Counter[str]:
            return drops(vnf) - before

        until(lambda: self._came("forwarded_packets") + lost().total() == total, f"{total} frames cross {vnf.name}")
        assert all(sent.values())
        assert [self._came(f"{what}_packets") for what in ("duplicate", "reordered", "corrupt")] == [0, 0, 0]
        return sent, dict(lost())

    def _send(self, frame_bytes: int, rate: Document) -> Document:
        """An epoch of its own: what comes late of an earlier one is stale."""
        loads = [load(f"gen-{name}", frame_bytes, **rate) for name in self.names]
        return self.tester.send(*loads, epoch=next(_NUMBERS))

    def _came(self, what: str, ways: Sequence[int] | None = None) -> int:
        """At the monitors, of each stream where it belongs: the other end, the same queue."""
        tasks = self.tester.tasks()
        streams = range(len(self.names)) if ways is None else ways
        return sum(int(stream(tasks[f"mon-{self.names[number ^ 1]}"], number)[what]) for number in streams)


def drops(vnf: RunningVnf) -> Counter[str]:
    """Of all tasks of a planed, by reason; nothing of a VNF that is the user's own."""
    if vnf.planed is None:
        return Counter()
    tasks = vnf.planed.call("stats.get", timeout_s=PATIENCE_S)["tasks"]
    return Counter({reason: count for it in tasks for reason, count in it["drops"].items() if count})
