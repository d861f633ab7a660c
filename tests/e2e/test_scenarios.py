# SPDX-License-Identifier: BSD-3-Clause
"""Every scenario with every switch, through the command: exact counts in every direction, and the records of the issue.

One run a switch measures all four scenarios; each test looks at its own. No rates: the machine may be busy, and then
no trial counts, but every frame is still accounted for.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest
from e2e_rig import SWITCHES, Bench, Record, assert_exact, counts

from planebench.analysis.ledger import ledger
from planebench.host.netns import VethWire
from planebench.host.process import Supervisor
from planebench.host.programs import Found
from planebench.model.errors import StartError
from planebench.model.header import SCHEMA_VERSION
from planebench.store import read_run
from planebench.switches.registry import ADAPTERS

pytestmark = [pytest.mark.dataplane, pytest.mark.timeout(180)]

WAYS = {"unidirectional": 1, "bidirectional": 2, "reversed": 1}
DIRECTIONS = {
    "p2p": {"unidirectional", "bidirectional"},
    "p2v": {"unidirectional", "bidirectional", "reversed"},
    "v2v": {"unidirectional", "bidirectional"},
    "loopback": {"unidirectional", "bidirectional"},
}
VERDICTS = {"valid", "tester-limited"}


class Measured:
    """A run of one switch: the trials, and what ``--json`` printed."""

    def __init__(self, bench: Bench, *arguments: object, ways: Collection[str] = ()) -> None:
        self.ways = ways
        done = bench.run("run", bench.plan, *arguments, "--json")
        self.err = done.stderr
        self.results: list[Record] = json.loads(done.stdout)["results"]
        self.trials = bench.trials()
        self.finished = bench.finished()
        self.header = json.loads((bench.folder / "run.json").read_text())
        self.run = read_run(bench.folder)
        assert (bench.folder / "report.html").is_file() == bench.page

    def directions(self, scenario: str) -> list[str]:
        """Those of the scenario that were asked for."""
        return sorted(DIRECTIONS[scenario] & {*self.ways})


@pytest.fixture(scope="module", params=[*SWITCHES[:2], pytest.param(SWITCHES[2], marks=pytest.mark.all)])
def measured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Measured]:
    if not isinstance(found := ADAPTERS[request.param].find(), Found):
        pytest.skip(f"{request.param} is not here: {found.remedy}")
    bench = Bench(tmp_path_factory.mktemp(request.param) / "runs", page=request.param == SWITCHES[0])
    ways = WAYS if bench.page else ("bidirectional",)  # each direction alone with every switch: test_paced.py
    all_of = {"switch": request.param, "scenario": ",".join(DIRECTIONS), "direction": ",".join(ways)}
    yield Measured(bench, *(f"--{option}={value}" for option, value in all_of.items()), ways=ways)
    bench.close()


@pytest.mark.parametrize("scenario", DIRECTIONS)
def test_every_frame_is_accounted_for(measured: Measured, scenario: str) -> None:
    trials = [trial for trial in measured.trials if trial["point"]["scenario"] == scenario]
    saturating = [trial for trial in trials if trial["role"] == "r_plus"]
    assert sorted(trial["point"]["direction"] for trial in saturating) == measured.directions(scenario)
    for trial in trials:
        assert_exact(trial)
    for trial in saturating:
        assert len(counts(trial)) == WAYS[trial["point"]["direction"]]
        assert trial["switch"]["packets"] >= sum(way["forwarded_packets"] for way in counts(trial))


def test_no_loss_is_unexplained_at_overload(measured: Measured) -> None:
    trials = [trial for trial in measured.run.trials if trial.role == "r_plus" and trial.offered_duration_ns]
    assert {trial.point.scenario for trial in trials} == set(DIRECTIONS)
    for trial in trials:
        account = ledger(trial)
        assert account.unexplained_packets == 0, (account, trial.switch.drops, trial.tester_drops)


@pytest.mark.parametrize("scenario", DIRECTIONS)
def test_every_result_has_the_fields_of_the_issue(measured: Measured, scenario: str) -> None:
    results = [result for result in measured.results if result["scenario"] == scenario]
    (label,) = (switch["label"] for switch in measured.header["switches"])
    assert sorted(result["direction"] for result in results) == measured.directions(scenario)
    for result in results:
        same = ("switch", "chain_length", "frame_size_bytes", "wire", "hosting")
        assert [result[key] for key in same] == [label, int(scenario == "loopback"), 64, "virtio", "process"]
        assert result["version"] == measured.header["switches"][0]["version"]
        assert result["verdict"] in VERDICTS
        counted = result["throughput_pps"] is not None
        assert counted == (result["throughput_l1_gbps"] is not None) == (result["loss_ratio"] is not None)
        assert counted or result["verdict_reasons"]
        assert isinstance(result["latency_us"], dict)
        assert "switch_cycles_per_packet" in result


def test_the_run_says_that_it_is_complete(measured: Measured) -> None:
    assert measured.finished is not None and measured.finished["status"] == "complete"
    assert measured.header["schema_version"] == SCHEMA_VERSION
    assert "\n1/" in measured.err, "where there is no terminal, a line at once and then every ten seconds"


@pytest.mark.all
def test_a_switch_named_twice_is_measured_twice_with_a_chain_of_three(bench: Bench) -> None:
    run = Measured(bench, "--switch", "planed,planed", "--scenario", "loopback", "--chain-length", "3")
    assert [switch["label"] for switch in run.header["switches"]] == ["planed", "planed#2"]
    assert [result["switch"] for result in run.results] == ["planed", "planed#2"]
    assert {result["chain_length"] for result in run.results} == {3}
    assert {trial["point"]["switch"] for trial in run.trials} == {"planed", "planed#2"}
    for trial in run.trials:
        assert_exact(trial)
        assert trial["switch"]["packets"] >= 4 * sum(way["forwarded_packets"] for way in counts(trial))


@pytest.mark.all
def test_jumbo_frames(bench: Bench) -> None:
    """Through every switch: tests/switches/test_running.py."""
    run = Measured(bench, "--switch", "planed", "--scenario", "v2v", "--frame-size", "9000", "--no-calibrate")
    assert [(result["scenario"], result["frame_size_bytes"]) for result in run.results] == [("v2v", 9000)]
    for trial in run.trials:
        assert_exact(trial)


def test_the_veth_wire(bench: Bench) -> None:
    try:
        with Supervisor(Path("/tmp")) as supervisor:
            VethWire.create(supervisor, ["n0"], cpus=frozenset({0})).close()
    except StartError as error:
        pytest.skip(f"no network namespaces here: {error}")
    run = Measured(bench, "--wire", "veth", "--no-calibrate")
    assert {result["wire"] for result in run.results} == {"veth"}
    for trial in run.trials:
        assert trial["verdict"]["kind"] != "invalid", trial["verdict"]
        for way in counts(trial):
            assert 0 < way["forwarded_packets"] <= way["offered_packets"]
            assert (way["duplicate_packets"], way["corrupt_packets"]) == (0, 0)
