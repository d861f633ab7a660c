# SPDX-License-Identifier: BSD-3-Clause
"""VNFs in a process of their own, that can be killed: a second planed has the ports of the VNFs, the tester the wires.

Both are asked as if they were one (:meth:`Split.call`), so what sends and counts need not know.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from planebench.conformance.bed import Bed
from planebench.conformance.counting import FRAMES, RATE_PPS, Tally, settled
from planebench.host.patience import patient
from planebench.host.process import Process
from planebench.measure.counts import arrived
from planebench.measure.live import CONNECT_DEADLINE_S
from planebench.measure.sending import next_epoch, send
from planebench.model.errors import PlanebenchError, StartError
from planebench.planed import PlanedClient
from planebench.scenarios import Flow

Document = dict[str, Any]
NAME_MAX = 31


def halves(bed: Bed) -> tuple[Document, Document]:
    """The tester's document without what the VNFs have, and one with only that."""
    document = bed.live.document()
    vnf_ports = set(bed.topology.vnf_ports)
    name = f"{document['name'][: NAME_MAX - 4]}-vnf"
    return _part(document, vnf_ports, False), {**_part(document, vnf_ports, True), "name": name}


def _part(document: Document, vnf_ports: set[str], wanted: bool) -> Document:
    tasks = [task for task in document["tasks"] if (task["ports"][0] in vnf_ports) == wanted]
    names = [task["name"] for task in tasks]
    workers = [{**w, "tasks": [name for name in w["tasks"] if name in names]} for w in document["workers"]]
    return {
        **document,
        "ports": [port for port in document["ports"] if (port["name"] in vnf_ports) == wanted],
        "tasks": tasks,
        "workers": [worker for worker in workers if worker["tasks"]],
    }


@dataclass
class Split:
    """A VNF process beside the tester. Made by :meth:`start`."""

    bed: Bed
    process: Process
    client: PlanedClient
    tasks: frozenset[str]
    epoch: int = 0

    @classmethod
    def start(cls, bed: Bed, epoch: int = 0) -> Split:
        """Start the process, alone on its core until it is up; its ports connect to the switch. Raises StartError.

        ``epoch`` is the last one that frames were sent with: a switch may still have some of them.
        """
        live = bed.live
        wires, document = halves(bed)
        live.apply({**wires, "tasks": [], "workers": []})
        number = len(bed.supervisor.processes)
        config, socket = live.links.workdir / f"vnf{number}.json", live.links.workdir / f"vnf{number}.rpc"
        config.write_text(json.dumps(document, indent=1), encoding="utf-8")
        process = bed.supervisor.spawn(
            "vnf",
            [str(bed.settings.planed), "--config", str(config), "--rpc", str(socket)],
            cpus=frozenset({*bed.placement.control_cpus, *bed.placement.tester_cpus, *bed.placement.vnf_cpus}),
            workdir=live.links.workdir,
            netns_pid=live.netns_pid,
        )

        def give_up() -> None:
            if not process.alive():
                raise StartError(f"the VNF did not come up: {process.obituary()}")

        client = PlanedClient(socket, give_up=give_up)
        live.apply(wires)
        return cls(bed, process, client, frozenset(task["name"] for task in document["tasks"]), epoch)

    def kill(self) -> None:
        """SIGKILL: it has no time to say goodbye to anybody."""
        self.client.close()
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(patient(5.0))

    def stop(self) -> None:
        """End it in order. Never raises; safe to call twice."""
        self.client.close()
        self.process.terminate()

    def call(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask both. Who only receives is told first that a trial begins: counters are cleared then."""
        if method != "traffic.start":
            ours, theirs = self.bed.live.call(method, params), self.client.call(method, params)
            return _merged(ours, theirs)
        assert params is not None
        mine = [it for it in params["generators"] if it["task"] in self.tasks]
        others = [it for it in params["generators"] if it["task"] not in self.tasks]
        sides = [(self.client.call, mine), (self.bed.live.call, others)]
        for call, generators in sorted(sides, key=lambda side: len(side[1])):
            call(method, {**params, "generators": generators})
        return {}

    def flood(self, seconds: float) -> None:
        """Begin to send flat out from every end, and wait so long."""
        self.epoch = next_epoch(self.epoch)
        generators = [
            {"task": f"gen-{flow.sender_port}", "frame_size_bytes": 64, "flat_out": True} for flow in self.bed.ways
        ]
        self.call("traffic.start", {"epoch": self.epoch, "duration_ns": 10_000_000_000, "generators": generators})
        time.sleep(seconds)

    def count(self, flow: Flow) -> Tally:
        """Send a few frames of one flow, and wait for all of them."""
        tally = Tally()
        tally.add(settled(self.call, self._send(flow), [flow], self.bed.lossless))
        return tally

    def _send(self, flow: Flow) -> dict[str, Any]:
        self.epoch = next_epoch(self.epoch)
        queues = self.bed.live.links.queues
        return send(self.call, self.epoch, [flow], 64, FRAMES / RATE_PPS, RATE_PPS, queues=queues)

    def wait_until_forwarding(self) -> None:
        """Until frames of every flow come through. Raises StartError, DiedError."""
        within_s = patient(CONNECT_DEADLINE_S)
        deadline = time.monotonic() + within_s
        missing: Sequence[Flow] = self.bed.ways
        while missing:
            self.bed.live.check()
            missing = [flow for flow in missing if not arrived(self._send(flow), flow)]
            if missing and time.monotonic() > deadline:
                names = ", ".join(flow.name for flow in missing)
                raise StartError(f"no frame came through {names} within {within_s:g} s")


def _merged(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """Two answers as one: lists together, flags if one of them says so."""
    found = dict(ours)
    for key, value in theirs.items():
        mine = found.get(key)
        if isinstance(value, list) and isinstance(mine, list):
            found[key] = [*mine, *value]
        elif isinstance(value, bool):
            found[key] = bool(mine) or value
    return found


def end_quietly(split: Split) -> None:
    """No more frames from the tester; it may have none to stop."""
    with contextlib.suppress(PlanebenchError):
        split.bed.live.call("traffic.stop")
