# SPDX-License-Identifier: BSD-3-Clause
"""``planebench switch check``: the conformance suite on one adapter."""

from __future__ import annotations

import sys
import time

from rich.console import Console

from planebench.cli.options import print_json
from planebench.cli.progress import Bar
from planebench.conformance.model import CheckResult, Report
from planebench.conformance.suite import (
    WORDS,
    SuitePlan,
    parse_cases,
    parse_checks,
    parse_wires,
    print_failures,
    print_report,
    run_suite,
    to_document,
)
from planebench.host.programs import NotFound
from planebench.measure.machine import Machine, held, terminable
from planebench.measure.runner import SelfMeasured
from planebench.model.errors import NotInstalledError, UsageError
from planebench.switches.registry import get_adapter

RING_SIZE = 256
MAX_FRAME_BYTES = 1518


def check_switch(
    switch: str,
    scenario: str,
    wire: str | None = None,
    checks: str | None = None,
    hugepages: bool | None = None,
    *,
    json: bool = False,
    quiet: bool = False,
) -> int:
    """Run the suite and show the results. Exit code: 0, 1 if anything failed or nothing could be checked.

    Raises UsageError and NotInstalledError before anything is started.
    """
    adapter = get_adapter(switch)
    if isinstance(adapter, SelfMeasured):
        raise UsageError(f"switch {adapter.name} forwards no packets, so there is nothing to check; name another")
    found = adapter.find()
    if isinstance(found, NotFound):
        raise NotInstalledError(f'switch "{adapter.name}" {found.words}')
    cases, usable = parse_cases(scenario), parse_wires(wire, adapter)
    wanted = parse_checks(checks)
    if not (cases and usable):
        raise UsageError("nothing to check: name at least one scenario and one wire")
    machine = Machine.prepare(wire=usable[0])
    settings = machine.live_settings(usable[0], RING_SIZE, MAX_FRAME_BYTES, hugepages)
    plan = SuitePlan(adapter, cases, usable, machine.cpus, settings, wanted)
    begun = time.monotonic()
    with terminable(), machine.pinned(), held(*usable), CheckProgress(plan.steps, quiet=quiet) as listener:
        results = run_suite(plan, listener.working_on, listener.check_done)
    report = Report(
        switch=switch,
        title=adapter.title,
        version=found.version,
        binary=str(found.binary),
        hugepages=settings.hugepages,
        wires=usable,
        scenarios=tuple(case.name for case in cases),
        results=results,
        duration_s=time.monotonic() - begun,
    )
    if json:
        print_json(to_document(report))
    elif quiet:
        print_failures(report, Console(stderr=True))
    else:
        print_report(report, Console(file=sys.stdout))
    return 0 if report.passed else 1


class CheckProgress(Bar):
    """Show the progress of the suite: a bar with the time left on a terminal, a line per result elsewhere."""

    def check_done(self, result: CheckResult) -> None:
        """Show the result of a check."""
        self.advance()
        place = " ".join(filter(None, (result.wire, result.scenario, result.check)))
        outcome = f"{WORDS[result.outcome]} ({result.duration_s:.2f} s)"
        self.line(f"[{self.done}/{self.steps}] {place}: {outcome}")
