# SPDX-License-Identifier: BSD-3-Clause
"""FIB offload on real packets, against its bars. Exit code 1 where one is missed, 2 where it cannot be told.

    .venv/bin/python bench/fib_offload.py [--vnfs 63] [--routes 1M] [--pairs 5] [--duration 2] [--json]

- 63 VNFs offloaded forward at least 5 times what 63 VNF processes do on the same cores;
- jitter with 63 VNFs is within 1.4 times that of the forwarder alone, which has one VNF: burst jitter and IPDV;
- 64,000 updates a second while forwarding cost less than 5 % of what the switch can forward (throughput over its busy
  share: the tester may be what limits). Flat out is told, and has no bar.

The sides of a ratio take turns, trial by trial; medians. A trial that was disturbed, or saw both core distances, is run
again; the trials of a ratio are of one core distance. The first ratio may cross them (63 processes on the switch's
core: its distance is hardly measured), and then counts for as much less as a distance can cost.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from rig import rig

from planebench.cli.prepare import cpus_of, measuring
from planebench.host import facts as host_facts
from planebench.host.process import Supervisor
from planebench.measure.live import LiveSettings, LiveTopology
from planebench.measure.runner import LiveRunner
from planebench.measure.trial import TrialRequest
from planebench.model.records import Load, Point, Trial, VerdictKind
from planebench.placement import Cpus, place
from planebench.scenarios import build
from planebench.stats.histogram import decode, summarise
from planebench.switches.registry import get_adapter
from planebench.traffic import SATURATING, rate_label
from planebench.traffic.profile import TrafficProfile
from planebench.traffic.registry import parse_traffic

FRAME_BYTES = 64
UPDATES_PER_S = 64_000
PROBES_PPS = 2000
JITTER_SHARE = 0.5
"""Of what the forwarder alone forwards: the load at which jitter is taken."""
MIN_RATIO, MAX_JITTER, MIN_SHARE, MIN_APPLIED = 5.0, 1.4, 0.95, 0.98
RETRIES = 4
BAND_FACTOR = 2.5
"""What the far core distance costs at most (DESIGN section 4): a ratio that holds in spite of it is told."""
MEMORY_BYTES = 6_000_000_000
"""For 63 VNFs with a million routes each, twice: 3.8 GB, and what else runs."""
OFFLOADED, CONVENTIONAL, ALONE = "offloaded", "conventional", "alone"


@dataclass(frozen=True)
class Bar:
    """A ratio of medians and its limit. ``passed`` is None where no trials of one core distance are there to tell."""

    name: str
    a: float | None
    b: float | None
    limit: float
    at_least: bool
    pairs: int
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
            return f"cannot be told: {self.name}: no pair of trials of one core distance counts; {self.why}"
        sign, said = ("at least", "ok") if self.at_least else ("at most", "ok")
        said = said if self.passed else "MISSED"
        return (
            f"{said:6} {self.name}: {self.ratio:.3f} ({self.a:.4g} / {self.b:.4g} {self.unit}, "
            f"medians of {self.pairs} pairs), {sign} {self.limit:g}"
        )


@dataclass(frozen=True)
class Side:
    """A live topology, and what is sent to it."""

    runner: LiveRunner
    point: Point
    profile: TrafficProfile
    retries: int = RETRIES

    def run(self, duration_s: float, load: Load = SATURATING) -> Trial:
        """One trial, again while it is disturbed."""
        latency = load is not SATURATING
        request = TrialRequest(
            self.point,
            "latency" if latency else "r_plus",
            load,
            duration_s,
            warmup_s=0.0 if latency else 0.2,
            probe_rate_pps=PROBES_PPS if latency else 0,
            profile=self.profile,
        )
        for _ in range(1 + self.retries):
            trial = self.runner.run(request)
            if trial.verdict.kind is VerdictKind.INVALID:
                raise SystemExit(f"{self.point.point_id}: {'; '.join(trial.verdict.reasons)}")
            if trial.verdict.kind is not VerdictKind.DISTURBED:
                break
        return trial

    def with_updates(self, profile: TrafficProfile) -> Side:
        """The same with other traffic."""
        return replace(self, profile=profile)


@dataclass(frozen=True)
class Bench:
    """What is asked for."""

    vnfs: int
    routes: str
    pairs: int
    duration_s: float
    disturbed: bool
    """Disturbed trials count, and any core distance: rough figures of a busy machine."""

    @property
    def chain(self) -> str:
        """What every VNF is."""
        return f"l3fwd:fib=cuckoo:synthetic={self.routes}"

    def traffic(self, more: str = "") -> TrafficProfile:
        """Destinations over the whole FIB."""
        return parse_traffic(f"fib:count={self.routes}{more}")


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vnfs", type=int, default=63)
    large = host_facts.memory_total_bytes() >= MEMORY_BYTES
    parser.add_argument("--routes", default="1M" if large else "100k", help="of each VNF")
    parser.add_argument("--pairs", type=int, default=5, help="trials of each side of a ratio")
    parser.add_argument("--duration", type=float, default=2.0, help="seconds of a trial")
    parser.add_argument("--disturbed", action="store_true", help="count every trial: rough figures of a busy machine")
    parser.add_argument("--json", action="store_true", help="one object instead of lines")
    given = parser.parse_args()
    bench = Bench(given.vnfs, given.routes, given.pairs, given.duration, given.disturbed)
    facts, (_, settings) = host_facts.collect(), rig()
    with contextlib.ExitStack() as stack:
        stack.enter_context(measuring(facts))
        supervisor = stack.enter_context(Supervisor())
        bars, told = measure(bench, cpus_of(facts), settings, supervisor, stack)
    show(bars, told, as_json=given.json)
    verdicts = [bar.passed for bar in bars]
    return 1 if False in verdicts else 2 if None in verdicts else 0


def measure(
    bench: Bench, cpus: Cpus, settings: LiveSettings, supervisor: Supervisor, stack: contextlib.ExitStack
) -> tuple[list[Bar], dict[str, Any]]:
    """All bars, and what has none. ``cpus``: looked up before this process went to one of them."""
    sides = {}
    for label in (OFFLOADED, ALONE, CONVENTIONAL):
        live = start(bench, label, cpus, settings, supervisor)
        stack.callback(live.stop)
        profile = bench.traffic()
        count = live.topology.chain_length
        point = Point(label, "parallel", "unidirectional", count, FRAME_BYTES, chain=bench.chain, traffic=profile.name)
        sides[label] = Side(LiveRunner(live, settings), point, profile, 0 if bench.disturbed else RETRIES)
    bars = [throughput_bar(bench, sides), *jitter_bars(bench, sides)]
    updates, told = update_bars(bench, sides[OFFLOADED])
    return [*bars, *updates], told


def start(bench: Bench, label: str, cpus: Cpus, settings: LiveSettings, supervisor: Supervisor) -> LiveTopology:
    """One contestant, up and paused."""
    count = 1 if label == ALONE else bench.vnfs
    adapter = get_adapter("planed" if label == CONVENTIONAL else "planed:offload=fib")
    return LiveTopology.start(
        label,
        adapter,
        build("parallel", count, chain=bench.chain),
        place(cpus, count, hosted=range(count)),
        settings,
        supervisor,
        directions=("unidirectional",),
        profiles=[bench.traffic(), *([bench.traffic(":updates=1")] if label == OFFLOADED else [])],
    )


Pairs = tuple[float | None, float | None, int, str]
"""Medians of both sides, the pairs they are of, and why others do not count."""


def pairs(
    bench: Bench,
    a: Callable[[], Trial],
    b: Callable[[], Trial],
    figure: Callable[[Trial], float],
    across: float | None = None,
) -> Pairs:
    """Pairs whose trials count and are of one core distance; who is first alternates.

    ``across``: with it pairs of two core distances count, too, and the figure of the first is divided by it.
    """
    bands: dict[str | None, list[tuple[float, float]]] = {}
    why: Counter[str] = Counter()
    for turn in range(bench.pairs):
        first, second = (a(), b()) if turn % 2 == 0 else reversed((b(), a()))
        disturbed = [t for t in (first, second) if t.verdict.kind is VerdictKind.DISTURBED]
        apart = first.band != second.band
        if bench.disturbed or not (disturbed or (apart and across is None)):
            band = "any" if bench.disturbed or across else first.band
            divisor = across if across and apart else 1.0
            bands.setdefault(band, []).append((figure(first) / divisor, figure(second)))
        why.update(f"{t.point.switch}: {reason}" for t in disturbed for reason in t.verdict.reasons)
        why.update([f"core distances {first.band} and {second.band}"] * (apart and across is None))
    best = max(bands.values(), key=len, default=[])
    said = "; ".join(f"{n} x {reason}" for reason, n in why.most_common(4))
    if not best:
        return None, None, 0, said
    return statistics.median(x for x, _ in best), statistics.median(y for _, y in best), len(best), said


def mpps(trial: Trial) -> float:
    """Throughput."""
    return trial.throughput_pps / 1e6


def capacity_mpps(trial: Trial) -> float:
    """Throughput over the switch's busy share: what it would be, where the tester cannot saturate the switch."""
    return mpps(trial) / (trial.switch.busy_share or 1.0)


