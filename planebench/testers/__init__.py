# SPDX-License-Identifier: BSD-3-Clause
"""Testers that are no part of planebench: each sends and counts as its own API has it (docs/testers.md)."""

from planebench.testers.base import Delay, ExternalTester, Stream, StreamCounts
from planebench.testers.registry import get_tester

__all__ = ["Delay", "ExternalTester", "Stream", "StreamCounts", "get_tester"]
