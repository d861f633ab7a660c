# SPDX-License-Identifier: BSD-3-Clause
"""Latency of a nearly idle switch against its latency at half load: one that waits for a batch is slower when idle.

    .venv/bin/python bench/idle_latency.py [--switch planed] [--scenario p2p,v2v,loopback] [--trials 5] [--seconds 5]

100 frames a second, each a probe, against half of R+ with probes among the frames; trials take turns. Printed: p50,
mean and p99 of all trials of a load together, in microseconds, and the ratio of the p50s. can17 found ten times; the
bar is 2. v2v has its second VNF send frames back, as for every latency in v2v.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rig import rig, scenario_of

from planebench.host.priority import high_priority
from planebench.host.process import Supervisor
from planebench.measure.counts import tester_counts
from planebench.measure.live import LiveTopology
from planebench.model.scenario import scenario_named
from planebench.scenarios.flows import Flow, flows
from planebench.scenarios.shapes import build
from planebench.stats.histogram import Counts, decode, merge_counts, summarise
from planebench.switches.registry import get_adapter

IDLE_PPS = 100
FRAME_SIZE_BYTES = 64
ALL_PROBES = 10_000_000
"""More than there are frames: each is one."""
PROBES_PPS = 5000


def histogram(live: LiveTopology, wanted: Sequence[Flow], seconds: float, pps: float, probe_rate_pps: int) -> Counts:
    """Latency counts of one trial."""
    counts = tester_counts(live.send(wanted, FRAME_SIZE_BYTES, seconds, pps, probe_rate_pps), wanted)
    if counts.latency is None:
        raise SystemExit("no probe came back")
    return decode(counts.latency.histogram)


def measure(live: LiveTopology, trials: int, seconds: float) -> None:
    """Find R+, take turns, print."""
    live.resume()
    wanted = flows(live.topology, "unidirectional")
    flat_out = tester_counts(live.send(wanted, FRAME_SIZE_BYTES, 0.5, None), wanted)
    half_pps = sum(d.forwarded_packets for d in flat_out.directions) / 0.5 / 2
    if scenario_named(live.topology.scenario).latency_by_echo:
        live.set_echo(True)
        wanted = flows(build("v2v", echo=True), "unidirectional")
        half_pps /= 2
    loads = {"100 pps": (float(IDLE_PPS), ALL_PROBES, seconds), "half load": (half_pps, PROBES_PPS, 0.5)}
    taken: dict[str, list[Counts]] = {name: [] for name in loads}
    for _ in range(trials):
        for name, (pps, probes, length) in loads.items():
            taken[name].append(histogram(live, wanted, length, pps, probes))
    p50s = []
    for name, counts in taken.items():
        s = summarise(merge_counts(counts))
        assert s is not None
        p50s.append(s.p50)
        figures = f"p50 {s.p50:7.2f}  mean {s.mean:8.2f}  p99 {s.p99:8.2f}  n {s.samples}"
        print(f"{live.topology.scenario:9} {name:10} {figures}")
    print(f"{live.topology.scenario:9} ratio of p50: {p50s[0] / p50s[1]:.2f}", flush=True)


def main() -> None:
    """Parse and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--switch", default="planed")
    parser.add_argument("--scenario", default="p2p,v2v,loopback")
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5)
    given = parser.parse_args()
    placement, settings = rig()
    for text in given.scenario.split(","):
        name = scenario_of(text)
        topology = build(name, int(scenario_named(name).has_vnfs))
        with high_priority(), Supervisor() as supervisor:
            live = LiveTopology.start(
                given.switch, get_adapter(given.switch), topology, placement, settings, supervisor
            )
            measure(live, given.trials, given.seconds)
            live.stop()


if __name__ == "__main__":
    main()
