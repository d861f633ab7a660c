# SPDX-License-Identifier: BSD-3-Clause
"""The header of a run, which is written first, and a run as it is read back."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import StringConstraints

from planebench.model.conditions import Conditions
from planebench.model.dimensions import ClockChoice, LatencyClock
from planebench.model.grouped import grouped
from planebench.model.plan import FrameCheck, Plan, Skipped
from planebench.model.records import Point, Trial
from planebench.model.text import Moment
from planebench.model.topology import Side
from planebench.model.wire import WIRES, Wire, wire_name

SCHEMA_VERSION = 10
"""Version of run.json and of the records beside it, the only one that is read. Fields that come later are optional."""

RUN_ID = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")
RunId = Annotated[str, StringConstraints(pattern=RUN_ID.pattern)]
"""The characters of :func:`planebench.store.new_run_id`: the name of a folder, and of files in the store of a lab."""

BuildLevel = Literal["native", "generic", "unknown"]
"""For which CPUs a program was compiled: for one that is named, for every one of the architecture, or not known."""


@dataclass(frozen=True, slots=True)
class Build:
    """How the program of a switch was built. ``compiler``, ``march`` and ``package`` are empty where not known."""

    files: dict[str, str] = field(default_factory=dict)
    """Build-id, or digest, of the program, of its plugins, and of all libraries of one beginning: ``librte_*``."""
    compiler: str = ""
    march: str = ""
    level: BuildLevel = "unknown"
    package: str = ""
    """The package of the distribution that the program is part of."""

    @property
    def words(self) -> str:
        """Return ``native (-march=znver3, GCC 12.2.0)``."""
        march = f"-march={self.march}" if self.march else ""
        package = f"package {self.package}" if self.package else ""
        known = ", ".join(filter(None, (march, package, self.compiler)))
        return f"{self.level} ({known})" if known else self.level

    def unlike(self, other: Build) -> tuple[str, ...]:
        """Return the names of the files that differ, or that only one of two builds has."""
        names = dict.fromkeys((*self.files, *other.files))
        return tuple(name for name in names if self.files.get(name) != other.files.get(name))


@dataclass(frozen=True, slots=True)
class SwitchInfo:
    """A switch of a run: its label, the adapter behind it, what it is."""

    label: str
    adapter: str
    version: str
    settings: dict[str, str] = field(default_factory=dict)
    remedy: str = ""
    """How to get it."""
    build: Build | None = None
    """How its program was built; None if it is no program, or not known."""


@dataclass(frozen=True, slots=True)
class TrafficInfo:
    """A traffic profile of a run: its name in points, what it is, and everything that makes it what it is."""

    name: str
    summary: str
    mean_frame_bytes: float | None
    """Mean size of a mix; None if frames have the size of their point."""
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The highest rate of the tester with no switch in between: generator and monitor together, all directions.

    ``measured``: over a wire between two of its own ports; else composed of the cycles of both halves.
    """

    frame_size_bytes: int
    sender: Side
    receiver: Side
    pps: float
    measured: bool


@dataclass(frozen=True, slots=True)
class LatencyFloor:
    """The lowest latency that the tester can measure: its baseline without a switch.

    ``histogram`` as in LatencyRecord (HDR V2, base64, ns).
    """

    frame_size_bytes: int
    background_pps: float
    probes_sent: int
    probes_received: int
    p50_ns: float
    p99_ns: float
    histogram: str
    clock: LatencyClock = "software"


@dataclass(frozen=True, slots=True)
class TwoClocks:
    """The clocks at the two ends of a wire, of older calibrations: by frames sent both ways (RFC 5905).

    ``delay_ns``: the least time that a frame took, by both clocks together.
    """

    offset_ns: int
    offset_error_ns: float
    drift: float
    drift_error: float
    delay_ns: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """The tester measured against itself (``planebench testbed calibrate``): its date, its conditions and its figures.

    It holds for runs with the same planed, CPU, kernel, wire, ring size and memory, and the same number and
    kind of cores of the tester.
    """

    measured_at: Moment
    planed_version: str
    cpu_model: str
    kernel: str
    wire: str
    ring_size: int
    hugepages: bool
    tester_cpus: int
    duration_s: float
    ceilings: tuple[Ceiling, ...]
    floors: tuple[LatencyFloor, ...]
    distances_ns: tuple[float, ...] = ()
    """Round trips of a cache line between the CPUs of the machine: their clusters tell near from far."""
    clock: ClockChoice = "software"
    """The clock that was asked for; each floor names its own."""
    two_clocks: TwoClocks | None = None
    """The offset and drift of the clocks at the two ends; None with the software clock, which is one."""
    check: FrameCheck = "full"
    """How the frames of the ceilings were checked."""
    core_kinds: str = ""
    """The kinds of cores of the tester; empty on a machine with one kind."""
    tester_cores: int = 1
    """Queue pairs of each port, with a core of the tester for each where there were as many."""
    set_points: tuple[dict[str, int | float], ...] = ()
    """Of older runs: paced loads over the tester's own wire, asked for, sent and received."""

    def ceiling_pps(self, frame_size_bytes: int, sender: Side, receiver: Side) -> float | None:
        """Return the tester's highest rate between these ends; None where it was not measured at this frame size."""
        key = (frame_size_bytes, sender, receiver)
        return next((c.pps for c in self.ceilings if (c.frame_size_bytes, c.sender, c.receiver) == key), None)

    def floor(self, frame_size_bytes: int, clock: str = "software") -> LatencyFloor | None:
        """Return the latency floor of a clock at this frame size; None where it was not measured."""
        return next((f for f in self.floors if (f.frame_size_bytes, f.clock) == (frame_size_bytes, clock)), None)


