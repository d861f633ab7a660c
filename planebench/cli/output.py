# SPDX-License-Identifier: BSD-3-Clause
"""``report``, ``export`` and ``figures``: what is made of a stored run."""

from __future__ import annotations

import sys
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


def figures(wanted: str, out: Path, formats: str, runs_dir: Path | None) -> None:
    """Every chart of a run as files in ``out``."""
    from planebench.report.images import chart_images

    run = read_run(find_run(runs_dir, wanted))
    for path in chart_images(run, out, tuple(item.strip() for item in formats.split(","))):
        print(path)


def _write(path: Path, data: bytes) -> Path:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}; give a file in a folder you may write") from None
    return path
