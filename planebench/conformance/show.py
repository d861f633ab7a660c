# SPDX-License-Identifier: BSD-3-Clause
"""A report of the suite for people and for programs."""

from __future__ import annotations

import dataclasses
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from planebench.conformance.model import ITSELF, SCHEMA_VERSION, CheckOutcome, CheckResult, Report
from planebench.conformance.suite import ALL_CHECKS

STYLES: dict[CheckOutcome, str] = {
    "pass": "green",
    "remark": "yellow",
    "fail": "bold red",
    "not supported": "dim",
    "not run": "dim",
}
WORDS: dict[CheckOutcome, str] = {
    "pass": "pass",
    "remark": "remark",
    "fail": "FAIL",
    "not supported": "not supported",
    "not run": "not run",
}


def print_report(report: Report, console: Console) -> None:
    """Print a table for each wire, then each failure, then remarks and what is not supported, then the verdict."""
    console.print(f"{report.title} {report.version}", markup=False, highlight=False, soft_wrap=True)
    for wire in report.wires:
        console.print(_table(report, wire))
    for failure in report.failures:
        _print_failure(failure, console)
    _print_reasons(report, console)
    counts = ", ".join(f"{report.counts[outcome]} {WORDS[outcome]}" for outcome in WORDS if report.counts[outcome])
    verdict = "conforms" if report.passed else "does not conform" if report.failures else "nothing was checked"
    words = f"{report.switch} {report.version}: {verdict} ({counts}) in {report.duration_s:.1f} s"
    console.print(words, markup=False, soft_wrap=True)


def print_failures(report: Report, console: Console) -> None:
    """Print only failures; nothing for an adapter that conforms."""
    for failure in report.failures:
        _print_failure(failure, console)
    if not (report.passed or report.failures):
        console.print(f"{report.switch}: nothing was checked", highlight=False, soft_wrap=True)


def _table(report: Report, wire: str) -> Table:
    pages = "hugepages" if report.hugepages else "no hugepages"
    table = Table(title=f"{wire} wire, {pages}", title_justify="left")
    table.add_column("check", no_wrap=True)
    by_place = {(r.check, r.scenario): r for r in report.results if r.wire in (wire, None)}
    for scenario in report.scenarios:
        table.add_column(scenario)
    for check in ALL_CHECKS:
        row = [by_place.get((check.name, name)) for name in report.scenarios]
        itself = by_place.get((check.name, ITSELF))
        if itself is not None:
            table.add_row(check.name, _cell(itself), *("" for _ in report.scenarios[1:]))
        elif any(row):
            table.add_row(check.name, *(_cell(result) for result in row))
    return table


def _cell(result: CheckResult | None) -> str:
    return f"[{STYLES[result.outcome]}]{WORDS[result.outcome]}[/]" if result else ""


def _place(result: CheckResult) -> str:
    return " ".join(filter(None, (result.check, result.scenario, result.wire)))


def _print_failure(failure: CheckResult, console: Console) -> None:
    console.print(f"\n[bold red]FAIL[/] {escape(_place(failure))}", soft_wrap=True)
    for name, text in (("expected", failure.expected), ("came", failure.came)):
        console.print(f"  {name}: {escape(text)}", highlight=False, soft_wrap=True)
    if failure.log:
        console.print("  last log lines of the switch:", highlight=False)
        for line in failure.log.splitlines():
            console.print(f"    {escape(line)}", highlight=False, style="dim", soft_wrap=True)


def _print_reasons(report: Report, console: Console) -> None:
    """Print each remark and reason once, with the places to which it applies."""
    places: dict[tuple[CheckOutcome, str, str], list[str]] = {}
    for result in report.results:
        for text in result.remarks:
            places.setdefault((result.outcome, result.check, text), []).append(result.scenario)
    for (outcome, check, text), scenarios in _merged(places).items():
        where = ", ".join(dict.fromkeys(scenarios))
        console.print(f"{WORDS[outcome]}: {check} ({where}): {escape(text)}", highlight=False, soft_wrap=True)


def _merged(places: dict[tuple[CheckOutcome, str, str], list[str]]) -> dict[tuple[CheckOutcome, str, str], list[str]]:
    """Merge the entries of checks that have the same reason."""
    merged: dict[tuple[CheckOutcome, str, str], list[str]] = {}
    for (outcome, check, text), scenarios in places.items():
        same = [key for key in places if key[0] == outcome and key[2] == text]
        name = check if len(same) == 1 else f"{len(same)} checks"
        merged.setdefault((outcome, name, text), []).extend(scenarios)
    return merged


def to_document(report: Report) -> dict[str, Any]:
    """Return the report as JSON data."""
    return {
        "schema_version": SCHEMA_VERSION,
        "switch": report.switch,
        "title": report.title,
        "version": report.version,
        "binary": report.binary,
        "hugepages": report.hugepages,
        "wires": list(report.wires),
        "scenarios": list(report.scenarios),
        "passed": report.passed,
        "counts": dict(report.counts),
        "duration_s": round(report.duration_s, 3),
        "checks": [{"name": check.name, "proves": check.proves} for check in ALL_CHECKS],
        "results": [_result(result) for result in report.results],
    }


def _result(result: CheckResult) -> dict[str, Any]:
    document = dataclasses.asdict(result)
    return {**document, "remarks": list(result.remarks), "duration_s": round(result.duration_s, 3)}
