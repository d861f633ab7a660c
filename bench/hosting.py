# SPDX-License-Identifier: BSD-3-Clause
"""What each hosting costs: the same l2fwd in each, between two ports of the tester, and no switch.

    .venv/bin/python bench/hosting.py [--hosting separate,container,vm:accel=tcg]
                                      [--rounds 5] [--seconds 0.5] [--json]

The tester's two vhost-user devices are polled on the first CPU, the VNF has the last one alone. In each round every
hosting is started anew, in a seeded random order, and ended. Printed, as Markdown: medians over the rounds of what
crossed at saturation (64 B, one way), of the latency at a tenth of that, of the time and CPU time from its start until
a frame has crossed, and of its memory. Memory that the tester maps too counts half (PSS). Only rounds of one
core-distance band are taken together. Under emulation (TCG) rates and latencies tell nothing of a real VM.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import random
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import psutil
from hosting_rig import Way, arrived, family, hosted_request, port_sockets, start_vnf, tester, until_crossing
from planed_rig import CPU, OTHER_CPU, Planed, load, planed_binary, stream
from rig import cores_of

from planebench.analysis.histogram import decode, encode, summarise
from planebench.host.process import Supervisor, high_priority, sweep_stale
from planebench.host.programs import NotFound
from planebench.measure.distance import measure_distance
from planebench.model.errors import unknown
from planebench.model.records import CoreDistance
from planebench.model.switch import Value, parse_options, parse_values
from planebench.testbed.hosting.base import Hosting, RunningVnf
from planebench.testbed.hosting.registry import HOSTINGS

SEED = 9
WAY = Way("n0", "n1", 0)
PORTS = ("n0", "n1")
TENTH = 0.1
PROBES_PPS = 5000
BANDS = ("near", "far", "same")
DEFAULT = "separate,container,vm:accel=tcg"


@dataclass(frozen=True, slots=True)
class Round:
    """One VNF, from its start to its end."""

    hosting: str
    band: str
    mpps: float
    p50_us: float
    p99_us: float
    ready_s: float
    start_cpu_s: float
    pss_mb: float
    program: str
    emulated: bool


@dataclass(frozen=True, slots=True)
class Kind:
    """A hosting with options, as it was written."""

    text: str
    hosting: Hosting
    values: Mapping[str, Value]


def parse(text: str) -> Kind:
    """``vm:accel=tcg``. UsageError."""
    name, *parts = text.split(":")
    if name not in HOSTINGS:
        raise unknown("hosting", name, tuple(HOSTINGS))
    hosting = HOSTINGS[name]
    return Kind(text, hosting, parse_values(name, hosting.options, parse_options(name, parts, name)))


def measure(kind: Kind, it: Planed, supervisor: Supervisor, seconds: float) -> Round:
    """Start it, take all figures, end it."""
    sockets = port_sockets(it.workdir, "n0", "n1")
    request = hosted_request("vnf0", sockets, supervisor, kind.values, OTHER_CPU, shares_cpu=False)
    before, begun = distance(it), time.monotonic()
    vnf = start_vnf(kind.hosting, request, supervisor)
    try:
        until_crossing(it, WAY, (vnf,))
        ready_s, cpu_s = time.monotonic() - begun, cpu_seconds(vnf)
        pps = saturated_pps(it, seconds)
        p50_us, p99_us = latency_us(it, pps * TENTH, seconds)
        pss, facts = pss_mb(vnf), vnf.facts
    finally:
        vnf.stop()
    return Round(
        kind.text,
        cores_of((before, distance(it))).group,
        pps / 1e6,
        p50_us,
        p99_us,
        ready_s,
        cpu_s,
        pss,
        facts.program,
        facts.emulated,
    )


def distance(it: Planed) -> CoreDistance | None:
    """Between the tester's CPU and the VNF's, where nobody polls meanwhile."""
    it.process.pause()
    try:
        return measure_distance(Path(planed_binary()), CPU, OTHER_CPU)
    finally:
        it.process.resume()


def saturated_pps(it: Planed, seconds: float) -> float:
    """What crosses while the tester sends flat out; the first sending warms up."""
    for length in (0.1, seconds):
        tasks = it.send(load("gen-n0", flat_out=True), duration_s=length)
    return arrived(tasks, WAY) / seconds


def latency_us(it: Planed, pps: float, seconds: float) -> tuple[float, float]:
    """p50 and p99 of probes among frames at a rate."""
    tasks = it.send(load("gen-n0", rate_pps=pps, probe_rate_pps=PROBES_PPS), epoch=2, duration_s=seconds)
    found = summarise(decode(encode(stream(tasks["mon-n1"])["latency"]["counts"])))
    if found is None:
        raise SystemExit("no probe came back")
    return found.p50, found.p99


def cpu_seconds(vnf: RunningVnf) -> float:
    """CPU time of all its processes so far, of those that have ended too."""
    total = 0.0
    for process in family(vnf):
        with contextlib.suppress(psutil.Error):
            total += sum(process.cpu_times()[:4])
    return total


def pss_mb(vnf: RunningVnf) -> float:
    """Memory of all its processes: what n processes map counts 1/n in each."""
    total = 0
    for process in family(vnf):
        with contextlib.suppress(psutil.Error):
            total += process.memory_full_info().pss
    return total / 1e6


def table(rounds: Sequence[Round], kinds: Sequence[Kind]) -> Iterator[str]:
    """Medians as Markdown, of each band by itself."""
    heads = ("hosting", "runs in", "band", "Mpps, 64 B", "latency at 10 %, p50 / p99 us")
    heads += ("ready after s", "CPU s until then", "PSS MB", "rounds")
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for it, kind in itertools.product(BANDS, kinds):
        mine = [found for found in rounds if (found.band, found.hosting) == (it, kind.text)]
        if mine:
            yield row(kind.text, it, mine)
    yield f"\nMedians over rounds; {sum(it.band not in BANDS for it in rounds)} that changed their band are left out."


def row(name: str, its_band: str, mine: Sequence[Round]) -> str:
    """One hosting."""

    def median(key: str) -> float:
        return statistics.median(float(getattr(it, key)) for it in mine)

    emulated = " (functional)" if mine[0].emulated else ""
    figures = f"{median('mpps'):.2f}{emulated} | {median('p50_us'):.1f} / {median('p99_us'):.1f}{emulated}"
    costs = f"{median('ready_s'):.2f} | {median('start_cpu_s'):.2f} | {median('pss_mb'):.0f}"
    return f"| `{name}` | {mine[0].program} | {its_band} | {figures} | {costs} | {len(mine)} |"


def run(kinds: Sequence[Kind], count: int, seconds: float) -> list[Round]:
    """All rounds, a line each on standard error. The first does not count: images are made in it."""
    rounds, order = [], random.Random(SEED)
    with high_priority(), Supervisor() as supervisor:
        it = tester(supervisor, "tester", PORTS, supervisor.workdir("tester"))
        for number in range(count + 1):
            for kind in order.sample(kinds, len(kinds)):
                found = measure(kind, it, supervisor, seconds)
                rounds += [found] if number else []
                words = f"{found.band:8} {found.mpps:6.2f} Mpps, p50 {found.p50_us:.1f} us, ready {found.ready_s:.2f} s"
                print(f"round {number or '(not counted)'} {kind.text:32} {words}", file=sys.stderr, flush=True)
    return rounds


def found_here(kinds: Sequence[Kind]) -> list[Kind]:
    """Those that can be had; the others are told."""
    for kind in kinds:
        if isinstance(missing := kind.hosting.find(), NotFound):
            print(f"{kind.text} is left out: {missing.remedy}", file=sys.stderr)
    return [kind for kind in kinds if not isinstance(kind.hosting.find(), NotFound)]


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosting", default=DEFAULT)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    kinds = found_here([parse(text) for text in options.hosting.split(",")])
    sweep_stale()
    rounds = run(kinds, options.rounds, options.seconds)
    print(json.dumps([asdict(it) for it in rounds], indent=1) if options.json else "\n".join(table(rounds, kinds)))


if __name__ == "__main__":
    main()
