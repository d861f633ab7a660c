# SPDX-License-Identifier: BSD-3-Clause
"""Switches that are bad in one way each: what the suite has to find. And the suite on an adapter that has no name."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyswitch

from planebench.conformance.model import CheckResult
from planebench.conformance.rig import Rig
from planebench.conformance.suite import ALL_CHECKS, SuitePlan, check_on_rig, parse_cases, parse_checks, run_suite
from planebench.host.planed_program import find_planed
from planebench.host.process import Process, Supervisor, wait_ready
from planebench.measure.live import LiveSettings
from planebench.measure.machine import Machine
from planebench.model.conditions import MANIFEST_KEYS
from planebench.model.errors import DiedError, PlanebenchError, StartError
from planebench.model.records import SwitchCycles
from planebench.planed.client import PlanedClient
from planebench.switches import common, planed
from planebench.switches.base import (
    Adapter,
    Found,
    RunningSwitch,
    Situation,
    SwitchRequest,
    ThreadRef,
    Traits,
)
from planebench.switches.common import manifest

ALL = ",".join(check.name for check in ALL_CHECKS)
Wrap = Callable[[Any, SwitchRequest, Supervisor], Any]
PROGRAM = Path(pyswitch.__file__)


class PySwitch(Adapter):
    """The switch of pyswitch.py: veth on all sides."""

    name = "pyswitch"
    title = "a switch in a page of Python"
    remedy = "it is part of the tests"
    wires = frozenset({"veth"})
    vnf_interface = "veth"
    options = ()
    traits = Traits("self-contained", "structured", ("rtc",), "none", "high", ("Python",), "tests")

    def __init__(self, values: Mapping[str, Any] | None = None, fault: str = "none", cpu: str = "") -> None:
        super().__init__(values)
        self.fault, self.cpu = fault, cpu

    def find(self) -> Found:
        return Found("1", Path(sys.executable))

    def settings(self, request: SwitchRequest) -> dict[str, str]:
        return {**dict.fromkeys(MANIFEST_KEYS, "default"), **manifest(request, function="patch", burst="64")}

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningPySwitch:
        ports = common.paired_ports(request)
        names = [port.interface for port in ports]
        pairs = [f"{a}:{b}" for a, b in zip(names[::2], names[1::2], strict=True)]
        counters = request.workdir / "counters"
        cpu = self.cpu or str(request.cpu)
        process = supervisor.spawn(
            self.name,
            [sys.executable, "-S", "-B", str(PROGRAM), self.fault, cpu, str(counters), *pairs],
            cpus=frozenset({request.cpu, *request.control_cpus}),
            workdir=request.workdir,
            netns_pid=request.netns_pid,
        )
        wait_ready(self.name, lambda: "interfaces" in process.log_tail(), [process])
        return RunningPySwitch(process, counters)


class RunningPySwitch(common.ProcessGroup):
    def __init__(self, process: Process, path: Path) -> None:
        super().__init__("pyswitch", [process])
        self._path = path

    def polling_threads(self) -> tuple[ThreadRef, ...]:
        (process,) = self.processes
        return (ThreadRef(process.pid, process.pid, "pyswitch"),)

    def become(self, fault: str) -> None:
        """From the next frame on."""
        with self._path.open("r+b") as file:
            file.seek(16)
            file.write(bytes([pyswitch.FAULTS.index(fault)]))

    def counters(self) -> SwitchCycles:
        self.check()
        received, sent, _ = pyswitch.NUMBERS.unpack(self._path.read_bytes())
        return SwitchCycles(packets=received, forwarded_packets=sent)


@dataclass
class Changed:
    """A running switch, some of whose methods are others."""

    real: Any
    methods: Mapping[str, Callable[..., Any]]

    def __getattr__(self, name: str) -> Any:
        return self.methods[name] if name in self.methods else getattr(self.real, name)


class BadPlaned(planed.PlanedAdapter):
    """planed, started with another request, or wrapped once it runs."""

    def __init__(
        self,
        request: Callable[[SwitchRequest], SwitchRequest] = lambda it: it,
        wrap: Wrap = lambda it, request, supervisor: it,
        options: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(planed.ADAPTER.with_options(options or {}).values)
        self._request, self._wrap = request, wrap

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningSwitch:  # type: ignore[override]
        it: RunningSwitch = self._wrap(super().start(self._request(request), supervisor), request, supervisor)
        return it


def swapped(request: SwitchRequest) -> SwitchRequest:
    """loopback-2 by way of the second VNF first: frames arrive all the same."""
    return replace(request, cross_connects=(("n0", "v2"), ("v3", "v0"), ("v1", "n1")))


def lying(it: Any, request: SwitchRequest, supervisor: Supervisor) -> Changed:
    """One frame in fifty that never was."""

    def counters() -> SwitchCycles:
        true = it.counters()
        return replace(true, packets=true.packets + true.packets // 50)

    return Changed(it, {"counters": counters})


def hiding_drops(it: Any) -> Changed:
    def counters() -> SwitchCycles:
        true = it.counters()
        return replace(true, drops=dict.fromkeys(true.drops, 0))

    return Changed(it, {"counters": counters})


def silent_in_death(it: Any, request: SwitchRequest, supervisor: Supervisor) -> Changed:
    """It says that it died, and not why."""

    def check() -> None:
        try:
            it.check()
        except DiedError:
            raise DiedError("it died") from None

    return Changed(it, {"check": check})


def littering(folder: Path, times: int = 1000) -> Wrap:
    """A file that is there after stop(); at the first ``times`` stops."""
    left = itertools.count()

    def wrap(it: Any, request: SwitchRequest, supervisor: Supervisor) -> Changed:
        def stop() -> None:
            number = next(left)
            if number < times:
                (folder / f"litter{number}").touch()
            it.stop()

        return Changed(it, {"stop": stop})

    return wrap


def leaving_a_process(left: list[subprocess.Popen[bytes]]) -> Wrap:
    """A daemon of which nobody knows."""

    def wrap(it: Any, request: SwitchRequest, supervisor: Supervisor) -> Any:
        env = {**os.environ, "RUNTIME_DIRECTORY": str(supervisor.root)}
        left.append(subprocess.Popen(["sleep", "300"], env=env, start_new_session=True))
        return it

    return wrap


def connections(pid: int) -> set[str]:
    """Sockets of a process, by inode: one that is closed and opened again is another. OSError if it is gone."""
    found = set()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.add(str(fd.readlink()))
    return {name for name in found if name.startswith("socket:")}


def fragile(it: Any, request: SwitchRequest, supervisor: Supervisor) -> Any:
    """It dies when a VNF goes, however soon another one comes: a connection of its first VNFs is gone for good."""
    client = PlanedClient(request.workdir / "planed-switch.rpc")
    pid = it.pids()[0]

    def watch() -> None:
        first: set[str] = set()
        while True:
            try:
                up = all(port["link_up"] for port in client.call("ports.get")["ports"] if port["name"][0] == "v")
                now = connections(pid)
            except (OSError, PlanebenchError):
                return
            if first - now:
                os.kill(pid, signal.SIGKILL)
                return
            first = first or (now if up else set())
            time.sleep(0.005)

    threading.Thread(target=watch, daemon=True).start()
    return it


class Broken(planed.PlanedAdapter):
    """It forwards, and its adapter is full of mistakes."""

    def find(self) -> Found:
        return Found("", Path("/nowhere"))

    def with_options(self, texts: Mapping[str, str]) -> planed.PlanedAdapter:  # type: ignore[override]
        raise ZeroDivisionError("of options")

    def settings(self, request: SwitchRequest) -> dict[str, str]:
        return {key: text for key, text in super().settings(request).items() if key != "burst"}

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningSwitch:  # type: ignore[override]
        return planed.ADAPTER.start(request, supervisor)


class Stillborn(planed.PlanedAdapter):
    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningSwitch:  # type: ignore[override]
        raise RuntimeError("never")


class CountsOneWorker(planed.PlanedAdapter):
    """With several workers, its counters are those of one of them."""

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningSwitch:  # type: ignore[override]
        it = super().start(request, supervisor)

        def counters() -> SwitchCycles:
            true, workers = it.counters() or SwitchCycles(), len(request.worker_cpus)
            assert true.packets is not None
            return replace(true, packets=true.packets // workers)

        return Changed(it, {"counters": counters})


class StartsOnce(planed.PlanedAdapter):
    """Its counters are wrong, and after that its port is not free again."""

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        super().__init__(values)
        self.started = False

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningSwitch:  # type: ignore[override]
        if self.started:
            raise StartError("port n0 is in use")
        self.started = True
        it: RunningSwitch = lying(super().start(request, supervisor), request, supervisor)
        return it


class Choosy(planed.PlanedAdapter):
    def refusal(self, situation: Situation) -> str:
        return "it is Monday"


def settings(wire: str) -> LiveSettings:
    planed_path = find_planed()
    assert planed_path is not None
    return LiveSettings(planed_path, 256, False, 1518, wire)  # type: ignore[arg-type]


@contextlib.contextmanager
def rig(adapter: Adapter, scenario: str, wire: str) -> Iterator[Rig]:
    """A scenario that is up."""
    machine = Machine.prepare()
    with Supervisor() as supervisor:
        (case,) = parse_cases(scenario)
        it = Rig(adapter, case, machine.cpus, settings(wire), supervisor)
        with machine.pinned():
            it.start()
        it.live.pause()  # its tester polls on the core that everything else here needs
        try:
            yield it
        finally:
            it.stop()


def checked(it: Rig, checks: str) -> dict[str, CheckResult]:
    """The results of some checks on it, by name."""
    it.exchange, it.lossless = None, True
    wanted = parse_checks(checks)
    it.live.resume()
    try:
        with Machine.prepare().pinned():
            return {check.name: check_on_rig(check, it) for check in ALL_CHECKS if check.name in wanted}
    finally:
        it.live.pause()


def check(adapter: Adapter, scenario: str, checks: str, wire: str = "virtio") -> dict[str, CheckResult]:
    """The results of the suite by name of the check, on one scenario."""
    machine = Machine.prepare()
    wires: Any = (wire,)
    plan = SuitePlan(adapter, parse_cases(scenario), wires, machine.cpus, settings(wire), parse_checks(checks))
    with machine.pinned():
        return {result.check: result for result in run_suite(plan, lambda _: None, lambda _: None)}


def failed(results: Mapping[str, CheckResult]) -> set[str]:
    return {name for name, result in results.items() if result.outcome == "fail"}
