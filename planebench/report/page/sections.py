# SPDX-License-Identifier: BSD-3-Clause
"""The contents of the page: its sections, in their order, of those that are there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Entry = dict[str, str]


def contents(parts: Mapping[str, Any]) -> list[Entry]:
    """Anchor and title of each section that the parts of the page fill."""
    scenarios = [(s["name"], s["name"], True) for s in parts["scenarios"]]
    sections = (
        ("summary", "Summary", True),
        ("cores", "What a core gives", bool(parts["cores"].rows)),
        ("papers", "Against the papers", bool(parts.get("papers"))),
        ("tables", "Tables as in the papers", bool(parts["paper_tables"])),
        *scenarios,
        ("chains", "Chains", bool(parts["chains"]["tables"])),
        ("against", "Switch against switch", bool(parts["decides"].rows or parts["others"].rows)),
        ("hosting", "VNFs ran in", bool(parts["hosting"])),
        ("conditions", "Conditions", bool(parts["conditions"])),
        ("warnings", "Warnings", bool(parts["notices"])),
        ("trials", "What counted", True),
        ("calibration", "The tester on its own", bool(parts["calibration"])),
        ("method", "Method", True),
        ("setup", "How to run it again", True),
    )
    return [{"id": name, "title": title} for name, title, there in sections if there]
