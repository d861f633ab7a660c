# SPDX-License-Identifier: BSD-3-Clause
"""Real planed processes for tests: start them, load documents into them, send, and read what was counted."""

from __future__ import annotations

import itertools
import json
import os
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from planebench.host import procfs
from planebench.host.planed_program import find_planed
from planebench.host.process import Process, Supervisor, stretched
from planebench.model.errors import StartError
from planebench.planed.client import PlanedClient, RpcError

CPUS = sorted(os.sched_getaffinity(0))
CPU, OTHER_CPU = CPUS[0], CPUS[-1]
MEMORY = {"hugepages": False, "size_mb": 128, "mbuf_count": 4095, "mbuf_data_bytes": 2176}
PATIENCE_S = stretched(60.0)
"""How long anything may take on a machine that is busy with something else."""

TRIES = 20

Document = dict[str, Any]
_RINGS = itertools.count()
_TOGETHER: weakref.WeakKeyDictionary[Supervisor, list[Planed]] = weakref.WeakKeyDictionary()
"""The processes of a test: frames of one may still be in another."""


def often(usually: int, thoroughly: int) -> int:
    """How often something that takes seconds is repeated: CI has little time. PLANEBENCH_THOROUGH=1 asks for more."""
    return thoroughly if os.environ.get("PLANEBENCH_THOROUGH") else usually


def planed_binary() -> str:
    found = find_planed()
    assert found is not None, "planed is not here: make setup"
    return str(found)


def document(
    name: str, ports: Sequence[Document] = (), tasks: Sequence[Document] = (), *, cpu: int = CPU, **more: Any
) -> Document:
    """A whole document; one worker polls every task, in the order given."""
    names = [task["name"] for task in tasks]
    workers = [{"name": "w0", "cpu": cpu, "tasks": names}] if tasks else []
    parts = {"memory": MEMORY, "ports": list(ports), "tasks": list(tasks), "workers": workers}
    return {"version": 1, "name": name, **parts, **more}


def ethdev(name: str, device: str, **more: Any) -> Document:
    return {"name": name, "kind": "ethdev", "device": device, **more}


def ring(name: str, **more: Any) -> Document:
    """A port that gives back what it is sent, up to 1023 frames at a time.

    A new device each time: DPDK's ring driver keeps a ring, and what is in it, when the port is removed.
    """
    return ethdev(name, f"net_ring{next(_RINGS)}", **more)


def vhost(name: str, path: Path, ring_size: int = 256) -> Document:
    return {"name": name, "kind": "vhost-user", "path": str(path), "ring_size": ring_size}


def virtio(name: str, path: Path, ring_size: int = 256) -> Document:
    return {"name": name, "kind": "virtio-user", "path": str(path), "ring_size": ring_size}


def task(name: str, kind: str, *ports: str, **more: Any) -> Document:
    return {"name": name, "kind": kind, "ports": list(ports), **more}


