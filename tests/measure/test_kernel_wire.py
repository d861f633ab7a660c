# SPDX-License-Identifier: BSD-3-Clause
"""Drops of the kernel's interfaces: whose ring was full, and what the switch has counted already."""

from __future__ import annotations

from collections import Counter

import pytest

from planebench.host.interfaces import Interface
from planebench.measure import conditions
from planebench.measure.conditions import KernelWires
from planebench.testbed.request import Ends


def test_the_sender_counts_what_the_other_end_had_no_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = {"a": Interface(0, 0, 10, 3), "b": Interface(7, 1, 10, 5)}
    monkeypatch.setattr(conditions, "interfaces_of", lambda pid: counts)
    wires = KernelWires({"n0": Ends("a", "b"), "n1": Ends("gone", "gone too")}, 1)
    assert wires.dropped() == Counter({"n0:wire_full": 3, "n0:rx_dropped": 5})
