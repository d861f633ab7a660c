# SPDX-License-Identifier: BSD-3-Clause
"""Throughput of an overloaded switch beside its R+: one that spends its time on frames that it drops forwards less.

    .venv/bin/python bench/overload.py [CASE...] [--starts 6] [--rounds 6] [--seconds 0.1] [--seed 1]

planed as patch and bridge, and as each network function straight on two wires, 64 B, on an emulated clock (``duty``) so
low that the tester can offer twice the capacity: a tenth for patch and bridge, two tenths for l2fwd, three tenths for
the other functions.

Twice R+ is offered in an open loop, and compared with what comes before and after it:

- R+, a closed loop. It hands over up to 64 frames at once; an open loop one or two, whose lines take a switch longer to
  read. The lower the clock, the more that matters: between its polls the switch waits, and what the tester writes all
  at once is ready before the next one.
- An open loop at 1.25 R+, which saturates the switch as well, but makes it drop little. So this ratio is what drops
  cost, and nothing else.

A load counts if what was before and after it differs by less than 5 %, the tester was in time for 49 slots of 50, all
open loops saturated the switch, and none of the three trials was disturbed or at another core distance. A tester that
is late offers less than it says, and may be so busy that it is the limit itself.

A start of the switch is one observation, its rounds are averaged: what a start decides changes the ratio, too. Printed:
geometric means over the starts with their 95 % intervals. The bar is 0.97 for the cost of drops. Exit code 1 if a case
is shown to be below it, 3 if one is not decided.
"""

from __future__ import annotations

import argparse
import random
import sys
from functools import partial
from math import log
from statistics import geometric_mean

from rig import rig

from planebench.analysis.answers import estimate_alone
from planebench.analysis.noise import Estimate
from planebench.host.process import Supervisor, high_priority
from planebench.measure.distance import measure_distance
from planebench.measure.live import LiveTopology
from planebench.measure.trial import TrialRequest, run_trial
from planebench.model.errors import UsageError
from planebench.model.records import Load, Point, Trial, VerdictKind
from planebench.model.scenario import Direction, ScenarioName
from planebench.model.scenarios import build
from planebench.model.time_had import is_disturbed
from planebench.model.topology import Vnf
from planebench.switches.registry import get_adapter
from planebench.testbed.vnfs import VNFS

OVERLOAD = 2.0
"""Times R+."""
REFERENCES = {"R+": None, "1.25 R+": 1.25}
"""What the overloaded switch is compared with: times R+ in an open loop, or None for R+ itself."""
BAR = 0.97
FIRST = 2
"""Closed loops before the first round of a start, of which the best tells the loads."""
SLOW, OF_L2FWD, LESS_SLOW = "duty=0.1", "duty=0.2", "duty=0.3"
STEADY = 0.05
"""The largest difference of two references (of the logarithm) with which what is between them counts."""
LATE = 0.02
"""The largest share of slots that the tester was too late for."""
FULL = 0.95
"""The largest share of slots that a saturated switch forwards."""
FUNCTIONS = ("l2fwd", "l3fwd", "firewall", "nat44", "load_balancer")


def _vnf(name: str) -> Vnf:
    kind = VNFS[name]
    return Vnf(kind=kind.kind, memory_bytes=kind.memory_bytes({}))


def _clock(function: str) -> str:
    return OF_L2FWD if function == "l2fwd" else LESS_SLOW


Case = tuple[str, ScenarioName, Direction, tuple[Vnf, ...]]
"""The switch, and its point."""

CASES: dict[str, Case] = {
    "patch": (f"planed:{SLOW}", "p2p", "unidirectional", ()),
    "patch, both ways": (f"planed:{SLOW}", "p2p", "bidirectional", ()),
    "patch, v2v": (f"planed:{SLOW}", "v2v", "unidirectional", ()),
    "patch, loopback-1": (f"planed:{SLOW}", "loopback", "unidirectional", (Vnf(),)),
    "bridge": (f"planed:function=bridge:{SLOW}", "p2p", "unidirectional", ()),
    **{name: (f"planed:{_clock(name)}", "bare", "unidirectional", (_vnf(name),)) for name in FUNCTIONS},
}


def steady_pps(trial: Trial) -> float:
    """Return the rate of the last nine tenths, whatever the load: what rings give back later is in none."""
    return sum(trial.by_tenth[1:]) * 1e10 / (9 * trial.offered_duration_ns)