class Planed:
    """A planed process and a connection to it. The supervisor ends it."""

    wires: tuple[Document, ...] = ()
    """For tests that change the tasks on ports that stay."""

    def __init__(
        self, supervisor: Supervisor, name: str, start: Document | None = None, *, netns_pid: int | None = None
    ) -> None:
        self.name = name
        self.workdir = supervisor.workdir(name)
        self.rpc = self.workdir / "rpc"
        config = self.workdir / "config.json"
        config.write_text(json.dumps(start or document(name)))
        self.process: Process = supervisor.spawn(
            name,
            [planed_binary(), "--config", str(config), "--rpc", str(self.rpc)],
            cpus=frozenset(CPUS),
            workdir=self.workdir,
            netns_pid=netns_pid,
        )
        self.client = PlanedClient(self.rpc, give_up=self._give_up, timeout_s=PATIENCE_S)
        self._together = _TOGETHER.setdefault(supervisor, [])
        self._together.append(self)

    def _give_up(self) -> None:
        if not self.process.alive():
            raise StartError(self.process.exit_report())

    def call(self, method: str, params: Document | None = None) -> Document:
        return self.client.call(method, params)

    def apply(self, ports: Sequence[Document] = (), tasks: Sequence[Document] = (), **more: Any) -> Document:
        return self.call("config.apply", document(self.name, ports, tasks, **more))

    def start_traffic(self, *generators: Document, epoch: int = 1, duration_s: float = 0.02, **more: int) -> None:
        params = {"epoch": epoch, "duration_ns": int(duration_s * 1e9), "generators": list(generators), **more}
        self.call("traffic.start", params)

    def send(
        self,
        *generators: Document,
        epoch: int = 1,
        duration_s: float = 0.02,
        clear: Planed | None = None,
        **more: int,
    ) -> Document:
        """Send, wait for the end and for what is still under way; the tasks of ``stats.get`` by name.

        Again if a generator could send nothing: its worker had no CPU in all that time. ``clear`` is whose counters
        begin anew with each try; those of this process do.
        """
        for _ in range(TRIES):
            if clear:
                clear.call("stats.clear")
            self.start_traffic(*generators, epoch=epoch, duration_s=duration_s, **more)
            until(lambda: not self.call("traffic.get")["running"], "the generators end")
            tasks = self.settled()
            if all(tasks[generator["task"]]["tx_packets"] for generator in generators):
                break
        return tasks

    def settled(self) -> Document:
        """Return the tasks of ``stats.get``, by name, once no frame is under way any more.

        That is so when no counter of frames moved while every task, of every planed of the test, polled twice: the time
        that passes says nothing where pollers wait for a CPU.
        """
        seen: list[Any] = []

        def quiet() -> bool:
            before = self._frames_under_way()
            for process in self._answering():
                process.until_polled()
            seen.append(self.tasks())
            return before == self._frames_under_way()

        until(quiet, "the last frames arrive")
        return dict(seen[-1])

    def until_polled(self) -> None:
        """Wait until each task has begun and ended a poll, or there are other tasks."""
        first = {name: task["polls"] for name, task in self.tasks().items()}

        def polled() -> bool:
            now = self.tasks()
            return now.keys() != first.keys() or all(now[name]["polls"] >= polls + 2 for name, polls in first.items())

        until(polled, f"every task of {self.name} polls")

    def _answering(self) -> list[Planed]:
        """Return this process and those beside it that neither ended nor are stopped."""
        return [
            it for it in self._together if it is self or (procfs.stat_fields(it.process.pid) or "Z")[0] not in "ZXT"
        ]

    def _frames_under_way(self) -> list[Any]:
        """Return what every task received and sent; not those of another process that still sends."""
        others = [it for it in self._answering() if it is self or not it.call("traffic.get")["running"]]
        return [_frames(it.tasks()) for it in others]

    def tasks(self) -> Document:
        """Return the tasks of ``stats.get`` by name; asked again where a worker waits for its CPU meanwhile."""
        answers: list[Document] = []

        def answered() -> bool:
            try:
                answers.append(self.call("stats.get"))
            except RpcError as error:
                if "did not stop polling" not in str(error):
                    raise
            return bool(answers)

        until(answered, f"the workers of {self.name} give their counters")
        return {task["name"]: task for task in answers[0]["tasks"]}

    def links_up(self) -> None:
        until(lambda: all(port["link_up"] for port in self.call("ports.get")["ports"]), "the links come up")


def load(name: str, frame_size_bytes: int = 64, **rate: Any) -> Document:
    """A generator of ``traffic.start``."""
    return {"task": name, "frame_size_bytes": frame_size_bytes, **(rate or {"rate_pps": 10_000})}


def stream(monitor: Mapping[str, Any], number: int = 0) -> Mapping[str, Any]:
    """What a monitor counted of one stream; zeros if it saw nothing of it."""
    nothing = dict.fromkeys(
        ("forwarded_packets", "forwarded_bytes", "duplicate_packets", "reordered_packets", "corrupt_packets"), 0
    )
    found = [seen for seen in monitor["monitor"]["streams"] if seen["stream"] == number]
    return found[0] if found else nothing


def until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"waited {PATIENCE_S:g} s in vain until {what}"
        time.sleep(0.005)


def _frames(tasks: Mapping[str, Any]) -> list[tuple[int, int]]:
    return [(task["rx_packets"], task["tx_packets"]) for task in tasks.values()]
