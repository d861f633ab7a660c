# SPDX-License-Identifier: BSD-3-Clause
"""Conditions of the switches in table, page and JSON; batch size and the switch's own counts beside cycles."""

from __future__ import annotations

import csv
import dataclasses
import io
import json

import pytest
from builders import make_header, make_point, make_run, make_trial, table_text
from rich.console import Console

from planebench.analysis.compare import Derived
from planebench.analysis.results import derive_results
from planebench.analysis.tables import table_csv
from planebench.model.conditions import MANIFEST_KEYS, Conditions, PortConditions, ThreadConditions
from planebench.model.header import Run, SwitchInfo
from planebench.model.records import SwitchCycles
from planebench.report.export import to_json
from planebench.report.html import to_html
from planebench.report.setup import conditions_tables
from planebench.report.terminal.table import print_parts

HOSTILE = "<script>alert(1)</script>\x1b[31m"


def conditions(switch: str, *features: str) -> Conditions:
    port = PortConditions("n0", "wire", "vhost-user", "planed", 1, (256, 256), ("version_1", *features))
    thread = ThreadConditions("w0", "1", "SCHED_OTHER", -20, 2600)
    return Conditions(switch, "p2p", 0, "virtio", 0, "2026-11-21T12:34:00.000Z", (port,), (thread,))


def fair_run(**own: str) -> Run:
    """ovs-dpdk says that its buffers are not mergeable, and they are."""
    usual = {**dict.fromkeys(MANIFEST_KEYS, "unknown"), "function": "patch", "cores": "1", "burst": "32"}
    settings = {"planed": {**usual, "burst": "64"}, "ovs-dpdk": {**usual, "mergeable_buffers": "off", **own}}
    switches = tuple(SwitchInfo(label, label, "1.0", values) for label, values in settings.items())
    trials = tuple(make_trial(n, make_point(label), 10.0) for n, label in enumerate(settings))
    found = (conditions("planed"), conditions("ovs-dpdk", "mrg_rxbuf"))
    return Run(dataclasses.replace(make_header(), switches=switches), trials, conditions=found)


def side_by_side(run: Run, width: int = 100) -> str:
    out = io.StringIO()
    print_parts(conditions_tables(Derived(run)), Console(file=out, width=width, no_color=True, highlight=False))
    return out.getvalue()


def test_the_table_has_a_line_on_what_differs_and_a_warning_on_what_contradicts() -> None:
    text = " ".join(table_text(Derived(fair_run())).split())
    assert "2 conditions differ between the switches: burst, mergeable buffers" in text
    assert "ovs-dpdk declares mergeable buffers off, but on was measured" in text
    assert "conditions differ" not in table_text(Derived(make_run(("planed",))))


@pytest.mark.parametrize("width", [60, 100, 140])
def test_side_by_side_in_the_terminal(width: int) -> None:
    text = side_by_side(fair_run(), width)
    apart, _, same = text.partition("Conditions that are the same")
    assert "256" in same and "patch" in same
    assert all(word in apart for word in ("burst", "differs", "mergeable", "adapter", "declares", "unknown"))
    assert all(len(line.rstrip()) <= width for line in text.splitlines())


def test_many_switches_are_set_beside_each_other_in_parts() -> None:
    labels = tuple(f"switch-{number}" for number in range(9))
    run = make_run(labels, (64,), repetitions=1, loads=())
    switches = tuple(SwitchInfo(label, label, "1", {"burst": label}) for label in labels)
    text = side_by_side(dataclasses.replace(run, header=dataclasses.replace(run.header, switches=switches)))
    assert all(label in text for label in labels)
    assert all(len(line.rstrip()) <= 100 for line in text.splitlines())


