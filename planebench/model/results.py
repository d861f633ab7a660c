# SPDX-License-Identifier: BSD-3-Clause
"""Results derived from trials: rates, searches, loss accounting, comparisons. They are never stored."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from planebench.model.reasons import ReasonCode
from planebench.model.records import L1_OVERHEAD_BYTES, PartKind, Point, SwitchCycles, TrafficSent, Verdict

LossPlace = Literal["wire ring", "vhost ring", "NIC", "switch", "VNF", "tester"]
"""The place of a loss: a full ring to the emulated NIC or to a VNF, or inside switch, VNF or tester."""

Metric = Literal["throughput", "capacity", "ndr", "pdr", "cycles_per_packet", "latency_p50", "latency_p99", "outage"]

AnswerKind = Literal["different", "same", "open", "untested"]
"""What a comparison ends in: different by a factor, the same within the margin, open, or without a test because its
error cannot be estimated, e.g. after one start."""


@dataclass(frozen=True, slots=True)
class Loss:
    """So many frames lost at one place for one cause, by the counter that says so."""

    place: LossPlace
    cause: str
    packets: int
    policy: bool = False
    """True if a network function dropped them by policy."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """sent = forwarded + losses + unexplained, exactly. ``unexplained`` is negative where counters claim too much."""

    offered_packets: int
    forwarded_packets: int
    losses: tuple[Loss, ...]
    counted: bool = True
    """True if the switch counts its drops; if not, unexplained losses may just be uncounted."""

    @property
    def lost_packets(self) -> int:
        """Return the packets that were offered and not forwarded."""
        return self.offered_packets - self.forwarded_packets

    @property
    def unexplained_packets(self) -> int:
        """Return the lost packets that no counter explains."""
        return self.lost_packets - sum(loss.packets for loss in self.losses)


@dataclass(frozen=True, slots=True)
class JitterSummary:
    """One definition of jitter, in microseconds, of ``samples`` values."""

    mean: float
    p50: float
    p99: float
    max: float
    samples: int


@dataclass(frozen=True, slots=True)
class BurstSummary:
    """Back-to-back frames (RFC 9004): the longest burst without loss, and the buffer it implies."""

    rate_pps: float
    """Rate within a burst, all directions: the highest the tester keeps over this wire."""
    mean_packets: float
    min_packets: int
    max_packets: int
    stddev_packets: float
    repetitions: int
    buffer_ns: float
    """RFC 9004 section 6.4: implied buffer time, corrected for what was forwarded while the burst came in."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of one search on one point. Rates are aggregates of all directions.

    ``lower_pps`` is the highest load that met the goal, as offered, ``upper_pps`` the lowest that did not; either may
    be unknown. They are apart by the resolution of the search, which tells nothing of how starts differ.
    ``complete`` is False for a search that was interrupted or could not go on: the bounds are those so far.
    """

    point: Point
    method: str
    verdict: Verdict
    complete: bool
    repetition: int = 0
    """Each repetition is in a start of its own."""
    lower_pps: float | None = None
    upper_pps: float | None = None
    conditional_pps: float | None = None
    """Forwarding rate at the lower bound."""
    trials: tuple[int, ...] = ()
    deviations: tuple[str, ...] = ()
    """In what the search departs from its standard, one sentence each."""
    burst: BurstSummary | None = None
    start: int | None = None
    """The start of the switch that it ended in; None for that of its repetition."""

    @property
    def of_start(self) -> int:
        """Return the start that it is a figure of."""
        return self.repetition if self.start is None else self.start

    @property
    def is_bound(self) -> bool:
        """Return whether the switch may do more than the lower bound: no load failed, or not for the switch."""
        others = self.verdict.kind.is_bound or self.verdict.has(ReasonCode.GAPS_AT_BOUND)
        return others or (self.lower_pps is not None and self.upper_pps is None)


@dataclass(frozen=True, slots=True)
class SearchFigure:
    """What a search for a rate came to over its starts: the geometric mean of their lower bounds.

    ``low_pps``, ``high_pps``: the 95 % interval from the noise between starts, of three and more of them; ``high_pps``
    is None for a lower bound, too.
    """

    method: str
    pps: float
    starts: int
    is_bound: bool
    low_pps: float | None = None
    high_pps: float | None = None


@dataclass(frozen=True, slots=True)
class Stratum:
    """The throughput of the trials that had one thing in common: ``near`` or ``far`` cores, a core alone or shared."""

    name: str
    throughput_pps: float
    trials: int


@dataclass(frozen=True, slots=True)
class LoadFinding:
    """The change of latency with load. Loads are labels as in LatencySummary, in rising order.

    ``inversion``: (low load, higher load) where the low load is slower: frames wait for a batch. ``knee``: the highest
    load before latency leaves its plateau; None where fewer than five loads count, or it never leaves it.
    """

    inversion: tuple[str, str] | None = None
    inversion_ratio: float | None = None
    knee: str | None = None


@dataclass(frozen=True, slots=True)
class PartSummary:
    """One part of the way of the probes, in microseconds; ``share`` of the mean latency, 0..1.

    ``low`` and ``high`` bound the mean that is the part's own, as in AnatomyPart.
    """

    name: str
    kind: PartKind
    mean: float
    p50: float
    p99: float
    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class AnatomySummary:
    """The latency breakdown of one direction at one load. Without parts, ``problem`` is the reason.

    ``left_out``: trials whose parts did not add up to the whole.
    """

    direction: str
    probes: int
    not_joined: dict[str, int]
    parts: tuple[PartSummary, ...]
    problem: str = ""
    left_out: int = 0

    @property
    def mean(self) -> float:
        """Return mean latency of the joined probes, in microseconds: the sum of the parts."""
        return sum(part.mean for part in self.parts)

    def share(self, kind: PartKind) -> float:
        """Return the share of all parts of a kind."""
        return sum(part.share for part in self.parts if part.kind == kind)

    def bounds(self, kind: PartKind) -> tuple[float, float] | None:
        """Return the least and the greatest share that is a kind's own; None without a latency."""
        of = [part for part in self.parts if part.kind == kind]
        return (sum(p.low for p in of) / self.mean, sum(p.high for p in of) / self.mean) if self.mean else None


