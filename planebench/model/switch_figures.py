# SPDX-License-Identifier: BSD-3-Clause
"""The figures that follow from a switch's own counters, each described once (docs/design/adding-a-metric.md)."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from planebench.model.records import SwitchCycles

FigureValues = list[float | None]

CORE_MHZ, WANTED_MHZ = "core_mhz", "wanted_mhz"
"""The clock of a switch's core as the core counts it, and the one that was asked for, with ``--cpu-mhz``."""
ENERGY_UJ, IDLE_ENERGY_UJ, DELIVERED = "energy_uj", "idle_energy_uj", "delivered_packets"
"""The energy of the machine in a trial, that of an idle machine in the same time, and the frames that arrived."""


def median(values: FigureValues) -> float | None:
    """Return the median of the values that are known; None where none is."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def total(values: FigureValues) -> float | None:
    """Return the sum; None if one value is not known, because a part of the frames would be a wrong number."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


@dataclass(frozen=True, slots=True)
class SwitchFigure:
    """A figure that a switch reports of itself.

    ``of`` returns it for the counters of one trial; ``over`` combines the accepted trials of a result. ``counters`` are
    the names of further counters that it needs (``SwitchCycles.counters``): adapters report those that they have.
    """

    name: str
    of: Callable[[SwitchCycles], float | None]
    over: Callable[[FigureValues], float | None] = median
    counters: tuple[str, ...] = ()


SWITCH_FIGURES = (
    SwitchFigure("cycles_per_packet", lambda it: it.cycles_per_packet),
    SwitchFigure("busy_share", lambda it: it.busy_share),
    SwitchFigure("batch_size", lambda it: it.batch_size),
    SwitchFigure("received_packets", lambda it: it.packets, total),
    SwitchFigure("forwarded_packets", lambda it: it.forwarded_packets, total),
    SwitchFigure("cycles_per_batch", lambda it: it.busy_cycles / it.bursts if it.busy_cycles and it.bursts else None),
    SwitchFigure(
        "full_batch_share",
        lambda it: it.ratio("rx_full_bursts", "rx_bursts"),
        counters=("rx_full_bursts", "rx_bursts"),
    ),
    SwitchFigure("core_mhz", lambda it: it.counters.get(CORE_MHZ)),
    SwitchFigure("joules_per_million_packets", lambda it: it.ratio(ENERGY_UJ, DELIVERED)),
    SwitchFigure(
        "joules_per_million_packets_less_idle",
        lambda it: _difference(it.ratio(ENERGY_UJ, DELIVERED), it.ratio(IDLE_ENERGY_UJ, DELIVERED)),
    ),
)
"""The counters of the last three are those of the harness (planebench.measure.conditions), not of a switch."""


def _difference(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b


def further_counters() -> tuple[str, ...]:
    """Return the names of the counters that figures need beside the fields of ``SwitchCycles``."""
    return tuple(dict.fromkeys(name for figure in SWITCH_FIGURES for name in figure.counters))


def figures_of(trials: Iterable[SwitchCycles]) -> Mapping[str, float | None]:
    """Return every figure by its name, over the counters of some trials."""
    counted = list(trials)
    return {figure.name: figure.over([figure.of(one) for one in counted]) for figure in SWITCH_FIGURES}
