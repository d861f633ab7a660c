# SPDX-License-Identifier: BSD-3-Clause
"""The cores of a switch, and how many a port would need."""

import dataclasses

from builders import make_header, make_point, make_trial

from planebench.analysis.compare import Derived
from planebench.model.header import Run
from planebench.model.records import SwitchCycles, Trial
from planebench.report.setup import cores_sentence, switch_cores
from planebench.report.vnfs import cores_table

UNKNOWN = SwitchCycles()


def _trials(switch: str, rates: tuple[float, ...], verdict: str = "valid", **changes: object) -> list[Trial]:
    band = changes.pop("band", "near")
    point = make_point(switch, **changes)  # type: ignore[arg-type]
    return [make_trial(0, point, rate, verdict, band=band, switch=UNKNOWN) for rate in rates]  # type: ignore[arg-type]


def _run(*trials: Trial) -> Run:
    return Run(make_header(), tuple(dataclasses.replace(t, index=i) for i, t in enumerate(trials)))


def test_the_table_of_cores_has_a_row_per_switch() -> None:
    run = _run(*_trials("planed", (18.0, 18.1, 18.2)), *_trials("testpmd", (10.0, 10.1), band="far"))
    assert [row.cells[2] for row in cores_table(run, Derived(run).results).rows] == ["18.10", "10.05"]


def test_cores_for_a_port_are_rounded_up_and_bounded() -> None:
    run = _run(
        *_trials("planed", (9.0,), "tester-limited"),
        *_trials("testpmd", (4.0,)),
        *_trials("ovs-dpdk", (1.0,), "invalid"),
    )
    rows = cores_table(run, Derived(run).results).rows
    assert [(row.cells[0], row.cells[-1]) for row in rows] == [("planed", "≤2"), ("ovs-dpdk", "–"), ("testpmd", "4")]
    two = dataclasses.replace(run.header, settings={**run.header.settings, "switch_cores": 2})
    rows = cores_table(dataclasses.replace(run, header=two), Derived(run).results).rows
    assert [row.cells[4:6] for row in rows] == [(2, "≥4.50"), (2, "–"), (2, "2.00")]


def test_the_cores_of_a_switch_are_those_that_it_has_threads_on() -> None:
    run = _run(*_trials("planed", (9.0,)), *_trials("testpmd", (4.0,)))
    planed, *rest = run.header.switches
    two = dataclasses.replace(planed, settings={"cores": "1,2"})
    run = dataclasses.replace(run, header=dataclasses.replace(run.header, switches=(two, *rest)))
    assert [switch_cores(run, label) for label in ("planed", "testpmd")] == [2, 1]
    assert cores_sentence(run) == "Cores: planed 2, ovs-dpdk 1, testpmd 1."
    assert cores_sentence(_run()) == "Each switch has one core."
