# SPDX-License-Identifier: BSD-3-Clause
"""Energy by a fake powercap tree; what is not known is None, never zero."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sysfs_tree import Tree

from planebench.host.energy import MeterReading, Rapl, energy_uj, find_meter
from planebench.measure.conditions import EnergyAccount
from planebench.model.records import SwitchCycles
from planebench.model.results import SWITCH_FIGURES

POWERCAP = "sys/class/powercap"
RANGE = 262_143_328_850
FIGURES = {figure.name: figure for figure in SWITCH_FIGURES}
PER_MILLION = FIGURES["joules_per_million_packets"]
LESS_IDLE = FIGURES["joules_per_million_packets_less_idle"]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Two packages with cores and memory, and the platform that contains them."""
    tree = Tree(tmp_path)
    names = {"0": "package-0", "0:0": "core", "0:1": "dram", "1": "package-1", "1:0": "dram", "2": "psys"}
    for zone, name in names.items():
        tree.set(f"{POWERCAP}/intel-rapl:{zone}/name", name)
        tree.set(f"{POWERCAP}/intel-rapl:{zone}/max_energy_range_uj", str(RANGE))
        tree.set(f"{POWERCAP}/intel-rapl:{zone}/energy_uj", "1000")
    return tree


def count(tree: Tree, zone: str, uj: int) -> None:
    tree.set(f"{POWERCAP}/intel-rapl:{zone}/energy_uj", str(uj))


def test_packages_and_memory_are_added_up_each_once(tree: Tree) -> None:
    meter = Rapl(tree.root)
    before = meter.read()
    for zone, uj in {"0": 5_000, "0:0": 4_000, "0:1": 2_000, "1": 1_500, "1:0": 1_250, "2": 90_000}.items():
        count(tree, zone, uj)
    assert energy_uj(before, meter.read()) == 4_000 + 1_000 + 500 + 250


def test_a_counter_that_began_again_goes_on(tree: Tree) -> None:
    meter = Rapl(tree.root)
    count(tree, "0", RANGE - 9)
    before = meter.read()
    count(tree, "0", 90)
    assert energy_uj(before, meter.read()) == 100


@given(begin=st.integers(0, RANGE), used=st.integers(0, RANGE))
def test_any_energy_below_the_range_is_found(begin: int, used: int) -> None:
    before = MeterReading(0, {"a": (begin, RANGE)})
    after = MeterReading(1, {"a": ((begin + used) % (RANGE + 1), RANGE)})
    assert energy_uj(before, after) == used


def test_a_machine_that_does_not_tell_has_no_meter(tree: Tree, tmp_path: Path) -> None:
    assert isinstance(find_meter(tree.root), Rapl)
    (tree.root / POWERCAP / "intel-rapl:1" / "energy_uj").unlink()  # as for users who may not read it
    assert Rapl(tree.root).read() is None and find_meter(tree.root) is None
    assert find_meter(tmp_path / "empty") is None


def test_unknown_is_never_zero() -> None:
    reading = MeterReading(0, {"a": (5, 9)})
    assert energy_uj(None, reading) is None and energy_uj(reading, None) is None
    assert (
        energy_uj(reading, MeterReading(1, {"b": (6, 9)})) is None
        and energy_uj(MeterReading(0, {}), MeterReading(1, {})) is None
    )
    for figure in (PER_MILLION, LESS_IDLE):
        assert figure.of(SwitchCycles()) is None
        assert figure.of(SwitchCycles(counters={"energy_uj": 5, "idle_energy_uj": 1, "delivered_packets": 0})) is None
    assert LESS_IDLE.of(SwitchCycles(counters={"energy_uj": 5, "delivered_packets": 2})) is None


class Constant(Rapl):
    """A meter of so many watts."""

    def __init__(self, watts: float) -> None:
        self.watts, self.at_ns, self.uj = watts, 0, 0

    def read(self) -> MeterReading | None:
        self.at_ns += 500_000_000
        self.uj += round(self.watts * 500_000)
        return MeterReading(self.at_ns, {"package-0": (self.uj, RANGE)})


def test_joules_for_a_million_frames_with_and_without_idle() -> None:
    meter = Constant(50.0)
    account = EnergyAccount(meter, idle_s=0)
    meter.watts = 80.0
    begin, end = meter.read(), meter.read()
    counters = SwitchCycles(counters=account.counters(begin, end, 4_000_000))
    assert counters.counters == {"energy_uj": 40_000_000, "idle_energy_uj": 25_000_000, "delivered_packets": 4_000_000}
    assert PER_MILLION.of(counters) == pytest.approx(10.0)
    assert LESS_IDLE.of(counters) == pytest.approx(3.75)
    assert account.counters(None, end, 5) == {}


def test_without_an_idle_reading_only_the_whole_is_known() -> None:
    class Silent(Constant):
        def read(self) -> MeterReading | None:
            return None

    meter = Silent(1.0)
    account = EnergyAccount(meter, idle_s=0)
    assert account.counters(MeterReading(0, {"a": (0, 9)}), MeterReading(1, {"a": (5, 9)}), 7) == {
        "energy_uj": 5,
        "delivered_packets": 7,
    }
