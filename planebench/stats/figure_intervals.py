# SPDX-License-Identifier: BSD-3-Clause
"""The intervals of single figures: throughput, cycles per packet and latency percentiles of each test point."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from statistics import fmean
from typing import Any

from planebench.model.records import Point
from planebench.model.results import Result, SearchFigure
from planebench.stats.capacity import Capacity
from planebench.stats.counting import latency_counts
from planebench.stats.noise import Estimate, Noise
from planebench.stats.searches import lower_bounds, widths, with_a_rate
from planebench.stats.starts import Blocks, by_start, geometric_mean, noise_of_sides

Ends = tuple[float | None, float | None]

SEARCH_STARTS_MIN = 3
"""Starts from which a search has an interval. Searches may vary more than R+, whose noise alone would tell of fewer."""


@dataclass(frozen=True, slots=True)
class Percentiles:
    """The blocks of the percentiles of one latency."""

    p50: Blocks
    p99: Blocks
    with_host_p50: Blocks
    with_host_p99: Blocks


@dataclass(frozen=True, slots=True)
class Sampled:
    """A result with the figures of its starts. ``percentiles``: of each latency, in the order of the result."""

    result: Result
    throughput: Blocks
    as_counted: Blocks
    cycles: Blocks
    capacity: Capacity | None
    percentiles: tuple[Percentiles, ...]


def with_intervals(found: Sequence[Sampled]) -> Iterator[Result]:
    """Yield the results with 95 % intervals. The noise of a figure is estimated over all results of the run.

    That of a switch which is disturbed more often than the others spans its throughput with and without what the host
    took.
    """
    throughput = _noise((it.result.point, [it.throughput]) for it in found)
    as_counted = _noise((it.result.point, [it.as_counted]) for it in found)
    cycles = _noise((it.result.point, [it.cycles]) for it in found)
    names = [each.name for each in fields(Percentiles)]
    noise = {
        name: _noise((it.result.point, [getattr(of, name) for of in it.percentiles]) for it in found) for name in names
    }
    methods = dict.fromkeys(search.method for it in found for search in it.result.searches)
    searched = {method: _noise_of_search(method, found) for method in methods}
    for it in found:
        low, high = _ends(throughput, it.throughput)
        if it.result.disturbed and low is not None and high is not None:
            counted_low, counted_high = _ends(as_counted, it.as_counted)
            low, high = min(low, counted_low or low), max(high, counted_high or high)
        cycles_low, cycles_high = _ends(cycles, it.cycles)
        # What is left of the noise when batches are full is that of the cycles.
        capacity_low, capacity_high = (
            _ends(cycles, it.capacity.blocks, fit=it.capacity.fit) if it.capacity else (None, None)
        )
        latency = []
        for summary, of in zip(it.result.latency, it.percentiles, strict=True):
            ends: dict[str, Any] = {}
            for name in names if latency_counts(summary) else ():
                low_us, high_us = _ends(noise[name], getattr(of, name), 1e-3)
                if (figure := getattr(summary, name)) is not None and low_us is not None and high_us is not None:
                    # The figure is of all probes together, the interval of the mean of the starts.
                    ends |= {f"{name}_low": min(low_us, figure), f"{name}_high": max(high_us, figure)}
            latency.append(replace(summary, **ends))
        yield replace(
            it.result,
            throughput_low_pps=low,
            throughput_high_pps=None if it.result.verdict.kind.is_bound else high,
            cycles_low=cycles_low,
            cycles_high=cycles_high,
            capacity_low_pps=capacity_low,
            capacity_high_pps=capacity_high,
            latency=tuple(latency),
            search_figures=tuple(_search_figures(it.result, searched)),
        )


def _noise_of_search(method: str, found: Sequence[Sampled]) -> Noise:
    """Return the noise of a search with that of R+: searches are few, and starts differ alike."""
    return _noise(
        (it.result.point, (it.throughput, lower_bounds(with_a_rate(it.result.searches, method)))) for it in found
    )


def _search_figures(result: Result, noise: Mapping[str, Noise]) -> Iterator[SearchFigure]:
    """Yield the figure of each search for a rate. Its interval reaches over the bounds: the rate is between them."""
    for method, of_search in noise.items():
        ended = with_a_rate(result.searches, method)
        blocks = lower_bounds(ended)
        pps = geometric_mean(blocks)
        if pps is None:
            continue
        is_bound = any(search.is_bound for search in ended)
        low, high = _ends(of_search, blocks) if len(blocks) >= SEARCH_STARTS_MIN else (None, None)
        if high is not None:
            high = None if is_bound else high * math.exp(fmean(widths(ended)))
        yield SearchFigure(method, pps, len(blocks), is_bound, low, high)


def _noise(found: Iterable[tuple[Point, Sequence[Blocks]]]) -> Noise:
    return noise_of_sides(chain.from_iterable(((point, blocks) for blocks in several) for point, several in found))


def _ends(noise: Noise, blocks: Blocks, scale: float = 1.0, fit: Estimate | None = None) -> Ends:
    """Return both ends of the interval; None where nothing is known of the noise. ``fit``: an error that adds to it."""
    estimate = noise.estimate(by_start(blocks))
    if estimate is None:
        return None, None
    low, high = (estimate.minus(fit) if fit else estimate).interval()
    return low * scale, high * scale
