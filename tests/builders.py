# SPDX-License-Identifier: BSD-3-Clause
"""Synthetic runs for tests and for looking at reports: plausible, seeded, without any clock."""

from __future__ import annotations

import dataclasses
import io
import random
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from planebench.analysis.compare import Derived
from planebench.analysis.histogram import encode
from planebench.analysis.standings import Standings
from planebench.measure.sim.runner import SIM_KEYS, SimSpec
from planebench.measure.verdict import judge
from planebench.model.header import Finished, Run, RunHeader, SwitchInfo
from planebench.model.plan import LatencyPlan, Plan, Skipped, ThroughputPlan
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import (
    CoreDistance,
    DirectionCounts,
    Evidence,
    LatencyRecord,
    Load,
    Point,
    SwitchCycles,
    Trial,
    Verdict,
    VerdictKind,
)
from planebench.model.switch import parse_switch, parse_values
from planebench.plan.estimate import expected_trials
from planebench.plan.passes import group_points, latency_of, searches_of, visits_of
from planebench.report.terminal.grid import Glyphs
from planebench.report.terminal.screen import screen_lines
from planebench.report.terminal.table import render
from planebench.store import RunWriter

_PAGE = Path(__file__).parents[1] / "docs" / "command-line.md"
EXIT_CODES = frozenset(map(int, re.findall(r"^\| (\d+) \|", _PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)))
"""Of every command."""

STARTED = "2026-11-21T12:33:56Z"
SECOND_NS = 1_000_000_000
LOADS = (0.10, 0.50, 0.99)

SPEED_MPPS = {"planed": 21.0, "testpmd": 15.5, "ovs-dpdk": 11.3, "vpp": 12.0, "bess": 14.2, "snabb": 8.2, "t4p4s": 3.4}
LATENCY_US = {"planed": 3.1, "testpmd": 4.4, "ovs-dpdk": 5.6, "vpp": 6.9, "bess": 4.6, "snabb": 9.0, "t4p4s": 34.0}
VERSIONS = {
    "planed": "0.1.0",
    "testpmd": "DPDK 22.11.4",
    "ovs-dpdk": "3.1.0 (DPDK 22.11.3)",
    "vpp": "23.10",
    "bess": "0.4",
}


def sim_spec(text: str) -> SimSpec:
    """Return the simulated switch of ``sim:key=value:...``."""
    switch = parse_switch(text)
    values: dict[str, Any] = parse_values("switch sim", tuple(SIM_KEYS.values()), switch.options)
    return SimSpec(switch.label, **values)


def make_plan(switches: Sequence[str] = ("planed",), **changes: Any) -> Plan:
    values: dict[str, Any] = {
        "name": "quick",
        "description": "",
        "switches": tuple(s.split("#")[0] for s in switches),
        "scenarios": ("p2p",),
        "directions": ("unidirectional",),
        "frame_sizes_bytes": (64,),
        "chain_lengths": (),
        "throughput": ThroughputPlan(0.5, 1),
        "latency": LatencyPlan((), 0.5),
    }
    return Plan(**{**values, **changes})


def make_header(switches: Sequence[str] = ("planed", "ovs-dpdk", "testpmd"), **changes: Any) -> RunHeader:
    values: dict[str, Any] = {
        "run_id": "20261121-123356-quick",
        "name": "quick",
        "started_at": STARTED,
        "command": ("planebench", "run", "quick", "--switch", ",".join(switches)),
        "seed": 1,
        "planebench_version": "0.1.0",
        "host": {
            "hostname": "bench1",
            "cpu_model": "AMD EPYC 9R14",
            "cpus": 2,
            "numa_nodes": 1,
            "memory_gib": 23.4,
            "kernel": "6.1.0-18-amd64",
            "hypervisor": "kvm",
            "hugepages": False,
            "isolated_cpus": None,
        },
        "settings": {"wire": "virtio", "ring_size": 256, "duration_s": 0.5, "repetitions": 3, "hosting": "process"},
        "switches": tuple(
            SwitchInfo(
                s, s.split("#")[0], VERSIONS.get(s, "1.0"), {"function": "patch", "ring_size": "256", "burst": "32"}
            )
            for s in switches
        ),
        "plan": make_plan(switches),
    }
    return RunHeader(**{**values, **changes})


