# SPDX-License-Identifier: BSD-3-Clause
"""The tail of latency: p50, p99, p99.9 and the longest silence, at shares of each switch's PDR and at equal loads.

    .venv/bin/python bench/tail.py [--switch planed,testpmd,ovs-dpdk] [--wire virtio] [--scenario p2p,v2v,loopback]
                                   [--starts 4] [--trials 30] [--seconds 0.02] [--seed 1]

64 B, unidirectional. PDR: the highest load of a closed loop's rate that a bisection finds with at most 0.5 % lost in
the best of five trials, the median of two starts. Loads are 0.10, 0.50 and 0.90 of a switch's own PDR, and of the
lowest PDR of all switches: equal for all. Then each start of a switch, in a seeded random order, takes all loads in
turn, in trials so short that the host, when it interrupts, spoils one of many. Printed: the medians over all trials of
one core distance, in microseconds, of p50, p99 and p99.9 of the probes (200,000 a second) and of the longest time
without a frame; ``*`` marks the lowest of a load, and others whose median is within 5 % of it. v2v has its second VNF
send frames back.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from rig import rig, scenario_of

from planebench.analysis.histogram import decode, summarise
from planebench.host.process import Supervisor, high_priority
from planebench.measure.counts import Sending, tester_counts
from planebench.measure.distance import measure_distance
from planebench.measure.live import LiveTopology
from planebench.measure.outage import longest_silence
from planebench.model.errors import StartError
from planebench.model.scenario import ScenarioName, scenario_named
from planebench.model.scenarios import Flow, build, flows
from planebench.switches.registry import get_adapter

SHARES = (0.10, 0.50, 0.90)
FRAME_SIZE_BYTES = 64
PROBES_PPS = 200_000
LOSS = 0.005
STEPS = 6
"""The bisection makes so many steps: they find the load to 2 % of the closed loop's rate."""
TRIES = 5
"""Trials of each step, of which the best tells: the host spoils some."""
LEVEL = 1.05

Load = tuple[str, float]
"""``own`` or ``equal``, and the share."""
Figures = tuple[float, float, float, float]
"""p50, p99, p99.9, longest silence: microseconds."""


class Rig:
    """One scenario with one wire: starts switches, and measures on them."""

    def __init__(self, scenario: ScenarioName, wire: str, seconds: float) -> None:
        self.seconds = seconds
        self.placement, settings = rig()
        self.settings = replace(settings, wire=wire)
        known = scenario_named(scenario)
        self.topology = build(scenario, int(known.has_vnfs), echo=known.latency_by_echo)

    @contextmanager
    def start(self, switch: str) -> Iterator[LiveTopology]:
        """Start a switch for the block; in v2v the far VNF sends back."""
        with high_priority(), Supervisor() as supervisor:
            live = LiveTopology.start(
                switch, get_adapter(switch), self.topology, self.placement, self.settings, supervisor
            )
            live.resume()
            yield live
            live.stop()

    @property
    def flows(self) -> Sequence[Flow]:
        """Return what is sent."""
        return flows(self.topology, "unidirectional")

    def lost(self, live: LiveTopology, pps: float) -> float:
        """Return the share of frames of a short trial that did not come back, or were not sent."""
        counts = tester_counts(live.send(Sending(self.flows, FRAME_SIZE_BYTES, self.seconds, pps)), self.flows)
        return 1 - sum(d.forwarded_packets for d in counts.directions) / (pps * self.seconds)

    def pdr_pps(self, live: LiveTopology) -> float:
        """Return the highest load that a bisection finds with little loss."""
        flat_out = tester_counts(live.send(Sending(self.flows, FRAME_SIZE_BYTES, 0.3, None)), self.flows)
        low, high = 0.0, sum(d.forwarded_packets for d in flat_out.directions) / 0.3
        for _ in range(STEPS):
            middle = (low + high) / 2
            lost = min(self.lost(live, middle) for _ in range(TRIES))
            low, high = (middle, high) if lost <= LOSS else (low, middle)
        return low

    def trial(self, live: LiveTopology, pps: float) -> tuple[str, Figures] | None:
        """Return the core group and the figures of a trial; None where the group changed, or no probe came back."""
        distance = partial(measure_distance, live.planed, live.placement.switch_cpu, live.placement.tester_cpus[0])
        before = distance()
        stats = live.send(Sending(self.flows, FRAME_SIZE_BYTES, self.seconds, pps, PROBES_PPS))
        after, counts = distance(), tester_counts(stats, self.flows)
        if before is None or after is None or before.band != after.band or counts.latency is None:
            return None
        found = summarise(decode(counts.latency.histogram))
        try:
            silence = longest_silence(stats, self.flows[0])
        except StartError:
            return None
        if found is None:
            return None
        return before.band, (found.p50, found.p99, found.p99_9, silence.duration_ns / 1000)