@dataclass(frozen=True, slots=True)
class HistogramSummary:
    """Figures of one histogram in microseconds."""

    samples: int
    mean: float
    stddev: float
    p50: float
    p90: float
    p99: float
    p99_9: float
    max: float


@dataclass(frozen=True, slots=True)
class LatencySummary(HistogramSummary):
    """Latency at one load, all valid trials' histograms merged. Microseconds.

    Figures are the switch's, of the probes that met nothing of what the host did; ``ipdv`` and ``burst_*`` are of all.
    """

    load: str
    intended_pps: float
    achieved_fraction: float
    """Forwarded / intended during the latency trials."""
    probes_sent: int
    verdict: Verdict
    probes_stamped: int = 0
    """Number of probes sent with a time stamp; missing probes bias the rest."""
    clock: str = "software"
    floor: float | None = None
    """The least latency that this clock shows of the tester alone; None where it was not calibrated."""
    software_p50: float | None = None
    """The latency of the same probes by the software clock; None where that is the clock."""
    software_p99: float | None = None
    ipdv: JitterSummary | None = None
    """RFC 3393: size of the difference of the delays of successive probes."""
    pdv: JitterSummary | None = None
    """Delay minus the least delay (RFC 5481 section 4.2)."""
    burst_jitter: JitterSummary | None = None
    """ic16: size of the difference of the mean delays of all frames of successive receive bursts; None if not all
    frames were stamped."""
    burst_signed: JitterSummary | None = None
    """The same differences with their signs, as ic16's generator keeps them."""
    anatomy: tuple[AnatomySummary, ...] = ()
    """The latency breakdown by direction, from trials with stamped probes."""
    p50_low: float | None = None
    """The 95 % interval of the percentile, from the noise between starts; None if that is not known."""
    p50_high: float | None = None
    p99_low: float | None = None
    p99_high: float | None = None
    with_host_p50: float | None = None
    """Of all probes, with those that met what the host did; None if there were none."""
    with_host_p50_low: float | None = None
    with_host_p50_high: float | None = None
    with_host_p99: float | None = None
    with_host_p99_low: float | None = None
    with_host_p99_high: float | None = None

    @property
    def software_share_p99(self) -> float | None:
        """Return the share that the software clock adds to its p99: its poll gaps and its drivers; None if unknown."""
        return 1 - self.p99 / self.software_p99 if self.software_p99 else None


