# SPDX-License-Identifier: BSD-3-Clause
"""Many VNFs side by side in tables and charts: a curve over their number, and rows that say how many there are."""

from __future__ import annotations

from dataclasses import replace

from builders import make_header, make_latency_trial, make_point, make_trial

from planebench.analysis.compare import Derived
from planebench.analysis.results import derive_results
from planebench.model.header import Finished, Run
from planebench.model.records import Point, Trial
from planebench.report.figures import make_figures
from planebench.report.tables import point_columns

ROUTER = "l3fwd:fib=cuckoo:synthetic=1M"
RATES = {"planed": {1: 8.0, 8: 0.5, 63: 0.05}, "offload": {1: 9.0, 8: 8.8, 63: 8.0}}


def run_of(chain: str, scenario: str = "parallel") -> Run:
    trials: list[Trial] = []
    for switch, rates in RATES.items():
        for count, mpps in rates.items():
            point = at(switch, count, chain, scenario)
            trials += [make_trial(len(trials) + n, point, mpps, repetition=n) for n in range(3)]
            trials.append(make_latency_trial(len(trials), point, "232.143kpps", 232143.0))
    return Run(make_header(tuple(RATES)), tuple(trials), Finished("complete", "2026-11-21T12:38:31Z"))


def at(switch: str, count: int, chain: str, scenario: str) -> Point:
    return make_point(switch, scenario, chain_length=count, chain=chain)


def test_throughput_and_latency_are_curves_over_the_number_of_vnfs() -> None:
    for chain in ("", ROUTER):
        figures = {figure.key: figure for figure in make_figures(Derived(run_of(chain))) if figure.kind == "vnfs"}
        (throughput,) = [figure for key, figure in figures.items() if key.endswith("-throughput")]
        rows = throughput.rows
        assert ">VNFs</text>" in throughput.svg()
        assert {row["x"] for row in rows} == {1, 8, 63}
        assert {row["switch"] for row in rows} == {"planed", "offload"}
        assert any("mean-latency" in key for key in figures)
        assert not [figure for figure in make_figures(Derived(run_of(chain))) if figure.kind == "chain"]
    assert "overview" in {figure.kind for figure in make_figures(Derived(run_of("")))}


def test_rows_say_how_many_and_of_which_kind() -> None:
    results = derive_results(run_of(ROUTER))
    assert [r.point.chain_length for r in results if r.point.switch == "planed"] == [1, 8, 63]
    (_, where) = point_columns(lambda it: it.point)
    assert where.shown(next(r for r in results if r.point.chain_length == 63)) == f"parallel-63 {ROUTER} → 64 B"


def test_the_chart_of_each_scenario_has_a_name_of_its_own() -> None:
    one, other = run_of(ROUTER), run_of(ROUTER, "bare")
    moved = [replace(trial, index=len(one.trials) + trial.index) for trial in other.trials]
    keys = [figure.key for figure in make_figures(Derived(replace(one, trials=(*one.trials, *moved))))]
    assert len(keys) == len(set(keys))
    assert {key.split("-")[1] for key in keys if key.startswith("vnfs-")} == {"parallel", "bare"}