def make_point(switch: str = "planed", scenario: str = "p2p", **changes: Any) -> Point:
    chain = 1 if scenario == "loopback" else 0
    values = {"direction": "unidirectional", "chain_length": chain, "frame_size_bytes": 64}
    return Point(switch=switch, scenario=scenario, **{**values, **changes})  # type: ignore[arg-type]


def make_verdict(kind: str = "valid", *reasons: str) -> Verdict:
    known = VerdictKind(kind)
    texts = reasons or (() if known is VerdictKind.VALID else (f"it was {kind}",))
    return Verdict(known, tuple(Reason(ReasonCode.ERROR, text) for text in texts))


def make_evidence(
    band: str | None = "near", after: str | None = None, additions_per_cycle: tuple[float, ...] = ()
) -> Evidence:
    def distance(of: str | None) -> CoreDistance | None:
        if of is None:
            return None
        return CoreDistance({"near": 62.0, "far": 261.0, "same": 20.0}[of], of, additions_per_cycle)  # type: ignore[arg-type]

    return Evidence(distance_before=distance(band), distance_after=distance(after or band), tester_busy_share=0.8)


def verdict_of(
    role: str,
    flat_out: bool,
    duration_ns: int,
    directions: Sequence[DirectionCounts],
    evidence: Evidence,
    switch: SwitchCycles,
    *,
    policy_packets: int = 0,
    tester_drops: dict[str, int] | None = None,
    roaming: bool = False,
    intended_duration_ns: int | None = None,
    line_rate_pps: float | None = None,
    **limits: Any,
) -> Verdict:
    """Return the verdict of a trial with VNFs side by side, which dropped ``policy_packets`` by a rule."""
    trial = Trial(
        index=0,
        point=make_point("planed", "parallel", chain_length=1, placement="random" if roaming else "near"),
        role=role,  # type: ignore[arg-type]
        load=Load("100%", None if flat_out else 1e6),
        intended_duration_ns=duration_ns if intended_duration_ns is None else intended_duration_ns,
        offered_duration_ns=duration_ns,
        started_at=STARTED,
        directions=tuple(directions),
        verdict=Verdict(VerdictKind.VALID),
        evidence=evidence,
        switch=switch,
        tester_drops=(tester_drops or {}) | ({"vnf0:rule": policy_packets} if policy_packets else {}),
        line_rate_pps=line_rate_pps,
    )
    return judge(trial, **limits)


