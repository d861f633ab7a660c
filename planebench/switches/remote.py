# SPDX-License-Identifier: BSD-3-Clause
"""A switch on another host, where an agent starts it (planebench.measure.agent); tester and harness are here.

Adapters do not know: :class:`RemoteAdapter` is in the place of one here, and the adapter itself works there. What
depends on the host is decided there: folders, CPUs of other threads, network namespace.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from planebench.host.evidence import HostSample
from planebench.host.facts import cpu_model
from planebench.host.link import Link
from planebench.host.process import Process, Supervisor
from planebench.host.programs import Found, NotFound
from planebench.model import closed
from planebench.model.conditions import ThreadConditions
from planebench.model.errors import DiedError, PlanebenchError, UsageError
from planebench.model.header import Build, ClockOffset, SwitchHostInfo
from planebench.model.records import SwitchCycles
from planebench.model.wire import wire_arguments
from planebench.switches.adapter import Adapter, RunningSwitch, Situation
from planebench.testbed.request import SwitchRequest
from planebench.testbed.wires.base import wire_kind

START_DEADLINE_S = 300.0
CLOCK_READINGS = 5
_TRAITS = (
    *("name", "title", "remedy", "traits", "options", "wires", "queued_wires", "vnf_interface", "max_frame_bytes"),
    *("sends_on_one_queue", "memif_send_queue", "start_s", "trial_overhead_s", "hugepages_mb", "stations", "functions"),
)
"""What an adapter says of its kind of switch, which is the same on every host."""

R = TypeVar("R")
_parser: Any = closed.adapter


@dataclass(frozen=True, slots=True)
class HostAnswer:
    """The first answer of an agent: what its host is."""

    version: str
    facts: dict[str, str | int | float | bool | None]
    switch_cpus: tuple[int, ...]
    hugepages: bool
    """Whether enough are free for one switch."""
    findings: tuple[str, ...]
    """What makes the host less fit to measure, as ``doctor`` says it."""


@dataclass(frozen=True, slots=True)
class Hello:
    """The first words of the harness: its version, and what the agent needs to place the switch."""

    version: str
    switch_cores: int
    wire: str


class SwitchHost:
    """The host of the switch: its agent, and what it says of itself. Made by :meth:`connect`; :meth:`close` ends it."""

    def __init__(self, link: Link, hello: Hello) -> None:
        self.link, self.name = link, link.name
        self._hello = hello
        self._held = False
        self.answer = self._greet()

    @classmethod
    def connect(cls, link: Link, hello: Hello) -> SwitchHost:
        """Connect to an agent. Raises StartError where there is none, UsageError for one of another version."""
        try:
            link.open()
            return cls(link, hello)
        except BaseException:
            link.close()
            raise

    def close(self) -> None:
        """End the agent, and with it all that it started. Never raises."""
        self.link.close()

    def _greet(self) -> HostAnswer:
        told = self.link.call("hello", asdict(self._hello))
        version = told.get("version") if isinstance(told, dict) else None
        if version != self._hello.version:
            raise UsageError(
                f"host {self.name} has planebench {version}, here is {self._hello.version}: install the same version"
            )
        return decoded(HostAnswer, told)

    def call(self, method: str, timeout_s: float = 60.0, **params: Any) -> Any:
        """Return the result of a method of the agent. Raises as :meth:`planebench.host.link.Link.call`."""
        return self.link.call(method, params, timeout_s)

    def info(self) -> SwitchHostInfo:
        """Return the host for the header of a run, with its clock compared to that of this host."""
        return SwitchHostInfo(self.name, self.answer.version, dict(self.answer.facts), self.clock())

    def clock(self) -> ClockOffset:
        """Return how far the clock of the host is ahead of ours: the best of some readings (RFC 5905)."""
        readings = []
        for _ in range(CLOCK_READINGS):
            before = time.time_ns()
            theirs = int(self.call("clock"))
            after = time.time_ns()
            readings.append(ClockOffset(theirs - (before + after) // 2, (after - before) // 2))
        return min(readings, key=lambda reading: reading.error_ns)

    @contextlib.contextmanager
    def holding(self) -> Iterator[tuple[str, ...]]:
        """Have the agent hold its ends of the wire, as :meth:`WireKind.hold`; yield what the user has to know."""
        warnings = tuple(f"host {self.name}: {text}" for text in self.call("hold", START_DEADLINE_S))
        self._held = True
        try:
            yield warnings
        finally:
            self._held = False
            with contextlib.suppress(PlanebenchError):  # a lost connection has ended it already
                self.call("release", START_DEADLINE_S)

    def ready(self) -> None:
        """Connect again if the connection was lost: its agent has ended all that it had. Raises StartError."""
        if self.link.alive:
            return
        self.link.open()
        self.answer = self._greet()
        if self._held:
            self.call("hold", START_DEADLINE_S)


class RemoteAdapter(Adapter):
    def __init__(self, text: str, here: Adapter, host: SwitchHost) -> None:
        super().__init__(here.values)
        for trait in _TRAITS:
            setattr(self, trait, getattr(here, trait))
        self._text, self._here, self.host = text, here, host

    @property
    def offloads(self) -> bool:
        return self._here.offloads

    def refusal(self, situation: Situation) -> str:
        """Return why it cannot be measured with its tester on another host; else what its own adapter says there."""
        if not situation.layout.wired or situation.chain_length or situation.layout.two_switches:
            return f"VNFs are on the host of the switch, but {self.host.name} has no tester; two hosts measure p2p"
        if self.vnf_interface != "vhost-user":
            return f"{self.name} works on interfaces of a network namespace of its own, which two hosts have not"
        return str(self.host.call("refusal", switch=self._text, situation=encoded(situation)))

    def find(self) -> Found | NotFound:
        told = self.host.call("find", switch=self._text)
        if "version" in told:
            return Found(str(told["version"]), Path(told["binary"]))
        return NotFound(str(told["remedy"]), f"on host {self.host.name} {told['problem']}")

    def build(self) -> Build | None:
        told = self.host.call("build", switch=self._text)
        return None if told is None else decoded(Build, told)

    def settings(self, request: SwitchRequest) -> dict[str, str]:
        told = self.host.call("settings", switch=self._text, request=encoded(request))
        return decoded(dict[str, str], told)

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RemoteSwitch:
        """Have the agent start it. Connects again first if the connection was lost."""
        self.host.ready()
        number = self.host.call("start", START_DEADLINE_S, switch=self._text, request=encoded(request))
        switch = RemoteSwitch(self.name, self.host, int(number))
        supervisor.adopt(switch)
        return switch


class RemoteSwitch(Process, RunningSwitch):
    """A started switch on another host, all its processes as one. Its threads are in :meth:`sample` and
    :meth:`thread_conditions`."""

    def __init__(self, name: str, host: SwitchHost, number: int) -> None:
        self.name, self._host, self._number = name, host, number
        self._same_cpus = host.answer.facts.get("cpu_model") == cpu_model()
        self.paused = False
        self._ended = False

    @property
    def returncode(self) -> int | None:
        """Return 0 once it was ended or its host is lost; None before."""
        return 0 if self._ended or not self._host.link.alive else None

    def _ask(self, method: str) -> Any:
        return self._host.call(method, number=self._number)

    def log_tail(self, lines: int = 8) -> str:
        """Return the last lines that it printed; empty if its host is lost."""
        with contextlib.suppress(PlanebenchError):
            return "\n".join(str(self._ask("log_tail")).splitlines()[-lines:])
        return ""

    def exit_report(self) -> str:
        state = "is running" if self.alive() else "was ended"
        return f"{self.name} on host {self._host.name} {state}; its last log lines:\n{self.log_tail() or '(none)'}"

    def pause(self) -> None:
        if not self.paused:
            self._ask("pause")
            self.paused = True

    def resume(self) -> None:
        if self.paused:
            self._ask("resume")
            self.paused = False

    def ask_to_end(self) -> None:
        """Do nothing; :meth:`terminate` ends it."""

    def terminate(self, timeout_s: float = START_DEADLINE_S) -> None:
        """End it. Never raises; safe to repeat."""
        if not self._ended:
            self._ended = True
            with contextlib.suppress(PlanebenchError):
                self._host.call("stop", timeout_s, number=self._number)

    def stop(self) -> None:
        self.terminate()

    def counters(self) -> SwitchCycles:
        """Return the counters; without cycles where the CPUs of both hosts differ, as their TSCs then do."""
        told = decoded(SwitchCycles, self._ask("counters"))
        return told if self._same_cpus else replace(told, busy_cycles=None, idle_cycles=None)

    def check(self) -> None:
        self._ask("check")

    def sample(self) -> HostSample:
        """Return the kernel's counters of its threads and of their CPUs, as they are now."""
        return decoded(HostSample, self._ask("sample"))

    def thread_conditions(self) -> tuple[ThreadConditions, ...]:
        return tuple(decoded(ThreadConditions, told) for told in self._ask("thread_conditions"))

    def wire_drops(self) -> Counter[str]:
        """Return what the kernel there dropped on the interfaces of the wires so far."""
        return Counter(decoded(dict[str, int], self._ask("wire_drops")))


def check_wire(wire: str) -> None:
    """Raise UsageError for a wire that cannot connect two hosts."""
    kind = wire_kind(wire)
    if not kind.between_hosts or not kind.cables(wire_arguments(wire)):
        raise UsageError(
            f'wire "{wire}" connects processes of one machine; two hosts need the devices of both: --wire '
            "pci:TESTER=SWITCH,... (NICs), veth:TESTER=SWITCH,... or af_xdp:TESTER=SWITCH,... (kernel interfaces)"
        )


def encoded(value: Any) -> Any:
    return _parser(type(value)).dump_python(value, mode="json")


def decoded(kind: type[R], told: Any) -> R:
    """Return a record of class ``kind`` from JSON of another host. Raises DiedError for anything else."""
    try:
        found: R = _parser(kind).validate_json(json.dumps(told))
    except ValidationError as error:
        raise DiedError(f"the other host answered what is no {kind}: {error.errors()[0]['msg']}") from error
    return found
