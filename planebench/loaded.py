# SPDX-License-Identifier: BSD-3-Clause
"""Runs as data, for notebooks and scripts: :func:`planebench.load` (docs/library.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from planebench.analysis import tables
from planebench.analysis.compare import Derived, runs_compared
from planebench.analysis.conditions import check_comparable
from planebench.analysis.histogram import Counts, merge, percentile_ns, upper_edges_ns
from planebench.analysis.metrics.column import TableRow
from planebench.analysis.metrics.results import POINT, latencies
from planebench.model.errors import UsageError, unknown
from planebench.model.header import Run, RunHeader
from planebench.store import find_run, read_run
from planebench.store.writer import write_parquet

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


# Loaded runs: their tables, made when they are needed.

PERCENTILES = (50.0, 90.0, 99.0, 99.9)
_POINT = tuple(column.name for column in POINT)
KEYS = (*_POINT, "load", "verdict", "verdict_reasons", "verdict_codes", "counts")
"""Columns of a distribution that come from the table ``latency``."""
CHOSEN_BY = (*_POINT, "load", "verdict", "counts")

_Columns = Mapping[str, NDArray[Any]]


class Loaded:
    """One run, or several in the same tables (column ``run_id``). A table is made once, when it is asked for.

    Every figure has its verdict in the same row; ``counts`` says whether it may be shown as a result. Columns, units
    and what may change: docs/library.md. DataFrames and Arrow tables need ``planebench[data]``.
    """

    def __init__(self, sources: Iterable[Derived]) -> None:
        self._sources = tuple(sources)
        self._database = duckdb.connect()
        self._relations: dict[str, duckdb.DuckDBPyRelation] = {}
        self._frames: dict[str, pd.DataFrame] = {}

    def __repr__(self) -> str:
        lines = []
        for run in (source.run for source in self._sources):
            status = "killed or still running" if run.finished is None else run.finished.status
            lines.append(f"{run.header.run_id}: {', '.join(run.switch_labels)}; {len(run.trials)} trials, {status}")
        return "\n".join(lines)

    @property
    def runs(self) -> tuple[Loaded, ...]:
        """Return each run alone."""
        return tuple(Loaded([source]) for source in self._sources)

    @property
    def header(self) -> RunHeader:
        """Return the header: switches, versions, host, settings. Raises UsageError for several runs."""
        return self._only("header").run.header

    @property
    def raw(self) -> Run:
        """Return the stored records themselves. UsageError for several runs."""
        return self._only("raw").run

    @property
    def results(self) -> pd.DataFrame:
        """Return a row a point: throughput, loss, cycles per packet."""
        return self.frame("results")

    @property
    def trials(self) -> pd.DataFrame:
        """Return one row per trial and direction."""
        return self.frame("trials")

    @property
    def latency(self) -> pd.DataFrame:
        """Return a row a result and load: percentiles and jitter in us."""
        return self.frame("latency")

    @property
    def comparisons(self) -> pd.DataFrame:
        """Return a row a pair of switches of one run, point and metric. Two runs: :meth:`compare`."""
        return self.frame("comparisons")

    def frame(self, name: str) -> pd.DataFrame:
        """Return a table as a DataFrame, the same object each time. Raises UsageError for an unknown table."""
        if name not in self._frames:
            self._frames[name] = tables.frame(self.arrow(name))
        return self._frames[name]

    def arrow(self, name: str) -> pa.Table:
        """Return a table as an Arrow table. UsageError for a name that is none, NotInstalledError without pyarrow."""
        return tables.arrow(self.relation(name))

    def relation(self, name: str) -> duckdb.DuckDBPyRelation:
        """Return a table as a DuckDB relation, for SQL: ``run.relation("trials").aggregate("verdict, count(*)")``."""
        if name not in self._relations:
            self._relations[name] = tables.relation(name, self._sources, self._database)
        return self._relations[name]

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return a table as plain dictionaries."""
        return tables.rows(name, self._sources)

    def histogram(self, **where: Any) -> pd.DataFrame:
        """Return the latency distribution of every result and load that matches, a row a bucket, valid trials merged.

        ``where``: columns of ``latency``, as ``switch="planed", load=["0.50", "0.99"]``. Columns: those of the point,
        load, verdict, counts, ``latency_us`` (upper edge of the bucket), ``probes``, ``percentile``. UsageError where
        nothing matches.
        """

        def buckets(counts: Counts) -> _Columns:
            edges, probes = upper_edges_ns(counts)
            share = np.cumsum(probes) / probes.sum()
            return {"latency_us": edges / 1e3, "probes": probes, "percentile": share * 100}

        return self._distribution(where, buckets)

    def percentiles(self, wanted: Sequence[float] = PERCENTILES, **where: Any) -> pd.DataFrame:
        """Return the given percentiles (0 to 100) of every latency that matches ``where``, as in :meth:`histogram`."""
        for value in wanted:
            if not 0 < value <= 100:
                raise UsageError(f"percentile {value:g} is not valid. Valid: above 0, at most 100, e.g. 99.9")

        def chosen(counts: Counts) -> _Columns:
            values = [percentile_ns(counts, value / 100) / 1e3 for value in wanted]
            return {"percentile": np.array(wanted, dtype=float), "latency_us": np.array(values)}

        return self._distribution(where, chosen)

    def _distribution(self, where: Mapping[str, Any], columns: Callable[[Counts], _Columns]) -> pd.DataFrame:
        import pandas as pd

        latency = self.latency
        items = [(source, item) for source in self._sources for item in latencies(source)]
        parts = []
        mask = np.ones(len(latency), dtype=bool)
        for key, value in where.items():
            if key not in CHOSEN_BY:
                raise unknown("column to choose by", key, CHOSEN_BY)
            values = list(value) if isinstance(value, list | tuple | set) else [value]
            mask &= latency[key].isin(values).to_numpy(dtype=bool)
        if not mask.any():
            there = {key: sorted(map(str, latency[key].unique())) for key in where or ("load",)}
            raise UsageError(f"no latency {_words(where)}. There are: {_words(there)}")
        for position in np.flatnonzero(mask):
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

    def compare(self, *, force: bool = False) -> pd.DataFrame:
        """Return the second of two loaded runs against the first, with the columns of ``comparisons``.

        UsageError if there are not two, or if they differ in what must match, unless ``force``.
        """
        if len(self._sources) != 2:
            raise UsageError(
                f"{len(self._sources)} runs are loaded; to compare give two: planebench.load('baseline', 'latest')"
            )
        a, b = self._sources
        check_comparable(a.run.header, b.run.header, "force=True", forced=force)
        table = tables.table_named("comparisons")
        found = runs_compared([a], [b]).comparisons
        rows = [table.row(TableRow(run=b.run, comparison=it)) for it in found]
        return tables.frame(tables.arrow(tables.fill_table(duckdb.connect(), "comparisons", table.types, rows)))

    def parquet(self, folder: str | Path) -> tuple[Path, ...]:
        """Write every table as ``folder/<table>.parquet``; returns the files. UsageError where that cannot be."""
        where = Path(folder)
        return tuple(write_parquet(self.relation(name), where / f"{name}.parquet") for name in tables.TABLES)

    def _only(self, what: str) -> Derived:
        if len(self._sources) != 1:
            raise UsageError(
                f"{len(self._sources)} runs are loaded, but {what} belongs to one run: use e.g. .runs[0].{what}"
            )
        return self._sources[0]


def load(*wanted: str | Path, runs_dir: str | Path | None = None) -> Loaded:
    """Load runs; see :func:`planebench.load`."""
    folder = None if runs_dir is None else Path(runs_dir)
    paths = [find_run(folder, str(one)) for one in wanted or ("latest",)]
    for path in paths:
        if [other.resolve() for other in paths].count(path.resolve()) > 1:
            raise UsageError(f"run {path.name} is given twice, so its rows would be counted twice. Give it once")
    return Loaded(Derived(read_run(path)) for path in paths)


def _words(where: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in where.items()) or "at all"