@dataclass(frozen=True, slots=True)
class ControlSummary:
    """Control packets that a VNF answered under load, and the time to its reply; None without a reply."""

    sent: int
    received: int
    """By the VNF."""
    replies: int
    p50_us: float | None
    p99_us: float | None
    max_us: float | None


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a point: derived from its trials, never stored."""

    point: Point
    version: str
    verdict: Verdict
    throughput_pps: float | None
    """R+ per time that the pollers had: geometric mean over the starts of the switch, near and far cores in the shares
    of the run; a lower bound if tester-limited; None if no trial counts."""
    throughput_stddev_pps: float | None
    throughput_trials_pps: tuple[float, ...]
    loss_ratio: float | None
    latency: tuple[LatencySummary, ...]
    trials: tuple[int, ...]
    """Indices of the trials the result rests on."""
    invalid: int = 0
    """Trials of this point that did not take place: something died, or the counts do not add up."""
    throughput_median_pps: float | None = None
    strata: tuple[Stratum, ...] = ()
    """What explains a wide interval: the throughput by core distance, or by whose core was shared. Highest first."""
    counted_pps: float | None = None
    """The throughput as it was counted, with what the host took."""
    stood_share: float = 0.0
    """The mean share of its trials in which the host kept one of the pollers from its CPU."""
    disturbed: bool = False
    """True if the switch was disturbed more often than the others, so that both throughputs are in the interval."""
    capacity_estimate_pps: float | None = None
    """The rate at full batches if tester-limited, from cycles per packet fitted over batch sizes; else None."""
    capacity_low_pps: float | None = None
    """The 95 % interval of the estimate: the noise between starts and the error of the fit."""
    capacity_high_pps: float | None = None
    searches: tuple[SearchResult, ...] = ()
    search_figures: tuple[SearchFigure, ...] = ()
    """One of each search for a rate that came to one."""
    load_finding: LoadFinding | None = None
    ledger: Ledger | None = None
    """The loss accounting of the accepted saturating trials, added up."""
    mean_frame_bytes: float | None = None
    """Mean size of the frames that came through in these trials, with FCS; None in runs that did not count bytes."""
    sent: tuple[TrafficSent, ...] = ()
    """The traffic sent with a traffic profile in these trials, by direction."""
    fib_updates_per_s: float | None = None
    """Routes per second changed by the control of a VNF: the median of these trials, None without one."""
    control: ControlSummary | None = None
    """The control packets in these trials, added up; None without any."""
    switch: Mapping[str, float | None] = field(default_factory=dict)
    """The figures reported by the switch in these trials, by the names of ``planebench.model.results``."""
    throughput_low_pps: float | None = None
    """The 95 % interval of the throughput, from the noise between starts; None if that is not known."""
    throughput_high_pps: float | None = None
    """None for a lower bound, too."""
    cycles_low: float | None = None
    cycles_high: float | None = None
    starts: int = 0
    """Starts of the switch that the throughput rests on."""

    def search_figure(self, method: str) -> SearchFigure | None:
        """Return what a search for a rate came to; None if it came to none."""
        return next((figure for figure in self.search_figures if figure.method == method), None)

    @property
    def switch_cycles_per_packet(self) -> float | None:
        """Return the busy cycles per packet: the median over the trials of the throughput."""
        return self.switch.get("cycles_per_packet")

    @property
    def switch_busy_share(self) -> float | None:
        """Return the core utilization of the switch, 0 to 1: the median over the same trials."""
        return self.switch.get("busy_share")

    @property
    def throughput_l1_gbps(self) -> float | None:
        """Return the layer-1 rate, (frame + 20) x 8 bits as in the papers, from received bytes if counted."""
        if self.throughput_pps is None:
            return None
        size = self.point.frame_size_bytes if self.mean_frame_bytes is None else self.mean_frame_bytes
        return self.throughput_pps * (size + L1_OVERHEAD_BYTES) * 8 / 1e9


@dataclass(frozen=True, slots=True)
class Comparison:
    """b against a at one point: ``ratio`` = b / a with its 95 % interval, and the answer among all of the run.

    ``point`` is the point without its switch. ``low`` and ``high``: None where an end is open or nothing was tested.
    ``note`` says what a reader must know: lower bounds, few starts, what the answer depends on.
    """

    a: str
    b: str
    point: str
    metric: Metric
    ratio: float
    low: float | None
    high: float | None
    answer: AnswerKind
    trials_a: int
    trials_b: int
    load: str = ""
    """Load label of a latency metric."""
    note: str = ""
    more_starts: int | None = None
    """How many more starts of each side would probably decide an open comparison; None if too many, or unknown."""
    more_minutes: float | None = None
    detectable: float | None = None
    """The least difference, as a share of 1, that such a comparison finds with probability 80 %."""
    starts_a: int = 0
    starts_b: int = 0
    failed_a: int = 0
    """Trials of this point that did not take place, as of a switch that died."""
    failed_b: int = 0
    log_error: float | None = None
    """Standard error of the logarithm of ``ratio``, and its degrees of freedom; None where nothing was tested."""
    degrees: float | None = None
    counted_ratio: float | None = None
    """As counted, with what the host took, where a side is disturbed more often than the others; and its error."""
    counted_log_error: float | None = None
    unit: Literal["start", "run", "boot"] = "start"
    """What ``more_starts`` counts."""

    @property
    def distinguishable(self) -> bool:
        """Return whether the two differ significantly."""
        return self.answer == "different"


# The figures that follow from a switch's own counters, each described once (docs/design/adding.md).

FigureValues = list[float | None]

CORE_MHZ, WANTED_MHZ = "core_mhz", "wanted_mhz"
"""The clock of a switch's core as the core counts it, and the one that was asked for, with ``--cpu-mhz``."""


