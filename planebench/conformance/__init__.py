# SPDX-License-Identifier: BSD-3-Clause
"""The conformance suite: what every adapter has to do, tried on the running switch (docs/conformance.md)."""

from planebench.conformance.model import ITSELF, SCHEMA_VERSION, Case, Check, Report, Result
from planebench.conformance.suite import ALL_CHECKS, Listener, Plan, run_suite

__all__ = [
    "ALL_CHECKS",
    "ITSELF",
    "SCHEMA_VERSION",
    "Case",
    "Check",
    "Listener",
    "Plan",
    "Report",
    "Result",
    "run_suite",
]
