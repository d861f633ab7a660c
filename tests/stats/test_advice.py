# SPDX-License-Identifier: BSD-3-Clause
"""Cores, clock and offload for a rate, from the figures of a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from builders import make_header, make_point, make_trial

from planebench.model.records import Trial
from planebench.model.run import Run
from planebench.stats.advice import advice, lowest_clocks, offloads
from planebench.stats.derived import Derived

NEAR = (0.999, 1.0, 1.001)
HOST = {"cpu_mhz": 2000}


def run(*sides: tuple[str, float], host: Any = HOST, **point: Any) -> Derived:
    trials: list[Trial] = []
    for switch, mpps in sides:
        at = make_point(switch, **({"scenario": "p2p"} | point))
        trials += [make_trial(0, at, mpps * factor, start=n, repetition=n) for n, factor in enumerate(NEAR)]
    labels = tuple(switch for switch, _ in sides)
    numbered = tuple(replace(trial, index=index) for index, trial in enumerate(trials))
    return Derived(Run(make_header(labels, host=host), numbered))


def test_cores_and_clock_are_those_that_carry_the_rate() -> None:
    found = advice(run(("planed", 20.0), ("vpp", 5.0)), 10e6, lambda label: 1)
    assert [(it.point.switch, it.cores) for it in found] == [("planed", 1), ("vpp", 3)]
    planed, vpp = found
    assert planed.utilization == pytest.approx(0.5, rel=0.01)
    assert planed.clock_mhz == pytest.approx(1000, rel=0.01)  # half of the clock
    assert vpp.utilization == pytest.approx(2 / 3, rel=0.01)


def test_cores_that_the_throughput_was_measured_with_are_counted() -> None:
    (it,) = advice(run(("planed", 20.0)), 25e6, lambda label: 2)
    assert it.cores == 3  # 10 Mpps a core


def test_a_host_that_does_not_tell_its_clock_gives_none() -> None:
    (it,) = advice(run(("planed", 20.0), host={}), 10e6, lambda label: 1)
    assert it.clock_mhz is None


def test_the_lowest_clock_that_carried_the_rate_is_told_where_clocks_were_measured() -> None:
    def at(clock: str, mpps: float) -> list[Trial]:
        point = make_point("bess", cpu_clock=clock)
        return [make_trial(0, point, mpps * factor, start=n, repetition=n) for n, factor in enumerate(NEAR)]

    clocks = {"1200MHz": 4.0, "1600MHz": 6.0, "2600MHz": 9.0}
    trials = [trial for clock, mpps in clocks.items() for trial in at(clock, mpps)]
    numbered = tuple(replace(trial, index=index) for index, trial in enumerate(trials))
    derived = Derived(Run(make_header(("bess",), host=HOST), numbered))
    found = advice(derived, 5e6, lambda label: 1)
    assert [it.point.cpu_clock for it in lowest_clocks(found)] == ["1600MHz"]
    assert lowest_clocks(advice(derived, 20e6, lambda label: 1)) == ()
    assert lowest_clocks(it for it in found if it.point.cpu_clock == "2600MHz") == ()


@pytest.mark.parametrize(("mpps", "answer"), [(20.0, "yes"), (5.0, "no"), (10.0, "no")])
def test_offload_pays_where_it_forwards_more(mpps: float, answer: str) -> None:
    many = {"scenario": "parallel", "chain_length": 63}
    for sides in (
        (("planed", 10.0), ("planed:offload=fib", mpps)),
        (("planed:offload=fib", mpps), ("planed", 10.0)),
    ):
        (it,) = offloads(run(*sides, **many))
        assert (it.offload, it.answer) == ("planed:offload=fib", answer)
        assert it.gain == pytest.approx(mpps / 10, rel=0.01)


def test_offload_is_compared_with_the_same_switch_only() -> None:
    many = {"scenario": "parallel", "chain_length": 63}
    assert offloads(run(("ovs-dpdk", 10.0), ("planed:offload=fib", 20.0), **many)) == ()
