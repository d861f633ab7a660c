# SPDX-License-Identifier: BSD-3-Clause
"""Restarts under traffic, stored as trials: reported, exported and compared."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from builders import make_header, make_point, store_run, table_text

from planebench.analysis import tables
from planebench.analysis.compare import Derived, runs_compared
from planebench.analysis.outages import compare_outages, outage_reports
from planebench.measure.outage import OutageRequest, outage_trial
from planebench.model.header import Run
from planebench.model.outage import Outage, Silence
from planebench.model.records import Trial
from planebench.report.comparison import result_words
from planebench.report.vnfs import outage_sentences, outage_table
from planebench.store import RunWriter, read_run

REQUEST = OutageRequest("vnf0", 10_000.0, kill=True)


def outage(ms: float) -> Outage:
    silence = Silence(round(ms * 1e6), 0, round(ms * 1e6))
    lost = round(ms * 10)
    calm, came = Silence(1000, 0, 1000), 100_000 - 10 - lost
    return Outage(silence, calm, 0, 1, 100_000, 10, 3, came, 0, 0, 0, {"v0:tx_full": 2})


def trials(switch: str, ms: tuple[float, ...], first: int = 0, functional: tuple[str, ...] = ()) -> list[Trial]:
    point = make_point(switch, scenario="loopback", chain_length=1, hosting="separate", direction="unidirectional")
    made = [outage_trial(point, REQUEST, outage(it), number, functional) for number, it in enumerate(ms)]
    return [replace(trial, index=first + number) for number, trial in enumerate(made)]


def run(**ms: tuple[float, ...]) -> Run:
    found: list[Trial] = []
    for switch, values in ms.items():
        found += trials(switch, values, len(found))
    return Run(make_header(tuple(ms)), tuple(found))


FAST, SLOW = (10.0, 11.0, 12.0, 10.5, 11.5), (40.0, 41.0, 42.0, 40.5, 41.5)


def test_a_report_of_each_switch_and_restart() -> None:
    planed, vpp = outage_reports(run(planed=FAST, vpp=SLOW))
    assert (planed.switch, planed.victim, planed.killed, planed.chain) == ("planed", "vnf0", True, "separate:l2fwd")
    assert (planed.silence_median_ns, vpp.silence_median_ns) == (11e6, 41e6)
    assert [it.gone_packets for it in planed.outages] == [it.lost_packets - 3 - 2 for it in planed.outages]


def test_outages_are_no_results_and_stand_in_table_and_page() -> None:
    found = run(planed=FAST)
    derived = Derived(found)
    assert derived.results == ()
    assert "Outages" in table_text(derived) and "No trial has been measured" not in table_text(derived)
    assert outage_sentences(found) == [
        "planed: separate:l2fwd: vnf0 killed, 10\u202f000 frames/s: 11.0 ms, 110 frames lost (median of 5)"
    ]
    assert len(outage_table(found).rows) == 5
    shared = Run(found.header, tuple(trials("planed", FAST, functional=("shares a CPU",))))
    assert "(11.0 ms)" in outage_sentences(shared)[0]


def test_switches_and_runs_are_compared() -> None:
    (found,) = compare_outages([run(planed=FAST, vpp=SLOW)])
    assert (found.metric, found.a, found.b, found.distinguishable) == ("outage", "planed", "vpp", True)
    assert 3.3 < found.ratio < 4.2 and result_words(found) == "planed better"
    outcome = runs_compared([Derived(run(planed=FAST))], [Derived(run(planed=SLOW))])
    (found,) = outcome.comparisons
    assert found.a.startswith("planed@") and found.ratio > 3
    assert outcome.not_in_intervals and found.answer == "open", "how runs vary is not known"
    assert found.point == "loopback-1:l2fwd/unidirectional/64/virtio/separate, vnf0 killed"


def test_they_are_corrected_for_their_number() -> None:
    close = (10.0, 11.0, 12.0, 10.5, 11.5), (11.6, 12.4, 13.3, 11.9, 12.8)
    (alone,) = compare_outages([run(a=close[0], b=close[1])])
    among = compare_outages([run(a=close[0], b=close[1], c=close[0], d=close[0], e=close[0], f=close[0])])
    assert alone.answer == "different" and among[0].answer == "open"


def test_several_runs_are_one_comparison_of_each_restart() -> None:
    (found,) = compare_outages([run(planed=FAST), run(planed=FAST)], [run(planed=SLOW)])
    assert (found.trials_a, found.trials_b) == (10, 5)


def test_restarts_of_other_chains_are_not_compared() -> None:
    def of(chain: str) -> Run:
        made = run(planed=FAST)
        changed = (replace(trial, point=replace(trial.point, chain=chain)) for trial in made.trials)
        return Run(made.header, tuple(changed))

    assert not compare_outages([of("l3fwd")], [of("l3fwd:send_burst=32")])
    assert len(compare_outages([of("l3fwd")], [of("l3fwd")])) == 1


def test_what_was_stored_before_a_kill_is_there_and_exported(tmp_path: Path) -> None:
    """The line after the last whole one is torn, as kill -9 leaves it."""
    made = run(planed=FAST)
    store_run(tmp_path, made, finish=False)
    (folder,) = tmp_path.iterdir()
    with (folder / "trials.jsonl").open("ab") as lines:
        lines.write(b'{"index": 5, "poi')
    again = read_run(folder)
    assert again.trials == made.trials and again.finished is None
    rows = json.loads(tables.table_json("outages", Derived(read_run(folder))))
    assert [row["outage_ns"] for row in rows] == [round(ms * 1e6) for ms in FAST]
    assert {(row["victim"], row["killed"], row["gone_packets"] + 5 == row["lost_packets"]) for row in rows} == {
        ("vnf0", True, True)
    }
    RunWriter.reopen(folder).close()
