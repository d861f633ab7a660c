# SPDX-License-Identifier: BSD-3-Clause
"""Runs trials on a simulated switch, as fast as it can count; every trial is judged as a real one."""

from __future__ import annotations

import dataclasses
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any, Literal

from planebench.analysis.histogram import HIGHEST_NS, encode
from planebench.measure.sim.foreign import FOREIGN, IRQS_PER_BURST, Span, StandingSpans, length_ns, standing
from planebench.measure.trial import TrialRequest, failed_trial, judged, trial_of
from planebench.model.records import (
    CoreDistance,
    DirectionCounts,
    Evidence,
    LatencyRecord,
    Point,
    SwitchCycles,
    ThreadEvidence,
    Trial,
)
from planebench.model.scenarios import Flow
from planebench.model.switch import Option, OptionKind
from planebench.model.text import utc_now
from planebench.testbed.rates import line_rate_pps

# The settings of a simulated switch: ``sim:capacity=10M:noise=1%``, parsed and checked.


def _key(default: float | str, kind: OptionKind, help: str, choices: tuple[str, ...] = ()) -> Any:
    """Return a field of :class:`SimSpec` that is a key of the text, too."""
    return dataclasses.field(default=default, metadata={"kind": kind, "help": help, "choices": choices})


@dataclass(frozen=True, slots=True)
class SimSpec:
    """A simulated switch. Fields are the keys of SIM_KEYS; rates are aggregates of all directions."""

    name: str = "sim"
    capacity: float = _key(10e6, "rate", "maximum forwarding rate in packets per second, sum of all directions")
    noise: float = _key(0.0, "share", "standard deviation of the capacity between trials, as a share of the capacity")
    modes: float = _key(1.0, "ratio", "capacity ratio of a second, hidden mode, drawn at each start of the switch")
    mode_share: float = _key(0.5, "share", "share of starts in the second mode")
    mode_disturbed: float = _key(0.0, "share", "share of trials in the second mode in which the switch is preempted")
    start_noise: float = _key(0.0, "share", "standard deviation of the capacity between starts of the switch")
    stall_share: float = _key(0.0, "share", "share of trials in which the switch stalls and loses stall_packets")
    stall_packets: int = _key(3, "whole", "number of frames lost in a stall")
    loss: float = _key(0.0, "share", "share of frames lost at any load")
    stretch: float = _key(1.0, "ratio", "factor by which a paced generator takes longer to send all intended frames")
    max_rate: float = _key(
        math.inf,
        "rate",
        "maximum rate of the generator in packets per second, sum of all directions; the rest is unsent",
    )
    line: float = _key(0.0, "rate", "speed of the links in bits per second (0: none, as of emulated wires)")
    drop_one_in: int = _key(0, "whole", "fault: drop one in N frames of each direction (0: none)")
    ring: int = _key(0, "whole", "number of frames that queue in front of an overloaded switch")
    latency_us: float = _key(5.0, "amount", "latency without load in microseconds (0: no latency measurement)")
    batch: int = _key(1, "whole", "number of frames the switch collects before it forwards them (slow at low load)")
    disturbed_share: float = _key(0.0, "share", "share of trials in which the switch is preempted")
    foreign: str = _key("none", "text", "what else runs on the two CPUs: none, 4ms/10ms, loop, loops, irq", FOREIGN)
    root: bool = _key(False, "flag", "the pollers have root's priority, nice -20: programs take a few per cent of it")
    far_share: float = _key(0.0, "share", "share of blocks with far cores, of all switches alike")
    far_ratio: float = _key(0.5, "ratio", "capacity ratio with far cores")
    shared_share: float = _key(0.0, "share", "share of trials in which another hyperthread uses the core of the switch")
    shared_ratio: float = _key(0.6, "ratio", "capacity ratio with a shared core")
    cycles: float = _key(200.0, "amount", "cycles per packet (0: not reported)")
    poll: float = _key(0.0, "amount", "cycles of a poll among those of its packets (0: polls are not reported)")
    burst: int = _key(32, "whole", "maximum number of frames that a poll finds")
    dies_share: float = _key(0.0, "share", "share of trials in which the switch dies")


