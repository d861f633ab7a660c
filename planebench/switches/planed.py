# SPDX-License-Identifier: BSD-3-Clause
"""planed as a switch: one ``patch`` or ``bridge`` task for each cross-connect and each queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Self

from planebench.host.planed_program import REMEDY, find_planed, missing_planed, planed_version
from planebench.host.process import Supervisor
from planebench.host.programs import PATH_OPTION, Found, NotFound
from planebench.model.errors import UsageError
from planebench.model.option import Option
from planebench.model.records import SwitchCycles
from planebench.model.switch_figures import further_counters
from planebench.planed.client import RpcError
from planebench.planed.document import Document
from planebench.planed.process import CONNECT_DEADLINE_S, PlanedProcess
from planebench.planed.requests import get_ports, get_statistics
from planebench.planed.statistics import PORT_DROPS, Statistics, TaskStatistics
from planebench.switches import common, planed_stations
from planebench.switches.planed_document import (
    OPTIONS,
    function_of,
    offers_offloads,
    switch_document,
    switch_settings,
)
from planebench.wiring.adapter import Adapter, NoProcesses, RunningSwitch, Situation, ThreadRef, Traits
from planebench.wiring.request import SwitchRequest

ROUTES_PER_S = 1_000_000
"""The least rate at which the table of a function fills, on a busy machine too."""


class PlanedAdapter(Adapter):
    """``planed``: patch tasks copy packets from ring to ring; or learning bridges of two ports."""

    name = "planed"
    title = "planed"
    start_s = 0.6  # its vhost does not wait for a socket
    remedy = REMEDY
    options: tuple[Option, ...] = OPTIONS
    traits = Traits("self-contained", "structured", ("rtc",), "vhost-user", "medium", ("C",), "NFV data plane")

    wires = frozenset({"virtio", "vhost", "memif", "veth", "pci", "af_xdp"})
    stations = True
    functions = True

    @property
    def offloads(self) -> bool:
        return "offload" in self.values

    def refusal(self, situation: Situation) -> str:
        return super().refusal(situation) or planed_stations.station_refusal(situation, self.values)

    def with_options(self, texts: Mapping[str, str]) -> Self:
        """Return an adapter with these options. Raises UsageError also for options that exclude each other."""
        adapter = super().with_options(texts)
        function = function_of(adapter.values)
        if "drop_one_in" in adapter.values and function != "patch":
            raise UsageError(f"switch planed: function {function} does not support drop_one_in; remove one of them")
        if offers_offloads(adapter.values) and adapter.values.get("backend") == "dpdk":
            raise UsageError("switch planed: backend=dpdk does not support guest_offloads=on; remove one of them")
        return adapter

    def find(self) -> Found | NotFound:
        chosen = PATH_OPTION.key in self.values
        binary = self.installation().program("planed") if chosen else find_planed()
        version = planed_version(binary)
        if binary is None or version is None:
            return missing_planed()
        return Found(version.removeprefix("planed").strip(), binary)

    def settings(self, request: SwitchRequest) -> dict[str, str]:
        return switch_settings(request, self.values)

    def inside(self, request: SwitchRequest) -> Document | None:
        return planed_stations.station_nic(request) if "nic" in self.values and request.stations else None

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningSwitch:
        if "nic" in self.values:
            return EmulatedNic()
        common.check_frame_size(request)
        common.ordered_ports(request)
        found = common.require(self)
        planed = PlanedProcess.start(
            switch_document(request, f"{supervisor.root.name}-switch", self.values),
            supervisor,
            planed=found.binary,
            name="planed-switch",
            title="planed",
            file="planed-switch",
            workdir=request.workdir,
            cpus=request.control_cpus,  # workers pin themselves
            netns_pid=request.netns_pid,
            connect_s=CONNECT_DEADLINE_S + (request.bare.routes / ROUTES_PER_S if request.bare is not None else 0),
            arguments=("--isa", str(self.values["isa"])) if "isa" in self.values else (),
        )
        try:
            planed_stations.load(planed.call, request, self.value("offload", None))
        except BaseException:
            planed.stop()
            raise
        return RunningPlaned(planed, nics=any(port.kind == "pci" for port in request.ports))


class EmulatedNic(NoProcesses):
    """A NIC that is a task of the tester: there is no process, and its drops are among those of the tester."""

    def counters(self) -> SwitchCycles:
        """Return that nothing is known beside what the tester says."""
        return SwitchCycles()

    def check(self) -> None:
        """Do nothing: the tester is checked."""

    def stop(self) -> None:
        """Do nothing: the tester ends it."""


class RunningPlaned(common.ProcessGroup):
    """A planed that forwards. Counters come from its control socket."""

    def __init__(self, planed: PlanedProcess, *, nics: bool = False) -> None:
        super().__init__("planed", [planed.process])
        self._planed = planed
        self._nics = nics

    def polling_threads(self) -> tuple[ThreadRef, ...]:
        workers, pid = self._stats()["workers"], self.process.pid
        return tuple(ThreadRef(pid, worker["tid"], worker["name"]) for worker in workers)

    def counters(self) -> SwitchCycles:
        stats = self._stats()
        tasks = stats["tasks"]
        ports = get_ports(self._planed.call) if self._nics else []
        nic = common.nic_counters({port["name"]: port.get("xstats", {}) for port in ports})
        own = {name: count for name in further_counters() if (count := _total(tasks, name)) is not None}
        return SwitchCycles(
            busy_cycles=sum(task["busy_cycles"] for task in tasks),
            idle_cycles=sum(task["idle_cycles"] for task in tasks),
            packets=sum(task["rx_packets"] for task in tasks),
            drops=parse_drops(stats) | common.nic_drops(nic),
            forwarded_packets=sum(task["tx_packets"] for task in tasks),
            bursts=_total(tasks, "rx_bursts"),
            counters=own | nic,
        )

    def stop(self) -> None:
        self._planed.close()
        super().stop()

    def _stats(self) -> Statistics:
        self.check()
        try:
            return get_statistics(self._planed.call)
        except RpcError as error:
            raise self.died(error) from error


def parse_drops(stats: Statistics) -> dict[str, int]:
    """Return the drops of a ``stats.get``: full rings and receive counters by port (``v0:tx_full``), others by
    reason."""
    drops: Counter[str] = Counter()
    for task in stats["tasks"]:
        for port, reasons in task["drops_by_port"].items():
            drops.update({f"{port}:{reason}": count for reason, count in reasons.items()})
        drops.update({reason: count for reason, count in task["drops"].items() if reason != "tx_full"})
    for state in stats["ports"]:
        drops.update({f"{state['name']}:{reason}": state[reason] for reason in PORT_DROPS})
    return dict(drops)


def _total(tasks: Sequence[TaskStatistics], name: str) -> int | None:
    """Return the sum of a counter over all tasks; None if a task does not have it."""
    counts = (task.get(name) for task in tasks)
    return common.total(count if isinstance(count, int) else None for count in counts)


ADAPTER = PlanedAdapter()
