# SPDX-License-Identifier: BSD-3-Clause
"""Clocks of CPUs on a fake cpufreq tree: set while something is measured, put back, also after a kill."""

from __future__ import annotations

from pathlib import Path

import pytest
from sysfs_tree import Tree

from planebench.host import device_settings
from planebench.host.device_settings import DEVICE_SETTINGS, clock_refusal, fixed
from planebench.host.journal import Journal, Saved
from planebench.measure.conditions import held_clock
from planebench.model.cpus import Cpus
from planebench.model.errors import StartError
from planebench.testbed.placement import place

CPUFREQ = "sys/devices/system/cpu/cpu{}/cpufreq/{}"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Two CPUs of 800 to 3200 MHz that may run at all of it."""
    tree = Tree(tmp_path / "root")
    for cpu in (0, 1):
        for name, khz in {"cpuinfo_min": 800_000, "cpuinfo_max": 3_200_000}.items():
            tree.set(CPUFREQ.format(cpu, f"{name}_freq"), str(khz))
        tree.set(CPUFREQ.format(cpu, "scaling_min_freq"), "800000")
        tree.set(CPUFREQ.format(cpu, "scaling_max_freq"), "3200000")
    return tree


def journal(tree: Tree) -> Journal:
    return Journal(tree.root.parent / "undo.json", DEVICE_SETTINGS, tree.root)


def bounds(tree: Tree, cpu: int) -> tuple[str, str]:
    return tree.get(CPUFREQ.format(cpu, "scaling_min_freq")), tree.get(CPUFREQ.format(cpu, "scaling_max_freq"))


def test_a_clock_is_held_and_put_back(tree: Tree) -> None:
    with fixed({1}, 1200, journal(tree)):
        assert bounds(tree, 1) == ("1200000", "1200000") and bounds(tree, 0) == ("800000", "3200000")
    assert bounds(tree, 1) == ("800000", "3200000") and not journal(tree).state.exists()


def test_it_is_put_back_when_the_trial_fails(tree: Tree) -> None:
    with pytest.raises(ZeroDivisionError), fixed({0, 1}, 2400, journal(tree)):
        raise ZeroDivisionError
    assert bounds(tree, 0) == bounds(tree, 1) == ("800000", "3200000")


def test_a_killed_run_is_undone_by_the_doctor(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    own = journal(tree)
    changes = list(device_settings._changes(1, 1_200_000, tree.root))
    own.apply(changes, owner="999999999:1")
    assert bounds(tree, 1) == ("1200000", "1200000")
    assert {outcome.kind for outcome in journal(tree).undo()} == {"changed"}
    assert bounds(tree, 1) == ("800000", "3200000")


def test_the_bound_that_makes_room_is_moved_first(tree: Tree) -> None:
    def order(khz: int) -> list[str]:
        return [change.path.rpartition("_freq")[0][-3:] for change in device_settings._changes(0, khz, tree.root)]

    assert order(1_200_000) == ["min", "max"]
    tree.set(CPUFREQ.format(0, "scaling_max_freq"), "1000000")
    assert order(1_200_000) == ["max", "min"]


def test_what_the_system_refuses_is_an_error_and_nothing_stays(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(root: Path, path: str, value: str) -> None:
        if path.endswith("scaling_max_freq") and value == "1200000":
            raise OSError(22, "Invalid argument")
        device_settings.at(root, path).write_text(value)

    setting = device_settings.Setting(device_settings.FREQUENCY.patterns, write=refuse)
    with (
        pytest.raises(StartError, match=r"cannot set the clock to 1200 MHz: .*Invalid argument"),
        fixed({1}, 1200, Journal(tree.root.parent / "undo.json", (setting,), tree.root)),
    ):
        pass
    assert bounds(tree, 1) == ("800000", "3200000")


def test_why_a_clock_cannot_be_had(tree: Tree) -> None:
    assert clock_refusal({0, 1}, 2400, tree.root) == ""
    assert clock_refusal({0, 1}, 3300, tree.root) == "CPU 0 runs at 800 to 3200 MHz, not at 3300"
    assert "CPU 2 has no cpufreq" in clock_refusal({1, 2}, 2400, tree.root)
    assert "--switch planed --duty 0.5,1" in clock_refusal({2}, 2400, tree.root)


def test_the_journal_knows_the_files() -> None:
    assert device_settings.FREQUENCY.has("/sys/devices/system/cpu/cpu12/cpufreq/scaling_min_freq")
    assert not device_settings.FREQUENCY.has("/sys/devices/system/cpu/cpu12/cpufreq/scaling_governor")
    assert device_settings.FREQUENCY.is_ours("1200000", Saved("p", "800000", "1200000"))


def test_the_clock_of_a_trial_is_counted_before_and_after(tree: Tree, tmp_path: Path) -> None:
    program, seen = tmp_path / "planed", tmp_path / "seen"
    highest = tree.root / CPUFREQ.format(1, "scaling_max_freq")
    program.write_text(
        f'#!/bin/sh\necho $(cat {highest}) >>{seen}\necho "{{\\"core_mhz\\": $((1100 + $(wc -l <{seen}) * 90))}}"\n'
    )
    program.chmod(0o755)
    with held_clock(1200, place(Cpus((0, 1))), program, journal(tree)) as found:
        assert bounds(tree, 1) == ("1200000", "1200000") and bounds(tree, 0) == ("800000", "3200000")
        assert found == {"wanted_mhz": 1200}
    assert found == {"wanted_mhz": 1200, "core_mhz": 1280}, "1190 before, 1280 after"
    assert seen.read_text() == "1200000\n1200000\n"
    assert bounds(tree, 1) == ("800000", "3200000")
