# SPDX-License-Identifier: BSD-3-Clause
"""Chains by name through the command, with real switches: every frame is accounted for, whatever the functions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_rig import SWITCHES, Bench, Record, assert_exact, counts, one_line, texts_of
from planed_rig import often

from planebench.host.programs import NotFound
from planebench.model.errors import PlanebenchError
from planebench.switches.registry import get_adapter
from planebench.testbed.vnfs import VNFS

pytestmark = [pytest.mark.dataplane, pytest.mark.timeout(180)]

WAYS = "unidirectional,bidirectional"
FUNCTION_WAYS = ("bidirectional", WAYS)[often(0, 1)]


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
    """One run of every function, each before an l2fwd."""
    bench = Bench(tmp_path_factory.mktemp("functions") / "runs")
    chains = [f"--chain={name},l2fwd" for name in VNFS]
    bench.run(
        "run", bench.plan, *chains, f"--direction={FUNCTION_WAYS}", "--max-rate=20k", "--rates=10k", "--no-calibrate"
    )
    yield bench.trials()
    bench.close()


@pytest.mark.parametrize("name", VNFS)
def test_every_function_passes_the_testers_frames_both_ways(trials: list[Record], name: str) -> None:
    mine = [t for t in trials if t["point"]["chain"] == ("" if name == "l2fwd" else f"{name},l2fwd")]
    assert {trial["role"] for trial in mine} == {"r_plus", "latency"}
    for trial in mine:
        assert trial["point"]["chain_length"] == 2
        accounted(trial)
        assert not any(key.startswith("vnf") for key in trial["tester_drops"]), trial["tester_drops"]
    latency = [t for t in mine if t["role"] == "latency"]
    assert {t["point"]["direction"] for t in latency} == set(FUNCTION_WAYS.split(","))
    for trial in latency:
        assert trial["load"] == {"label": "10kpps", "pps_per_direction": 10_000.0}
        assert trial["latency"]["probes_received"] > 0


@pytest.mark.all
@pytest.mark.parametrize("switch", SWITCHES)
def test_long_chains_through_every_switch(bench: Bench, switch: str) -> None:
    """All functions, the NAT before the router, both ways."""
    if isinstance(found := get_adapter(switch).find(), NotFound):
        pytest.skip(f"{switch} is not here: {found.remedy}")
    chains = ("firewall,l3fwd,l2fwd", "nat44,load_balancer,l3fwd")
    named = [f"--chain={chain}" for chain in chains]
    bench.run(
        "run", bench.plan, f"--switch={switch}", *named, f"--direction={WAYS}", "--max-rate=20k", "--no-calibrate"
    )
    found_points = {(t["point"]["chain"], t["point"]["direction"]) for t in bench.trials()}
    assert found_points == {(chain, way) for chain in chains for way in WAYS.split(",")}
    for trial in bench.trials():
        accounted(trial)
        assert not any(key.startswith("vnf") for key in trial["tester_drops"]), trial["tester_drops"]


@pytest.mark.all
def test_traffic_through_chains_of_defaults(bench: Bench) -> None:
    """Headers of every kind, and the addresses of the router's own table, are passed; what cannot be is left out."""
    profiles = "--traffic=ipv6,tcp,vlan,fib:count=500"
    chains = ("--chain=firewall,l3fwd", "--chain=nat44,l3fwd:mtu=1500", "--chain=load_balancer,l2fwd")
    options = ("--frame-size=128", "--direction=bidirectional", "--max-rate=20k", "--no-calibrate")
    done = bench.run("run", bench.plan, *chains, profiles, *options)
    assert "nat44 passes IPv4 only, and traffic ipv6 is IPv6" in one_line(done.stderr)
    for trial in bench.trials():
        chain, traffic = trial["point"]["chain"], trial["point"]["traffic"]
        assert not ("nat44" in chain and traffic == "ipv6")
        if "nat44" in chain and traffic.startswith("fib"):
            continue  # from outside, a NAT takes only what goes to its own addresses
        accounted(trial)
        assert sum(sent["packets"] for sent in trial["sent"]) == sum(w["offered_packets"] for w in counts(trial))
        assert not any(key.startswith("vnf") for key in trial["tester_drops"]), trial