def throughput_bar(bench: Bench, sides: dict[str, Side]) -> Bar:
    """Offloaded against conventional."""
    found = pairs(
        bench,
        lambda: sides[OFFLOADED].run(bench.duration_s),
        lambda: sides[CONVENTIONAL].run(bench.duration_s),
        mpps,
        across=BAND_FACTOR,
    )
    name = f"{bench.vnfs} VNFs offloaded against as many processes, throughput"
    return Bar(name, found[0], found[1], MIN_RATIO, True, found[2], "Mpps", found[3])


def jitter_bars(bench: Bench, sides: dict[str, Side]) -> Iterator[Bar]:
    """Many VNFs against the forwarder alone, at a share of what the slower one of the two forwards."""
    rate = min(sides[label].run(bench.duration_s).throughput_pps for label in (ALONE, OFFLOADED)) * JITTER_SHARE
    load = Load(rate_label(rate), rate)
    trials: dict[str, list[Trial]] = {OFFLOADED: [], ALONE: []}

    def keep(label: str) -> Trial:
        trials[label].append(sides[label].run(bench.duration_s, load))
        return trials[label][-1]

    burst = pairs(bench, lambda: keep(OFFLOADED), lambda: keep(ALONE), lambda t: jitter_us(t, "burst_jitter"))
    again = {label: iter(found) for label, found in trials.items()}
    ipdv = pairs(bench, lambda: next(again[OFFLOADED]), lambda: next(again[ALONE]), lambda t: jitter_us(t, "ipdv"))
    for name, found in (("burst jitter", burst), ("IPDV", ipdv)):
        what = f"{name} at {rate / 1e6:.2f} Mpps, {bench.vnfs} VNFs offloaded against the forwarder alone"
        yield Bar(what, found[0], found[1], MAX_JITTER, False, found[2], "µs", found[3])