def count(*trials: Trial) -> bool:
    """Return whether trials can be compared."""
    good = all(
        t.verdict.kind is not VerdictKind.INVALID and not is_disturbed(t) and steady_pps(t) and offered(t)
        for t in trials
    )
    return good and len({t.band for t in trials}) == 1


def measure(live: LiveTopology, point: Point, rounds: int, seconds: float, seed: str) -> dict[str, list[float]]:
    """Return forwarded over each reference, a value for each round of a start that counts."""
    at = live.placement
    distance = partial(measure_distance, live.planed, at.switch_cpu, at.tester_cpus[0])
    rng = random.Random(f"{seed}/{point.point_id}")
    found: dict[str, list[float]] = {name: [] for name in REFERENCES}
    ways = 2 if point.direction == "bidirectional" else 1

    def trial(pps: float | None) -> Trial:
        load = Load("saturating") if pps is None else Load("overload", pps / ways)
        request = TrialRequest(point, "r_plus" if pps is None else "search", load, seconds, warmup_s=0.05)
        return run_trial(live, request, distance)

    flat_out_pps = max(steady_pps(trial(None)) for _ in range(FIRST))
    for _ in range(rounds):
        for name in rng.sample(list(REFERENCES), len(REFERENCES)):
            times = REFERENCES[name]
            pps = None if times is None else times * flat_out_pps
            before, loaded, after = trial(pps), trial(OVERLOAD * flat_out_pps), trial(pps)
            if count(before, loaded, after) and steady(before, after):
                reference_pps = geometric_mean([steady_pps(before), steady_pps(after)])
                found[name].append(steady_pps(loaded) / reference_pps)
            if times is None and steady_pps(after):
                flat_out_pps = steady_pps(after)
    return found


def offered(trial: Trial) -> bool:
    """Return whether the tester offered what it should have: nearly all slots, and more than the switch took."""
    intended = sum(way.intended_packets for way in trial.directions)
    late = sum(way.unsent_late_packets for way in trial.directions)
    return trial.load.pps_per_direction is None or (
        late <= LATE * intended and trial.forwarded_packets < FULL * intended
    )


def steady(before: Trial, after: Trial) -> bool:
    """Return whether two trials agree, so that what is between them can be compared with both."""
    return abs(log(steady_pps(after) / steady_pps(before))) < STEADY


def words(estimate: Estimate | None) -> str:
    """Return a ratio with its interval."""
    if estimate is None:
        return "-".rjust(21)
    low, high = estimate.interval()
    return f"{(low * high) ** 0.5:7.3f} [{low:.3f}, {high:.3f}]"


def run(name: str, starts: int, rounds: int, seconds: float, seed: int) -> bool | None:
    """Measure and print a case; return whether it clears the bar, None if that is not decided."""
    switch, scenario, direction, vnfs = CASES[name]
    placement, settings = rig()
    topology = build(scenario, len(vnfs), vnfs)
    point = Point(switch, scenario, direction, topology.chain_length, 64)
    of_starts: dict[str, list[float]] = {reference: [] for reference in REFERENCES}
    for start in range(starts):
        with high_priority(), Supervisor() as supervisor:
            live = LiveTopology.start(
                switch, get_adapter(switch), topology, placement, settings, supervisor, directions=(direction,)
            )
            of_rounds = measure(live, point, rounds, seconds, f"{seed}/{start}")
            live.stop()
        for reference, values in of_rounds.items():
            of_starts[reference] += [geometric_mean(values)] if values else []
    found = [estimate_alone(values) for values in of_starts.values()]
    numbers = "/".join(str(len(values)) for values in of_starts.values())
    print(f"{name:17}", *map(words, found), f"starts {numbers}", flush=True)
    drops = found[-1]
    if drops is None:
        return None
    low, high = drops.interval()
    return True if low >= BAR else False if high < BAR else None


def main() -> int:
    """Parse, measure, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--starts", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=6, help="in each start")
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if unknown := set(given.cases) - set(CASES):
        raise UsageError(f"no case {', '.join(sorted(unknown))}. Valid: {', '.join(CASES)}")
    print(f"{f'at {OVERLOAD:g} R+, over':17}", *(f"{reference:>22}" for reference in REFERENCES))
    answers = [run(name, given.starts, given.rounds, given.seconds, given.seed) for name in given.cases or CASES]
    below, open_ = answers.count(False), answers.count(None)
    print(f"{len(answers)} cases: {answers.count(True)} at {BAR} or more, {below} below, {open_} not decided")
    return 1 if below else 3 if open_ else 0


if __name__ == "__main__":
    sys.exit(main())
