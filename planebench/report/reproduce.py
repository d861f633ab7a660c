# SPDX-License-Identifier: BSD-3-Clause
"""Commands to repeat a run, and how to install its switches."""

from __future__ import annotations

import shlex

from planebench.model.header import RunHeader
from planebench.model.words import NOTHING


def commands(header: RunHeader) -> list[dict[str, str]]:
    """Return command lines and what they do; empty if the run does not know how it was started."""
    if not header.command:
        return []
    command, run = shlex.join(header.command), header.run_id
    again = command if "--resume" in header.command else f"{command} --resume"
    lines = (
        (again, "resumes an interrupted or killed run of this plan"),
        (
            f"planebench compare {run} latest",
            "compares this run with the newest: ratios, confidence intervals, differing settings",
        ),
        (f"planebench figures {run} --out figures", "writes every chart as SVG, PDF and PNG"),
        (f"planebench export {run}", "writes every result as JSON, including what this page omits"),
    )
    return [{"command": text, "does": does} for text, does in lines]


def remedies(header: RunHeader) -> dict[str, str]:
    """Return how to get each switch, by label, as the run recorded it; an en dash where it did not."""
    return {switch.label: switch.remedy or NOTHING for switch in header.switches}
