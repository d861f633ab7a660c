# SPDX-License-Identifier: BSD-3-Clause
"""FIB offload on real packets, against its bars. Exit code 1 where one is missed, 2 where it cannot be told.

    .venv/bin/python bench/fib_offload.py [--vnfs 63] [--routes 1M] [--trials 7] [--duration 1] [--json]

- 63 VNFs offloaded forward at least 5 times what 63 VNF processes do on the same cores, whether these poll, as NFV's
  do, or sleep when nothing comes;
- jitter with 63 VNFs is within 1.4 times that of the forwarder alone, which has one VNF and 16 million routes (the bare
  metal of ic16): burst jitter and IPDV, means; its percentiles are told;
- 64,000 updates a second while forwarding cost less than 5 % of what the switch can forward (throughput over its busy
  share: the tester may be what limits). Flat out is told, and has no bar.

The sides of a ratio take turns, trial by trial, until so many of each count; medians. A trial counts if it was not
disturbed, with those of the other side at the same core distance. The first ratio is so far from its limit that any
counts, for as much less as a core distance, or the disturbance, can have cost (63 processes are hardly ever alone).
Trials are short, where that can be: this host halts a core for milliseconds, several times a second.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from rig import rig

from planebench.analysis.histogram import decode, merge, percentile_ns, summarise
from planebench.host import facts as host_facts
from planebench.host.process import Supervisor
from planebench.measure.live import LiveSettings, LiveTopology
from planebench.measure.machine import Machine
from planebench.measure.runner import LiveRunner
from planebench.measure.trial import TrialRequest
from planebench.model.cpus import Cpus
from planebench.model.records import Load, Point, Trial, VerdictKind
from planebench.model.time_had import is_disturbed
from planebench.model.traffic import TrafficProfile
from planebench.switches.registry import get_adapter
from planebench.testbed.chain import build_chain
from planebench.testbed.placement import place
from planebench.testbed.rates import SATURATING, rate_label
from planebench.testbed.traffic import parse_traffic

FRAME_BYTES = 64
UPDATES_PER_S = 64_000
PROBES_PPS = 2000
JITTER_SHARE = 0.5
"""Of what the forwarder alone forwards: the load at which jitter is taken."""
MIN_RATIO, MAX_JITTER, MIN_SHARE, MIN_APPLIED = 5.0, 1.4, 0.95, 0.98
ATTEMPTS = 8
"""Trials that are tried for each that shall count."""
LEAST_TRIALS = 3
MANY = 3
"""Times as many trials for a ratio that is a few per cent from its limit: one trial is 10 % from the next."""
SHORT_S = 0.3
"""A trial of jitter (600 probes), or of updates."""
BAND_FACTOR = 2.5
"""What the far core distance costs at most: a ratio that holds in spite of it is told."""
DISTURBED_FACTOR = 2.0
"""What a conventional trial may have lost by a disturbance: far more than was seen (5 % of a thread's time)."""
ALONE_ROUTES = "16M"
PERCENTILES = (0.5, 0.9, 0.99)
MEMORY_BYTES = 6_000_000_000
"""For 63 VNFs with a million routes each, twice: 3.8 GB, and what else runs."""
OFFLOADED, CONVENTIONAL, SLEEPING, ALONE = "offloaded", "conventional", "sleeping", "alone"


@dataclass(frozen=True)
class Bar:
    """A ratio of medians and its limit. ``passed`` is None where no trials of one core distance are there to tell."""

    name: str
    a: float | None
    b: float | None
    limit: float
    at_least: bool
    trials: int
    unit: str
    why: str = ""
    """What kept trials from counting."""

    @property
    def ratio(self) -> float | None:
        """a / b."""
        return self.a / self.b if self.a is not None and self.b else None

    @property
    def passed(self) -> bool | None:
        """On its side of the limit."""
        if self.ratio is None:
            return None
        return self.ratio >= self.limit if self.at_least else self.ratio <= self.limit

    @property
    def words(self) -> str:
        """One line for people."""
        if self.ratio is None:
            return f"cannot be told: {self.name}: too few trials of one core distance count; {self.why}"
        sign, said = ("at least", "ok") if self.at_least else ("at most", "ok")
        said = said if self.passed else "MISSED"
        return (
            f"{said:6} {self.name}: {self.ratio:.3f} ({self.a:.4g} / {self.b:.4g} {self.unit}, "
            f"medians of {self.trials} trials), {sign} {self.limit:g}"
        )


@dataclass(frozen=True)
class Side:
    """A live topology, and what is sent to it."""

    runner: LiveRunner
    point: Point
    profile: TrafficProfile

    def run(self, duration_s: float, load: Load = SATURATING) -> Trial:
        """One trial, disturbed or not."""
        latency = load is not SATURATING
        request = TrialRequest(
            self.point,
            "latency" if latency else "r_plus",
            load,
            duration_s,
            warmup_s=0.0 if latency else 0.2,
            probe_rate_pps=PROBES_PPS if latency else 0,
            stamp_all=latency,
            profile=self.profile,
        )
        trial = self.runner.run(request)
        if trial.verdict.kind is VerdictKind.INVALID:
            raise SystemExit(f"{self.point.point_id}: {'; '.join(trial.verdict.reasons)}")
        return trial

    def with_updates(self, profile: TrafficProfile) -> Side:
        """The same with other traffic."""
        return replace(self, profile=profile)


@dataclass(frozen=True)
class Bench:
    """What is asked for."""

    vnfs: int
    routes: str
    alone_routes: str
    trials: int
    duration_s: float
    disturbed: bool
    """Disturbed trials count, and any core distance: rough figures of a busy machine."""

    def routes_of(self, label: str) -> str:
        """Of each VNF of a contestant."""
        return self.alone_routes if label == ALONE else self.routes

    def chain(self, label: str) -> str:
        """What every VNF of a contestant is."""
        hosting, idle = ("separate:", ":idle=sleep") if label == SLEEPING else ("", "")
        return f"{hosting}l3fwd:fib=cuckoo:synthetic={self.routes_of(label)}{idle}"

    def traffic(self, label: str, more: str = "") -> TrafficProfile:
        """Destinations over the whole FIB."""
        return parse_traffic(f"fib:count={self.routes_of(label)}{more}")


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vnfs", type=int, default=63)
    large = host_facts.memory_total_bytes() >= MEMORY_BYTES
    parser.add_argument("--routes", default="1M" if large else "100k", help="of each VNF")
    parser.add_argument("--alone-routes", default=ALONE_ROUTES if large else "1M", help="of the forwarder alone")
    parser.add_argument("--trials", type=int, default=7, help="of each side of a ratio")
    parser.add_argument("--duration", type=float, default=1.0, help="seconds of a trial of throughput")
    parser.add_argument("--disturbed", action="store_true", help="count every trial: rough figures of a busy machine")
    parser.add_argument("--json", action="store_true", help="one object instead of lines")
    given = parser.parse_args()
    bench = Bench(given.vnfs, given.routes, given.alone_routes, given.trials, given.duration, given.disturbed)
    machine, (_, settings) = Machine.prepare(), rig()
    with contextlib.ExitStack() as stack:
        supervisor = stack.enter_context(machine.measuring())
        bars, told = measure(bench, machine.cpus, settings, supervisor, stack)
    show(bars, told, as_json=given.json)
    verdicts = [bar.passed for bar in bars]
    return 1 if False in verdicts else 2 if None in verdicts else 0


def measure(
    bench: Bench, cpus: Cpus, settings: LiveSettings, supervisor: Supervisor, stack: contextlib.ExitStack
) -> tuple[list[Bar], dict[str, Any]]:
    """All bars, and what has none. ``cpus``: looked up before this process went to one of them."""
    sides = {}
    for label in (OFFLOADED, ALONE, CONVENTIONAL, SLEEPING):
        live = start(bench, label, cpus, settings, supervisor)
        stack.callback(live.stop)
        profile, chain = bench.traffic(label), bench.chain(label)
        count = live.topology.chain_length
        point = Point(label, "parallel", "unidirectional", count, FRAME_BYTES, chain=chain, traffic=profile.name)
        sides[label] = Side(LiveRunner(live, settings), point, profile)
    jitter, percentiles = jitter_bars(bench, sides)
    updates, told = update_bars(bench, sides[OFFLOADED])
    throughput = [throughput_bar(bench, sides, label) for label in (CONVENTIONAL, SLEEPING)]
    return [*throughput, *jitter, *updates], {**told, "ipdv_percentiles_us": percentiles}


def start(bench: Bench, label: str, cpus: Cpus, settings: LiveSettings, supervisor: Supervisor) -> LiveTopology:
    """One contestant, up and paused."""
    count = 1 if label == ALONE else bench.vnfs
    adapter = get_adapter("planed" if label in (CONVENTIONAL, SLEEPING) else "planed:offload=fib")
    return LiveTopology.start(
        label,
        adapter,
        build_chain("parallel", count, chain=bench.chain(label)),
        place(cpus, count, hosted=range(count)),
        settings,
        supervisor,
        directions=("unidirectional",),
        profiles=[bench.traffic(label), *([bench.traffic(label, ":updates=1")] if label == OFFLOADED else [])],
    )


Take = Callable[[], Trial]


@dataclass(frozen=True)
class Sample:
    """Trials of both sides that count, and why others do not."""

    a: tuple[Trial, ...]
    b: tuple[Trial, ...]
    why: str

    def bar(
        self,
        name: str,
        limit: float,
        unit: str,
        figures: tuple[Callable[[Trial], float], Callable[[Trial], float]],
        *,
        at_least: bool,
    ) -> Bar:
        """Of the medians of a figure of each side."""
        a = statistics.median(map(figures[0], self.a)) if self.a else None
        b = statistics.median(map(figures[1], self.b)) if self.b else None
        return Bar(name, a, b, limit, at_least, min(len(self.a), len(self.b)), unit, self.why)


def sample(bench: Bench, a: Take, b: Take, *, times: int = 1, forgiving: bool = False) -> Sample:
    """Trials of both in turn, who is first alternates, until ``bench.trials`` of each at one core distance count, or
    ATTEMPTS times as many were tried; ``times`` as many of both. ``forgiving``: all count. At least three of each, or
    none counts."""
    wanted = times * bench.trials
    found: dict[str | None, tuple[list[Trial], list[Trial]]] = {}
    why: Counter[str] = Counter()
    for turn in range(ATTEMPTS * wanted):
        for side in (0, 1) if turn % 2 == 0 else (1, 0):
            trial = (a, b)[side]()
            any_counts = bench.disturbed or forgiving
            if any_counts or (not is_disturbed(trial) and trial.band is not None):
                found.setdefault("any" if any_counts else trial.band, ([], []))[side].append(trial)
            elif is_disturbed(trial):
                why.update(f"{trial.point.switch}: {text.partition(' took ')[0]}" for text in trial.verdict.texts)
        if any(min(map(len, both)) >= wanted for both in found.values()):
            break
    best = max(found.values(), key=lambda both: min(map(len, both)), default=([], []))
    if min(map(len, best)) < min(LEAST_TRIALS, wanted):
        best = ([], [])
    return Sample(tuple(best[0]), tuple(best[1]), "; ".join(f"{n} x {reason}" for reason, n in why.most_common(4)))


def mpps(trial: Trial) -> float:
    """Throughput."""
    return trial.throughput_pps / 1e6


def capacity_mpps(trial: Trial) -> float:
    """Throughput over the switch's busy share: what it would be, where the tester cannot saturate the switch."""
    return mpps(trial) / (trial.switch.busy_share or 1.0)


def throughput_bar(bench: Bench, sides: dict[str, Side], label: str) -> Bar:
    """Offloaded against conventional. Whatever could have been better for the conventional is granted to it."""
    found = sample(
        bench,
        lambda: sides[OFFLOADED].run(bench.duration_s),
        lambda: sides[label].run(bench.duration_s),
        forgiving=True,
    )
    kind = "processes that sleep when idle" if label == SLEEPING else "processes"
    name = f"{bench.vnfs} VNFs offloaded against as many {kind}, throughput (with what these may have lost)"
    return found.bar(name, MIN_RATIO, "Mpps", (mpps, most_mpps), at_least=True)


def most_mpps(trial: Trial) -> float:
    """What a conventional trial could have been, near and undisturbed."""
    disturbed = DISTURBED_FACTOR if is_disturbed(trial) else 1.0
    return mpps(trial) * disturbed * (1.0 if trial.band == "near" else BAND_FACTOR)


def jitter_bars(bench: Bench, sides: dict[str, Side]) -> tuple[list[Bar], dict[str, list[float]]]:
    """Many VNFs against the forwarder alone, at a share of what the slower one of the two forwards; and percentiles."""
    rate = min(sides[label].run(bench.duration_s).throughput_pps for label in (ALONE, OFFLOADED)) * JITTER_SHARE
    load = Load(rate_label(rate), rate)
    found = sample(bench, lambda: sides[OFFLOADED].run(SHORT_S, load), lambda: sides[ALONE].run(SHORT_S, load))
    bars = []
    for name, figure in (("burst jitter", burst_us), ("IPDV", mean_ipdv_us)):
        what = f"{name} at {rate / 1e6:.2f} Mpps, {bench.vnfs} VNFs offloaded against the forwarder alone"
        bars.append(found.bar(what, MAX_JITTER, "µs", (figure, figure), at_least=False))
    of_side = {OFFLOADED: found.a, ALONE: found.b}
    return bars, {label: [ipdv_us(trials, share) for share in PERCENTILES] for label, trials in of_side.items()}


def ipdv_us(trials: Sequence[Trial], share: float) -> float:
    """Median of a percentile of IPDV."""
    found = [percentile_ns(decode(t.latency.ipdv), share) / 1e3 for t in trials if t.latency is not None]
    return statistics.median(found) if found else math.nan


def burst_us(trial: Trial) -> float:
    """Mean size of the differences of burst means."""
    return _mean_us(() if trial.latency is None else (trial.latency.burst_rises, trial.latency.burst_falls))


def mean_ipdv_us(trial: Trial) -> float:
    """Mean IPDV."""
    return _mean_us(() if trial.latency is None else (trial.latency.ipdv,))


def _mean_us(texts: Iterable[str]) -> float:
    summary = summarise(merge(text for text in texts if text))
    return summary.mean if summary is not None else math.nan


def update_bars(bench: Bench, offloaded: Side) -> tuple[list[Bar], dict[str, Any]]:
    """Capacity with 64,000 updates a second against none, and whether so many were applied; flat out beside."""
    paced = offloaded.with_updates(bench.traffic(OFFLOADED, f":updates={UPDATES_PER_S}"))
    applied: list[float] = []

    def updating() -> Trial:
        trial = paced.run(SHORT_S)
        applied.append(trial.updates.per_s if trial.updates is not None else 0.0)
        return trial

    found = sample(bench, updating, lambda: offloaded.run(SHORT_S), times=MANY)
    name = f"capacity with {UPDATES_PER_S} updates a second against none"
    said = statistics.median(applied)
    bars = [
        found.bar(name, MIN_SHARE, "Mpps", (capacity_mpps, capacity_mpps), at_least=True),
        Bar("updates applied against asked for", said, UPDATES_PER_S, MIN_APPLIED, True, len(applied), "/s"),
    ]
    flat_out = offloaded.with_updates(bench.traffic(OFFLOADED, ":updates=flat_out")).run(bench.duration_s)
    rate = flat_out.updates.per_s if flat_out.updates is not None else 0.0
    return bars, {"flat_out_updates_per_s": rate, "flat_out_mpps": mpps(flat_out)}


def show(bars: Sequence[Bar], told: dict[str, Any], *, as_json: bool) -> None:
    """Lines, or one object."""
    if as_json:
        rows = [{**asdict(bar), "ratio": bar.ratio, "passed": bar.passed} for bar in bars]
        print(json.dumps({"bars": rows, **told}, indent=1))
        return
    for bar in bars:
        print(bar.words)
    for label, found in told["ipdv_percentiles_us"].items():
        said = ", ".join(f"p{share * 100:g} {us:.2f}" for share, us in zip(PERCENTILES, found, strict=True))
        print(f"       IPDV {label}: {said} µs")
    print(
        f"       flat out {told['flat_out_updates_per_s']:,.0f} updates/s, forwarding {told['flat_out_mpps']:.2f} Mpps"
    )


if __name__ == "__main__":
    sys.exit(main())
