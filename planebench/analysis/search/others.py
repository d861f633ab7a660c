# SPDX-License-Identifier: BSD-3-Clause
"""The searches for something else than a highest load: back-to-back bursts, the loss-rate curve, the carried load."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace

from planebench.analysis.search.method import RFC2544_TRIAL_S, Method, highest_load, short_trials
from planebench.analysis.search.task import (
    Measure,
    SearchFinding,
    SearchSettings,
    SearchTask,
    explained_by_gaps,
    intended_packets,
)
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import Trial, Verdict, VerdictKind
from planebench.model.results import BurstSummary, CurvePoint

BURST_MIN_PACKETS = 16
"""The fewest the tester can time."""
BURST_MIN_S = 2e-6
"""The shortest trial that is asked for, whatever the rate: twice what the tester takes."""
BURST_FIRST_PACKETS = 1024
BURST_GROWTH = 8
"""Factor of the bursts until one fails: a burst of seconds at an impossible rate gives no more information."""
BURST_MAX_S = 2.0
RFC2544_REPETITIONS = 50
RFC9004_BURST_MAX_S = 30
BURST_WIDTH = 0.01
"""Longest lossless and shortest lossy burst may differ by this share, or by one packet in each direction."""


def b2b(measure: Measure, task: SearchTask, found: SearchFinding) -> None:
    """Search the longest burst at the highest load, ``burst_repetitions`` times.

    Bursts are searched with loss verification (RFC 9004 section 6.2): one fails when max(r) of it have lost.
    """
    flat_out = measure(task.flat_out())
    throughput_pps = flat_out.throughput_pps
    rate = found.max_load_pps = task.max_load_pps(lambda ask: flat_out)
    longest: list[int] = []
    for _ in range(task.settings.burst_repetitions):
        packets = _longest(measure, task, rate)
        if packets is None:
            found.verdict = Verdict(VerdictKind.VALID, (_not_applicable(rate, throughput_pps),))
            return
        longest.append(packets)
        found.burst = summarise(longest, rate, throughput_pps)
    if not any(longest):
        shortest = _shortest(task, rate) * task.senders
        text = f"not even a burst of {shortest} frames at {rate / 1e6:.6g} Mpps gets through"
        found.remarks += (Reason(ReasonCode.NO_BURST, text),)


def summarise(packets: list[int], rate_pps: float, throughput_pps: float) -> BurstSummary:
    """Return the buffer time of RFC 9004 section 6.4: average burst / its rate.

    Corrected, it is implied x (1 - throughput / rate): frames forwarded during the burst needed no buffer.
    """
    mean = statistics.fmean(packets)
    return BurstSummary(
        rate_pps=rate_pps,
        mean_packets=mean,
        min_packets=min(packets),
        max_packets=max(packets),
        stddev_packets=statistics.stdev(packets) if len(packets) > 1 else 0.0,
        repetitions=len(packets),
        buffer_ns=mean / rate_pps * max(0.0, 1 - throughput_pps / rate_pps) * 1e9,
    )


def _longest(measure: Measure, task: SearchTask, rate_pps: float) -> int | None:
    """Return the packets of the longest burst without loss; 0 if there is none, None if the longest allowed is one."""
    n, shortest = task.senders, _shortest(task, rate_pps)
    limit = max(shortest, round(rate_pps * BURST_MAX_S / n))
    low, longest = shortest - 1, 0
    high = min(limit, max(shortest, BURST_FIRST_PACKETS // n))
    while (passed := _passes(measure, task, rate_pps, high * n)) is not None:
        if high == limit:
            return None
        low, longest, high = high, passed, min(limit, high * BURST_GROWTH)
    while high - low > max(1, BURST_WIDTH * high):
        middle = min(high - 1, max(low + 1, round(math.sqrt(max(low, 1) * high))))
        passed = _passes(measure, task, rate_pps, middle * n)
        if passed is None:
            high = middle
        else:
            low, longest = middle, passed
    return longest


def _shortest(task: SearchTask, rate_pps: float) -> int:
    """Return the shortest burst, in packets of each direction."""
    return math.ceil(max(BURST_MIN_PACKETS, rate_pps * BURST_MIN_S) / task.senders)


def _passes(measure: Measure, task: SearchTask, rate_pps: float, packets: int) -> int | None:
    """Return the packets of a burst without loss, in one of max(r) tries; None if all tries lost packets."""
    for _ in range(task.settings.max_r):
        trial = measure(task.ask(rate_pps, _duration_s(packets, rate_pps)))
        if trial.forwarded_packets >= intended_packets(trial):  # one with late frames is no burst
            return trial.forwarded_packets
    return None


def _duration_s(packets: int, rate_pps: float) -> float:
    """Return the time until the last packet is due, plus half a ns: rounding must not cost a packet."""
    return (math.ceil(packets / rate_pps * 1e9) + 0.5) / 1e9


def _not_applicable(rate_pps: float, throughput_pps: float) -> Reason:
    text = (
        f"does not apply: {BURST_MAX_S:g} s at {rate_pps / 1e6:.6g} Mpps, the highest load, are forwarded without "
        f"loss (forwarding rate at maximum offered load: {throughput_pps / 1e6:.6g} Mpps), so no frame is buffered"
    )
    return Reason(ReasonCode.NOT_APPLICABLE, text, {"rate_pps": rate_pps, "throughput_pps": throughput_pps})


def _burst_deviations(settings: SearchSettings) -> tuple[str, ...]:
    """Return the departures from RFC 9004, and from RFC 2544 section 26.4 that it updates."""
    found = []
    if settings.burst_repetitions < RFC2544_REPETITIONS:
        found.append(f"{settings.burst_repetitions} repetitions; RFC 2544 asks for {RFC2544_REPETITIONS}")
    found.append(f"bursts of at most {BURST_MAX_S:g} s; RFC 9004 requires up to {RFC9004_BURST_MAX_S} s")
    found.append(
        "buffer time is corrected by the forwarding rate at maximum offered load; RFC 9004 uses RFC 2544 throughput"
    )
    return (*found, *highest_load(settings))


B2B = Method(
    name="b2b",
    title="Back-to-back frames",
    short_name="back-to-back",
    help="longest burst without loss (back-to-back frames)",
    standard="RFC 9004",
    search=b2b,
    deviations=_burst_deviations,
    expected_trials=lambda settings: 14 * settings.burst_repetitions,
    standard_s=0.5,
    figure="burst",
)


# The carried load: the highest of a few loads that loses next to nothing. Latencies are taken below it.

SHARES = (0.9, 0.7, 0.5, 0.3, 0.1)
"""Loads tried, as shares of the forwarding rate at maximum offered load."""
LOSS_RATIO = 0.001
"""A load is carried if a trial at it loses no more than this, or no more than came while the host kept pollers from
their CPUs: on a host that always does, no load would be carried."""
TRIAL_S = 0.2


def carried(measure: Measure, task: SearchTask, found: SearchFinding) -> None:
    """Lower the load from just below the highest forwarding rate until a trial loses next to nothing.

    One trial a load, also where the tester does not keep up: the latency trials that follow say what they carried.
    """
    found.loss_ratio = LOSS_RATIO
    top = measure(task.flat_out()).throughput_pps
    for share in SHARES:
        load = task.whole(share * top)
        found.max_load_pps = found.max_load_pps or load
        trial = measure(replace(task.ask(load, task.settings.duration_s or TRIAL_S), rough=True))
        if trial.loss_ratio <= LOSS_RATIO or explained_by_gaps(trial, LOSS_RATIO):
            found.lower_pps, found.conditional_pps = load, load * (1 - trial.loss_ratio)
            return
        found.upper_pps = load
    text = f"no load lost at most {LOSS_RATIO:.1%}, down to {load:g} pps"
    found.remarks += (Reason(ReasonCode.NO_LOAD_MET, text),)


CARRIED = Method(
    name="carried",
    title="Carried load",
    short_name="carried",
    help="highest of a few loads that loses at most 0.1 %; latency can be taken at shares of it",
    standard="docs/terminology.md",
    search=carried,
    deviations=lambda settings: (),  # it has no standard to depart from
    expected_trials=lambda settings: 2,
    standard_s=TRIAL_S,
)


# Loss-rate curve, RFC 2544 section 26.3.

STEPS = 10
"""Steps of 10 % of the highest load."""
LOSSLESS_IN_A_ROW = 2


def curve(measure: Measure, task: SearchTask, found: SearchFinding) -> None:
    """Measure loss from the highest load down, until two successive trials lose nothing."""
    top = found.max_load_pps = task.max_load_pps(measure)
    duration_s = task.settings.duration_s or RFC2544_TRIAL_S
    for step in range(STEPS):
        load = task.whole(top * (STEPS - step) / STEPS)
        _note(measure(task.ask(load, duration_s)), load, found)
        if found.lower_pps is not None:
            return
    what = "no two successive loads were without loss" if found.curve[-1].loss_ratio == 0 else "no load met the goal"
    found.remarks += (Reason(ReasonCode.NO_LOAD_MET, f"{what}, down to the lowest of the curve, {load:g} pps"),)


def _note(trial: Trial, load: float, found: SearchFinding) -> None:
    """Note the bounds; loads come in falling order.

    The lower bound is the higher of two successive loads without loss, so lossy loads before are above it; one load
    without loss among lossy ones is luck.
    """
    found.curve += (CurvePoint(load, trial.throughput_pps, trial.loss_ratio),)
    if trial.loss_ratio > 0:
        found.upper_pps = load
        return
    row = found.curve[-LOSSLESS_IN_A_ROW:]
    if len(row) == LOSSLESS_IN_A_ROW and all(p.loss_ratio == 0 for p in row):
        found.lower_pps = found.conditional_pps = row[0].intended_pps


def _curve_deviations(settings: SearchSettings) -> tuple[str, ...]:
    """Return the departures from RFC 2544 sections 24 and 26.3."""
    return (*short_trials(settings, RFC2544_TRIAL_S), *highest_load(settings))


CURVE = Method(
    name="curve",
    title="Loss-rate curve",
    short_name="first loss",
    help="loss at falling loads (frame loss rate test)",
    standard="RFC 2544 section 26.3",
    search=curve,
    deviations=_curve_deviations,
    expected_trials=lambda settings: 5,
    standard_s=RFC2544_TRIAL_S,
)
