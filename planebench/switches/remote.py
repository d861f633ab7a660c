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
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from planebench.host.evidence import HostSample
from planebench.host.facts import cpu_model
from planebench.host.link import Link, own_version, ssh_command
from planebench.host.process import Supervisor, on_failure
from planebench.host.programs import Found, NotFound
from planebench.model import closed
from planebench.model.conditions import ThreadConditions
from planebench.model.errors import DiedError, PlanebenchError, UsageError
from planebench.model.header import Build, ClockOffset, SwitchHostInfo
from planebench.model.plan import Plan
from planebench.model.records import SwitchCycles
from planebench.model.wire import wire_arguments
from planebench.switches.adapter import Adapter, RunningSwitch, Situation
from planebench.testbed.request import SwitchRequest
from planebench.testbed.wires.base import wire_kind

START_DEADLINE_S = 300.0
CLOCK_READINGS = 5
_TRAITS = (
    *("name", "title", "remedy", "traits", "options", "wires", "queued_wires", "vnf_interface", "nic_ring_size"),
    *("max_frame_bytes", "sends_on_one_queue", "memif_send_queue", "start_s", "trial_overhead_s", "hugepages_mb"),
    *("stations", "functions"),
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
    """The host of the switch: its agent, and what it says of itself. The agent ends with the link."""

    def __init__(self, link: Link, hello: Hello) -> None:
        self.link, self.name = link, link.name
        self._hello = hello
        self._held = False
        self.ready()

    def ready(self) -> None:
        """Connect, also again if the connection was lost: its agent has ended all that it had.

        Raises StartError where there is no agent, UsageError for one of another version.
        """
        if self.link.alive:
            return
        with on_failure(self.link.close):
            self.link.open()
            told = self.call("hello", **asdict(self._hello))
            version = told.get("version") if isinstance(told, dict) else None
            if version != self._hello.version:
                words = f"host {self.name} has planebench {version}, here is {self._hello.version}"
                raise UsageError(f"{words}: install the same version")
            self.answer = decoded(HostAnswer, told)
        if self._held:
            self.call("hold", START_DEADLINE_S)

    def call(self, method: str, timeout_s: float = 60.0, **params: Any) -> Any:
        """Return the result of a method of the agent. Raises as :meth:`planebench.host.link.Link.call`."""
        return self.link.call(method, params, timeout_s)

    def info(self) -> SwitchHostInfo:
        """Return the host for the header of a run, and how far its clock is ahead of ours: the best of some readings
        (RFC 5905)."""
        readings = []
        for _ in range(CLOCK_READINGS):
            before = time.time_ns()
            theirs = int(self.call("clock"))
            after = time.time_ns()
            readings.append(ClockOffset(theirs - (before + after) // 2, (after - before) // 2))
        clock = min(readings, key=lambda reading: reading.error_ns)
        return SwitchHostInfo(self.name, self.answer.version, dict(self.answer.facts), clock)

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


@contextlib.contextmanager
def switch_on(host: str | None) -> Iterator[Callable[[Plan], SwitchHost] | None]:
    """Yield what connects to the host of the switch, whose agent ends with the block; None if that is this one."""
    if host is None:
        yield None
        return
    link = Link(host, ssh_command(host))
    try:
        yield lambda plan: SwitchHost(link, Hello(own_version(), plan.switch_cores, plan.wire))
    finally:
        link.close()


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
        layout = situation.layout
        if layout.ends_in_vnfs or situation.chain_length or layout.two_switches:
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
        return RemoteSwitch(self.name, self.host, int(number))


class RemoteSwitch(RunningSwitch):
    """A started switch on another host. Its threads are in :meth:`sample` and :meth:`thread_conditions`.

    All methods but :meth:`stop` and :meth:`logs` raise DiedError if its host is lost.
    """

    def __init__(self, name: str, host: SwitchHost, number: int) -> None:
        self._name, self._host, self._number = name, host, number
        self._same_cpus = host.answer.facts.get("cpu_model") == cpu_model()

    def counters(self) -> SwitchCycles:
        """Return the counters; without cycles where the CPUs of both hosts differ, as their TSCs then do."""
        told = decoded(SwitchCycles, self._call("counters"))
        return told if self._same_cpus else replace(told, busy_cycles=None)

    def check(self) -> None:
        """Raise DiedError if a process of it, or the connection, is gone."""
        self._call("check")

    def pause(self) -> None:
        """Stop its processes (SIGSTOP)."""
        self._call("pause")

    def resume(self) -> None:
        """Continue its processes (SIGCONT)."""
        self._call("resume")

    def stop(self) -> None:
        """Stop it. Never raises; safe to call twice."""
        with contextlib.suppress(PlanebenchError):
            self._host.call("stop", START_DEADLINE_S, number=self._number)

    def logs(self) -> str:
        """Return its last log lines; none if its host is lost."""
        with contextlib.suppress(PlanebenchError):
            return f"{self._name} on host {self._host.name}: {self._call('log_tail')}"
        return ""

    def sample(self) -> HostSample:
        """Return the kernel's counters of its threads and of their CPUs, as they are now."""
        return decoded(HostSample, self._call("sample"))

    def thread_conditions(self) -> tuple[ThreadConditions, ...]:
        """Return how its host schedules its threads."""
        return tuple(decoded(ThreadConditions, told) for told in self._call("thread_conditions"))

    def wire_drops(self) -> Counter[str]:
        """Return what the kernel there dropped on the interfaces of the wires so far."""
        return Counter(decoded(dict[str, int], self._call("wire_drops")))

    def _call(self, method: str) -> Any:
        return self._host.call(method, number=self._number)


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