def make_trial(
    index: int = 0,
    point: Point | None = None,
    mpps: float = 10.0,
    verdict: str = "valid",
    reasons: Sequence[str] = (),
    band: str | None = "near",
    **changes: Any,
) -> Trial:
    """A saturating trial of one second that forwards ``mpps`` in all, and offers a fifth more."""
    point = point or make_point()
    names = ("n0->n1", "n1->n0") if point.direction == "bidirectional" else ("n0->n1",)
    forwarded = int(mpps * 1e6 / len(names))
    counts = DirectionCounts(names[0], forwarded * 6 // 5, forwarded * 6 // 5, forwarded)
    values: dict[str, Any] = {
        "role": "r_plus",
        "load": Load("saturating"),
        "intended_duration_ns": SECOND_NS,
        "offered_duration_ns": SECOND_NS,
        "started_at": STARTED,
        "directions": tuple(DirectionCounts(n, *_three(counts)) for n in names),
        "evidence": make_evidence(band),
        "switch": SwitchCycles(busy_cycles=int(2.6e9), idle_cycles=int(0.1e9), packets=forwarded * len(names)),
    }
    return Trial(index=index, point=point, verdict=make_verdict(verdict, *reasons), **{**values, **changes})


def make_latency_trial(
    index: int = 0,
    point: Point | None = None,
    load: str = "0.50",
    pps: float = 5e6,
    samples_ns: Iterable[tuple[int, int]] = ((4000, 900), (9000, 99), (40000, 1)),
    **changes: Any,
) -> Trial:
    """A paced trial of one second, ``pps`` per direction, without loss."""
    point = point or make_point()
    names = ("n0->n1", "n1->n0") if point.direction == "bidirectional" else ("n0->n1",)
    sparse = [list(s) for s in samples_ns]
    probes = sum(n for _, n in sparse)
    latency = LatencyRecord(probes, probes, encode(sparse)) if sparse else None
    directions = tuple(DirectionCounts(n, int(pps), int(pps), int(pps)) for n in names)
    values = {"role": "latency", "load": Load(load, pps), "directions": directions, "latency": latency}
    return make_trial(index, point, **{**values, **changes})


def make_run(
    switches: Sequence[str] = ("planed", "ovs-dpdk", "testpmd"),
    sizes: Sequence[int] = (64, 1024),
    chains: Sequence[int] = (1,),
    repetitions: int = 3,
    seed: int = 1,
    problems: bool = True,
    loads: Sequence[float] = LOADS,
    **header: Any,
) -> Run:
    """A whole run in seeded random order; with ``problems`` some trials are limited, invalid, unsteady or disturbed."""
    rng = random.Random(seed)
    points = [p for s in switches for p in _points(s, sizes, chains)]
    trials: list[Trial] = []
    for repetition in range(repetitions):
        for point in rng.sample(points, len(points)):
            trials.append(_saturating(len(trials), point, repetition, rng, problems))
    for point in rng.sample(points, len(points)):
        if point.scenario != "p2v" and point.frame_size_bytes == min(sizes) and point.direction == "unidirectional":
            trials += _latency_series(len(trials), point, rng, loads)
    skipped = (Skipped("fastclick", "not installed: apt-get install fastclick"),) if problems else ()
    warnings = ("sched_autogroup is on: sysctl kernel.sched_autogroup_enabled=0",) if problems else ()
    made = make_header(switches, **{"skipped": skipped, "warnings": warnings, **header})
    return Run(made, tuple(trials), Finished("complete", "2026-11-21T12:38:31Z"), made.skipped, made.warnings)


def store_run(folder: Path, run: Run, *, finish: bool = True) -> Run:
    """Write a run as the harness does, and return it as it is stored; without ``finish`` it looks killed."""
    with RunWriter.create(folder, run.header) as writer:
        for trial in run.trials:
            writer.append(trial)
        if finish and run.finished is not None:
            writer.finish(run.finished.status, run.finished.note)
    return dataclasses.replace(run, header=writer.header)


def without_checksums(folder: Path) -> Path:
    """Make of a run folder one of an older planebench, whose records have no checksums: a test can edit them."""
    for file in folder.glob("*.json*"):
        plain = re.sub(r', "crc32": "[0-9a-f]{8}"\}', "}", file.read_text(encoding="utf-8"))
        plain = plain.replace('"checksums": true', '"checksums": false')
        file.write_text(re.sub(r'"trials": \d+', '"trials": null', plain), encoding="utf-8")
    return folder


def capacity_mpps(point: Point) -> float:
    """What the imagined switch forwards."""
    base = SPEED_MPPS.get(point.switch.split("#")[0], 9.0)
    shape = {"p2p": 1.0, "p2v": 0.92, "v2v": 0.97, "loopback": 0.62 / max(point.chain_length, 1) ** 0.9}[point.scenario]
    way = {"unidirectional": 0.55, "bidirectional": 1.0, "reversed": 0.5}[point.direction]
    return base * shape * way / (1 + point.frame_size_bytes / 1500)


def _points(switch: str, sizes: Sequence[int], chains: Sequence[int]) -> Iterable[Point]:
    for size in sizes:
        for scenario in ("p2p", "p2v", "v2v"):
            for way in ("unidirectional", "bidirectional", "reversed")[: 3 if scenario == "p2v" else 2]:
                yield make_point(switch, scenario, direction=way, frame_size_bytes=size)
        for chain in chains:
            for way in ("unidirectional", "bidirectional"):
                yield make_point(switch, "loopback", direction=way, frame_size_bytes=size, chain_length=chain)


def _saturating(index: int, point: Point, repetition: int, rng: random.Random, problems: bool) -> Trial:
    mpps = capacity_mpps(point) * rng.gauss(1.0, 0.012)
    key = (point.switch, point.scenario, point.direction, point.frame_size_bytes)
    verdict, reasons, after, steal_ns = "valid", (), "near", 0
    if problems and point.switch == "planed" and point.scenario == "v2v":
        verdict, reasons = "tester-limited", ("the switch core was idle 31 % of the time",)
    elif problems and key == ("ovs-dpdk", "p2v", "reversed", 64):
        reasons, steal_ns = ("switch thread pmd-c01 lost its core 14 times", "steal 31 ms"), 31_000_000
    elif problems and key == ("testpmd", "loopback", "bidirectional", 1024):
        verdict, reasons = "invalid", ("testpmd died: EAL: <script>alert(1)</script> & no free memory",)
    elif problems and key == ("testpmd", "p2v", "unidirectional", 64):
        mpps *= 1 + 0.08 * repetition
    elif problems and rng.random() < 0.05:
        reasons, after = ("the core distance went from near to far",), "far"
    busy = {"busy_cycles": int(2.5e9 * (0.69 if verdict == "tester-limited" else 0.98)), "idle_cycles": int(0.1e9)}
    cycles = SwitchCycles(packets=int(mpps * 1e6), **busy) if point.switch != "testpmd" else SwitchCycles()
    evidence = dataclasses.replace(make_evidence("near", after), steal_ns=steal_ns)
    return make_trial(
        index, point, mpps, verdict, reasons, repetition=repetition, start=repetition, switch=cycles, evidence=evidence
    )


def _latency_series(start: int, point: Point, rng: random.Random, loads: Sequence[float]) -> list[Trial]:
    if point.scenario == "v2v":
        return [_latency(start, point, "1Mpps", 1e6, 0.2, rng)]
    rate = capacity_mpps(point) * 1e6
    return [_latency(start + i, point, f"{load:.2f}", rate * load, load, rng) for i, load in enumerate(loads)]


def _latency(index: int, point: Point, label: str, pps: float, load: float, rng: random.Random) -> Trial:
    base = LATENCY_US.get(point.switch.split("#")[0], 6.0) * 1e3 * (1 + 1.7 * point.chain_length)
    waiting = 1.0 + (0.6 if load < 0.2 else 0.0) + 4.0 * load**8
    counts: dict[int, int] = {}
    for _ in range(1500):
        tail = base * 20 if rng.random() < 0.004 * (1 + 4 * load) else 0.0
        value = int(base * waiting * rng.lognormvariate(0, 0.25 + 0.3 * load) + tail * rng.random())
        counts[value] = counts.get(value, 0) + 1
    limited = point.switch == "ovs-dpdk" and label == "0.99" and point.scenario == "loopback"
    why = ("offered 93 % of the intended load",) if limited else ()
    verdict = {"verdict": "tester-limited" if limited else "valid", "reasons": why}
    return make_latency_trial(index, point, label, pps, sorted(counts.items()), **verdict)


def _three(counts: DirectionCounts) -> tuple[int, int, int]:
    return counts.intended_packets, counts.offered_packets, counts.forwarded_packets


def planned_trials(plan: Plan, points: Sequence[Point]) -> int:
    """Return the number of steps of a run without further passes, by what searches are expected to take."""
    visits = [visit for group in group_points(points) for visit in visits_of(plan, group, {})]
    more = sum(len(latency_of(plan, visit)) for visit in visits)
    for visit in visits:
        more += sum(expected_trials(plan, m) * len(members) for m, members in searches_of(plan, visit).items())
    return plan.throughput.repetitions * len(points) + more


def table_text(derived: Derived, width: int = 100, unicode: bool = True) -> str:
    """Everything of a run as plain text without color, no line longer than ``width``."""
    console = _plain_console(width)
    console.print(render(derived, width, Glyphs(unicode)))
    return console.file.getvalue()


def screen_text(derived: Derived, width: int, unicode: bool = True) -> str:
    """The last screen as plain text, without its last line."""
    console = _plain_console(width)
    for line in screen_lines(Standings(derived), width, Glyphs(unicode)):
        console.print(line, soft_wrap=True)
    return console.file.getvalue()


def _plain_console(width: int) -> Any:
    return Console(
        file=io.StringIO(), width=width, no_color=True, color_system=None, markup=False, highlight=False,
        legacy_windows=False,
    )  # fmt: skip
