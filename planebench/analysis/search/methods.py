# SPDX-License-Identifier: BSD-3-Clause
"""Every search, by name (docs/design/adding.md): for a highest load, by what its standard asks; for the longest burst,
and the carried load."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from planebench.analysis.search.method import (
    CSIT_WIDTH,
    RFC2544_TRIAL_S,
    SEARCH_STARTS,
    TRIAL_DURATION,
    Method,
    Parameter,
    highest_load,
    short_trials,
    wide_bounds,
)
from planebench.analysis.search.task import (
    Goal,
    Measure,
    SearchFinding,
    SearchSettings,
    SearchTask,
    explained_by_gaps,
    intended_packets,
)
from planebench.model.plan import R_PLUS
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import Verdict, VerdictKind
from planebench.model.results import BurstSummary

CSIT_TRIAL_S = 1.0
CSIT_TRIALS = 21
CSIT_EXCEED_RATIO = 0.5
CSIT_PDR_LOSS_RATIO = 0.005
BSWLV_TRIAL_S = 1.0
PDR_TRIALS_AFTER_NDR = 17
"""The trials of NDR answer most of what PDR asks."""

EXCEED_MARGIN = 1e-6
"""Added to an exceed ratio of (N-1)/N: sums of floats must not decide a tie."""


def csit_goal(settings: SearchSettings, loss_ratio: float) -> Goal:
    """Return the goal of FD.io CSIT: 21 trials of 1 s per load, half of which may exceed ``loss_ratio``.

    Shorter trials: as many of them. Longer ones: as many seconds.
    """
    trial_s = settings.duration_s or CSIT_TRIAL_S
    sum_s = settings.duration_sum_s or CSIT_TRIALS * min(trial_s, CSIT_TRIAL_S)
    return Goal(loss_ratio, CSIT_EXCEED_RATIO, trial_s, max(sum_s, trial_s), settings.relative_width or CSIT_WIDTH)


def _rfc2544(settings: SearchSettings) -> Goal:
    """Return the goal of RFC 2544 section 26.1: one long trial loses nothing."""
    trial_s = settings.duration_s or RFC2544_TRIAL_S
    return Goal(0.0, 0.0, trial_s, trial_s, settings.relative_width or CSIT_WIDTH)


def _bswlv(settings: SearchSettings) -> Goal:
    """Return the goal of ETSI GS NFV-TST 009 section 12.3.3: a load fails when max(r) trials in a row have lost."""
    n, trial_s = settings.max_r, settings.duration_s or BSWLV_TRIAL_S
    exceed = (n - 1) / n + EXCEED_MARGIN if n > 1 else 0.0
    return Goal(0.0, exceed, trial_s, n * trial_s, settings.relative_width or CSIT_WIDTH)


def _search(goal: Callable[[SearchSettings], Goal]) -> Callable[[Measure, SearchTask, SearchFinding], None]:
    """Return a search for ``goal`` by MLRsearch, which is imported at first use because that takes seconds."""

    def search(measure: Measure, task: SearchTask, found: SearchFinding) -> None:
        from planebench.analysis.search.mlr import search_goal

        search_goal(measure, task, found, goal(task.settings))

    return search


def _from_csit(settings: SearchSettings, of_pdr: bool) -> Iterator[str]:
    """Yield the departures from the goals of FD.io CSIT."""
    if of_pdr and settings.pdr_loss_ratio != CSIT_PDR_LOSS_RATIO:
        yield f"loss ratio {settings.pdr_loss_ratio:g}; CSIT takes {CSIT_PDR_LOSS_RATIO:g}"
    goal = csit_goal(settings, 0.0)
    trial_s, sum_s = goal.trial_s, goal.sum_s
    if trial_s != CSIT_TRIAL_S:
        yield f"trials of {trial_s:g} s; CSIT takes {CSIT_TRIAL_S:g} s"
    if sum_s != CSIT_TRIALS * CSIT_TRIAL_S:
        yield f"{sum_s:g} s of trials decide a load; CSIT takes {CSIT_TRIALS * CSIT_TRIAL_S:g} s"
    yield from (*wide_bounds(settings), *highest_load(settings))


def _from_tst009(settings: SearchSettings) -> Iterator[str]:
    """Yield the departures from ETSI GS NFV-TST 009 as RFC 9971 (MLRsearch) states its goal."""
    trial_s = settings.duration_s or BSWLV_TRIAL_S
    if trial_s < RFC2544_TRIAL_S:
        yield f"trials of {trial_s:g} s; RFC 9971 gives {RFC2544_TRIAL_S:g} s for the TST 009 goal"
    yield from (*wide_bounds(settings), *highest_load(settings))


NDR = Method(
    name="ndr",
    short_name="NDR",
    help="highest load of which at least half of the time is without loss",
    search=_search(lambda settings: csit_goal(settings, 0.0)),
    deviations=partial(_from_csit, of_pdr=False),
    expected_trials=lambda settings: 45,
    standard_s=CSIT_TRIAL_S,
)
PDR = Method(
    name="pdr",
    short_name="PDR",
    help="highest load of which at least half of the time loses at most pdr_loss_ratio",
    search=_search(lambda settings: csit_goal(settings, settings.pdr_loss_ratio)),
    deviations=partial(_from_csit, of_pdr=True),
    expected_trials=lambda settings: PDR_TRIALS_AFTER_NDR if "ndr" in settings.methods else 37,
    standard_s=CSIT_TRIAL_S,
)
RFC2544 = Method(
    name="rfc2544",
    short_name="RFC 2544",
    help="highest load of which one long trial loses nothing",
    search=_search(_rfc2544),
    deviations=lambda settings: (*short_trials(settings), *wide_bounds(settings), *highest_load(settings)),
    expected_trials=lambda settings: 7,
    standard_s=RFC2544_TRIAL_S,
)
BSWLV = Method(
    name="bswlv",
    short_name="BSwLV",
    help="highest load at which not all of max(r) trials lose",
    search=_search(_bswlv),
    deviations=_from_tst009,
    expected_trials=lambda settings: 4 * settings.max_r,
    standard_s=BSWLV_TRIAL_S,
    parameters=(
        Parameter("max_r", "max_r", int, "BSwLV max(r): number of lossy trials after which a load is declared failed."),
    ),
)


# Searches for something else than a highest load: back-to-back bursts, the carried load.

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
            text = (
                f"does not apply: {BURST_MAX_S:g} s at {rate / 1e6:.6g} Mpps, the highest load, are forwarded without "
                f"loss (forwarding rate at maximum offered load: {throughput_pps / 1e6:.6g} Mpps), so no frame is "
                "buffered"
            )
            why = Reason(ReasonCode.NOT_APPLICABLE, text, {"rate_pps": rate, "throughput_pps": throughput_pps})
            found.verdict = Verdict(VerdictKind.VALID, (why,))
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


def _from_rfc9004(settings: SearchSettings) -> Iterator[str]:
    """Yield the departures from RFC 9004, and from RFC 2544 section 26.4 that it updates."""
    if settings.burst_repetitions < RFC2544_REPETITIONS:
        yield f"{settings.burst_repetitions} repetitions; RFC 2544 asks for {RFC2544_REPETITIONS}"
    yield f"bursts of at most {BURST_MAX_S:g} s; RFC 9004 requires up to {RFC9004_BURST_MAX_S} s"
    yield "buffer time is corrected by the forwarding rate at maximum offered load; RFC 9004 uses RFC 2544 throughput"
    yield from highest_load(settings)


B2B = Method(
    name="b2b",
    short_name="back-to-back",
    help="longest burst without loss (back-to-back frames)",
    search=b2b,
    deviations=_from_rfc9004,
    expected_trials=lambda settings: 14 * settings.burst_repetitions,
    standard_s=0.5,
    figure="burst",
)


# The carried load: the highest of a few loads that loses next to nothing. Latencies are taken below it.

CARRIED_SHARES = (0.9, 0.7, 0.5, 0.3, 0.1)
"""Loads tried, as shares of the forwarding rate at maximum offered load."""
CARRIED_LOSS_RATIO = 0.001
"""A load is carried if a trial at it loses no more than this, or no more than came while the host kept pollers from
their CPUs: on a host that always does, no load would be carried."""
CARRIED_TRIAL_S = 0.2


def carried(measure: Measure, task: SearchTask, found: SearchFinding) -> None:
    """Lower the load from just below the highest forwarding rate until a trial loses next to nothing.

    One trial a load, also where the tester does not keep up: the latency trials that follow say what they carried.
    """
    found.loss_ratio = CARRIED_LOSS_RATIO
    top = measure(task.flat_out()).throughput_pps
    for share in CARRIED_SHARES:
        load = task.whole(share * top)
        found.max_load_pps = found.max_load_pps or load
        trial = measure(replace(task.ask(load, task.settings.duration_s or CARRIED_TRIAL_S), rough=True))
        if trial.loss_ratio <= CARRIED_LOSS_RATIO or explained_by_gaps(trial, CARRIED_LOSS_RATIO):
            found.lower_pps, found.conditional_pps = load, load * (1 - trial.loss_ratio)
            return
        found.upper_pps = load
    text = f"no load lost at most {CARRIED_LOSS_RATIO:.1%}, down to {load:g} pps"
    found.remarks += (Reason(ReasonCode.NO_LOAD_MET, text),)


CARRIED = Method(
    name="carried",
    short_name="carried",
    help="highest of a few loads that loses at most 0.1 %; latency can be taken at shares of it",
    search=carried,
    deviations=lambda settings: (),  # it has no standard to depart from
    expected_trials=lambda settings: 2,
    standard_s=CARRIED_TRIAL_S,
)


METHODS: dict[str, Method] = {it.name: it for it in (CARRIED, NDR, PDR, RFC2544, BSWLV, B2B)}
"""In the order in which they are run: an earlier one leaves trials that a later one can use."""


def short_name(name: str) -> str:
    """Return the short name of a search, or MRR; ``name`` itself for a search of another planebench."""
    if name == R_PLUS:
        return "MRR"
    return METHODS[name].short_name if name in METHODS else name


def load_name(of: str) -> str:
    """Return what a load is a share of, as its label has it: empty for R+, the short name of a search otherwise."""
    return "" if of == R_PLUS else short_name(of)


def parameters() -> tuple[Parameter, ...]:
    """Return the parameters of all searches, each once."""
    own = (parameter for method in METHODS.values() for parameter in method.parameters)
    return tuple(dict.fromkeys((TRIAL_DURATION, SEARCH_STARTS, *own)))
