# SPDX-License-Identifier: BSD-3-Clause
"""``report``, ``export`` and ``figures``: what is made of a stored run."""

from __future__ import annotations

import sys
from json import dumps
from pathlib import Path

from planebench.model.choices import unknown
from planebench.model.errors import UsageError
from planebench.report.derived import Derived, derive
from planebench.report.table import print_conditions, print_derived
from planebench.store import find_run, read_run

REPORT_FILE = "report.html"


def report(wanted: str, html: Path | None, runs_dir: Path | None, *, conditions: bool = False) -> None:
    """Print the table of a run, or only its conditions, write its page, and say where it is."""
    folder = find_run(runs_dir, wanted)
    derived = derive(read_run(folder))
    if conditions:
        print_conditions(derived.run)
    else:
        print_derived(derived)
    print(f"\nreport: {write_report(derived, html or folder / REPORT_FILE)}")


def write_report(derived: Derived, path: Path) -> Path:
    """Write the HTML page of a run. UsageError where it cannot be written."""
    from planebench.report.html import derived_html  # charts take a second to import

    return _write(path, derived_html(derived))


def export(wanted: str, format: str, out: Path | None, runs_dir: Path | None) -> None:
    """Results of a run as JSON or CSV, to standard output or a file."""
    from planebench.report.export import to_csv, to_json

    makers = {"csv": to_csv, "json": to_json}
    if format not in makers:
        raise unknown("format", format, tuple(makers))
    data = makers[format](read_run(find_run(runs_dir, wanted)))
    if out is not None:
        _write(out, data)
        return
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def figures(
    wanted: str, out: Path, formats: str, only: str, width_mm: float | None, runs_dir: Path | None, *, json: bool
) -> None:
    """Every chart as files in ``out``; says which were written."""
    from planebench.report.image_files import write_figures

    run = read_run(find_run(runs_dir, wanted))
    written = write_figures(run, out, formats.split(","), only.split(","), width_mm)
    if json:
        files = [{"figure": w.key, "kind": w.kind, "title": w.title, "path": str(w.path)} for w in written]
        print(dumps({"run_id": run.header.run_id, "files": files}, ensure_ascii=False, indent=2))
        return
    for file in written:
        print(file.path)
    if not written:
        print(f"no figure of {run.header.run_id} is of that kind, or it has no trial that counts", file=sys.stderr)


def _write(path: Path, data: bytes) -> Path:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}; give a file in a folder you may write") from None
    return path
