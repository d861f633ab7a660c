# SPDX-License-Identifier: BSD-3-Clause
"""Latency distributions as long tables: the whole histogram, or some percentiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from planebench.library.tables import Source
from planebench.metrics.results import POINT, latencies
from planebench.model.choices import unknown
from planebench.model.errors import UsageError
from planebench.stats.histogram import Counts, merge, percentile_ns, upper_edges_ns

if TYPE_CHECKING:
    import pandas as pd

_POINT = tuple(column.name for column in POINT)
KEYS = (*_POINT, "load", "verdict", "verdict_reasons", "verdict_codes", "counts")
"""Columns of a distribution that come from the table ``latency``."""

CHOSEN_BY = (*_POINT, "load", "verdict", "counts")

Columns = Mapping[str, NDArray[Any]]


def histogram(latency: pd.DataFrame, sources: Sequence[Source], where: Mapping[str, Any]) -> pd.DataFrame:
    """Return a row a bucket that holds probes: ``latency_us`` (its upper edge), ``probes``, ``percentile``, rising."""
    return _distribution(latency, sources, where, _buckets)


def percentiles(
    latency: pd.DataFrame, sources: Sequence[Source], where: Mapping[str, Any], wanted: Sequence[float]
) -> pd.DataFrame:
    """Return ``percentile`` and ``latency_us``. Raises UsageError for a percentile not above 0, or above 100."""
    for value in wanted:
        if not 0 < value <= 100:
            raise UsageError(f"percentile {value:g} is not valid. Valid: above 0, at most 100, e.g. 99.9")

    def chosen(counts: Counts) -> Columns:
        values = [percentile_ns(counts, value / 100) / 1e3 for value in wanted]
        return {"percentile": np.array(wanted, dtype=float), "latency_us": np.array(values)}

    return _distribution(latency, sources, where, chosen)


def _buckets(counts: Counts) -> Columns:
    edges, probes = upper_edges_ns(counts)
    share = np.cumsum(probes) / probes.sum()
    return {"latency_us": edges / 1e3, "probes": probes, "percentile": share * 100}


def _distribution(
    latency: pd.DataFrame, sources: Sequence[Source], where: Mapping[str, Any], columns: Callable[[Counts], Columns]
) -> pd.DataFrame:
    import pandas as pd

    items = [(source, item) for source in sources for item in latencies(source)]
    parts = []
    for position in _chosen(latency, where):
        source, item = items[position]
        if not item.summary.samples:
            continue
        found = columns(merge(source.histograms(item.result, item.summary)))
        length = len(next(iter(found.values())))
        keys = latency[list(KEYS)].iloc[np.full(length, position)].reset_index(drop=True)
        parts.append(keys.assign(**found))
    if not parts:
        raise UsageError(f"no latency {_words(where)} has a returned probe; see run.latency")
    return pd.concat(parts, ignore_index=True)


def _chosen(latency: pd.DataFrame, where: Mapping[str, Any]) -> NDArray[np.intp]:
    """Return the positions of the latencies that match; a list matches any value. Raises UsageError if none does."""
    mask = np.ones(len(latency), dtype=bool)
    for key, value in where.items():
        if key not in CHOSEN_BY:
            raise unknown("column to choose by", key, CHOSEN_BY)
        values = list(value) if isinstance(value, list | tuple | set) else [value]
        mask &= latency[key].isin(values).to_numpy(dtype=bool)
    if not mask.any():
        there = {key: sorted(map(str, latency[key].unique())) for key in where or ("load",)}
        raise UsageError(f"no latency {_words(where)}. There are: {_words(there)}")
    return np.flatnonzero(mask)


def _words(where: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in where.items()) or "at all"
