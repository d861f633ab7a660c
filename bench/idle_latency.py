# SPDX-License-Identifier: BSD-3-Clause
"""Latency of a nearly idle switch against its latency at half load: one that waits for a batch is slower when idle.

    .venv/bin/python bench/idle_latency.py [--switch planed] [--scenario p2p,v2v,loopback] [--starts 5] [--trials 20]

100 frames a second, each a probe, against half of R+ with probes among the frames; trials of both take turns, in some
starts of the switch. Printed: p50, mean and p99 of all trials of a load together, in microseconds, and the ratio of the
p50s, for each core group, and apart for pairs of trials in which another hyperthread used a core: what an idle switch
has in its caches, such a neighbor throws out. The ratio has the 95 % interval of the starts. can17 found ten times; the
bar is 1.5. v2v has its second VNF send frames back, as for every latency in v2v.
"""

from __future__ import annotations

import argparse
from functools import partial
from statistics import geometric_mean

import numpy as np
from rig import Cores, best_of, cores_of, rig, scenario_of

from planebench.analysis.answers import estimate_alone
from planebench.analysis.histogram import Counts, decode, summarise
from planebench.host.process import Supervisor, high_priority
from planebench.measure.counts import Sending, tester_counts
from planebench.measure.distance import measure_distance
from planebench.measure.live import LiveTopology
from planebench.model.records import CoreDistance
from planebench.model.results import HistogramSummary
from planebench.model.scenario import ScenarioName, scenario_named
from planebench.model.scenarios import build, flows
from planebench.switches.registry import get_adapter

IDLE_PPS = 100
FRAME_SIZE_BYTES = 64
ALL_PROBES = 10_000_000
"""More than there are frames: each is one."""
PROBES_PPS = 5000
LOADS = ("100 pps", "half load")

Pair = tuple[Cores, dict[str, Counts]]
"""How the cores were, and the latencies by load."""


class Idle:
    """A switch that is up, idle or half loaded."""

    def __init__(self, live: LiveTopology, seconds: float) -> None:
        """Find R+."""
        self.live = live
        live.resume()
        self.flows = flows(live.topology, "unidirectional")
        flat_out = tester_counts(live.send(Sending(self.flows, FRAME_SIZE_BYTES, 0.5, None)), self.flows)
        half_pps = sum(d.forwarded_packets for d in flat_out.directions) / 0.5 / 2
        live.pause()
        self.loads = {
            "100 pps": (seconds, float(IDLE_PPS), ALL_PROBES),
            "half load": (seconds / 2, half_pps, PROBES_PPS),
        }
        self.distance = partial(measure_distance, live.planed, live.placement.switch_cpu, live.placement.tester_cpus[0])

    def pair(self) -> Pair | None:
        """Take a trial of each load; None where a load had no probe."""
        distances: list[CoreDistance | None] = [self.distance()]
        found: dict[str, Counts] = {}
        for name, (seconds, pps, probes_pps) in self.loads.items():
            self.live.resume()
            stats = self.live.send(Sending(self.flows, FRAME_SIZE_BYTES, seconds, pps, probes_pps))
            self.live.pause()
            distances.append(self.distance())
            counts = tester_counts(stats, self.flows)
            if counts.latency is None:
                return None
            found[name] = decode(counts.latency.histogram)
        return cores_of(distances), found


def show(scenario: str, starts: list[list[Pair]]) -> None:
    """Print the latencies of each load and their ratio, for each state of the cores."""
    best = best_of(cores for pairs in starts for cores, _ in pairs)
    for state in sorted({cores.state(best) for pairs in starts for cores, _ in pairs}):
        of_starts = [[found for cores, found in pairs if cores.state(best) == state] for pairs in starts]
        of_starts = [pairs for pairs in of_starts if pairs]
        ratios = [summary(pairs, "100 pps").p50 / summary(pairs, "half load").p50 for pairs in of_starts]
        number = sum(map(len, of_starts))
        for name in LOADS:
            s = summary([found for pairs in of_starts for found in pairs], name)
            figures = f"p50 {s.p50:7.2f}  mean {s.mean:8.2f}  p99 {s.p99:8.2f}  n {s.samples}"
            print(f"{scenario:9} {state:13} {name:10} {figures}")
        estimate = estimate_alone(ratios)
        interval = "" if estimate is None else " [{:.2f}, {:.2f}]".format(*estimate.interval())
        print(
            f"{scenario:9} {state:13} ratio of p50: {geometric_mean(ratios):.2f}{interval}, "
            f"{number} pairs, {len(ratios)} starts"
        )


def summary(pairs: list[dict[str, Counts]], load: str) -> HistogramSummary:
    """Return the latency of all trials of a load together."""
    found = summarise(np.sum([counts[load] for counts in pairs], axis=0))
    assert found is not None
    return found


def measure(switch: str, scenario: ScenarioName, starts: int, trials: int, seconds: float) -> list[list[Pair]]:
    """Return the pairs of each start of a switch."""
    placement, settings = rig()
    known = scenario_named(scenario)
    topology = build(scenario, int(known.has_vnfs), echo=known.latency_by_echo)
    found: list[list[Pair]] = []
    for _ in range(starts):
        with high_priority(), Supervisor() as supervisor:
            live = LiveTopology.start(switch, get_adapter(switch), topology, placement, settings, supervisor)
            idle = Idle(live, seconds)
            found.append([pair for pair in (idle.pair() for _ in range(trials)) if pair is not None])
            live.stop()
    return found


def main() -> None:
    """Parse and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--switch", default="planed")
    parser.add_argument("--scenario", default="p2p,v2v,loopback")
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--trials", type=int, default=20, help="pairs in each start")
    parser.add_argument("--seconds", type=float, default=0.5, help="of an idle trial; half as long at half load")
    given = parser.parse_args()
    for text in given.scenario.split(","):
        show(text, measure(given.switch, scenario_of(text), given.starts, given.trials, given.seconds))


if __name__ == "__main__":
    main()