SIM_KEYS = {
    key.name: Option(key.name, key.metadata["kind"], key.metadata["help"], choices=key.metadata["choices"])
    for key in dataclasses.fields(SimSpec)
    if key.metadata
}
"""Every key but ``name``, the label, in the order of the page docs/simulator.md."""


# The random part of one trial, drawn whole and in one order, so that a key changes only its own effect.

Band = Literal["near", "far"]

CAPACITY_FLOOR = 0.05
"""However bad the luck, this share of the capacity is left."""
FOREIGN_NOISE = 0.02
"""Standard deviation of the capacity beside foreign load, per time that the pollers had: caches are cold after it."""


@dataclass(frozen=True, slots=True)
class TrialDraw:
    """The random values of one trial. ``rng`` is for latency, ``host`` for when pollers stood: both need many draws."""

    capacity_pps: float
    stalls: bool
    disturbed: bool
    dies: bool
    band: Band
    shared: bool
    rng: random.Random
    host: random.Random


def draw(spec: SimSpec, seed: int, point: Point, start: int, n: int, block: int = 0) -> TrialDraw:
    """Return the random values of trial ``n`` of a point after start ``start``; same arguments, same values.

    The distance of the cores is that of a ``block``, of all switches alike: hosts keep it for seconds to minutes.
    """
    rng, host = (random.Random(f"{seed}/{point.point_id}/{start}/{n}{of}") for of in ("", "/host"))
    noise, stall, disturbed, dies = (rng.gauss(0.0, 1.0), *(rng.random() for _ in range(3)))
    far = random.Random(f"{seed}/{point.scenario_label}/{block}/band").random() < spec.far_share
    # What a start decides, of all points of a topology, like memory placement or address hashing.
    of_start = random.Random(f"{seed}/{point.switch}/{point.scenario_label}/{start}/mode")
    mode = of_start.random() < spec.mode_share
    luck = max(CAPACITY_FLOOR, 1 + spec.start_noise * of_start.gauss(0.0, 1.0))
    capacity = spec.capacity * max(CAPACITY_FLOOR, (1 + spec.noise * noise) * luck)
    capacity *= spec.modes if mode else 1.0
    shared = random.Random(f"{seed}/{point.point_id}/{start}/{n}/shared").random() < spec.shared_share
    capacity *= (spec.shared_ratio if shared else 1.0) * (spec.far_ratio if far else 1.0)
    capacity *= max(CAPACITY_FLOOR, 1 + FOREIGN_NOISE * host.gauss(0.0, 1.0)) if spec.foreign != "none" else 1.0
    return TrialDraw(
        capacity_pps=capacity,
        stalls=stall < spec.stall_share,
        disturbed=disturbed < max(spec.disturbed_share, spec.mode_disturbed if mode else 0.0),
        dies=dies < spec.dies_share,
        band="far" if far else "near",
        shared=shared,
        rng=rng,
        host=host,
    )


# The packet ledger of a simulated trial: pure arithmetic, every lost frame has one cause.

FLAT_OUT_FACTOR = 1.5
"""A generator without a limit offers this much more than the switch can take."""
HELD_PACKETS = 256
"""Frames of one flow that wait in rings while the switch stands; what comes after them is lost."""
LATE_NS = 50_000
"""A paced generator sends what was due within this time before; what is later is not sent."""


@dataclass(frozen=True, slots=True)
class SimLedger:
    """One trial: what each direction counts, what the switch dropped by ``port:reason``, how long it took, and when the
    pollers stood meanwhile."""

    directions: tuple[DirectionCounts, ...]
    drops: dict[str, int]
    standing: StandingSpans

    @property
    def duration_ns(self) -> int:
        """Return how long the sending took."""
        return self.standing.duration_ns

    @property
    def offered_packets(self) -> int:
        """Return the offered packets of all directions."""
        return sum(d.offered_packets for d in self.directions)


