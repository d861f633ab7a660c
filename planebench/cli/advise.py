# SPDX-License-Identifier: BSD-3-Clause
"""``planebench advise``: cores, clock, and offload or not, for a rate, from a run's own figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from planebench.cli.show import plain_table, print_json
from planebench.model.words import NOTHING, interval, load_words, percent, point_words, printable, result_words
from planebench.report.conditions import switch_cores
from planebench.stats.advice import Advice, Offload, advice, lowest_clocks, offloads
from planebench.stats.derived import Derived
from planebench.store import find_run, read_run
from planebench.traffic.rates import parse_rate, rate_label

_NOTE = (
    "cores: by the low end of the interval of the throughput, if cores add up. clock: the least that carries the rate "
    "on these cores, if throughput is proportional to it. Neither was measured here: run with --switch-cores and "
    "--cpu-mhz to know. ≤: the throughput is a lower bound."
)


def advise(run: str, runs_dir: Path | None, *, rate: str, json: bool) -> None:
    """Print what each switch of a run needs to carry a rate on each path. Raises UsageError for a bad rate."""
    pps = parse_rate(rate)
    stored = read_run(find_run(runs_dir, run))
    derived = Derived(stored)
    found = advice(derived, pps, lambda label: switch_cores(stored, label))
    clocks, of_offload = lowest_clocks(found), offloads(derived)
    if json:
        print_json(
            {
                "run": stored.header.run_id,
                "pps": pps,
                "advice": [_plain(it) for it in found],
                "lowest_clocks": [_plain(it) for it in clocks],
                "offload": [_plain_offload(it) for it in of_offload],
            }
        )
        return
    print(f"to forward {rate_label(pps)}, all directions together:")
    Console(highlight=False).print(_table(found))
    for it in clocks:
        print(f"lowest clock measured that carries it: {result_words(it.result)}, cores: {it.cores_measured}")
    for of in of_offload:
        print(_offload_words(of))
    print(_NOTE)


def _plain(it: Advice) -> dict[str, Any]:
    return {
        "switch": it.point.switch,
        "path": point_words(it.point),
        "point": it.point.point_id,
        "cores": it.cores,
        "at_most": it.at_most,
        "utilization": it.utilization,
        "clock_mhz": it.clock_mhz,
        "slow_below": it.slow_below,
        "slow_above": it.slow_above,
    }


def _plain_offload(it: Offload) -> dict[str, Any]:
    return {
        "point": it.point,
        "offload": it.offload,
        "conventional": it.conventional,
        "gain": it.gain,
        "answer": it.answer,
    }


def _table(found: Sequence[Advice]) -> Any:
    table = plain_table("path", "switch", "cores", "utilization", "clock", "latency rises")
    for it in found:
        mark = "≤" if it.at_most and it.cores > 1 else ""
        loads = (("below", it.slow_below), ("above", it.slow_above))
        cells = (
            point_words(it.point),
            printable(it.point.switch),
            f"{mark}{it.cores}",
            ("≤" if it.at_most else "") + percent(it.utilization),
            NOTHING if it.clock_mhz is None else f"{'≤' if it.at_most else ''}{it.clock_mhz:.0f} MHz",
            ", ".join(f"{way} {load_words(load)}" for way, load in loads if load),
        )
        table.add_row(*map(Text, cells))
    return table


def _offload_words(it: Offload) -> str:
    low, high = it.comparison.low, it.comparison.high
    if it.comparison.a == it.offload:
        low, high = (None if high is None else 1 / high), (None if low is None else 1 / low)
    words = {"yes": "it pays", "no": "it does not pay", "open": "undecided"}[it.answer]
    between = interval(low, high, "{:.2f}".format)
    return (
        f"offload: {printable(it.offload)} forwards {it.gain:.2f} times {between} what {printable(it.conventional)} "
        f"does, {printable(it.point)}: {words}"
    )
