# SPDX-License-Identifier: BSD-3-Clause
"""compare: what it prints, what it refuses, and its exit code as a gate."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from builders import make_header, make_latency_trial, make_point, make_trial, store_run

from planebench.cli.compare import compare
from planebench.model.errors import INCONCLUSIVE, UsageError
from planebench.model.header import Finished, Run
from planebench.model.records import SwitchCycles
from planebench.model.results import Comparison

Rates = Mapping[str, tuple[float, ...]]

A, B = "20261121-120000-a", "20261121-130000-b"
STEADY = (10.0, 10.01, 10.02)
SLOWER = (9.0, 9.01, 9.02)

NAMES = {field.name for field in dataclasses.fields(Comparison)}


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def stored(own_run_folder: Path) -> Callable[..., None]:
    """Stores a run of saturating trials of switches that tell no cycles."""

    def store(run_id: str, rates: Rates, verdict: str = "valid", *, finish: bool = True, **header: Any) -> None:
        trials = [
            make_trial(0, make_point(s), m, verdict, switch=SwitchCycles(), start=i, repetition=i)
            for s, mpps in rates.items()
            for i, m in enumerate(mpps)
        ]
        numbered = tuple(dataclasses.replace(t, index=i) for i, t in enumerate(trials))
        ended = Finished("complete", "2026-11-21T12:38:31Z")
        store_run(
            own_run_folder, Run(make_header(tuple(rates), run_id=run_id, **header), numbered, ended), finish=finish
        )

    return store


def _compare(a: str = A, b: str | None = None, **options: Any) -> int:
    defaults: dict[str, Any] = {"json": False, "force": False, "fail_below": None, "metric": None}
    return compare(a, b, None, **{**defaults, **options})


def test_one_run_is_compared_switch_against_switch(stored, capsys) -> None:
    stored(A, {"planed": STEADY, "testpmd": (11.0, 11.011, 11.02), "bess": (10.0, 10.01, 10.03)})
    assert _compare() == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "throughput ratio 95 % interval answer"
    assert lines[1].startswith("p2p → 64 B: testpmd / planed x 1.100 1.098 to 1.102 testpmd better")
    assert lines[2].startswith("p2p → 64 B: bess / planed x 1.000") and lines[2].endswith("the same within 5 %")
    assert lines[3].startswith("p2p → 64 B: bess / testpmd x 0.909") and lines[3].endswith("testpmd better")


def test_runs_are_named_once_above_the_table(stored, capsys) -> None:
    stored(A, {"planed": STEADY})
    stored(B, {"planed": SLOWER})
    assert _compare(A, B) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[:2] == [f"old = {A}", f"new = {B}"]
    assert [line.split() for line in out.splitlines()[2:]] == [
        ["throughput", "new", "/", "old", "ratio", "95", "%", "interval", "answer"],
        ["planed", "p2p", "→", "64", "B", "x", "0.900", "0.898", "to", "0.902", "open"],
    ]
    assert out.count(A) == out.count(B) == 1


def test_switches_named_old_and_new_are_a_pair_like_any(stored, capsys) -> None:
    """ci.md names two builds so: they are no runs, and with a third every pair has its name."""
    stored(A, {"old": STEADY, "new": SLOWER, "same": STEADY})
    assert _compare() == 0
    out = capsys.readouterr().out
    assert all(f"p2p → 64 B: {pair} x " in " ".join(out.split()) for pair in ("new / old", "same / old", "same / new"))


def test_json_has_every_field_and_nothing_else_on_standard_output(stored, capsys) -> None:
    stored(A, {"planed": STEADY, "testpmd": SLOWER, "bess": ()})
    assert _compare(json=True) == 0
    document = json.loads(capsys.readouterr().out)
    assert list(document) == ["comparisons", "conditions"]
    (record,) = document["comparisons"]
    assert set(record) == NAMES | {"distinguishable"}
    assert (record["a"], record["b"], record["metric"], record["answer"]) == (
        "planed",
        "testpmd",
        "throughput",
        "different",
    )
    assert record["ratio"] == pytest.approx(0.9, abs=1e-3)


def test_runs_that_differ_in_what_must_match_are_refused_by_name(stored) -> None:
    settings = make_header().settings
    stored(A, {"planed": STEADY})
    stored(B, {"planed": STEADY}, settings={**settings, "ring_size": 1024}, host={"kernel": "6.5.0"})
    with pytest.raises(UsageError) as refused:
        _compare(A, B)
    assert refused.value.exit_code == 2
    for word in (A, B, "ring size: 256 against 1024", "kernel: 6.1.0-18-amd64 against 6.5.0", "--force"):
        assert word in str(refused.value)


def test_force_compares_them_and_says_what_differs(stored, capsys) -> None:
    stored(A, {"planed": STEADY})
    stored(B, {"planed": STEADY}, settings={**make_header().settings, "ring_size": 1024})
    assert _compare(A, B, force=True) == 0
    said = capsys.readouterr()
    assert "ring size: 256 against 1024" in said.err
    assert "1.000" in said.out


@pytest.mark.parametrize(
    ("b", "limit", "code", "said"),
    [
        (SLOWER, 0.95, 1, "fails: p2p → 64 B: throughput testpmd / planed x 0.900 (limit 0.95)"),
        (SLOWER, 0.89, 0, ""),
        (STEADY, 0.99, 0, ""),
        (STEADY, 1.0, INCONCLUSIVE, "inconclusive: p2p → 64 B: throughput testpmd / planed x 1.000"),
        ((9.0,), 0.95, INCONCLUSIVE, "inconclusive: p2p → 64 B: throughput"),
        ((8.0, 9.0, 10.5), 0.95, INCONCLUSIVE, "inconclusive: p2p → 64 B: throughput"),
    ],
    ids=["regression", "within-the-limit", "level", "at-the-limit", "one-start", "noise"],
)
def test_the_gate_tells_a_regression_from_noise(
    stored, capsys, b: tuple[float, ...], limit: float, code: int, said: str
) -> None:
    stored(A, {"planed": STEADY, "testpmd": b})
    assert _compare(fail_below=limit) == code
    err = capsys.readouterr().err
    assert (said in err) if said else ("fails:" not in err and "inconclusive:" not in err)


def test_what_the_gate_can_detect_is_shown_and_in_json(stored, capsys) -> None:
    stored(A, {"planed": STEADY, "testpmd": (9.9, 10.0, 10.1)})
    assert _compare(fail_below=0.9) == 0
    err = capsys.readouterr().err
    shown = re.search(r"the gate finds x (0\.\d+) or less in throughput with a probability of 80 %", err)
    assert shown is not None
    assert re.search(r"probability of 80 % where no difference is shown: throughput x 1\.\d+ or more", err)
    assert _compare(fail_below=0.9, json=True) == 0
    document = json.loads(capsys.readouterr().out)
    (judged,) = document["gate"]
    assert judged["kind"] == "passes" and f"{judged['detectable']:.3f}" == shown[1]
    assert document["comparisons"][0]["detectable"] > 0
    assert _compare(fail_below=0.9, quiet=True) == 0
    assert capsys.readouterr().err == ""


def test_between_runs_the_gate_needs_three_pairs_in_turns(stored, capsys) -> None:
    names = ["a1", "b1", "a2", "b2", "a3", "b3", "b4"]
    for hour, (name, factor) in enumerate(zip(names, (1, 0.9, 1.001, 0.901, 0.999, 0.899, 0.9), strict=True)):
        started = f"2026-11-21T0{hour}:00:00Z"
        stored(name, {"planed": tuple(factor * m for m in STEADY)}, started_at=started)
    for a, b in (("a1", "b1"), ("a1,a2,b1", "b2,b3,b4")):
        assert _compare(a, b, fail_below=0.95) == INCONCLUSIVE
        said = capsys.readouterr().err
        assert "how runs vary is in no interval; it takes 3 of each side in turns (a, b, a, b), or 3 boots" in said
    assert _compare("a1,a2,a3", "b1,b2,b3", fail_below=0.95) == 1
    assert _compare("a1,a2,a3", "a1,a2,a3", fail_below=0.95) == 0
    with pytest.raises(UsageError, match="name these, too"):
        _compare("a1,a2")


def test_a_lower_bound_below_the_limit_is_no_regression_but_has_not_passed(stored, own_run_folder, capsys) -> None:
    planed = [make_trial(i, make_point(), m, start=i, repetition=i) for i, m in enumerate(STEADY)]
    bess = [
        make_trial(3 + i, make_point("bess"), m, "tester-limited", switch=SwitchCycles(), start=i, repetition=i)
        for i, m in enumerate(SLOWER)
    ]
    store_run(own_run_folder, Run(make_header(("planed", "bess"), run_id=A), (*planed, *bess)), finish=False)
    assert _compare(fail_below=0.95) == INCONCLUSIVE
    said = capsys.readouterr().err
    assert "fails" not in said
    assert "inconclusive: p2p → 64 B: throughput" in said and "tester-limited" in said
    assert said.splitlines()[-1].startswith("gate inconclusive: 0 of 1 shown to be above 0.95 (lowest 0.9")


@pytest.mark.parametrize("cycles", [110, 104, 90])
def test_where_the_tester_limits_both_sides_cycles_say_nothing(own_run_folder: Path, capsys, cycles: int) -> None:
    trials = [
        make_trial(
            number * 4 + i,
            make_point(label),
            14.0,
            "tester-limited",
            switch=SwitchCycles(cost * 10_000 + i, 10_000, 10_000),
            start=i,
            repetition=i,
        )
        for number, (label, cost) in enumerate((("planed", 100), ("bess", cycles)))
        for i in range(4)
    ]
    store_run(own_run_folder, Run(make_header(("planed", "bess"), run_id=A), tuple(trials)), finish=False)
    assert _compare(fail_below=0.95, metric="throughput") == INCONCLUSIVE
    assert "planed and bess are tester-limited (lower bounds)" in capsys.readouterr().err


def test_a_dead_side_has_not_passed(stored, capsys) -> None:
    stored(A, {"planed": STEADY, "testpmd": STEADY})
    stored(B, {"planed": STEADY, "testpmd": ()})
    assert _compare(A, B, fail_below=0.95) == INCONCLUSIVE
    assert "inconclusive: testpmd p2p → 64 B: throughput of old: the other run" in capsys.readouterr().err


def test_trials_that_do_not_count_have_not_passed(stored, own_run_folder: Path, capsys) -> None:
    good = [make_trial(i, make_point("a"), m, start=i, repetition=i) for i, m in enumerate(STEADY)]
    more = [make_trial(3 + i, make_point("b"), m, start=i, repetition=i) for i, m in enumerate(STEADY)]
    dead = make_trial(6, make_point("c"), 10.0, "invalid", ("c died",))
    store_run(own_run_folder, Run(make_header(("a", "b", "c"), run_id=A), (*good, *more, dead)), finish=False)
    assert _compare(fail_below=0.95) == INCONCLUSIVE
    assert "inconclusive: p2p → 64 B: throughput c / a: no trial of c counts" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("deaths", "code"), [({"b": 1}, INCONCLUSIVE), ({"a": 1, "b": 1}, 0), ({"a": 1}, 0)], ids=["new", "both", "old"]
)
def test_a_switch_that_died_in_some_starts_has_not_passed(
    own_run_folder: Path, capsys, deaths: dict[str, int], code: int
) -> None:
    trials = []
    for label in ("a", "b"):
        kinds = ["valid"] * len(STEADY) + ["invalid"] * deaths.get(label, 0)
        for i, kind in enumerate(kinds):
            trials.append(make_trial(len(trials), make_point(label), [*STEADY, 10.0][i], kind, start=i, repetition=i))
    store_run(own_run_folder, Run(make_header(("a", "b"), run_id=A), tuple(trials)), finish=False)
    assert _compare(fail_below=0.95) == code
    if code:
        assert "1 trial of b did not take place" in capsys.readouterr().err


def test_a_run_that_has_not_come_to_its_end_is_named(stored, capsys) -> None:
    stored(A, {"planed": STEADY, "testpmd": STEADY}, finish=False)
    stored(B, {"planed": STEADY, "testpmd": STEADY})
    assert _compare(B) == 0 and "come to its end" not in capsys.readouterr().err
    assert _compare(A, quiet=True) == 0
    assert f"{A} has not come to its end: of its plan 6 trials are compared" in capsys.readouterr().err


@pytest.mark.parametrize("columns", ["80", "90", "120"])
def test_the_verdict_has_whole_words_in_a_narrow_terminal(stored, capsys, monkeypatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    stored(A, {"planed": STEADY, "ovs-dpdk": (9.0, 10.0, 11.0)})
    assert _compare() == 0
    out = capsys.readouterr().out
    assert all(word in out for word in ("more", "starts", "decide", "throughput"))
    assert all(len(line.rstrip()) <= int(columns) for line in out.splitlines())


def test_in_one_run_the_gate_measures_by_the_first_switch(stored) -> None:
    stored(A, {"planed": SLOWER, "testpmd": STEADY, "bess": SLOWER})
    assert _compare(fail_below=0.95) == 0
    stored(B, {"planed": STEADY, "testpmd": STEADY, "bess": SLOWER})
    assert _compare(B, fail_below=0.95) == 1


def test_the_result_of_a_gate_is_the_last_line_and_nothing_if_it_passes_quietly(stored, capsys) -> None:
    stored(A, {"planed": STEADY, "testpmd": STEADY})
    assert _compare(fail_below=0.95) == 0
    passed = "gate passed: 1 of 1 above 0.95 (lowest 1.000: p2p → 64 B testpmd / planed)"
    assert capsys.readouterr().err.splitlines()[-1] == passed
    assert _compare(fail_below=0.95, quiet=True) == 0
    assert capsys.readouterr().err == ""
    for hour, (name, factor) in enumerate(zip(["a1", "b1", "a2", "b2", "a3", "b3"], (1, 0.9) * 3, strict=True)):
        rates = {"planed": tuple(factor * m for m in STEADY), "testpmd": STEADY}
        stored(name, rates, started_at=f"2026-11-21T0{hour}:00:00Z")
    assert _compare("a1,a2,a3", "b1,b2,b3", fail_below=0.95, quiet=True) == 1
    failed = "gate FAILED: 1 of 2 below 0.95 (worst 0.900: planed p2p → 64 B)"
    assert capsys.readouterr().err.splitlines()[-1] == failed


def test_latencies_of_builds_are_compared_at_one_load_only(own_run_folder: Path, capsys) -> None:
    """At half of its own rate a slower build has less load, which hides a worse latency."""
    for name, pps in ((A, 5e6), (B, 4.5e6)):
        trials = []
        for i in range(3):
            for load, at_pps in (("0.50", pps), ("1Mpps", 1e6)):
                trials.append(make_latency_trial(len(trials), make_point(), load, at_pps, start=i, repetition=i))
        store_run(own_run_folder, Run(make_header(("planed",), run_id=name), tuple(trials)), finish=False)
    assert _compare(A, B) == 0
    said = capsys.readouterr()
    assert "latency p99 at 1 Mpps" in said.out and "50 %" not in said.out
    (line,) = (it for it in said.err.splitlines() if "latency at 50 % of" in it)
    assert line.startswith("not compared: planed p2p → 64 B: ") and "--rates 1M" in line


def test_runs_of_which_no_trial_took_place_say_why_even_if_quiet(own_run_folder: Path, capsys) -> None:
    for name in (A, B):
        trials = [make_trial(i, make_point(), 10.0, "invalid", ("it died",), start=i, repetition=i) for i in range(3)]
        store_run(own_run_folder, Run(make_header(("planed",), run_id=name), tuple(trials)), finish=False)
    assert _compare(A, B, quiet=True) == 1
    assert "nothing to compare. " in (said := capsys.readouterr().err)
    assert "not compared: planed p2p" in said and "`planebench report` with the name of a run" in said
    assert _compare(A, B, quiet=True, fail_below=0.9) == INCONCLUSIVE


@pytest.mark.parametrize("rates", [{"planed": ()}, {"planed": STEADY}])
def test_nothing_to_compare_is_not_passed(stored, capsys, rates: Rates) -> None:
    stored(A, rates)
    assert _compare() == 1
    assert _compare(json=True) == 1
    said = capsys.readouterr()
    assert json.loads(said.out) == {"comparisons": [], "conditions": []}
    assert "nothing to compare" in said.err


def test_runs_without_a_common_point_are_not_passed_and_say_why(stored, capsys) -> None:
    stored(A, {"planed": STEADY})
    stored(B, {"testpmd": STEADY})
    assert _compare(A, B, fail_below=0.9) == INCONCLUSIVE, "no regression was shown"
    assert "not compared: planed p2p → 64 B of old (and 1 more): the other run does not" in capsys.readouterr().err


def test_a_gate_without_the_first_switch_has_compared_nothing(stored, capsys) -> None:
    stored(A, {"planed": (), "testpmd": STEADY, "bess": STEADY})
    assert _compare() == 0
    assert _compare(fail_below=0.9) == INCONCLUSIVE
    assert "no rate was compared" in capsys.readouterr().err


def test_what_was_not_compared_is_said_but_not_at_length(stored, capsys) -> None:
    stored(A, {"planed": STEADY, "testpmd": SLOWER})
    stored(B, {f"switch{i}": STEADY for i in range(20)})
    _compare(A, B)
    err = capsys.readouterr().err
    assert err.count("the other run does not have it") == 1
    assert "not compared: planed p2p → 64 B of old (and 21 more): " in err


def test_what_was_not_compared_names_metric_and_sides(stored, capsys) -> None:
    stored(A, {"planed": STEADY, "testpmd": SLOWER}, verdict="invalid")
    _compare()
    said = "p2p → 64 B: throughput testpmd / planed: no trial of planed counts"
    assert said in capsys.readouterr().err
    _compare(metric="ndr")
    assert said not in capsys.readouterr().err


def test_one_metric(stored, capsys) -> None:
    stored(A, {"planed": STEADY, "testpmd": SLOWER})
    assert _compare(metric="throughput") == 0
    assert _compare(metric="ndr") == 1
    assert "nothing to compare by ndr" in capsys.readouterr().err


@pytest.mark.parametrize("limit", [0.0, -1.0, 2.01, float("nan"), float("inf")])
def test_a_limit_that_is_no_ratio_is_refused(stored, limit: float) -> None:
    with pytest.raises(UsageError, match="above 0, at most 2"):
        _compare(fail_below=limit)


def test_bad_metrics_are_refused(stored) -> None:
    with pytest.raises(UsageError, match="did you mean throughput"):
        _compare(metric="troughput")
    with pytest.raises(UsageError, match="throughput, ndr, pdr"):
        _compare(metric="latency_p99", fail_below=0.9)