def test_the_page_marks_what_differs_in_words_and_style() -> None:
    page = to_html(Derived(fair_run())).decode()
    section = page.partition('<section id="conditions">')[2].partition("</section>")[0]
    rows = {line.split("scope=row>")[1].split("<")[0]: line for line in section.splitlines() if "scope=row>" in line}
    assert "<b>differs</b>" in rows["burst"] and "<b>same</b>" in rows["function"]
    assert "<b>not known for all</b>" in rows["memory"] and ">unknown<" in rows["memory"]
    found = rows["mergeable buffers"]
    assert "measured" in found and "adapter declares off (contradicts the measured value)" in found
    assert "ovs-dpdk declares mergeable buffers off, but on was measured" in page


def test_what_a_switch_says_is_text() -> None:
    run = fair_run(buffers=HOSTILE)
    assert b"<script>alert" not in to_html(Derived(run))
    assert "\x1b" not in side_by_side(run)


def test_json_has_the_rows_and_what_was_found() -> None:
    document = json.loads(to_json(Derived(fair_run())))["conditions"]
    assert document["switches"] == ["planed", "ovs-dpdk"]
    rows = {row["key"]: row for row in document["rows"]}
    assert rows["burst"]["state"] == "differs"
    assert rows["mergeable_buffers"]["cells"][1] == {"text": "on", "measured": True, "claim": "off"}
    assert document["contradictions"] == ["ovs-dpdk declares mergeable buffers off, but on was measured"]
    assert document["found"][1]["ports"][0]["features"] == ["version_1", "mrg_rxbuf"]


def counted(*switch: SwitchCycles) -> Run:
    header = make_header(("planed",))
    return Run(header, tuple(make_trial(n, make_point(), 10.0, switch=it, repetition=n) for n, it in enumerate(switch)))


def test_batch_size_and_counts_of_the_switch() -> None:
    run = counted(*(SwitchCycles(100, 10, 320, {}, 310, bursts) for bursts in (10, 20, 40)))
    (result,) = derive_results(run)
    assert (result.switch["batch_size"], result.switch["received_packets"]) == (16, 960)
    assert result.switch["forwarded_packets"] == 930
    assert json.loads(to_json(Derived(run)))["results"][0]["switch_batch_size"] == 16
    (line,) = csv.DictReader(io.StringIO(table_csv("results", Derived(run)).decode()))
    assert [line[f"switch_{name}"] for name in ("batch_size", "received_packets", "forwarded_packets")] == [
        "16.0",
        "960",
        "930",
    ]
    page = to_html(Derived(run)).decode()
    assert ">batch<" in page and ">16<" in page and ">930<" in page


def test_counts_that_one_trial_does_not_know_are_unknown() -> None:
    known, unknown = SwitchCycles(100, 10, 320, {}, 310, 10), SwitchCycles()
    (result,) = derive_results(counted(known, unknown, known))
    assert (result.switch["received_packets"], result.switch["forwarded_packets"]) == (None, None)
    assert result.switch["batch_size"] == 32


def test_a_switch_that_tells_nothing_says_so() -> None:
    page = to_html(Derived(counted(SwitchCycles(), SwitchCycles(), SwitchCycles()))).decode()
    assert page.count("<td class=n>unknown</td>") >= 5, "cycles, batch, busy, received, forwarded"


def test_beside_a_tester_limited_switch_one_without_counters_is_unknown() -> None:
    limited = ("tester-limited", ("the switch was busy only 40% of the time",))
    told = SwitchCycles(100, 150, 320, {}, 310, 10)
    trials = [make_trial(n, make_point("planed"), 10.0, *limited, switch=told) for n in range(3)]
    trials += [make_trial(n, make_point("vpp"), 9.0, switch=SwitchCycles()) for n in range(3, 6)]
    text = table_text(Derived(Run(make_header(("planed", "vpp")), tuple(trials))))
    rows = [line.split() for line in text.splitlines()]
    assert any(row[:1] == ["planed"] and "40" in row for row in rows)
    assert any(row[:1] == ["vpp"] and "unknown" in row for row in rows)