def measure(
    rig_: Rig, switches: Sequence[str], starts: int, trials: int, rng: random.Random
) -> dict[tuple[Load, str, str], list[Figures]]:
    """Return the figures of all trials by load, switch and core group."""
    found: dict[tuple[Load, str, str], list[Figures]] = defaultdict(list)
    pdrs: dict[str, list[float]] = defaultdict(list)
    for switch in [*switches, *reversed(switches)]:
        with rig_.start(switch) as live:
            pdrs[switch].append(rig_.pdr_pps(live))
    pdr = {switch: statistics.median(values) for switch, values in pdrs.items()}
    print(f"{rig_.topology.scenario}: PDR", ", ".join(f"{switch} {pps / 1e6:.2f} Mpps" for switch, pps in pdr.items()))
    lowest = min(pdr.values())
    for _ in range(starts):
        for switch in rng.sample(switches, len(switches)):
            loads: list[tuple[Load, float]] = [
                *((("own", share), share * pdr[switch]) for share in SHARES),
                *((("equal", share), share * lowest) for share in SHARES),
            ] * trials
            rng.shuffle(loads)
            with rig_.start(switch) as live:
                for load, pps in loads:
                    trial = rig_.trial(live, pps)
                    if trial is not None:
                        found[load, switch, trial[0]].append(trial[1])
    return found


def show(found: dict[tuple[Load, str, str], list[Figures]], switches: Sequence[str]) -> int:
    """Print a table for each core group; return in how many figures the first switch is neither lowest nor level."""
    behind = 0
    for band in sorted({key[2] for key in found}):
        for load in sorted({key[0] for key in found if key[2] == band}):
            rows = {s: found[load, s, band] for s in switches if found.get((load, s, band))}
            medians = {s: tuple(statistics.median(column) for column in zip(*rows[s], strict=True)) for s in rows}
            least = [min(column) for column in zip(*medians.values(), strict=True)]
            for switch, row in medians.items():
                cells = (f"{v:9.2f}{'*' if v <= LEVEL * low else ' '}" for v, low in zip(row, least, strict=True))
                print(f"  {band:5} {load[0]:5} {load[1]:.2f} {switch:12}", *cells, f" n {len(rows[switch])}")
            if switches[0] not in medians:
                behind += 1
            else:
                behind += sum(v > LEVEL * low for v, low in zip(medians[switches[0]], least, strict=True))
    return behind if found else 1


def main() -> int:
    """Parse, measure, print; 1 if the first switch is behind in a figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--switch", default="planed,testpmd,ovs-dpdk")
    parser.add_argument("--wire", default="virtio")
    parser.add_argument("--scenario", default="p2p,v2v,loopback")
    parser.add_argument("--starts", type=int, default=4)
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    switches, behind = given.switch.split(","), 0
    print(f"{'':34} {'p50':>10} {'p99':>10} {'p99.9':>10} {'silence':>10}  us")
    for text in given.scenario.split(","):
        name = scenario_of(text)
        rng = random.Random(f"{given.seed}/{name}")
        found = measure(Rig(name, given.wire, given.seconds), switches, given.starts, given.trials, rng)
        behind += show(found, switches)
        sys.stdout.flush()
    print(f"{switches[0]} is behind in {behind} figures")
    return int(behind > 0)


if __name__ == "__main__":
    sys.exit(main())
