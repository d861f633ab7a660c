# SPDX-License-Identifier: BSD-3-Clause
"""Sentences that table and page share: who leads, what latency does with load, what searches depart from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from planebench.model.header import Calibration
from planebench.model.results import Comparison, Ledger, LoadFinding, Result
from planebench.model.scenario import scenario_named
from planebench.model.words import METHODS, count, frame_size, load_words, percent, point_words, us
from planebench.report.derived import level_with_first, too_few_tell
from planebench.stats.ledger import describe, is_policy
from planebench.stats.ranking import Ranking, rank
from planebench.stats.searches import Settings

_SHARE = " of R+"


def headline(results: Sequence[Result], comparisons: Sequence[Comparison] = ()) -> str:
    """Who leads how often: by throughput, and by cycles a packet where the tester limits. Ties go to nobody."""
    rankings = [r for r in rank(results) if len(r.results) > 1]
    by_rate = _wins("Highest throughput", [r for r in rankings if r.by == "throughput"], comparisons)
    limited = "Lowest cycles a packet (the tester limits there)"
    by_cycles = _wins(limited, [r for r in rankings if r.by == "cycles"], comparisons)
    return " ".join(sentence for sentence in (by_rate, by_cycles) if sentence)


def band_words(results: Iterable[Result]) -> str:
    """The core distance that the throughputs of a run are of."""
    bands = Counter(r.band or "unknown" for r in results if r.throughput_pps is not None)
    if len(bands) < 2:
        return f"core distance: {next(iter(bands), 'unknown')}"
    return "core distance: " + ", ".join(f"{band} at {n} points" for band, n in bands.most_common())


def load_sentences(results: Iterable[Result]) -> list[str]:
    """What latency does with load, a sentence a finding: inversions first, then knees."""
    found = [(r, r.load_finding) for r in results if r.load_finding is not None]
    sentences = [text for r, finding in found for text in _inversion(r, finding)]
    return sentences + [text for r, finding in found for text in _knee(r, finding)]


def v2v_sentence(settings: Settings, results: Iterable[Result]) -> str:
    """That v2v has one latency although several loads were asked for; empty where that is not so."""
    asked = [load for load in str(settings.get("latency_loads") or "").split(",") if load.strip()]
    echoed = [r for r in results if scenario_named(r.point.scenario).latency_by_echo]
    loads = {s.load for r in echoed for s in r.latency}
    if len(asked) < 2 or len(loads) != 1:
        return ""
    scenario = echoed[0].point.scenario
    return f"{scenario} latency is taken at the fixed rate of {load_words(*loads)} (METHODOLOGY), not along loads"


def deviations(results: Iterable[Result]) -> list[str]:
    """Every deviation from a standard once, after the methods it holds for: ``NDR, PDR: trials of 0.1 s; ...``."""
    methods: dict[str, list[str]] = {}
    for search in (s for r in results for s in r.searches):
        for text in search.deviations:
            names = methods.setdefault(text, [])
            name = METHODS.get(search.method, search.method)
            if name not in names:
                names.append(name)
    return [f"{', '.join(names)}: {text}" for text, names in methods.items()]


def floor_sentence(calibration: Calibration | None, sizes: Iterable[int]) -> str:
    """The latency floor of the tester for the frame sizes of a run: ``64 B 1.20 / 3.00 µs``. Empty if unknown."""
    floors = [f for size in sorted(set(sizes)) if calibration and (f := calibration.floor(size)) is not None]
    if not floors:
        return ""
    each = ", ".join(f"{frame_size(f.frame_size_bytes)} {us(f.p50_ns / 1e3)} / {us(f.p99_ns / 1e3)}" for f in floors)
    return f"latency floor of the tester, p50 / p99 in µs: {each}"


def unexplained_sentences(results: Iterable[Result]) -> list[str]:
    """Points of which frames are missing that no counter accounts for, where the switch counts its drops."""
    return [
        f"{r.point.switch} {point_words(r.point)}: {describe(r.ledger)}"
        for r in results
        if r.ledger is not None and r.ledger.counted and r.ledger.unexplained_packets
    ]


def policy_sentences(results: Iterable[Result]) -> list[str]:
    """Points of which network functions dropped frames of their own accord: these are not lost by the switch."""
    found = []
    for r in results:
        losses = [loss for loss in r.ledger.losses if is_policy(loss)] if r.ledger is not None else []
        if r.ledger is not None and losses:
            share = percent(sum(loss.packets for loss in losses) / max(r.ledger.offered_packets, 1))
            causes = ", ".join(f"{count(loss.packets)} {loss.cause}" for loss in losses)
            found.append(f"{_who(r)}: network functions dropped {share} of the frames, not the switch: {causes}")
    return found


def unexplained_words(ledger: Ledger) -> str:
    """The number; what it is worth where the switch does not count its drops."""
    number = count(ledger.unexplained_packets)
    return number if ledger.counted or not ledger.unexplained_packets else f"{number} (not all count drops)"


def _wins(what: str, rankings: Sequence[Ranking], comparisons: Sequence[Comparison]) -> str:
    if not rankings:
        return ""
    clear = [r for r in rankings if not level_with_first(r, comparisons)]
    parts = [f"{name} in {n}" for name, n in Counter(r.first.point.switch for r in clear).most_common()]
    few = sum(too_few_tell(r, comparisons) for r in rankings)
    if close := len(rankings) - len(clear) - few:
        parts.append(f"too close to call in {close}")
    if few:
        parts.append(f"too few trials count in {few}")
    plural = "" if len(rankings) == 1 else "s"
    return f"{what}, over {len(rankings)} comparison{plural}: {', '.join(parts)}."


def _inversion(result: Result, finding: LoadFinding) -> Iterator[str]:
    if finding.inversion is None or finding.inversion_ratio is None:
        return
    low, high = (load_words(label) for label in finding.inversion)
    shares = low.endswith(_SHARE) and high.endswith(_SHARE)
    yield (
        f"{_who(result)}: {low} is {finding.inversion_ratio:.1f} times slower than "
        f"{high.removesuffix(_SHARE) if shares else high}, as where frames wait for a batch"
    )


def _knee(result: Result, finding: LoadFinding) -> Iterator[str]:
    if finding.knee is not None:
        yield f"{_who(result)}: latency leaves its plateau above {load_words(finding.knee)}"


def _who(result: Result) -> str:
    return f"{result.point.switch} {point_words(result.point)}"
