# SPDX-License-Identifier: BSD-3-Clause
"""Our own data plane as a switch: one ``patch`` or ``bridge`` task for each cross-connect, and each queue of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from planebench.host.planed_program import missing_planed
from planebench.host.process import Process, Supervisor
from planebench.model.errors import DiedError, PlanebenchError, StartError
from planebench.model.records import SwitchCycles
from planebench.model.switch_figures import further_counters
from planebench.planed import (
    REMEDY,
    PlanedClient,
    RpcClosedError,
    find_planed,
    planed_version,
)
from planebench.switches import common, planed_stations
from planebench.switches.base import Adapter, Found, NotFound, Option, Situation, SwitchRequest, ThreadRef, Traits
from planebench.switches.planed_document import OPTIONS, PlanedOptions, switch_document, switch_settings

PORT_DROPS = ("rx_missed", "rx_nombuf", "rx_errors", "tx_errors")


class PlanedAdapter(Adapter):
    """``planed``: packets are copied from ring to ring by patch tasks, or by learning bridges of two ports."""

    name = "planed"
    title = "planed"
    remedy = REMEDY
    options: tuple[Option, ...] = OPTIONS
    traits = Traits("self-contained", "structured", ("rtc",), "vhost-user", "medium", ("C",), "NFV data plane")

    stations = True

    def __init__(self, chosen: PlanedOptions | None = None) -> None:
        super().__init__()
        self.chosen = chosen or PlanedOptions()
        self.wires = frozenset({"virtio", "memif", "veth"} if self.queues == 1 else {"virtio"})  # others: one queue

    @property
    def queues(self) -> int:
        """Queue pairs of each port."""
        return self.chosen.workers

    @property
    def offloads(self) -> bool:
        """Whether it forwards in the place of VNFs side by side."""
        return self.chosen.offload is not None

    def refusal(self, situation: Situation) -> str:
        """What its wires tell, and what its options are for."""
        return super().refusal(situation) or planed_stations.refusal(situation, self.chosen)

    def with_options(self, texts: Mapping[str, str]) -> PlanedAdapter:
        """An adapter with these options, the others as they are. Raises UsageError for what is not valid."""
        return PlanedAdapter(self.chosen.changed(texts))

    def find(self) -> Found | NotFound:
        """The planed program and its version."""
        binary = find_planed()
        version = planed_version()
        if binary is None or version is None:
            return missing_planed()
        return Found(version.removeprefix("planed").strip(), binary)

    def settings(self, request: SwitchRequest) -> dict[str, str]:
        """How it is run, for the report."""
        return switch_settings(request, self.chosen)

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningPlaned:
        """Start it and wait until it answers. Raises StartError, UsageError or NotInstalledError."""
        common.check_frame_size(request)
        common.ordered_ports(request)
        found = common.require(self)
        config = request.workdir / "planed-switch.json"
        socket = request.workdir / "planed-switch.rpc"
        document = switch_document(request, f"{supervisor.root.name}-switch", self.chosen)
        config.write_text(json.dumps(document, indent=1))
        isa = [] if self.chosen.isa is None else ["--isa", self.chosen.isa]
        process = supervisor.spawn(
            "planed-switch",
            [str(found.binary), "--config", str(config), "--rpc", str(socket), *isa],
            cpus=request.control_cpus,  # workers pin themselves
            workdir=request.workdir,
            netns_pid=request.netns_pid,
        )

        def give_up() -> None:
            if not process.alive():
                raise StartError(f"planed did not come up: {process.obituary()}")

        try:
            client = PlanedClient(socket, give_up=give_up)
            planed_stations.load(client.call, request, self.chosen.offload)
            return RunningPlaned(process, client)
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
            forwarded_packets=_total(stats, "tx_packets"),
            bursts=_total(stats, "rx_bursts") if _counts(stats, "rx_bursts") else None,
            counters={name: _total(stats, name) for name in further_counters() if _counts(stats, name)},
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


def _counts(stats: dict[str, Any], key: str) -> bool:
    """Return whether every task has a counter: a sum of some would be a wrong number."""
    return all(key in task for task in stats["tasks"])


def _total(stats: dict[str, Any], key: str) -> int:
    return sum(int(task[key]) for task in stats["tasks"])


ADAPTER = PlanedAdapter()