@dataclass(frozen=True, slots=True)
class CoreNoise:
    """The noise of one CPU before the run: the gaps of a thread that polled it and had nothing else to do."""

    cpu: int
    duration_ns: int
    longest_gap_ns: int
    """The longest time in which the thread did not run."""
    gaps: tuple[tuple[int, int], ...] = ()
    """(shortest length in ns, number) of gaps that are less than twice as long, from 1024 ns on."""
    tsc_hz: int | None = None
    """The frequency of its time stamp counter against CLOCK_MONOTONIC_RAW; None if the time was too short to tell."""


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """How far the clock of another host was ahead of ours; ``error_ns``: half the time that asking for it took."""

    offset_ns: int
    error_ns: int


@dataclass(frozen=True, slots=True)
class SwitchHostInfo:
    """The host of the switch, where it is not that of the tester. ``host``: its facts, as those in the header."""

    name: str
    planebench_version: str
    host: dict[str, str | int | float | bool | None]
    clock: ClockOffset


@dataclass(frozen=True, slots=True)
class Subject:
    """The source tree that a run measures, and the commit that was checked out. Times are RFC 3339.

    ``dirty``: files differed from the commit. ``switch``: the label of the switch that is built from it; empty: all.
    """

    repository: str
    commit: str
    committed_at: Moment
    dirty: bool = False
    switch: str = ""

    def builds(self, switch: str) -> bool:
        """Return whether the switch with this label is built from the source tree."""
        return self.switch in ("", switch)


@dataclass(frozen=True, slots=True)
class RunHeader:
    """run.json: written first, whole, before any trial."""

    run_id: RunId
    name: str
    started_at: Moment
    command: tuple[str, ...]
    seed: int
    planebench_version: str
    host: dict[str, str | int | float | bool | None]
    settings: dict[str, str | int | float | bool | None]
    switches: tuple[SwitchInfo, ...]
    skipped: tuple[Skipped, ...] = ()
    warnings: tuple[str, ...] = ()
    calibration: Calibration | None = None
    """The limits of the tester; None if they were not measured."""
    traffic: tuple[TrafficInfo, ...] = ()
    """The traffic profiles of its points; plain frames are none."""
    papers: tuple[str, ...] = ()
    """The papers whose tables and figures the plan reproduces, by short name (planebench.papers)."""
    left_out: tuple[Skipped, ...] = ()
    """Tables and figures of these papers that the plan leaves out, and why: ``what`` is as ``Fig. 7``."""
    environment: dict[str, str] = field(default_factory=dict)
    """Facts needed to repeat the run: environment variables, versions of other software."""
    schema_version: int = SCHEMA_VERSION
    plan: Plan = field(kw_only=True)
    noise: tuple[CoreNoise, ...] = ()
    """The CPUs that poll, before the run; empty if they were not looked at."""
    tags: dict[str, str] = field(default_factory=dict)
    """Free words of whoever started the run."""
    subject: Subject | None = None
    """The source tree that is measured; None if the user did not name it."""
    testbed: str = ""
    """The name of the machine, or of the machines, in the lab."""
    switch_host: SwitchHostInfo | None = None
    """The host of the switch; None where it is that of the tester, whose facts are ``host``."""
    checksums: bool = False
    """Whether each record beside it, and it itself, ends in a checksum; those of older runs have none."""

    @property
    def wire(self) -> Wire | None:
        """Return the wire of the plan; None if it is not known here, as that of a package which is not installed."""
        return WIRES.get(wire_name(str(self.settings.get("wire") or "")))


# A run as it is read back: header, trials, how it ended. What statistics and reports take, wherever it came from.

RunStatus = Literal["complete", "interrupted"]


@dataclass(frozen=True, slots=True)
class Finished:
    """finished.json: the run came to an orderly end. ``finished_at`` is RFC 3339 UTC."""

    status: RunStatus
    finished_at: Moment
    note: str = ""
    trials: int | None = None
    """How many trials are stored; None in older runs."""


@dataclass(frozen=True, slots=True)
class Run:
    """Everything a run folder holds. ``finished`` is None for a run that was killed, or is still going on."""

    header: RunHeader
    trials: tuple[Trial, ...] = ()
    finished: Finished | None = None
    skipped: tuple[Skipped, ...] = ()
    """Skipped points of the header and of the run."""
    warnings: tuple[str, ...] = ()
    """Warnings of the header, and faults of the folder found while reading."""
    conditions: tuple[Conditions, ...] = ()
    """Conditions at each start of each switch; none if simulated."""

    @property
    def switch_labels(self) -> tuple[str, ...]:
        """Return the labels in the order of the header; labels that only trials have come last."""
        known = [s.label for s in self.header.switches]
        return tuple(dict.fromkeys(known + [t.point.switch for t in self.trials]))

    def by_point(self) -> dict[Point, list[Trial]]:
        """Return the trials of each point, in the order in which they ran; a new dictionary each time."""
        return grouped((trial.point, trial) for trial in self.trials)

    def version_of(self, label: str) -> str:
        """Return the version of the switch with this label; ``unknown`` if the header does not name it."""
        return next((s.version for s in self.header.switches if s.label == label), "unknown")
