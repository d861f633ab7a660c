# SPDX-License-Identifier: BSD-3-Clause
"""``planebench switch check``: the conformance suite on one adapter."""

from __future__ import annotations

import json as json_module
import sys
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.console import Console

from planebench.cli.bar import Bar
from planebench.conformance import Plan, Report, Result, run_suite
from planebench.conformance.cases import DEFAULT_CASES, parse_cases, parse_checks, parse_wires
from planebench.conformance.show import WORDS, print_failures, print_report, to_document
from planebench.host import facts as host_facts
from planebench.host.facts import HostFacts, cpus_of
from planebench.host.process import sweep_stale
from planebench.host.programs import Found, NotFound
from planebench.measure.live import LiveSettings
from planebench.measure.runner import SelfMeasured
from planebench.model.errors import INTERRUPTED, NotInstalledError, UsageError
from planebench.planed import require_planed
from planebench.running.machine import enough_hugepages, measuring, terminable
from planebench.switches.registry import get_adapter
from planebench.wiring.adapter import Adapter

__all__ = ["DEFAULT_CASES", "CheckOptions", "check_switch"]

RING_SIZE = 256


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """The command line of ``switch check``."""

    switch: str
    scenarios: str
    wires: str | None = None
    checks: str | None = None
    hugepages: bool | None = None
    json: bool = False
    quiet: bool = False


def check_switch(options: CheckOptions) -> int:
    """Run the suite and show what came of it. Exit code: 0, 1 if anything failed or nothing could be checked, 130.

    Raises UsageError and NotInstalledError before anything is started.
    """
    adapter = get_adapter(options.switch)
    found = _found(adapter)
    facts = host_facts.collect()
    plan = _plan(options, adapter, facts)
    sweep_stale()
    begun = time.monotonic()
    try:
        with terminable(), measuring(facts), Listener(plan.steps, options.quiet) as listener:
            results = run_suite(plan, listener)
    except KeyboardInterrupt:
        return INTERRUPTED
    report = Report(
        switch=options.switch,
        title=adapter.title,
        version=found.version,
        binary=str(found.binary),
        hugepages=plan.settings.hugepages,
        wires=plan.wires,
        scenarios=tuple(case.name for case in plan.cases),
        results=results,
        duration_s=time.monotonic() - begun,
    )
    _show(report, options)
    return 0 if report.passed else 1


def _found(adapter: Adapter) -> Found:
    if isinstance(adapter, SelfMeasured):
        raise UsageError(f"switch {adapter.name} forwards no packets, so there is nothing to check; name another")
    found = adapter.find()
    if isinstance(found, NotFound):
        raise NotInstalledError(f'switch "{adapter.name}" {found.words}')
    return found


def _plan(options: CheckOptions, adapter: Adapter, facts: HostFacts) -> Plan:
    cases, checks = parse_cases(options.scenarios), parse_checks(options.checks)
    wires = parse_wires(options.wires, adapter)
    if not (cases and wires):
        raise UsageError("nothing to check: name at least one scenario and one wire")
    settings = LiveSettings(
        planed=require_planed(),
        ring_size=RING_SIZE,
        hugepages=enough_hugepages(options.hugepages, facts, 1),
        max_frame_bytes=1518,
        wire=wires[0],
    )
    return Plan(adapter, cases, wires, cpus_of(facts), settings, checks)


def _show(report: Report, options: CheckOptions) -> None:
    if options.json:
        print(json_module.dumps(to_document(report), indent=1))
    elif options.quiet:
        print_failures(report, Console(stderr=True))
    else:
        print_report(report, Console(file=sys.stdout))


class Listener:
    """A bar with the time left on a terminal, a line a result elsewhere."""

    def __init__(self, steps: int, quiet: bool) -> None:
        self._bar = Bar(steps, quiet=quiet)

    def __enter__(self) -> Self:
        self._bar.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.__exit__(kind, error, trace)

    def working_on(self, text: str) -> None:
        """Show the check that begins."""
        self._bar.working_on(text)

    def done(self, result: Result) -> None:
        """Show the result of a check."""
        self._bar.advance()
        place = " ".join(filter(None, (result.wire, result.scenario, result.check)))
        outcome = f"{WORDS[result.outcome]} ({result.duration_s:.2f} s)"
        self._bar.line(f"[{self._bar.done}/{self._bar.steps}] {place}: {outcome}")
