# SPDX-License-Identifier: BSD-3-Clause
"""``planebench machine agent``: the part of a run that is on the host of the switch, asked over stdin and stdout.

One line of JSON for each call, and one for its answer (planebench.host.link); nothing else is ever sent. It ends, with
all that it started and changed, when its stdin closes or is silent for an hour; if it is killed, its reaper ends the
processes.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import signal
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from planebench.host import procfs
from planebench.host.device_settings import device_journal, keep_away
from planebench.host.evidence import ThreadSampler, sample_host
from planebench.host.interfaces import interfaces_of
from planebench.host.link import GREETING, own_version
from planebench.host.memory import enough_hugepages
from planebench.host.process import Process, Supervisor, stretched
from planebench.host.programs import Found
from planebench.measure import doctor
from planebench.measure.conditions import threads_of
from planebench.measure.machine import Machine, terminable
from planebench.model.errors import PlanebenchError, StoreError, UsageError
from planebench.model.wire import wire_arguments
from planebench.switches.adapter import RunningSwitch, Situation
from planebench.switches.registry import get_adapter
from planebench.switches.remote import Hello, HostAnswer, decoded, encoded
from planebench.testbed.placement import Placement, place
from planebench.testbed.request import SwitchRequest
from planebench.testbed.wires.base import wire_kind

SILENCE_S = 3600.0
"""An agent that nobody asks for so long ends: the host of its harness may be gone without a word."""
END_S = 30.0
"""How long it may take to end in order; then it just ends, and its reaper does the rest."""
READ_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class _Up:
    """A started switch."""

    switch: RunningSwitch
    processes: tuple[Process, ...]
    interfaces: dict[str, str]
    """The kernel interfaces of its ports, by port."""


class Agent:
    """The methods that a harness on another host may call; parameters and results are plain JSON. Not thread-safe."""

    def __init__(self) -> None:
        self.machine: Machine
        """This host, since hello."""
        self._held = contextlib.ExitStack()
        self._supervisor: Supervisor
        """What starts processes, since hold."""
        self._up: dict[int, _Up] = {}
        self._numbers = 0

    def call(self, method: str, params: dict[str, Any]) -> Any:
        """Return the result of a method. Raises PlanebenchError, UsageError for one that is not known."""
        match method:
            case "hello":
                return self._hello(**params)
            case "clock":
                return time.time_ns()
            case "find" | "build" | "refusal" | "settings":
                return self._of_kind(method, **params)
            case "hold":
                return self._hold()
            case "release":
                self.close()
                return None
            case "start":
                return self._start(**params)
        if "number" not in params:
            raise UsageError(f"agent: there is no method {method}")
        return self._of_switch(method, **params)

    def close(self) -> None:
        """End every switch, and give back what is held. Safe to call twice."""
        self._up.clear()
        self._held.close()

    @property
    def placement(self) -> Placement:
        """Return the CPUs of the switch and of other threads."""
        return place(self.machine.cpus)

    def _hello(self, version: str, **params: Any) -> Any:
        """Say who we are and what this host is. The wire is checked later, when it is held."""
        if version != own_version():
            return {"version": own_version()}
        hello = decoded(Hello, {"version": version, **params})
        machine = replace(Machine.prepare(hello.switch_cores, simulated=True), simulated=False)  # claimed when held
        nodes = {nic.address: nic.numa_node for nic in machine.facts.nics}
        cable = wire_kind(hello.wire).cables(wire_arguments(hello.wire))[0]
        cpus = replace(machine.cpus, switch_node=nodes.get(cable.switch))
        self.machine = replace(machine, cpus=cpus, wire=hello.wire)
        findings = [finding for finding in doctor.examine(machine.facts) if finding.level != "ok"]
        return encoded(
            HostAnswer(
                own_version(),
                machine.facts.as_dict(),
                self.placement.switch_cpus,
                enough_hugepages(None, machine.facts),
                tuple(f"{it.text} ({it.remedy})" if it.remedy else it.text for it in findings),
            )
        )

    def _of_kind(self, method: str, switch: str, situation: Any = None, request: Any = None) -> Any:
        """Return what the adapter of a kind of switch says: whether it is installed, how it was built, why it cannot be
        measured in a situation, and its part of the manifest."""
        adapter = get_adapter(switch)
        match method:
            case "refusal":
                return adapter.refusal(decoded(Situation, situation))
            case "settings":
                return adapter.settings(decoded(SwitchRequest, request))
            case "build":
                build = adapter.build()
                return None if build is None else encoded(build)  # it is no program
        found = adapter.find()
        if isinstance(found, Found):
            return {"version": found.version, "binary": str(found.binary)}
        return {"remedy": found.remedy, "problem": found.problem}

    def _hold(self) -> list[str]:
        """Hold the switch's ends of the wire, and be ready to start switches; return what the user has to know."""
        self.close()
        wire = self.machine.wire
        with contextlib.ExitStack() as stack:
            supervisor = stack.enter_context(replace(self.machine, wire="virtio").measuring())
            if os.geteuid() == 0:  # interrupts of NICs stay off the CPUs of the switch
                with contextlib.suppress(StoreError):  # without a place for the old values they stay where they are
                    keep_away(frozenset(self.placement.switch_cpus), self.placement.control_cpus, device_journal())
            warnings = stack.enter_context(wire_kind(wire).hold(wire_arguments(wire), "switch"))
            self._supervisor = supervisor
            self._held = stack.pop_all()
        return list(warnings)

    def _start(self, switch: str, request: Any) -> int:
        """Start a switch with folder, CPUs and devices of this host; return its number."""
        adapter, wanted = get_adapter(switch), decoded(SwitchRequest, request)
        kind = wire_kind(self.machine.wire)
        ports = tuple(kind.fitted(port) for port in wanted.ports)
        interfaces = {port.name: port.interface for port in ports if port.interface}
        own = replace(
            wanted,
            ports=ports,
            workdir=self._supervisor.topology_folder(switch),
            control_cpus=self.placement.control_cpus,
            # A switch that gets a network namespace by this id gets that of the agent, which has the devices.
            netns_pid=os.getpid() if interfaces else None,
        )
        known = len(self._supervisor.processes)
        with self._supervisor.memory_on(self.placement.memory_node(own.cpu)):
            running = adapter.start(own, self._supervisor)
        self._numbers += 1
        self._up[self._numbers] = _Up(running, tuple(self._supervisor.processes[known:]), interfaces)
        return self._numbers

    def _of_switch(self, method: str, number: int) -> Any:
        """Return the result of a method of a started switch; one that is stopped can be stopped again."""
        if number not in self._up and method == "stop":
            return None
        up = self._up[number]
        switch, processes = up.switch, up.processes
        match method:
            case "pause":
                for process in reversed(processes):
                    process.pause()
            case "resume":
                for process in processes:
                    process.resume()
            case "stop":
                del self._up[number]
                for process in processes:
                    process.resume()
                switch.stop()
            case "check":
                switch.check()
            case "counters":
                return encoded(switch.counters())
            case "sample":  # the kernel's counters of its threads and of their CPUs
                return encoded(sample_host(ThreadSampler(switch.polling_threads()), self.placement.switch_cpus))
            case "thread_conditions":
                return [encoded(thread) for thread in threads_of(switch)]
            case "wire_drops":  # what the kernel dropped of the frames that it sent on interfaces, by port
                counts, found = interfaces_of(os.getpid()), up.interfaces
                return {f"{port}:rx_dropped": counts[it].tx_dropped for port, it in found.items() if it in counts}
            case "log_tail":
                return "\n".join(process.log_tail() for process in processes)
            case _:
                raise UsageError(f"agent: there is no method {method}")
        return None