def median(values: FigureValues) -> float | None:
    """Return the median of the values that are known; None where none is."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def total(values: FigureValues) -> float | None:
    """Return the sum; None if one value is not known, because a part of the frames would be a wrong number."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


@dataclass(frozen=True, slots=True)
class SwitchFigure:
    """A figure that a switch reports of itself.

    ``of`` returns it for the counters of one trial; ``over`` combines the accepted trials of a result. ``counters`` are
    the names of further counters that it needs (``SwitchCycles.counters``): adapters report those that they have.
    """

    name: str
    of: Callable[[SwitchCycles], float | None]
    over: Callable[[FigureValues], float | None] = median
    counters: tuple[str, ...] = ()


SWITCH_FIGURES = (
    SwitchFigure("cycles_per_packet", lambda it: it.cycles_per_packet),
    SwitchFigure("busy_share", lambda it: it.busy_share),
    SwitchFigure("batch_size", lambda it: it.batch_size),
    SwitchFigure("received_packets", lambda it: it.packets, total),
    SwitchFigure("forwarded_packets", lambda it: it.forwarded_packets, total),
    SwitchFigure("cycles_per_batch", lambda it: it.busy_cycles / it.bursts if it.busy_cycles and it.bursts else None),
    SwitchFigure(
        "full_batch_share",
        lambda it: it.ratio("rx_full_bursts", "rx_bursts"),
        counters=("rx_full_bursts", "rx_bursts"),
    ),
    SwitchFigure("core_mhz", lambda it: it.counters.get(CORE_MHZ)),
)
"""The counter of the last one is the harness's (planebench.measure.conditions), not a switch's."""


FURTHER_COUNTERS = tuple(dict.fromkeys(name for figure in SWITCH_FIGURES for name in figure.counters))
"""The counters that figures need beside the fields of ``SwitchCycles``."""


def figures_of(trials: Iterable[SwitchCycles]) -> Mapping[str, float | None]:
    """Return every figure by its name, over the counters of some trials."""
    counted = list(trials)
    return {figure.name: figure.over([figure.of(one) for one in counted]) for figure in SWITCH_FIGURES}