def test_a_router_with_a_table_of_its_own_is_sent_to_its_routes(bench: Bench) -> None:
    """It has no route for plain frames: that is no reason to give up."""
    table = bench.runs.parent / "table.txt"
    table.write_text("".join(f"100.{n // 256}.{n % 256}.0/24\n" for n in range(65_536)))
    chain = f"--chain=firewall,l3fwd:routes={table}"
    options = (f"--direction={WAYS}", "--max-rate=20k", "--no-calibrate")
    bench.run("run", bench.plan, chain, "--traffic=plain,fib:count=10k", "--frame-size=128", *options)
    for trial in bench.trials():
        if trial["point"]["traffic"]:
            accounted(trial)
            assert not any(key.startswith("vnf") for key in trial["tester_drops"]), trial
        else:
            assert trial["verdict"]["kind"] == "invalid"
            assert "dropped by network functions, not by the switch: no_route (vnf1 l3fwd)" in texts_of(trial)


def test_a_chain_of_l2fwd_by_name_is_one_of_its_length_beside_one_of_can17_flat_out(bench: Bench) -> None:
    named = [f"--chain={chain}" for chain in ("l2fwd,l2fwd", "l2fwd", "firewall,l3fwd,l2fwd")]
    done = bench.run("run", bench.plan, "--no-calibrate", *named, f"--direction={WAYS}", "--json")
    results = json.loads(done.stdout)["results"]
    found = {(r["chain"], r["chain_length"]) for r in results}
    assert found == {("l2fwd", 1), ("l2fwd,l2fwd", 2), ("firewall,l3fwd,l2fwd", 3)} and len(results) == 6
    for trial in bench.trials():
        accounted(trial)
        hops = trial["point"]["chain_length"] + 1
        assert trial["switch"]["packets"] >= hops * sum(way["forwarded_packets"] for way in counts(trial))
    header = json.loads((bench.folder / "run.json").read_text())
    assert header["settings"]["chains"].count("firewall,l3fwd,l2fwd") == 1


@pytest.fixture
def rules(bench: Bench) -> Path:
    """Beside the plan: it must not be mistaken for something left behind."""
    return bench.runs.parent / "my.rules"


def test_a_firewall_that_drops_one_direction(bench: Bench, rules: Path) -> None:
    rules.write_text("drop ip from 198.18.1.0/24 to any name=back\npermit ip from any to any\n")
    bench.run(
        "run", bench.plan, "--no-calibrate", f"--chain=firewall:rules={rules}", f"--direction={WAYS}", "--max-rate=20k"
    )
    by_way = {trial["point"]["direction"]: trial for trial in bench.trials()}
    assert_exact(by_way["unidirectional"])
    both = by_way["bidirectional"]
    there, back = counts(both)
    assert both["tester_drops"]["vnf0:rule 1 back"] == back["offered_packets"] and back["forwarded_packets"] == 0
    assert there["forwarded_packets"] > 0
    assert both["verdict"]["kind"] == "invalid"
    said = " ".join(texts_of(both))
    assert "nothing-forwarded" in {reason["code"] for reason in both["verdict"]["reasons"]}
    assert "not by the switch: rule 1 back (vnf0 firewall)" in said


def test_a_firewall_that_drops_everything_is_named(bench: Bench, rules: Path) -> None:
    rules.write_text("permit ip from 10.0.0.0/8 to any\n")
    command = ("run", bench.plan, "--no-calibrate", f"--chain=l2fwd,firewall:rules={rules}")
    said = one_line(bench.run(*command, code=PlanebenchError.exit_code).stderr)
    assert "no frame came through n0->n1, n1->n0: vnf1 (firewall) dropped" in said and "default" in said