def jitter_us(trial: Trial, kind: str) -> float:
    """Mean of one of the histograms."""
    summary = summarise(decode(getattr(trial.latency, kind))) if trial.latency is not None else None
    return summary.mean if summary is not None else math.nan


def update_bars(bench: Bench, offloaded: Side) -> tuple[list[Bar], dict[str, Any]]:
    """Capacity with 64,000 updates a second against none, and whether so many were applied; flat out beside."""
    paced = offloaded.with_updates(bench.traffic(f":updates={UPDATES_PER_S}"))
    applied: list[float] = []

    def updating() -> Trial:
        trial = paced.run(bench.duration_s)
        applied.append(trial.updates.per_s if trial.updates is not None else 0.0)
        return trial

    found = pairs(bench, updating, lambda: offloaded.run(bench.duration_s), capacity_mpps)
    name = f"capacity with {UPDATES_PER_S} updates a second against none"
    said = statistics.median(applied)
    bars = [
        Bar(name, found[0], found[1], MIN_SHARE, True, found[2], "Mpps", found[3]),
        Bar("updates applied against asked for", said, UPDATES_PER_S, MIN_APPLIED, True, len(applied), "/s"),
    ]
    flat_out = offloaded.with_updates(bench.traffic(":updates=flat_out")).run(bench.duration_s)
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
    print(
        f"       flat out {told['flat_out_updates_per_s']:,.0f} updates/s, forwarding {told['flat_out_mpps']:.2f} Mpps"
    )


if __name__ == "__main__":
    sys.exit(main())
