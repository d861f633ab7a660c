# SPDX-License-Identifier: BSD-3-Clause
"""The configuration document of a planed process (docs/design/planed-protocol.md), and its one writer.

A key that has planed's default is left out, so that a document says only what somebody chose.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

Json = dict[str, object]
Idle = Literal["poll", "sleep", "nap"]
PortKind = Literal["vhost-user", "virtio-user", "memif-server", "memif-client", "netmap", "ethdev"]

PROTOCOL_VERSION = 1
NAME_MAX = 31
"""The longest name of a document, which is DPDK's file prefix too."""


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of a process: hugepages or not, all of it, and the pool that its ports receive into."""

    hugepages: bool
    size_mb: int
    mbuf_count: int
    mbuf_data_bytes: int


@dataclass(frozen=True, slots=True)
class Port:
    """A port: a socket with a virtio device or driver or an end of a memif behind it, or a device of DPDK.

    ``path`` is for virtio ports and memifs, ``device`` (devargs or a PCI address) for ethdevs; ``mac`` and ``backend``
    are for ports with a path that have one of their own choice. ``ring_size`` None: planed's default.
    """

    name: str
    kind: PortKind
    ring_size: int | None = None
    queues: int = 1
    path: Path | None = None
    device: str = ""
    backend: str = ""
    mac: str = ""
    clock: str = "software"
    """The clock that stamps probes at the port, beside planed's own."""
    offloads: bool = False
    """True if a vhost-user port offers checksum and segmentation offloads to its guest (docs/design/ports.md)."""
    zero_copy: bool = False
    """True if a memif client exchanges buffers with the others of its process (docs/design/ports.md)."""
    max_charged_mb: int | None = None
    """The memory that frames of a vhost-user or memif-server port may make of the other end's; None: planed's share."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task on one queue of its ports.

    ``stream`` is for generators, ``settings`` for network functions, fib_source and fib_offload, ``peer_macs`` for
    network functions, ``drop_one_in`` for patches, ``bridge`` for bridges. ``burst`` None: planed's default.
    ``sending``: ``send_burst`` and ``drain_us`` of a network function that collects frames before it sends them.
    """

    name: str
    kind: str
    ports: tuple[str, ...]
    stream: int | None = None
    queue: int = 0
    settings: Mapping[str, object] = field(default_factory=dict)
    burst: int | None = None
    peer_macs: tuple[str, ...] = ()
    drop_one_in: int | None = None
    bridge: Mapping[str, object] = field(default_factory=dict)
    sending: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Worker:
    """A pinned polling thread and the names of its tasks, in polling order."""

    name: str
    cpu: int
    tasks: tuple[str, ...]
    idle: Idle = "poll"
    duty_percent: int | None = None
    """The clock that it emulates, as a share of that of its CPU."""
    gap_threshold_ns: int | None = None
    """How long a turn may take before it counts as a gap; None: planed's default."""


@dataclass(frozen=True, slots=True)
class Document:
    """The whole document of one process. ``nice`` None: the priority of its workers is left alone."""

    name: str
    memory: Memory
    ports: tuple[Port, ...] = ()
    tasks: tuple[Task, ...] = ()
    workers: tuple[Worker, ...] = ()
    nice: int | None = None

    def to_json(self) -> Json:
        tasks = []
        for task in self.tasks:
            found = _chosen(replace(task, sending={}, drop_one_in=None)) | dict(task.sending)
            if task.drop_one_in is not None:
                found["fault"] = {"drop_one_in": task.drop_one_in}
            tasks.append(found)
        document: Json = {
            "version": PROTOCOL_VERSION,
            "name": self.name,
            "memory": asdict(self.memory),
            "ports": [_chosen(port) for port in self.ports],
            "tasks": tasks,
            "workers": [_chosen(worker) for worker in self.workers],
        }
        return document if self.nice is None else {**document, "nice": self.nice}

    def write(self, path: Path) -> None:
        """Write the document to a file, for ``planed --config`` and ``planed --check``."""
        path.write_text(json.dumps(self.to_json(), indent=1), encoding="utf-8")

    def idle(self) -> Document:
        """Return the same ports with nothing that polls them."""
        return replace(self, tasks=(), workers=())

    def part(self, wanted: Callable[[str], bool]) -> Document:
        """Return the part of the document whose ports are ``wanted``, by their names; a task follows its first port."""
        tasks = tuple(task for task in self.tasks if wanted(task.ports[0]))
        names = {task.name for task in tasks}
        workers = (replace(w, tasks=tuple(name for name in w.tasks if name in names)) for w in self.workers)
        ports = tuple(port for port in self.ports if wanted(port.name))
        return replace(self, ports=ports, tasks=tasks, workers=tuple(worker for worker in workers if worker.tasks))


def _adapter(kind: type[Any]) -> Any:
    from pydantic import TypeAdapter  # a tenth of a second, which `planebench --version` does not have

    return TypeAdapter(kind)


_writer: Any = cache(_adapter)


def _chosen(part: Port | Task | Worker) -> Json:
    """Return the fields of a part that are not planed's defaults, as JSON takes them."""
    found: Json = _writer(type(part)).dump_python(part, mode="json", exclude_defaults=True)
    return found