def account(spec: SimSpec, luck: TrialDraw, flows: tuple[Flow, ...], pps: float | None, duration_s: float) -> SimLedger:
    """Run the frames of one trial. ``pps`` is for each flow; None is flat out."""
    duration_s = int(duration_s * 1e9) / 1e9  # planed counts in whole ns
    duration_ns = round(duration_s * (1.0 if pps is None else spec.stretch) * 1e9)
    host = standing(spec.foreign, spec.root, luck.disturbed, luck.host, duration_ns)
    had, marks = host.had, [0, *accumulate(host.had_by_tenth)]
    total = max(marks[-1], 1)
    capacity = int(luck.capacity_pps / len(flows) * had * duration_ns / 1e9 + 1e-6)
    directions: list[DirectionCounts] = []
    drops: dict[str, int] = {}
    for i, flow in enumerate(flows):
        intended, offered = _sent(spec, luck, len(flows), pps, duration_s, host)
        taken = min(offered - _met_nobody(offered, host, had), capacity + spec.ring // len(flows))
        causes = {
            f"{flow.sender_port}:rx_missed": offered - taken,
            "fault": taken // spec.drop_one_in if spec.drop_one_in else 0,
            "loss": int(taken * spec.loss),
            "stall": spec.stall_packets if luck.stalls and i == 0 else 0,
        }
        left = offered
        for cause, count in causes.items():
            lost = min(count, left)
            left -= lost
            drops[cause] = drops.get(cause, 0) + lost  # 0 too: a counter that was read
        timely = min(left, capacity)  # the others are drained from rings later
        directions.append(
            DirectionCounts(
                flow.name,
                intended_packets=intended,
                offered_packets=offered,
                forwarded_packets=left,
                forwarded_by_tenth=tuple(timely * b // total - timely * a // total for a, b in pairwise(marks)),
                unsent_late_packets=intended - offered,
                attempted_packets=offered,
            )
        )
    return SimLedger(tuple(directions), drops, host)


def _sent(
    spec: SimSpec, luck: TrialDraw, flows: int, pps: float | None, duration_s: float, host: StandingSpans
) -> tuple[int, int]:
    """Return intended and offered packets of one flow. Slots are those that begin within the trial, as in planed."""
    most = spec.max_rate / flows
    if pps is None:
        rate = min(FLAT_OUT_FACTOR * luck.capacity_pps / flows, most)
        offered = int(rate * (duration_s - host.tester_ns / 1e9))
        return offered, offered
    intended = int(pps * duration_s + 1e-6)
    late_ns = sum(max(0, end - begin - LATE_NS) for begin, end in host.tester)
    sent = intended - min(intended, int(pps * late_ns / 1e9))
    return intended, sent if pps <= most else min(sent, int(most * duration_s))


def _met_nobody(offered: int, host: StandingSpans, had: float) -> int:
    """Return the frames of one flow that came while the switch stood, and that its rings did not hold."""
    sending_ns = host.duration_ns - host.tester_ns
    if not host.switch or sending_ns <= 0:
        return 0
    came = int(offered * max(0.0, 1 - had * host.duration_ns / sending_ns))
    return max(0, came - HELD_PACKETS * len(host.switch))


# Latency of a simulated switch: a base, a queue that grows with load, the wait for a batch to fill, a tail.

SAMPLES_MAX = 2000
"""Probes that are drawn one by one; more of them would only cost time."""
BURST = 8
"""Frames of a receive burst, for the jitter of burst means."""
SPREAD = 0.15
QUEUE_LOAD_MAX = 0.98
RING_FULL_FACTOR = 50.0
"""A switch that is overloaded forwards from full rings."""


def latency_record(
    spec: SimSpec,
    luck: TrialDraw,
    probes: int,
    load_pps: float,
    host: StandingSpans,
    held_ns: float,
    *,
    stamp_all: bool = False,
) -> LatencyRecord:
    """Return the latency at ``load_pps``, the load of all directions, from at most SAMPLES_MAX probes.

    With ``stamp_all`` they stand for all frames, and have burst means too. What comes in the first ``held_ns`` in which
    the switch stands, and what is under way when the tester begins to, is late by the rest of that time.
    """
    samples = _samples(spec, luck.rng, min(probes, SAMPLES_MAX), load_pps, luck.capacity_pps)
    samples = _late(samples, luck.host, host, held_ns, spec.latency_us * 1e3)
    bursts = [samples[i : i + BURST] for i in range(0, len(samples) * stamp_all, BURST)]
    means = [sum(burst) // len(burst) for burst in bursts]
    record = LatencyRecord(
        probes_sent=len(samples),
        probes_received=len(samples),
        histogram=_histogram(samples),
        probes_stamped=len(samples),
        ipdv=_histogram(max(1, abs(b - a)) for a, b in pairwise(samples)),  # HDR has no zero
    )
    if not stamp_all:
        return record
    return replace(
        record,
        stamped_packets=len(samples),
        burst_rises=_histogram(b - a for a, b in pairwise(means) if b >= a),
        burst_falls=_histogram(a - b for a, b in pairwise(means) if b < a),
    )


def _samples(spec: SimSpec, rng: random.Random, count: int, load_pps: float, capacity_pps: float) -> list[int]:
    base_ns = spec.latency_us * 1e3
    busy = load_pps / capacity_pps
    queue = busy / (1 - busy) / 2 if busy < QUEUE_LOAD_MAX else RING_FULL_FACTOR
    fill_ns = (spec.batch - 1) / load_pps * 1e9 if spec.batch > 1 and load_pps > 0 else 0.0
    drawn = (
        base_ns * rng.lognormvariate(0.0, SPREAD) + base_ns * queue * rng.random() + fill_ns * rng.random()
        for _ in range(count)
    )
    return [min(max(1, round(ns)), HIGHEST_NS) for ns in drawn]


def _late(
    samples: Sequence[int], rng: random.Random, host: StandingSpans, held_ns: float, under_way_ns: float
) -> list[int]:
    """Return the latencies with the time for which some of the probes met a poller that stood."""
    lengths = [end - begin for spans in (host.switch, host.tester) for begin, end in spans]
    windows = [min(held_ns, length) for length in lengths[: len(host.switch)]]
    windows += [min(under_way_ns, length) for length in lengths[len(host.switch) :]]
    share = sum(windows) / (sum(windows) + max(host.had * host.duration_ns, 1.0))
    late = []
    for ns in samples:
        if rng.random() < share:
            ((length, window),) = rng.choices(list(zip(lengths, windows, strict=True)), windows)
            ns = min(ns + round(length - window * rng.random()), HIGHEST_NS)
        late.append(ns)
    return late


def _histogram(values: Iterable[int]) -> str:
    return encode(sorted(Counter(values).items()))


DISTANCE_NS: dict[Band, float] = {"near": 62.0, "far": 261.0}
ADDITIONS_PER_CYCLE = 3.75
"""The additions per cycle of a core that no other hyperthread uses."""
SWITCH_CPU, TESTER_CPU = 0, 1
GAP_NS = 100_000
"""A tester that did not poll for longer counts a gap."""


class SimRunner:
    """A simulated switch that is up. Same spec, seed, past and start: same trials, but for the time of day.

    ``past`` are the earlier trials of this switch: numbering continues from them, so no random values repeat. They
    depend on the number of the start too, so a resumed run, which starts the switch again, differs from one that never
    stopped. ``now`` returns the time of day, for tests.
    """

    conditions = None

    def __init__(
        self, spec: SimSpec, seed: int = 1, past: Sequence[Trial] = (), now: Callable[[], str] | None = None
    ) -> None:
        self.spec = spec
        self._seed = seed
        self._alive = True
        self._done = Counter(t.point.point_id for t in past)
        self._now = now or utc_now

    def run(self, request: TrialRequest) -> Trial:
        """Run one trial. Never raises; a switch that dies makes an invalid trial."""
        if self.spec.line:
            request = request.on_line(line_rate_pps(request.mean_frame_bytes, self.spec.line))
        number = self._done[request.point.point_id]
        luck = draw(self.spec, self._seed, request.point, request.start, number, request.repetition)
        self._done[request.point.point_id] += 1
        self._alive = not luck.dies
        if luck.dies:
            return failed_trial(request, f"{self.spec.name} died (simulated)", self._now())
        flows = request.flows()
        ledger = account(self.spec, luck, flows, request.load.pps_per_direction, request.duration_s)
        probes = round(request.probe_rate_pps * request.duration_s * len(ledger.directions))
        load_pps = ledger.offered_packets * 1e9 / ledger.duration_ns
        held_ns = HELD_PACKETS * len(ledger.directions) * 1e9 / max(load_pps, 1.0)
        latency: LatencyRecord | None = None
        if probes and self.spec.latency_us:
            latency = latency_record(
                self.spec, luck, probes, load_pps, ledger.standing, held_ns, stamp_all=request.stamp_all
            )
        trial = trial_of(
            request,
            self._now(),
            offered_duration_ns=ledger.duration_ns,
            directions=ledger.directions,
            evidence=_evidence(self.spec, luck, ledger),
            switch=self._cycles(luck, ledger),
            latency=latency,
        )
        return judged(trial, request.profile)

    def alive(self) -> bool:
        """Return whether the last trial found it alive."""
        return self._alive

    def stop(self) -> None:
        """Do nothing: nothing was started."""

    def _cycles(self, luck: TrialDraw, ledger: SimLedger) -> SwitchCycles:
        """Return the counters of the switch: always busy at its capacity, more cycles per packet with far cores.

        A poll takes the frames that came during the one before: a part of its cycles is its own, and the fewer it
        finds, the more a frame costs. Its clock goes on while it stands: cycles of the poll that was interrupted,
        which is idle while the tester stands, too.
        """
        spec, slower = self.spec, self.spec.capacity / luck.capacity_pps
        if not spec.cycles:
            return SwitchCycles(drops=ledger.drops)
        total = round(spec.capacity * spec.cycles * ledger.duration_ns / 1e9)
        taken = ledger.offered_packets - sum(n for cause, n in ledger.drops.items() if cause.endswith(":rx_missed"))
        of_frame, host = spec.cycles - spec.poll / spec.burst, ledger.standing
        at_work, sent_to = total * host.had, total * (1 - host.tester_ns / host.duration_ns)
        left = at_work - taken * of_frame * slower
        batch = min(max(taken * spec.poll * slower / left, 1.0), spec.burst) if left > 0 else spec.burst
        busy = min(at_work, taken * (of_frame + spec.poll / batch) * slower)
        busy = round(busy / at_work * sent_to) if at_work else 0
        bursts = round(taken / batch) if spec.poll else None
        return SwitchCycles(
            busy_cycles=busy, idle_cycles=total - busy, packets=taken, bursts=bursts, drops=ledger.drops
        )


def _evidence(spec: SimSpec, luck: TrialDraw, ledger: SimLedger) -> Evidence:
    host, counted = ledger.standing, not ledger.standing.irq
    share = spec.shared_ratio if luck.shared else 1.0
    speeds = (share * ADDITIONS_PER_CYCLE, ADDITIONS_PER_CYCLE) if spec.shared_share else ()
    distance = CoreDistance(DISTANCE_NS[luck.band], luck.band, speeds)
    gaps_ns = [end - begin for begin, end in host.tester if end - begin > GAP_NS]
    return Evidence(
        threads=(
            _thread("switch", "sim", SWITCH_CPU, ledger.duration_ns, host.switch if counted else ()),
            _thread("tester", "sim-tester", TESTER_CPU, ledger.duration_ns, host.tester if counted else ()),
        ),
        poll_gaps=len(gaps_ns),
        poll_gap_sum_ns=sum(gaps_ns),
        poll_gap_max_ns=max(gaps_ns, default=0),
        poll_gap_threshold_ns=GAP_NS if gaps_ns else 0,
        stall_ns=max(round((1 - host.had) * ledger.duration_ns) - host.tester_ns, 0),
        distance_before=distance,
        distance_after=distance,
        tester_busy_share=0.8,
        interrupts={"sim": IRQS_PER_BURST * len(host.switch + host.tester)} if host.irq else None,
    )


def _thread(
    owner: Literal["switch", "tester"], name: str, cpu: int, duration_ns: int, waits: Sequence[Span]
) -> ThreadEvidence:
    wait_ns = length_ns(waits)
    return ThreadEvidence(owner, name, cpu, duration_ns - wait_ns, wait_ns, len(waits))
