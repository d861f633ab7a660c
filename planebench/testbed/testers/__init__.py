# SPDX-License-Identifier: BSD-3-Clause
"""Testers that are no part of planebench: each sends and counts as its own API has it (docs/two-hosts.md)."""

from __future__ import annotations

from planebench.model.dimensions import EXTERNAL, TESTER_PLACES, is_external
from planebench.model.errors import UsageError, unknown
from planebench.model.switch import parse_options, parse_values
from planebench.testbed.testers.base import Delay, ExternalTester, StreamCounts, TesterStream
from planebench.testbed.testers.otg import OtgTester
from planebench.testbed.testers.trex import TrexTester

KINDS: dict[str, type[ExternalTester]] = {kind.kind: kind for kind in (OtgTester, TrexTester)}


def get_tester(text: str) -> ExternalTester:
    """Return the tester of ``otg:https://HOST:PORT,line=10G``, not connected. Raises UsageError for a bad one."""
    kind, _, rest = text.partition(":")
    if kind not in KINDS:
        raise unknown("tester", text, (*TESTER_PLACES, *EXTERNAL.values()))
    where, *options = (part.strip() for part in rest.split(","))
    if not where:
        raise UsageError(f'tester "{text}" does not say where it is; write {EXTERNAL[kind]}')
    texts = parse_options(f'tester "{text}"', options, "line=10G")
    return KINDS[kind](where, parse_values(f"tester {kind}", KINDS[kind].options, texts))


def parse_tester(text: str) -> str:
    """Return the tester of a plan; raise UsageError for one that is not valid."""
    if is_external(text):
        get_tester(text)
    return text


__all__ = ["Delay", "ExternalTester", "StreamCounts", "TesterStream", "get_tester"]
