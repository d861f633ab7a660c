# SPDX-License-Identifier: BSD-3-Clause
"""Chains in tables, pages, figures and exports: under their names, apart, and against their parts."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from builders import make_header, make_latency_trial, make_point, make_trial, store_run, table_text

from planebench.analysis.compare import Derived, runs_compared
from planebench.analysis.results import derive_results
from planebench.analysis.tables import table_csv
from planebench.loaded import load
from planebench.model.header import Run
from planebench.model.records import Point, Trial
from planebench.report.export import to_json
from planebench.report.figures import make_figures
from planebench.report.html import to_html
from planebench.report.images import write_figures

A, B = "firewall:rules=/a/my.rules,l3fwd", "firewall:rules=/b/my.rules,l3fwd"
CHAINS = {"firewall:rules=/a/my.rules": 9.0, "l3fwd": 12.0, "": 14.0, A: 6.0, B: 5.0, "nat44,l3fwd": 4.0}


def chain(text: str, switch: str = "planed", **changes: Any) -> Point:
    return make_point(switch, "loopback", chain=text, chain_length=text.count(",") + 1, **changes)


def trials(switches: tuple[str, ...] = ("planed", "testpmd")) -> list[Trial]:
    made: list[Trial] = []
    for switch in switches:
        for text, mpps in CHAINS.items():
            for n in range(3):
                share = 1 + n / 1000 - 0.2 * (switch == "testpmd")
                point = chain(text, switch)
                made.append(make_trial(len(made), point, mpps * share, repetition=n, start=n))
                us = (20 + 15 * (point.chain_length - 1)) / share
                samples = [(round(us * 1000), 50)]
                made.append(make_latency_trial(len(made), point, "100kpps", 1e5, samples, repetition=n, start=n))
    return made


@pytest.fixture(scope="module")
def run() -> Run:
    return Run(make_header(("planed", "testpmd")), tuple(trials()))


def test_two_points_that_differ_in_the_chain_never_merge(run: Run) -> None:
    results = derive_results(run)
    assert len(results) == 2 * len(CHAINS)
    rates = {(r.point.switch, r.point.chain): r.throughput_pps for r in results}
    assert {chain: rates["planed", chain] for chain in CHAINS} == pytest.approx(
        {chain: mpps * 1.001e6 for chain, mpps in CHAINS.items()}
    )
    lengths = [r.point.chain_length for r in results]
    assert lengths == sorted(lengths)


def test_switches_are_compared_chain_by_chain(run: Run) -> None:
    found = [c for c in Derived(run).comparisons if c.metric == "throughput"]
    assert len({c.point for c in found}) == len(found) == len(CHAINS)
    assert all(c.ratio == pytest.approx(0.8, abs=0.01) for c in found)


def test_runs_are_compared_chain_by_chain(run: Run) -> None:
    only = Run(run.header, tuple(t for t in run.trials if t.point.chain != B))
    whole, part = Derived(run), Derived(only)
    assert {c.point for c in runs_compared([whole], [part]).comparisons} == {
        c.point for c in runs_compared([part], [part]).comparisons
    }


@pytest.mark.parametrize("width", [80, 100, 140])
@pytest.mark.parametrize("unicode", [True, False])
def test_the_table_names_chains_and_keeps_its_width(run: Run, width: int, unicode: bool) -> None:
    text = table_text(Derived(run), width, unicode)
    assert max(map(len, text.splitlines())) <= width
    assert "\nChains\n" in text and "Chain throughput compared with its slowest function measured alone" in text
    for name in ("l3fwd", "nat44,l3fwd", "firewall:rules=my.rules")[: 3 if width > 80 else 2]:
        assert name in text, name
    assert unicode or text.isascii()


def test_the_table_tells_the_claims() -> None:
    small = Run(make_header(("planed",)), tuple(trials(("planed",))))
    words = [
        line.split() for line in table_text(Derived(small), 140).splitlines() if "firewall:rules=my.rules,l3fwd" in line
    ]
    assert any("kpps" in line and "0.88" in line and "less" in line for line in words)
    assert any("0.67" in line and "less" in line for line in words)


def test_the_page_has_a_section(run: Run) -> None:
    page = to_html(Derived(run)).decode()
    assert '<section id="chains">' in page
    assert "Chain latency compared with the sum of its functions measured alone" in page
    assert "no trial of nat44 alone at this load counts" in page
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_a_run_without_chains_has_none() -> None:
    plain = Run(make_header(), (make_trial(), make_trial(1, make_point("planed", "loopback"))))
    assert 'id="chains"' not in to_html(Derived(plain)).decode()
    assert "against its parts" not in table_text(Derived(plain))


def test_figures_have_safe_names_of_their_own(run: Run, tmp_path: Path) -> None:
    keys = [figure.key for figure in make_figures(Derived(run))]
    assert len(keys) == len(set(keys))
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+", key) for key in keys)
    assert "overview" in keys
    small = Run(run.header, tuple(t for t in run.trials if t.point.chain in (A, "l3fwd", "firewall:rules=/a/my.rules")))
    written = write_figures(Derived(small), tmp_path)
    assert written and all(path.parent == tmp_path and path.stat().st_size for path in written)


def test_exports_have_the_chain(run: Run) -> None:
    document = json.loads(to_json(Derived(run)))
    assert {r["chain"] for r in document["results"]} == {text or "l2fwd" for text in CHAINS}
    claims = document["chains"]
    assert {c["point"]["chain"] for c in claims["latency"]} == {A, B, "nat44,l3fwd"}
    (row, *_) = (r for r in csv.DictReader(io.StringIO(table_csv("results", Derived(run)).decode())) if r["chain"] == A)
    assert row["chain_length"] != ""
    latency = csv.DictReader(io.StringIO(table_csv("latency", Derived(run)).decode()))
    assert [it["p50_us"] for it in latency if (it["chain"], it["load"]) == (A, "100kpps")] != [""]


def test_queries_have_the_chain(run: Run, tmp_path: Path) -> None:
    store_run(tmp_path, run)
    (folder,) = tmp_path.iterdir()
    found = load(folder).relation("trials").aggregate("chain, count(distinct trial_index) AS n").fetchall()
    assert dict(found) == {text or "l2fwd": 12 for text in CHAINS}


def test_policy_is_said_beside_the_result() -> None:
    point = chain("firewall,l3fwd")
    dropping = make_trial(0, point, 5.0, tester_drops={"vnf0:rule": 400_000, "v1:tx_full": 600_000})
    text = re.sub(r"[ \n]+", " ", table_text(Derived(Run(make_header(("planed",)), (dropping,))), 140))
    assert (
        "6.7 % of the frames were dropped by network functions (policy), not by the switch: 400\u202f000 "
        "rule (vnf0 firewall)" in text
    )
    quiet = make_trial(0, point, 5.0, tester_drops={"v1:tx_full": 600_000})
    assert "(policy)" not in table_text(Derived(Run(make_header(("planed",)), (quiet,))), 140)


def test_chains_with_and_without_a_profile_of_one_mean_size_are_told_apart() -> None:
    made = [
        make_trial(n, chain(text, traffic=traffic), 9.0, repetition=n % 3, start=n % 3)
        for n, (text, traffic) in enumerate(
            (text, traffic)
            for text in ("l3fwd", "firewall", "firewall,l3fwd")
            for traffic in ("", "facebook")
            for _ in range(3)
        )
    ]
    latencies = [
        make_latency_trial(
            len(made) + n, trial.point, "100kpps", 1e5, [(9000, 50)], repetition=trial.repetition, start=trial.start
        )
        for n, trial in enumerate(made)
    ]
    both = Run(make_header(), (*made, *latencies))
    keys = [figure.key for figure in make_figures(Derived(both))]
    assert len(keys) == len(set(keys))
    assert "→ facebook 64 B" in to_html(Derived(both)).decode()