def end_earlier(run_id: str) -> None:
    """End the agents of a run whose connection was lost without their notice: they hold devices that it needs again."""
    words = ["machine", "agent", "--run", run_id]
    others = set(procfs.processes_with(run_id)) - {os.getppid()}
    found = [pid for pid in others if procfs.words(pid)[-len(words) :] == words]
    for number, patience_s in ((signal.SIGTERM, END_S), (signal.SIGKILL, END_S)):
        for pid in filter(procfs.is_running, found):
            with contextlib.suppress(OSError):
                os.kill(pid, number)
        end = time.monotonic() + stretched(patience_s)
        while any(map(procfs.is_running, found)) and time.monotonic() < end:
            time.sleep(0.05)


def serve(run_id: str | None) -> int:
    """Answer calls until stdin closes. Returns the exit code.

    Nothing else of this process may use stdin and stdout. ``run_id``: what an earlier agent of the same run was started
    with.
    """
    if run_id is not None:
        end_earlier(run_id)
    asked, answers = os.dup(0), os.dup(1)
    with Path(os.devnull).open() as null:
        os.dup2(null.fileno(), 0)
    os.dup2(2, 1)  # what libraries print is for people
    calls: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    agent = Agent()
    with contextlib.suppress(KeyboardInterrupt), terminable():
        try:
            threading.Thread(target=_receive, args=(asked, calls), name="stdin", daemon=True).start()
            _send(answers, GREETING)
            while True:
                call = json.loads(calls.get())
                try:
                    answer = {"result": agent.call(call["method"], call["params"])}
                except PlanebenchError as error:
                    answer = {"error": {"kind": type(error).__name__, "text": str(error)}}
                except (OSError, TypeError, LookupError) as error:
                    print(f"planebench machine agent: {error!r}", file=sys.stderr)
                    answer = {"error": {"kind": "DiedError", "text": repr(error)}}
                _send(answers, json.dumps({"id": call["id"], **answer}).encode())
        finally:
            agent.close()
    return 0


def _send(answers: int, line: bytes) -> None:
    """Send one line. What nobody receives is dropped: stdin closes then, too."""
    data = memoryview(line + b"\n")
    with contextlib.suppress(OSError):
        while data:
            data = data[os.write(answers, data) :]


def _receive(asked: int, calls: queue.SimpleQueue[bytes]) -> None:
    """Receive lines until stdin closes or is silent for SILENCE_S; then end the main thread, whatever it does."""
    received, silence_s = b"", stretched(SILENCE_S)
    while select.select([asked], [], [], silence_s)[0] and (chunk := os.read(asked, READ_BYTES)):
        *lines, received = (received + chunk).split(b"\n")
        for line in lines:
            calls.put(line)
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
    time.sleep(stretched(END_S))
    os._exit(1)
