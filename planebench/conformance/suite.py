# SPDX-License-Identifier: BSD-3-Clause
"""The suite: every check on every scenario and wire, one after the other, each result reported as it comes."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from planebench.conformance import accounts, enduring, forwarding, overload, placing
from planebench.conformance.model import (
    ITSELF,
    Case,
    Check,
    CheckOutcome,
    CheckResult,
    Failure,
    NotSupported,
    Remarks,
)
from planebench.conformance.rig import Rig
from planebench.host.process import Supervisor
from planebench.measure.live import LiveSettings
from planebench.model.cpus import Cpus
from planebench.model.errors import PlanebenchError
from planebench.switches.adapter import Adapter

LOG_LINES = 12

STARTS = Check("starts", "It starts, opens its ports, and frames cross it both ways.", lambda rig: rig.start() or ())
CASE_CHECKS: tuple[Check, ...] = (
    STARTS,
    *accounts.CHECKS[:1],
    *placing.CHECKS,
    *forwarding.CHECKS,
    *accounts.CHECKS[1:],
    *overload.CHECKS,
    *enduring.CHECKS,
    *enduring.LAST_CHECKS,
)
ALL_CHECKS: tuple[Check, ...] = (*accounts.ITSELF_CHECKS, *CASE_CHECKS)
"""In the order in which they run and are shown."""


class SuiteListener(Protocol):
    """Receives the progress of the suite."""

    def working_on(self, text: str) -> None:
        """Report the begin of a check: ``loopback-1 intact``."""

    def check_done(self, result: CheckResult) -> None:
        """Report the result of a check."""


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
        """Return the number of results."""
        each = sum(len(self.chosen(CASE_CHECKS, case)) for case in self.cases)
        return len(self.chosen(accounts.ITSELF_CHECKS)) + len(self.wires) * each

    def chosen(self, checks: Sequence[Check], case: Case | None = None) -> list[Check]:
        """Return the checks to run, of those that are for a case."""
        wanted = self.checks if case is None or case.checks is None else self.checks & case.checks
        return [check for check in checks if check.name in wanted | {"starts", "leftovers"}]


def run_suite(plan: SuitePlan, listener: SuiteListener) -> tuple[CheckResult, ...]:
    """Run everything. Errors of a switch become results; only UsageError for a bad plan, and Ctrl-C, pass through."""
    return tuple(_results(plan, listener))


def _results(plan: SuitePlan, listener: SuiteListener) -> Iterator[CheckResult]:
    def told(result: CheckResult) -> CheckResult:
        listener.check_done(result)
        return result

    for check in plan.chosen(accounts.ITSELF_CHECKS):
        listener.working_on(check.name)
        yield told(_judged(check, ITSELF, None, lambda check=check: check.run(plan.adapter)))  # type: ignore[misc]
    for wire in plan.wires:
        for case in plan.cases:
            for result in _case(plan, case, wire, listener):
                yield told(result)


def _case(plan: SuitePlan, case: Case, wire: str, listener: SuiteListener) -> Iterator[CheckResult]:
    with Supervisor() as supervisor:
        rig = Rig(plan.adapter, case, plan.cpus, replace(plan.settings, wire=wire), supervisor)
        refusal = unusable = rig.refusal()
        try:
            checks = plan.chosen(CASE_CHECKS, case)
            for check in checks:
                listener.working_on(f"{wire} {case.name} {check.name}")
                if unusable:
                    yield CheckResult(
                        check.name, case.name, wire, "not supported" if refusal else "not run", (unusable,)
                    )
                    continue
                result = check_on_rig(check, rig)
                yield result
                more = check not in checks[-2:]  # leftovers, the last, needs nothing that is up
                if result.outcome == "fail" and more:
                    unusable = _renewed(rig)
        finally:
            rig.stop()


def check_on_rig(check: Check, rig: Rig) -> CheckResult:
    """Run one check on a rig that is up."""
    case, wire = rig.case.name, rig.settings.wire
    if check.needs_vnf and not rig.topology.vnf_ports:
        return CheckResult(check.name, case, wire, "not supported", ("the scenario has no VNF",))
    result = _judged(check, case, wire, lambda: check.run(rig))
    return replace(result, log=_log(rig)) if result.outcome == "fail" else result


def _renewed(rig: Rig) -> str:
    """Start the rig anew, and return why it did not start; empty if it did."""
    try:
        rig.renew()
    except PlanebenchError as error:
        return f"the switch did not start again after a failure: {error}"
    except Exception as error:  # as in _judged
        return f"the switch did not start again after a failure: {_where(error)}"
    return ""


def _judged(check: Check, case: str, wire: str | None, run: Callable[[], Remarks]) -> CheckResult:
    begun = time.monotonic()
    outcome: CheckOutcome = "pass"
    remarks: Remarks = ()
    more: dict[str, Any] = {}
    try:
        remarks = run()
        outcome = "remark" if remarks else "pass"
    except NotSupported as error:
        outcome, remarks = "not supported", (str(error),)
    except Failure as failure:
        outcome, more = "fail", {"expected": failure.expected, "came": failure.came}
    except PlanebenchError as error:
        outcome, more = "fail", {"expected": check.proves, "came": str(error)}
    except Exception as error:  # whatever a stranger's adapter does is found, and the suite goes on
        outcome, more = "fail", {"expected": check.proves, "came": _where(error)}
    return CheckResult(check.name, case, wire, outcome, remarks, duration_s=time.monotonic() - begun, **more)


def _where(error: Exception) -> str:
    """Return text such as ``TypeError: ... (file.py:12 in settings)`` for an error that no adapter may raise."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno} in {frame.name})"


def _log(rig: Rig) -> str:
    """Return the last log lines of every process of the switch, with their names."""
    parts = []
    for path in rig.logs:
        try:
            lines = path.read_text(errors="replace").splitlines()
        except OSError:
            continue
        parts.append("\n".join([f"{path.stem}:", *(line for line in lines if line.strip())][:1] + lines[-LOG_LINES:]))
    return "\n".join(parts)
