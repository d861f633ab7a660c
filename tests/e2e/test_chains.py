# SPDX-License-Identifier: BSD-3-Clause
"""Chains by name through the command, with a real switch: every frame is accounted for, whatever the functions.

The kinds are those that this planed knows, so the tests grow with it.
"""

from __future__ import annotations

import functools
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_rig import Bench, Record, assert_exact, counts, one_line

from planebench.planed import find_planed
from planebench.vnfs import VNFS

pytestmark = [pytest.mark.dataplane, pytest.mark.timeout(180)]

WAYS = "unidirectional,bidirectional"


@functools.cache
def known(name: str) -> bool:
    """Whether this planed has the function."""
    document = {
        "version": 1,
        "name": "x",
        "ports": [{"name": "e", "kind": "ethdev", "device": "net_null0"}],
        "tasks": [{"name": "t", "kind": "none", "ports": ["e"]}],
        "workers": [{"name": "w", "cpu": 0, "tasks": ["t"]}],
    }
    found = find_planed()
    assert found is not None
    done = subprocess.run(
        [str(found), "--check", "/dev/stdin"], input=json.dumps(document), capture_output=True, text=True, check=False
    )
    kinds = re.search(r"valid kinds: (.*)", done.stderr)
    assert kinds is not None, done.stderr
    return VNFS[name].kind in kinds[1].split()


def needs(*names: str) -> None:
    for name in names:
        if not known(name):
            pytest.skip(f"this planed has no {name}")


def accounted(trial: Record) -> None:
    """sent = forwarded + what switch, functions and tester say that they dropped, exactly."""
    assert_exact(trial)
    lost = sum(way["offered_packets"] - way["forwarded_packets"] for way in counts(trial))
    drops = sum(trial["switch"]["drops"].values()) + sum(trial["tester_drops"].values())
    attempts = sum(
        n
        for table in (trial["switch"]["drops"], trial["tester_drops"])
        for key, n in table.items()
        if key.endswith("rx_nombuf")
    )
    assert lost == drops - attempts, (trial["switch"]["drops"], trial["tester_drops"])


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Record]]:
    """One run of every function that this planed knows, each before an l2fwd."""
    bench = Bench(tmp_path_factory.mktemp("functions") / "runs")
    chains = [f"--chain={name},l2fwd" for name in VNFS if known(name)]
    bench.run("run", bench.plan, *chains, f"--direction={WAYS}", "--max-rate=20k", "--rates=10k", "--no-calibrate")
    yield bench.trials()
    bench.close()


@pytest.mark.parametrize("name", VNFS)
def test_every_function_passes_the_testers_frames_both_ways(trials: list[Record], name: str) -> None:
    needs(name)
    mine = [t for t in trials if t["point"]["chain"] == ("" if name == "l2fwd" else f"{name},l2fwd")]
    assert {trial["role"] for trial in mine} == {"r_plus", "latency"}
    for trial in mine:
        assert trial["point"]["chain_length"] == 2
        accounted(trial)
        assert not any(key.startswith("vnf") for key in trial["tester_drops"]), trial["tester_drops"]
    latency = [t for t in mine if t["role"] == "latency"]
    assert {t["point"]["direction"] for t in latency} == set(WAYS.split(","))
    for trial in latency:
        assert trial["load"] == {"label": "10kpps", "pps_per_direction": 10_000.0}
        assert trial["latency"]["probes_received"] > 0


def test_a_chain_of_l2fwd_by_name_is_one_of_its_length(bench: Bench) -> None:
    done = bench.run("run", bench.plan, "--no-calibrate", "--chain=l2fwd,l2fwd", "--chain=l2fwd", "--json")
    results = json.loads(done.stdout)["results"]
    assert [(r["chain"], r["chain_length"]) for r in results] == [("l2fwd", 1), ("l2fwd,l2fwd", 2)]
    for trial in bench.trials():
        accounted(trial)
        hops = trial["point"]["chain_length"] + 1
        assert trial["switch"]["packets"] >= hops * sum(way["forwarded_packets"] for way in counts(trial))


def test_the_chains_of_can17_flat_out(bench: Bench) -> None:
    needs("firewall", "l3fwd")
    bench.run("run", bench.plan, "--no-calibrate", "--chain=firewall,l3fwd,l2fwd", f"--direction={WAYS}")
    for trial in bench.trials():
        accounted(trial)
    header = json.loads((bench.folder / "run.json").read_text())
    assert header["settings"]["chains"] == "firewall,l3fwd,l2fwd"


@pytest.fixture
def rules(bench: Bench) -> Path:
    """Beside the plan: it must not be mistaken for something left behind."""
    return bench.runs.parent / "my.rules"


def test_a_firewall_that_drops_one_direction(bench: Bench, rules: Path) -> None:
    needs("firewall")
    rules.write_text("drop ip from 198.18.1.0/24 to any\npermit ip from any to any\n")
    bench.run(
        "run", bench.plan, "--no-calibrate", f"--chain=firewall:rules={rules}", f"--direction={WAYS}", "--max-rate=20k"
    )
    by_way = {trial["point"]["direction"]: trial for trial in bench.trials()}
    assert_exact(by_way["unidirectional"])
    both = by_way["bidirectional"]
    there, back = counts(both)
    assert both["tester_drops"]["vnf0:rule"] == back["offered_packets"] and back["forwarded_packets"] == 0
    assert there["forwarded_packets"] > 0
    assert both["verdict"]["kind"] == "invalid"
    said = " ".join(both["verdict"]["reasons"])
    assert "nothing came through the network functions" in said
    assert "not by the switch: rule (vnf0 firewall)" in said


def test_a_firewall_that_drops_everything_is_named(bench: Bench, rules: Path) -> None:
    needs("firewall")
    rules.write_text("permit ip from 10.0.0.0/8 to any\n")
    done = bench.run("run", bench.plan, "--no-calibrate", f"--chain=l2fwd,firewall:rules={rules}")
    said = one_line(done.stderr)
    assert "no frame came through n0->n1, n1->n0: vnf1 (firewall) dropped" in said and "default" in said


def test_a_bad_rule_is_refused_before_anything_starts(bench: Bench, rules: Path) -> None:
    needs("firewall")
    rules.write_text("# fine\npermit udp frm any to any\n")
    done = bench.run("run", bench.plan, "--no-calibrate", f"--chain=firewall:rules={rules}", code=2)
    assert f"{rules.name}:2" in one_line(done.stderr)
    assert not any(bench.runs.iterdir())


def test_an_unknown_function_is_refused_with_the_valid_ones(bench: Bench) -> None:
    done = bench.run("run", bench.plan, "--no-calibrate", "--chain=l2fw", code=2)
    assert 'unknown network function "l2fw", did you mean l2fwd? Valid: l2fwd, l3fwd, firewall' in one_line(done.stderr)
