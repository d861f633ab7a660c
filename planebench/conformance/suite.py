# SPDX-License-Identifier: BSD-3-Clause
"""The suite: every check on every scenario and wire, one after the other, each result reported as it comes.

What it runs is named by a user; what it found is shown as a table, or as JSON.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from planebench.conformance import checks as undisturbed
from planebench.conformance import enduring
from planebench.conformance.model import (
    ITSELF,
    SCHEMA_VERSION,
    Case,
    Check,
    CheckOutcome,
    CheckResult,
    Failure,
    NotSupported,
    Remarks,
    Report,
)
from planebench.conformance.rig import Rig
from planebench.host.process import Supervisor
from planebench.measure.live import LiveSettings
from planebench.model.cpus import Cpus
from planebench.model.errors import PlanebenchError, UsageError, unknown
from planebench.model.scenario import SCENARIOS, scenarios_with
from planebench.model.scenarios import ALIASES
from planebench.model.wire import WIRES as ALL
from planebench.model.wire import parse_wire, split_wires, wire_name
from planebench.switches.adapter import Adapter, Situation, refusal_of

LOG_LINES = 12

STARTS = Check("starts", "It starts, opens its ports, and frames cross it both ways.", lambda rig: rig.start() or ())
CASE_CHECKS: tuple[Check, ...] = (STARTS, *undisturbed.CHECKS, *enduring.CHECKS)
ALL_CHECKS: tuple[Check, ...] = (*undisturbed.ITSELF_CHECKS, *CASE_CHECKS)
"""In the order in which they run and are shown."""
STYLES: dict[CheckOutcome, str] = {
    "pass": "green",
    "remark": "yellow",
    "fail": "bold red",
    "not supported": "dim",
    "not run": "dim",
}
WORDS: dict[CheckOutcome, str] = {outcome: "FAIL" if outcome == "fail" else outcome for outcome in STYLES}
ALL_WIRES = "all"
WIRES = (*ALL, ALL_WIRES)
_CHAINED = [name for name in scenarios_with("chain") if not SCENARIOS[name].two_switches]
CASES = {name: Case(name, name) for name in scenarios_with("none")} | {
    f"{name}-{n}": Case(f"{name}-{n}", name, n) for name in _CHAINED for n in range(1, SCENARIOS[name].vnfs_max + 1)
}
CASES["workers-2"] = Case("workers-2", "p2p", workers=2, checks=frozenset({"forwards", "counters", "overload"}))
CHECKS = {check.name: check for check in ALL_CHECKS}


def parse_cases(text: str) -> tuple[Case, ...]:
    """Return the cases in ``p2p,loopback-3``; loopback alone is loopback-1. Raises UsageError for an unknown one."""
    other = {name: f"{name}-1" for name in _CHAINED} | ALIASES
    return tuple(CASES[name] for name in _named("scenario", text, CASES, other))


def parse_wires(text: str | None, adapter: Adapter) -> tuple[str, ...]:
    """Return wires of the adapter, in our order: the first one, ``all``, or the named ones. Raises UsageError.

    A wire that needs arguments is used only where it is named, with them.
    """
    usable = tuple(wire for wire in ALL if wire in (adapter.wires if adapter.queues == 1 else adapter.queued_wires))
    bare = tuple(name for name in usable if not ALL[name].needs_arguments)
    if text is None:
        return bare[:1]
    if text == ALL_WIRES:
        return bare
    named = {wire_name(wire): parse_wire(wire) for wire in split_wires(text)}
    for name in (wire for wire in ALL if wire in named and wire not in usable):
        reason = refusal_of(adapter, Situation("p2p", name)) or f"{adapter.name} has no {name} wire"
        raise UsageError(f"{reason}. Valid: {', '.join(usable)}, {ALL_WIRES}")
    return tuple(named[name] for name in usable if name in named)


def parse_checks(text: str | None) -> frozenset[str]:
    """Return the names of checks; all of them without a text. Raises UsageError for an unknown one."""
    return frozenset(CHECKS if text is None else _named("check", text, CHECKS))


def _named(what: str, text: str, valid: Collection[str], short: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    """Return the names in ``a, b``, each once; ``short`` has names for which others stand. Raises UsageError."""
    names = dict.fromkeys(short.get(name, name) for name in map(str.strip, text.split(",")) if name)
    for name in names:
        if name not in valid:
            raise unknown(what, name, valid)
    return list(names)


@dataclass(frozen=True, slots=True)
class SuitePlan:
    """The checks to run, on an adapter, its scenarios and wires."""

    adapter: Adapter
    cases: tuple[Case, ...]
    wires: tuple[str, ...]
    cpus: Cpus
    settings: LiveSettings
    checks: frozenset[str] = frozenset(check.name for check in ALL_CHECKS)
    """Names; ``starts`` and ``leftovers`` always run."""

    @property
    def steps(self) -> int:
        each = sum(len(self.chosen(CASE_CHECKS, case)) for case in self.cases)
        return len(self.chosen(undisturbed.ITSELF_CHECKS)) + len(self.wires) * each

    def chosen(self, checks: Sequence[Check], case: Case | None = None) -> list[Check]:
        """Return the checks to run, of those that are for a case."""
        wanted = self.checks if case is None or case.checks is None else self.checks & case.checks
        return [check for check in checks if check.name in wanted | {"starts", "leftovers"}]


def run_suite(
    plan: SuitePlan, begun: Callable[[str], None], done: Callable[[CheckResult], None]
) -> tuple[CheckResult, ...]:
    """Run everything; tell of each check, as ``loopback-1 intact``, and of its result.

    Errors of a switch become results; only UsageError for a bad plan, and Ctrl-C, pass through.
    """
    results: list[CheckResult] = []
    for check in plan.chosen(undisturbed.ITSELF_CHECKS):
        begun(check.name)
        results.append(_judged(check, ITSELF, None, plan.adapter))
        done(results[-1])
    for wire in plan.wires:
        for case in plan.cases:
            results += _run_case(plan, case, wire, begun, done)
    return tuple(results)


def _run_case(
    plan: SuitePlan, case: Case, wire: str, begun: Callable[[str], None], done: Callable[[CheckResult], None]
) -> list[CheckResult]:
    results: list[CheckResult] = []
    with Supervisor() as supervisor:
        rig = Rig(plan.adapter, case, plan.cpus, replace(plan.settings, wire=wire), supervisor)
        try:
            refusal = unusable = rig.refusal()
        except Exception as error:  # as in _judged
            refusal, unusable = "", f"it cannot say what it refuses: {_words_of(error)}"
        skipped: CheckOutcome = "not supported" if refusal else "not run"
        try:
            checks = plan.chosen(CASE_CHECKS, case)
            for check in checks:
                begun(f"{wire} {case.name} {check.name}")
                if unusable:
                    result = CheckResult(check.name, case.name, wire, skipped, (unusable,))
                else:
                    result = check_on_rig(check, rig)
                results.append(result)
                done(result)
                if result.outcome == "fail" and check not in checks[-2:]:  # leftovers, the last, needs nothing up
                    try:  # the check left it in an unknown state
                        rig.stop()
                        rig.start()
                    except Exception as error:  # as in _judged
                        unusable = f"the switch did not start again after a failure: {_words_of(error)}"
        finally:
            rig.stop()
    return results


def check_on_rig(check: Check, rig: Rig) -> CheckResult:
    """Run one check on a rig that is up. A failure has the last log lines of every process of the switch."""
    case, wire = rig.case.name, rig.settings.wire
    if check.needs_vnf and not rig.topology.vnf_ports:
        return CheckResult(check.name, case, wire, "not supported", ("the scenario has no VNF",))
    result = _judged(check, case, wire, rig)
    if result.outcome != "fail":
        return result
    logs = []
    for path in rig.logs:
        try:
            lines = path.read_text(errors="replace").splitlines()
        except OSError:
            continue
        logs.append("\n".join([f"{path.stem}:", *lines[-LOG_LINES:]]))
    return replace(result, log="\n".join(logs))


def _judged(check: Check, case: str, wire: str | None, subject: Adapter | Rig) -> CheckResult:
    begun = time.monotonic()
    outcome: CheckOutcome = "pass"
    remarks: Remarks = ()
    more: dict[str, Any] = {}
    try:
        remarks = check.run(subject)
        outcome = "remark" if remarks else "pass"
    except NotSupported as error:
        outcome, remarks = "not supported", (str(error),)
    except Failure as failure:
        outcome, more = "fail", {"expected": failure.expected, "came": failure.came}
    except Exception as error:  # whatever a stranger's adapter does is found, and the suite goes on
        outcome, more = "fail", {"expected": check.proves, "came": _words_of(error)}
    return CheckResult(check.name, case, wire, outcome, remarks, duration_s=time.monotonic() - begun, **more)


def _words_of(error: Exception) -> str:
    """Return what an error says; ``TypeError: ... (file.py:12 in settings)`` of one that no adapter may raise."""
    if isinstance(error, PlanebenchError):
        return str(error)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno} in {frame.name})"


def print_report(report: Report, console: Console) -> None:
    """Print a table for each wire, then each failure, then remarks and what is not supported, then the verdict."""
    console.print(f"{report.title} {report.version}", markup=False, highlight=False, soft_wrap=True)
    pages = "hugepages" if report.hugepages else "no hugepages"
    for wire in report.wires:
        table = Table(title=f"{wire} wire, {pages}", title_justify="left")
        table.add_column("check", no_wrap=True)
        for scenario in report.scenarios:
            table.add_column(scenario)
        cells = {
            (result.check, result.scenario): f"[{STYLES[result.outcome]}]{WORDS[result.outcome]}[/]"
            for result in report.results
            if result.wire in (wire, None)
        }
        for check in ALL_CHECKS:
            row = [cells.get((check.name, name), "") for name in report.scenarios]
            row[0] = cells.get((check.name, ITSELF), row[0])
            if any(row):
                table.add_row(check.name, *row)
        console.print(table)
    for failure in report.failures:
        _print_failure(failure, console)
    # Each remark and reason once, with the checks and the places to which it applies.
    places: dict[tuple[CheckOutcome, str], tuple[dict[str, None], dict[str, None]]] = {}
    for result in report.results:
        for text in result.remarks:
            names, scenarios = places.setdefault((result.outcome, text), ({}, {}))
            names[result.check] = scenarios[result.scenario] = None
    for (outcome, text), (names, scenarios) in places.items():
        what = f"{len(names)} checks" if len(names) > 1 else next(iter(names))
        where = ", ".join(scenarios)
        console.print(f"{WORDS[outcome]}: {what} ({where}): {escape(text)}", highlight=False, soft_wrap=True)
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


def _print_failure(failure: CheckResult, console: Console) -> None:
    place = " ".join(filter(None, (failure.check, failure.scenario, failure.wire)))
    console.print(f"\n[bold red]FAIL[/] {escape(place)}", soft_wrap=True)
    for name, text in (("expected", failure.expected), ("came", failure.came)):
        console.print(f"  {name}: {escape(text)}", highlight=False, soft_wrap=True)
    if failure.log:
        console.print("  last log lines of the switch:", highlight=False)
        for line in failure.log.splitlines():
            console.print(f"    {escape(line)}", highlight=False, style="dim", soft_wrap=True)


def to_document(report: Report) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        **asdict(report),
        "passed": report.passed,
        "counts": dict(report.counts),
        "checks": [{"name": check.name, "proves": check.proves} for check in ALL_CHECKS],
    }
