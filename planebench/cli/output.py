# SPDX-License-Identifier: BSD-3-Clause
"""``report``, ``export`` and ``figures``: what is made of a stored run."""

from __future__ import annotations

import json as json_module
import sys
from pathlib import Path
from typing import Any

from planebench.model.choices import unknown
from planebench.model.errors import UsageError
from planebench.report.derived import Derived, derive
from planebench.report.table import print_conditions, print_derived
from planebench.store import find_run, read_run

REPORT_FILE = "report.html"


def report(
    wanted: str,
    html: Path | None,
    runs_dir: Path | None,
    *,
    conditions: bool = False,
    json: bool = False,
    quiet: bool = False,
) -> None:
    """Print the table of a run, or only its conditions, write its page, and say where it is.

    As JSON: ``run``, ``report`` (the page), and what export has.
    """
    folder = find_run(runs_dir, wanted)
    derived = derive(read_run(folder))
    page = html or folder / REPORT_FILE
    if json:
        _print_json({"run": folder.name, "report": str(write_report(derived, page)), **_exported(derived)})
        return
    if not quiet:
        (print_conditions(derived.run) if conditions else print_derived(derived))
    write_report(derived, page)
    if not quiet:
        print(f"\nreport: {page}")


def _exported(derived: Derived) -> dict[str, Any]:
    from planebench.report.export import to_json

    document: dict[str, Any] = json_module.loads(to_json(derived.run))
    return document


def _print_json(document: dict[str, Any]) -> None:
    print(json_module.dumps(document, indent=1))


def write_report(derived: Derived, path: Path) -> Path:
    """Write the HTML page of a run. UsageError where it cannot be written."""
    from planebench.report.html import derived_html  # charts take a second to import

    return _write(path, derived_html(derived))


def export(wanted: str, format: str, out: Path | None, runs_dir: Path | None, *, json: bool = False) -> None:
    """Results of a run as JSON or CSV, to standard output or a file. ``json`` says again what format says."""
    from planebench.report.export import to_csv, to_json

    makers = {"csv": to_csv, "json": to_json}
    if format not in makers:
        raise unknown("format", format, tuple(makers))
    if json and format != "json":
        raise UsageError(f"export --json --format {format}: these contradict each other; give one of them")
    data = makers[format](read_run(find_run(runs_dir, wanted)))
    if out is not None:
        _write(out, data)
        return
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def figures(
    wanted: str, out: Path, formats: str, runs_dir: Path | None, *, json: bool = False, quiet: bool = False
) -> None:
    """Every chart of a run as files in ``out``; their paths are printed."""
    from planebench.report.images import chart_images

    run = read_run(find_run(runs_dir, wanted))
    paths = [str(path) for path in chart_images(run, out, tuple(item.strip() for item in formats.split(",")))]
    if json:
        _print_json({"figures": paths})
    elif not quiet:
        print("\n".join(paths))


def _write(path: Path, data: bytes) -> Path:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}; give a file in a folder you may write") from None
    return path
