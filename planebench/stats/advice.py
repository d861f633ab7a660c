# SPDX-License-Identifier: BSD-3-Clause
"""Advice for a rate, from a run's own figures: cores, clock, and whether to offload (can17, ic16). Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from planebench.model.cpu_clock import OWN, duty_of, speed_of
from planebench.model.records import Point
from planebench.model.results import Comparison, Result
from planebench.stats.counting import counts
from planebench.stats.derived import Derived


@dataclass(frozen=True, slots=True)
class Advice:
    """The cores and the clock with which one switch carries a rate on one path.

    ``cores`` carry it with the throughput at the low end of its interval, if cores add up; ``cores_measured`` are those
    of the run. ``at_most``: the throughput is a lower bound. ``utilization`` is that of the cores, ``clock_mhz`` the
    least clock with which they carry it, if throughput is proportional to the clock. ``slow_below`` and ``slow_above``:
    loads outside of which latency rises.
    """

    result: Result
    cores: int
    cores_measured: int
    at_most: bool
    utilization: float
    clock_mhz: float | None
    slow_below: str = ""
    slow_above: str = ""

    @property
    def point(self) -> Point:
        """Return the path and the switch."""
        return self.result.point


@dataclass(frozen=True, slots=True)
class Offload:
    """FIB offload against VNFs that forward themselves, on one path: the comparison of their throughputs."""

    point: str
    offload: str
    conventional: str
    comparison: Comparison

    @property
    def gain(self) -> float:
        """Return the throughput with offload over that without."""
        return self.comparison.ratio if self.comparison.b == self.offload else 1 / self.comparison.ratio

    @property
    def answer(self) -> str:
        """Return ``yes``, ``no`` or ``open``: whether offload forwards more for certain."""
        if self.comparison.answer == "same":
            return "no"
        if self.comparison.answer != "different":
            return "open"
        return "yes" if self.gain > 1 else "no"


def advice(derived: Derived, pps: float, cores_of: Callable[[str], int]) -> tuple[Advice, ...]:
    """Return what each path and switch with an accepted throughput needs for ``pps`` frames per second, all directions.

    ``cores_of`` returns the cores of a switch in this run. Those that need the fewest cores, and of these the least
    utilization, come first within a path.
    """
    mhz = derived.run.header.host.get("cpu_mhz")
    clock = float(mhz) if isinstance(mhz, int | float) and mhz else None
    found = [
        _advice(r, pps, cores_of(r.point.switch), clock) for r in derived.results if counts(r) and r.throughput_pps
    ]
    paths = {it.point.point_id.partition("/")[2]: None for it in found}
    order = {path: number for number, path in enumerate(paths)}
    return tuple(sorted(found, key=lambda it: (order[it.point.point_id.partition("/")[2]], it.cores, it.utilization)))


def _advice(result: Result, pps: float, cores: int, clock_mhz: float | None) -> Advice:
    rate = result.throughput_pps or 0.0
    per_core, sure = rate / cores, (result.throughput_low_pps or rate) / cores
    needed = math.ceil(pps / sure)
    utilization = pps / (needed * per_core)
    core_mhz = result.switch.get("core_mhz") or (clock_mhz and clock_mhz * (duty_of(result.point.cpu_clock) or 1.0))
    finding = result.load_finding
    return Advice(
        result,
        needed,
        cores,
        result.verdict.kind.is_bound,
        utilization,
        min(pps / (needed * sure), 1.0) * core_mhz if core_mhz else None,
        finding.inversion[1] if finding and finding.inversion else "",
        finding.knee or "" if finding else "",
    )


def lowest_clocks(found: Iterable[Advice]) -> tuple[Advice, ...]:
    """Return, for each switch and path that was measured at several clocks, the lowest one at which its cores carried
    the rate."""
    groups: dict[tuple[Point, str], list[Advice]] = {}
    for it in found:
        scale, _ = speed_of(it.point.cpu_clock)
        groups.setdefault((replace(it.point, cpu_clock=OWN), scale), []).append(it)
    several = [group for group in groups.values() if len(group) > 1]
    carrying = [[it for it in group if it.cores <= it.cores_measured] for group in several]
    return tuple(min(group, key=lambda it: speed_of(it.point.cpu_clock)) for group in carrying if group)


def offloads(derived: Derived) -> tuple[Offload, ...]:
    """Return the comparisons of FIB offload with the same switch without it, at each test point that has both."""
    adapters = {switch.label: switch.adapter.split(":") for switch in derived.run.header.switches}
    found = []
    for it in derived.comparisons:
        sides = [label for label in (it.a, it.b) if _offloads(adapters.get(label, []))]
        if it.metric == "throughput" and len(sides) == 1 and adapters[it.a][0] == adapters[it.b][0]:
            (offload,) = sides
            other = it.b if offload == it.a else it.a
            found.append(Offload(it.point, offload, other, it))
    return tuple(found)


def _offloads(adapter: list[str]) -> bool:
    return any(option.startswith("offload=") for option in adapter[1:])
