# SPDX-License-Identifier: BSD-3-Clause
"""Records of the conformance suite, and the exceptions that its checks raise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from planebench.model.scenario import ScenarioName

SCHEMA_VERSION = 1
"""Of the JSON document. 1: first."""

CheckOutcome = Literal["pass", "remark", "fail", "not supported", "not run"]
"""``remark``: passed with a remark. ``not run``: something that the check needs was missing; remarks name it."""

ITSELF = "itself"
"""The column of checks that need no topology."""

Remarks = tuple[str, ...]


class Failure(Exception):
    """The switch failed a check: what was expected, and what came."""

    def __init__(self, expected: str, came: str) -> None:
        super().__init__(f"expected {expected}; came {came}")
        self.expected = expected
        self.came = came


class NotSupported(Exception):
    """The check does not apply here: the reason, as a sentence."""


@dataclass(frozen=True, slots=True)
class Case:
    """A scenario as the suite runs it. ``name`` is that of the command line: ``p2v``, ``loopback-2``, ``workers-2``."""

    name: str
    scenario: ScenarioName
    chain_length: int = 0
    workers: int = 1
    """Workers of the switch, more than one only of a switch that is not asked for as many anyway."""
    checks: frozenset[str] | None = None
    """Names of the checks that it is for, beside those that always run; None for all."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that an adapter has to do. ``run`` gets what it works on: an adapter, or a Rig that is up.

    It returns remarks, and raises Failure or NotSupported. A PlanebenchError that it raises is a failure.
    """

    name: str
    proves: str
    run: Callable[[Any], Remarks]
    needs_vnf: bool = False


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The outcome of one check in one column, ``scenario``, on one wire."""

    check: str
    scenario: str
    wire: str | None
    outcome: CheckOutcome
    remarks: Remarks = ()
    """Remarks, or the reason why it was not supported or not run."""
    expected: str = ""
    came: str = ""
    log: str = ""
    """The last lines that the switch wrote, of a failure."""
    duration_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Report:
    """A whole run of the suite."""

    switch: str
    title: str
    version: str
    binary: str
    hugepages: bool
    wires: tuple[str, ...]
    scenarios: tuple[str, ...]
    results: tuple[CheckResult, ...]
    duration_s: float

    @property
    def failures(self) -> tuple[CheckResult, ...]:
        return tuple(result for result in self.results if result.outcome == "fail")

    @property
    def counts(self) -> Counter[str]:
        return Counter(result.outcome for result in self.results)

    @property
    def passed(self) -> bool:
        """Return whether nothing failed, and on some topology something passed."""
        good = any(result.outcome in ("pass", "remark") and result.scenario != ITSELF for result in self.results)
        return good and not self.failures
