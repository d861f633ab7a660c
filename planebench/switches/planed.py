# SPDX-License-Identifier: BSD-3-Clause
"""Our own data plane as a switch: one ``patch`` task for each cross-connect, or for each queue of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from planebench.host.process import Process, Supervisor
from planebench.model.errors import DiedError, PlanebenchError, StartError, UsageError
from planebench.model.records import SwitchCycles
from planebench.placement.memory import memory
from planebench.planed import (
    PROTOCOL_VERSION,
    REMEDY,
    PlanedClient,
    RpcClosedError,
    find_planed,
    planed_version,
)
from planebench.scenarios.queues import QUEUES_MAX, queue_name
from planebench.switches import common
from planebench.switches.base import Found, NotFound, SwitchPort, SwitchRequest, ThreadRef

BURST = 32
WORKER = "patch"
OPTIONS = ("backend", "drop_one_in", "workers")
BACKENDS = ("dpdk", "vring")
DEFAULT_BACKEND = "vring"
"""Of planed: what a document without the key means."""

DROP_ONE_IN_MAX = 2**32 - 1
PORT_DROPS = ("rx_missed", "rx_nombuf", "rx_errors")


class PlanedAdapter:
    """``planed``: packets are copied from ring to ring by patch tasks.

    ``drop_one_in``: every so manieth frame that a patch task receives is dropped and counted as ``fault``: a switch
    with a known loss, for what is to find it. None: no fault.

    ``backend``: whose data path its vhost-user ports have, DPDK's vhost library's or our own. None: planed's default.

    ``workers``: so many queue pairs on each port, a patch task for each queue, and a worker for each of them where it
    has a core; on fewer cores workers have several queues.
    """

    name = "planed"
    title = "planed"
    remedy = REMEDY

    def __init__(self, drop_one_in: int | None = None, backend: str | None = None, workers: int = 1) -> None:
        self.drop_one_in = drop_one_in
        self.backend = backend
        self.queues = workers
        self.wires = frozenset({"virtio", "veth"} if workers == 1 else {"virtio"})  # a veth has one queue

    def with_options(self, options: Mapping[str, str]) -> PlanedAdapter:
        """An adapter with these options, the others as they are. Raises UsageError for what is not valid."""
        unknown = sorted(set(options) - set(OPTIONS))
        if unknown:
            raise UsageError(f"switch planed has no option {unknown[0]!r}. Valid: {', '.join(OPTIONS)}")
        return PlanedAdapter(
            _drop_one_in(options["drop_one_in"]) if "drop_one_in" in options else self.drop_one_in,
            _backend(options["backend"]) if "backend" in options else self.backend,
            _workers(options["workers"]) if "workers" in options else self.queues,
        )

    def find(self) -> Found | NotFound:
        """The planed program and its version."""
        binary = find_planed()
        version = planed_version()
        if binary is None or version is None:
            return NotFound(self.remedy)
        return Found(version.removeprefix("planed").strip(), binary)

    def settings(self, request: SwitchRequest) -> dict[str, str]:
        """How it is run, for the report."""
        fault = {} if self.drop_one_in is None else {"drop_one_in": str(self.drop_one_in)}
        queues = {} if request.queues == 1 else {"queues": str(request.queues), "workers": str(_worker_count(request))}
        return {
            "function": "patch: one task for each cross-connect, both ways",
            "ring_size": str(common.ring_size(request)),
            "burst": str(BURST),
            "memory": common.memory_text(request),
            "mbufs": str(_memory(request)["mbuf_count"]),
            "backend": self.backend or DEFAULT_BACKEND,
            **fault,
            **queues,
        }

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningPlaned:
        """Start it and wait until it answers. Raises StartError, UsageError or NotInstalledError."""
        common.check_frame_size(request)
        common.paired_ports(request)
        found = common.require(self)
        config = request.workdir / "planed-switch.json"
        socket = request.workdir / "planed-switch.rpc"
        document = switch_document(request, f"{supervisor.root.name}-switch", self.drop_one_in, self.backend)
        config.write_text(json.dumps(document, indent=1))
        process = supervisor.spawn(
            "planed-switch",
            [str(found.binary), "--config", str(config), "--rpc", str(socket)],
            cpus=request.control_cpus | set(request.cpus),
            workdir=request.workdir,
            netns_pid=request.netns_pid,
        )

        def give_up() -> None:
            if not process.alive():
                raise StartError(f"planed did not come up: {process.obituary()}")

        try:
            return RunningPlaned(process, PlanedClient(socket, give_up=give_up))
        except BaseException as error:
            process.terminate()
            if isinstance(error, StartError) and process.log_tail() not in str(error):
                raise StartError(f"{error}\n{process.obituary()}") from error
            raise


class RunningPlaned(common.ProcessGroup):
    """A planed that forwards; asked through its socket."""

    def __init__(self, process: Process, client: PlanedClient) -> None:
        super().__init__("planed", [process])
        self._process = process
        self._client = client

    def polling_threads(self) -> tuple[ThreadRef, ...]:
        """Its workers."""
        workers = self._stats()["workers"]
        return tuple(ThreadRef(self._process.pid, int(worker["tid"]), str(worker["name"])) for worker in workers)

    def counters(self) -> SwitchCycles:
        """Counters since the start, of its tasks. Raises DiedError."""
        stats = self._stats()
        return SwitchCycles(
            busy_cycles=_total(stats, "busy_cycles"),
            idle_cycles=_total(stats, "idle_cycles"),
            packets=_total(stats, "rx_packets"),
            drops=parse_drops(stats),
        )

    def stop(self) -> None:
        """Stop it. Never raises; safe to call twice."""
        self._client.close()
        super().stop()

    def _stats(self) -> dict[str, Any]:
        self.check()
        try:
            return self._client.call("stats.get")
        except RpcClosedError as error:
            self._process.wait(0.2)
            raise DiedError(f"{error}; {self._process.obituary()}") from error
        except PlanebenchError as error:
            raise DiedError(f"{error}; {self._process.obituary()}") from error


def parse_drops(stats: Mapping[str, Any]) -> dict[str, int]:
    """Drops of a ``stats.get``: full rings and receive counters by port (``v0:tx_full``), other reasons bare."""
    drops: Counter[str] = Counter()
    for task in stats["tasks"]:
        for port, reasons in task["drops_by_port"].items():
            drops.update({f"{port}:{reason}": int(count) for reason, count in reasons.items()})
        drops.update({reason: int(count) for reason, count in task["drops"].items() if reason != "tx_full"})
    for port in stats["ports"]:
        drops.update({f"{port['name']}:{reason}": int(port[reason]) for reason in PORT_DROPS})
    return dict(drops)


def _drop_one_in(text: str) -> int:
    digits = text.isascii() and text.isdigit() and len(text) <= len(str(DROP_ONE_IN_MAX))
    number = int(text) if digits else 0
    if not 1 <= number <= DROP_ONE_IN_MAX:
        raise UsageError(f"drop_one_in {text!r} is not valid for switch planed. Valid: 1..{DROP_ONE_IN_MAX}")
    return number


def _backend(text: str) -> str:
    if text not in BACKENDS:
        raise UsageError(f"backend {text!r} is not valid for switch planed. Valid: {', '.join(BACKENDS)}")
    return text


def _workers(text: str) -> int:
    if text not in {str(number) for number in range(1, QUEUES_MAX + 1)}:
        raise UsageError(f"workers {text!r} is not valid for switch planed. Valid: 1..{QUEUES_MAX}")
    return int(text)


def _worker_count(request: SwitchRequest) -> int:
    """Two that share a core would only take it from each other."""
    return min(request.queues, len(request.cpus))


def switch_document(
    request: SwitchRequest, name: str, drop_one_in: int | None = None, backend: str | None = None
) -> dict[str, Any]:
    """The planed configuration document of a switch request. ``name`` is the EAL file prefix too."""
    fault = {} if drop_one_in is None else {"fault": {"drop_one_in": drop_one_in}}
    count = _worker_count(request)
    by_queue = [
        [_task(f"{WORKER}{index}", pair, queue) | fault for index, pair in enumerate(request.cross_connects)]
        for queue in range(request.queues)
    ]
    return {
        "version": PROTOCOL_VERSION,
        "name": name.lower(),
        "memory": _memory(request),
        "nice": -20,
        "ports": [_port(port, request, backend) for port in common.paired_ports(request)],
        "tasks": [task for tasks in by_queue for task in tasks],
        "workers": [
            {
                "name": queue_name(WORKER, number),
                "cpu": request.cpus[number],
                "tasks": [task["name"] for tasks in by_queue[number::count] for task in tasks],
            }
            for number in range(count)
        ],
    }


def _task(name: str, pair: Sequence[str], queue: int) -> dict[str, Any]:
    """A cross-connect, on one queue of its ports."""
    task: dict[str, Any] = {"name": queue_name(name, queue), "kind": "patch", "ports": list(pair), "burst": BURST}
    return task | ({"queue": queue} if queue else {})


def _memory(request: SwitchRequest) -> dict[str, Any]:
    return dict(
        memory(
            ports=len(request.ports),
            ring_size=common.ring_size(request),
            max_frame_bytes=request.max_frame_bytes,
            hugepages=request.hugepages,
            pools=1,
            queues=request.queues,
        )
    )


def _port(port: SwitchPort, request: SwitchRequest, backend: str | None) -> dict[str, Any]:
    document: dict[str, Any] = {"name": port.name, "kind": port.kind, "ring_size": port.ring_size}
    if request.queues > 1:
        document["queues"] = request.queues
    if port.kind == "af_packet":
        device = f"net_af_packet_{port.name},{common.af_packet_devargs(port, request)}"
        return {**document, "kind": "ethdev", "device": device}
    if port.kind == "vhost-user" and backend is not None:
        document["backend"] = backend
    return {**document, "path": str(common.socket_path(port))}


def _total(stats: dict[str, Any], key: str) -> int:
    return sum(int(task[key]) for task in stats["tasks"])


ADAPTER = PlanedAdapter()
