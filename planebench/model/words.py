# SPDX-License-Identifier: BSD-3-Clause
"""Words and number formats that table, charts and page share, so that they cannot disagree."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Sequence

from planebench.model.records import Point, VerdictKind
from planebench.model.results import LatencySummary, Metric, Result
from planebench.model.scenario import Direction
from planebench.model.topology import Side

NOTHING = "\N{EN DASH}"
"""Stands where there is no figure."""
UNKNOWN = "unknown"
"""Stands where a switch does not tell its figure."""

ARROWS: dict[Direction, str] = {"unidirectional": "→", "bidirectional": "⇄", "reversed": "←"}
ASCII_ARROWS: dict[Direction, str] = {"unidirectional": "uni", "bidirectional": "bidi", "reversed": "rev"}

SIDES: dict[Side, str] = {"wire": "wire", "vnf": "VNF"}

METRICS: dict[Metric, str] = {
    "throughput": "throughput",
    "ndr": "NDR",
    "pdr": "PDR",
    "capacity": "capacity (estimated)",
    "cycles_per_packet": "cycles per packet",
    "latency_p50": "latency p50",
    "latency_p99": "latency p99",
    "outage": "outage",
}
"""Names of the metrics of comparisons."""

VERDICT_WORDS: dict[VerdictKind, str] = {
    VerdictKind.VALID: "the switch was saturated, or carried its load",
    VerdictKind.OVERLOAD: "latency of full queues: the switch lost more than 0.1 % of the frames at this load",
    VerdictKind.TESTER_LIMITED: "the tester, not the switch, was the bottleneck: throughput is a lower bound; latency "
    "was measured below the requested load",
    VerdictKind.LINE_RATE: "the switch forwarded all that the links carry: throughput is a lower bound",
    VerdictKind.FUNCTIONAL: "packet counts are valid; rates and latencies are not meaningful (VNF emulated or sharing "
    "a CPU)",
    VerdictKind.INVALID: "packet accounting is inconsistent, or a process crashed: no figure",
}


def mpps(pps: float | None) -> str:
    """Return packets per second as Mpps with two decimals, three below 0.1; an en dash for None.

    Below 0.001 three significant digits, which three decimals would round away: ``0.000450``.
    """
    if pps is None:
        return NOTHING
    value = pps / 1e6
    if 0 < value < 0.001:
        return f"{value:.{2 - math.floor(math.log10(value))}f}"
    return f"{value:.2f}" if value >= 0.1 or value == 0 else f"{value:.3f}"


def us(value: float | None) -> str:
    """Return microseconds to three significant digits, thousands apart by a thin space; an en dash for None and NaN."""
    if value is None or not math.isfinite(value):
        return NOTHING
    if value < 10:
        return f"{value:.2f}"
    if value < 100:
        return f"{value:.1f}"
    return count(round(value))


def percentiles(summary: LatencySummary) -> str:
    """Return p50 / p99 / p99.9 in microseconds."""
    return f"{us(summary.p50)} / {us(summary.p99)} / {us(summary.p99_9)}"


def interval(low: float | None, high: float | None, write: Callable[[float], str]) -> str:
    """Return an interval as ``[41.80, 42.40]``; empty where nothing is known."""
    if low is None and high is None:
        return ""
    return f"[{', '.join('unbounded' if end is None else write(end) for end in (low, high))}]"


def percent(share: float | None) -> str:
    """Return a share of 1 in percent: ``12 %``, one decimal below ten, ``< 0.1 %`` for a tiny share above 0."""
    if share is None:
        return NOTHING
    value = share * 100
    if 0 < value < 0.1:
        return "< 0.1 %"
    return f"{value:.1f} %" if 0 < abs(value) < 10 else f"{value:.0f} %"


def count(number: int) -> str:
    """Return a whole number with a thin space between thousands."""
    return f"{number:,}".replace(",", "\u202f")


def estimate(pps: float | None, low: float | None = None, high: float | None = None) -> str:
    """Return an estimated rate in Mpps, with half of its 95 % interval: ``est. 31 ±4%``; empty for None."""
    if pps is None:
        return ""
    value = pps / 1e6
    error = f" ±{math.sqrt(high / low) - 1:.0%}" if low and high else ""
    return (f"est. {value:.0f}" if value >= 10 else f"est. {value:.1f}") + error


def cycles(value: float | None) -> str:
    """Return the cycles per packet as a whole number; an en dash for None."""
    return NOTHING if value is None else f"{value:.0f}"


def significant(value: float, digits: int) -> str:
    """Return a value with so many significant digits, without an exponent below a million: ``41.8``, ``430``."""
    return f"{float(f'{value:.{digits}g}'):g}"


def batch(value: float | None) -> str:
    """Return the frames per batch, with one decimal below ten; an en dash for None."""
    if value is None:
        return NOTHING
    return f"{value:.1f}" if value < 9.95 else f"{value:.0f}"


def printable(text: str, keep: str = "") -> str:
    """Return a text with control, direction-changing and unencodable characters replaced by U+FFFD.

    Characters of ``keep`` stay.
    """
    hidden = {ord(c): "\ufffd" for c in set(text) if c not in keep and unicodedata.category(c) in ("Cc", "Cf", "Cs")}
    return text.translate(hidden) if hidden else text


def load_share(label: str) -> float | None:
    """Return the share in a load label: 0.5 of ``0.50`` or ``0.50 carried``; None for a rate."""
    try:
        return float(label.partition(" ")[0])
    except ValueError:
        return None


def load_words(label: str) -> str:
    """Return a load in words: ``0.50`` -> ``50 % of R+``; ``1Mpps`` with a space before the unit."""
    share, of = load_share(label), label.partition(" ")[2]
    if share is None:
        return re.sub(r"(?<=\d)([kMG]?(?:pps|b/s))\b", r" \1", printable(label))
    return f"{share * 100:g} % of {'the carried load' if of == 'carried' else printable(of) or 'R+'}"


def frame_size(size_bytes: int) -> str:
    """Return text such as ``64 B``."""
    return f"{size_bytes} B"


def frames(point: Point) -> str:
    """Return the kind of frames at a point: ``64 B``, ``imix 362 B`` (its mean)."""
    return frames_words(point.traffic, point.frame_size_bytes)


def frames_words(traffic: str, size_bytes: int) -> str:
    """Return the same as :func:`frames`; ``traffic`` is empty for plain frames."""
    return f"{printable(traffic)} {frame_size(size_bytes)}" if traffic else frame_size(size_bytes)


def point_words(point: Point) -> str:
    """Return everything but the switch: ``p2p → 64 B``, ``loopback-2 ⇄ 1024 B``."""
    return f"{printable(point.scenario_label)} {ARROWS[point.direction]} {frames(point)}"


def point_name(point: Point) -> str:
    """Return the name of a test point with its switch: ``vpp p2p → 64 B``."""
    return f"{point.switch} {point_words(point)}"


def mark(kind: VerdictKind) -> str:
    """Return the mark before a figure: ``≥`` for a lower bound, none for a valid one."""
    return "≥" if kind.is_bound else ""


def throughput(result: Result) -> str:
    """Return a throughput with its mark, in Mpps: ``15.32``, ``≥14.00``, ``~12.1``, an en dash.

    ``~``: an end of its interval is more than WIDE away.
    """
    if result.throughput_pps is None:
        return NOTHING
    ends = (result.throughput_low_pps, result.throughput_high_pps)
    wide = any(end is not None and abs(end / result.throughput_pps - 1) > WIDE for end in ends)
    return (mark(result.verdict.kind) or "~" * wide) + mpps(result.throughput_pps)


WIDE = 0.1
"""An interval with an end that is farther from its figure is marked."""


def reasons(texts: tuple[str, ...], limit: int = 160) -> str:
    """Return the first reason on one line, cut to ``limit`` characters, and how many more there are."""
    if not texts:
        return ""
    first = " ".join(texts[0].split())
    cut = first if len(first) <= limit else first[: limit - 1] + "…"
    return cut if len(texts) == 1 else f"{cut} (+ {len(texts) - 1} more)"


def several(number: int, name: str) -> str:
    """Return a number of things: ``1 trial``, ``2 trials``."""
    return f"{number} {name}{'s' * (number != 1)}"


def listed(names: Sequence[str]) -> str:
    """Return names as a list: ``a``; ``a and b``; ``a, b and c``."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
