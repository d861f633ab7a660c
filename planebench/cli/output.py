# SPDX-License-Identifier: BSD-3-Clause
"""``report`` and ``export``: what is made of a stored run."""

from __future__ import annotations

import json as json_module
import sys
from pathlib import Path

from planebench.analysis.compare import Derived
from planebench.cli.options import complain, print_json
from planebench.model.errors import INCONCLUSIVE, UsageError, unknown
from planebench.report.terminal.screen import print_where
from planebench.report.terminal.table import print_screen, print_table
from planebench.store import find_run, read_run
from planebench.store.writer import write_output, write_parquet

REPORT_FILE = "report.html"
TABLES_FOLDER = "tables"
PARQUET = "parquet"
SVG = "svg"
FORMATS = ("csv", "json", PARQUET, SVG)


def report(
    run: str,
    html: Path | None,
    runs: Path | None,
    *,
    everything: bool = False,
    json: bool = False,
    quiet: bool = False,
) -> None:
    """Print the last screen of a run, or everything; write its page, and say where it is.

    As JSON: ``run``, ``report`` (the page), and what export has.
    """
    folder = find_run(runs, run)
    derived = Derived(read_run(folder))
    page = html or folder / REPORT_FILE
    shown = not (json or quiet)
    if shown:
        (print_table if everything else print_screen)(derived)
    write_report(derived, page, named=html is not None)
    if json:
        from planebench.report.export import to_json

        print_json({"run": folder.name, "report": str(page), **json_module.loads(to_json(derived))})
    elif shown and everything:
        print(f"\nreport: {page}")
    elif shown:
        print_where(f"report: {page}")


def write_report(derived: Derived, path: Path, *, named: bool = False) -> Path:
    """Write the HTML page of a run. ``named``, and errors, as write_output."""
    from planebench.report.html import to_html  # the terminal needs no charts

    return write_output(path, to_html(derived), named=named)


def export(
    run: str,
    format: str,
    table: str | None,
    out: Path | None,
    runs: Path | None,
    *,
    only: str | None = None,
    width_mm: float | None = None,
    json: bool = False,
    quiet: bool = False,
) -> int:
    """Export results of a run, or one table: JSON or CSV to standard output or a file, Parquet to files; or its charts.

    ``json`` says again what the format says, or prints the files of charts as JSON. Returns the exit code: INCONCLUSIVE
    where the run has none of the charts.
    """
    if format not in FORMATS:
        raise unknown("format", format, FORMATS)
    if format == SVG:
        if table is not None:
            raise UsageError(f"--table and --format {format} are mutually exclusive. Give one of them")
        from planebench.report.images import write_figures

        stored = read_run(find_run(runs, run))
        written = write_figures(Derived(stored), out or Path("figures"), (only or "").split(","), width_mm)
        if json:
            print_json({"figures": [str(path) for path in written]})
        elif written and not quiet:
            print("\n".join(str(path) for path in written))
        if not written:
            complain(f"run {stored.header.run_id} has no such figure")
            return INCONCLUSIVE
        return 0
    for name, value in {"--only": only, "--width-mm": width_mm}.items():
        if value is not None:
            raise UsageError(f"{name} applies only to charts: --format {SVG}")
    if json and format != "json":
        raise UsageError(f"--json and --format {format} are mutually exclusive. Give one of them")
    from planebench.analysis import tables

    folder = find_run(runs, run)
    source = Derived(read_run(folder))
    if format == PARQUET:  # ``out``: a folder, or the file of one table
        from planebench.loaded import Loaded

        found, files = Loaded([source]), out or folder / TABLES_FOLDER
        if out is None and files.is_symlink():
            raise UsageError(f"{files} is a link, which leads out of the run. Remove it, or give a folder with --out")
        if table is None:
            paths = found.parquet(files)
        else:
            paths = (write_parquet(found.relation(table), out or files / f"{table}.parquet"),)
        if not quiet:
            print("\n".join(map(str, paths)))
    elif format == "csv":
        _put(tables.table_csv(table or "results", source), out)
    elif table is not None:
        _put(tables.table_json(table, source), out)
    else:
        from planebench.report.export import to_json

        _put(to_json(source), out)
    return 0


def _put(data: bytes, out: Path | None) -> None:
    """Write to a file or to standard output."""
    if out is not None:
        write_output(out, data)
        return
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
