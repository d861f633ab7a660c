# SPDX-License-Identifier: BSD-3-Clause
"""A switch that counts nothing returns None, which means unknown everywhere."""

from __future__ import annotations

import re
from pathlib import Path

from planebench.measure.trial import cycles_of_trial
from planebench.model.records import SwitchCycles
from planebench.switches import base, common
from planebench.switches.common import ProcessGroup
from planebench.switches.linked import LinkedSwitches


class Program(ProcessGroup):
    """A switch that has what a process group has, and nothing else."""

    def __init__(self) -> None:
        self.processes = ()

    def polling_threads(self) -> tuple[base.ThreadRef, ...]:
        return ()


class Counting(Program):
    def counters(self) -> SwitchCycles:
        return SwitchCycles(packets=7)


def test_a_process_group_without_counters_is_a_switch_whose_figures_are_unknown() -> None:
    switch: base.RunningSwitch = Program()
    assert switch.counters() == SwitchCycles()
    assert cycles_of_trial(switch.counters(), switch.counters(), 1000) == SwitchCycles()
    assert LinkedSwitches([switch, Counting()]).counters().packets is None
    assert Counting().counters().packets == 7


def test_the_names_of_the_page_are_in_the_module_that_it_names() -> None:
    page = (Path(__file__).parents[2] / "docs/adding-a-switch.md").read_text(encoding="utf-8")
    for module in (base, common):
        (row,) = re.findall(rf"^\| `{module.__name__}` \| (.*) \|$", page, re.MULTILINE)
        names = re.findall(r"`(\w+)`", row)
        assert names and [name for name in names if not hasattr(module, name)] == []
