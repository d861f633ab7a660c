# SPDX-License-Identifier: BSD-3-Clause
"""The seam between the harness and a switch: what an adapter must do. Nothing else here knows a switch by name.

Adding a switch = one file in this folder with an ``ADAPTER`` object, and a line in ``registry.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from planebench.host.process import Supervisor
from planebench.model.records import SwitchCycles


@dataclass(frozen=True, slots=True)
class SwitchPort:
    """A port the switch has to open.

    ``virtio-user``: the switch is the virtio driver and connects to ``path`` (the emulated NIC: the tester listens).
    ``vhost-user``: the switch is the device and listens on ``path`` (a VNF's interface).
    ``af_packet``: the kernel interface ``interface`` (veth wire).
    """

    name: str
    kind: Literal["virtio-user", "vhost-user", "af_packet"]
    path: Path | None = None
    interface: str | None = None
    ring_size: int = 256


@dataclass(frozen=True, slots=True)
class SwitchRequest:
    """Everything a switch is started with. ``cross_connects`` pairs port names; traffic flows both ways."""

    ports: tuple[SwitchPort, ...]
    cross_connects: tuple[tuple[str, str], ...]
    cpu: int
    """The core the switch forwards on; the first of them, if it has several."""
    control_cpus: frozenset[int]
    """Where everything of the switch that does not forward may run."""
    workdir: Path
    """Private, short (sockets live here), removed by the harness."""
    hugepages: bool
    max_frame_bytes: int = 1518
    netns_pid: int | None = None
    """Process whose network namespace the switch must live in (veth wire)."""
    queues: int = 1
    """Queue pairs of each port: as many as a :class:`MultiQueue` adapter asked for."""
    more_cpus: tuple[int, ...] = ()
    """Further cores to forward on, for a switch that has queues for them."""

    @property
    def cpus(self) -> tuple[int, ...]:
        """All cores it forwards on."""
        return (self.cpu, *self.more_cpus)


@dataclass(frozen=True, slots=True)
class Found:
    """The switch is here."""

    version: str
    binary: Path


@dataclass(frozen=True, slots=True)
class NotFound:
    """The switch is not here, and how to get it: ``apt-get install dpdk``."""

    remedy: str


@dataclass(frozen=True, slots=True)
class ThreadRef:
    """A thread that polls packets."""

    pid: int
    tid: int
    name: str


class RunningSwitch(Protocol):
    """A started switch."""

    def pids(self) -> tuple[int, ...]:
        """Every process of the switch: all are paused (SIGSTOP) while another switch is measured."""

    def polling_threads(self) -> tuple[ThreadRef, ...]:
        """The threads that forward."""

    def counters(self) -> SwitchCycles:
        """Counters since the start; the harness takes differences. Raises DiedError."""

    def check(self) -> None:
        """Raise DiedError, with the last log lines, if a process of the switch is gone."""

    def stop(self) -> None:
        """Stop every process of the switch, paused or not. Never raises; safe to call twice."""


class SwitchAdapter(Protocol):
    """How the harness finds and starts one kind of switch."""

    name: str
    title: str
    """For people: ``Open vSwitch with DPDK``."""
    remedy: str
    """How to get it."""
    wires: frozenset[str]

    def find(self) -> Found | NotFound:
        """Look for the switch on this machine; cheap, starts nothing but ``--version``."""

    def settings(self, request: SwitchRequest) -> dict[str, str]:
        """Ring sizes, burst, function (patch, flow rules, ...): what belongs in the run header."""

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningSwitch:
        """Start and connect everything; return when the switch's own ports exist. Raises StartError with log lines."""


@runtime_checkable
class Configurable(Protocol):
    """An adapter with options of its own: ``NAME:key=value`` on the command line and in plans."""

    def with_options(self, options: Mapping[str, str]) -> SwitchAdapter:
        """An adapter with these options. UsageError names an unknown one, or a bad value, and what is valid."""


@runtime_checkable
class MultiQueue(Protocol):
    """An adapter whose switch wants several queue pairs on each port: tester and VNFs then use all of them alike."""

    @property
    def queues(self) -> int:
        """1 to ``QUEUES_MAX``."""


def queues_of(adapter: SwitchAdapter) -> int:
    """How many queue pairs each port of its topology has."""
    return adapter.queues if isinstance(adapter, MultiQueue) else 1
