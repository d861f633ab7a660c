# SPDX-License-Identifier: BSD-3-Clause
"""A plan held against this machine: what is shown before a run is what the run measures."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_header

from planebench.host import facts as host_facts
from planebench.host.programs import NotFound
from planebench.measure.session import changes, open_session
from planebench.measure.sim.adapter import SimAdapter
from planebench.measure.survey import refusals, survey
from planebench.model.errors import NotInstalledError, UsageError
from planebench.model.header import Build
from planebench.plan.expand import expand
from planebench.plan.override import override
from planebench.plan.schema import load_plan
from planebench.store import read_run
from planebench.switches.adapter import Situation
from planebench.switches.registry import get_adapter

QUICK = override(load_plan("quick"), switch="sim", frame_size="64", direction="unidirectional", loads="none", repeat=2)


@pytest.fixture
def hungry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A switch that runs with hugepages only, and has no p2v."""

    def refusal(self: SimAdapter, situation: Situation) -> str:
        return "it needs hugepages" if not situation.hugepages else "no p2v" if situation.scenario == "p2v" else ""

    monkeypatch.setattr(SimAdapter, "refusal", refusal)


def test_refusals_are_asked_with_the_hugepages_of_the_run(hungry: None) -> None:
    held = survey(QUICK, hugepages=True)
    assert {point.scenario for point in held.absent} == {"p2v"} and held.required() is held
    assert not survey(QUICK, hugepages=False).measured
    with pytest.raises(UsageError, match="nothing to measure on this machine: sim: not supported: it needs hugepages"):
        survey(QUICK, hugepages=False).required()


def test_plan_show_shows_what_run_measures(hungry: None, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    from planebench.cli.lists import show_plan
    from planebench.measure import survey as module

    monkeypatch.setattr(module, "enough_hugepages", lambda wanted, facts, mb: True)
    options = {"switch": "sim", "scenario": "p2p,p2v", "frame_size": "64", "direction": "unidirectional"}
    show_plan("quick", options, json=True)
    shown = json.loads(capsys.readouterr().out)
    measured = [point["id"] for point in shown["points"] if not point["left_out"]]
    assert measured == [point.point_id for point in survey("quick", options).measured]
    assert measured == ["sim/p2p/unidirectional/64/virtio/process"]


def test_a_refused_point_costs_no_trial_and_is_left_out_with_its_reason(hungry: None, tmp_path: Path) -> None:
    session = open_session(survey(QUICK, hugepages=True), runs_dir=tmp_path)
    assert session.measure() == "complete"
    run = read_run(session.folder)
    assert "p2v" not in {trial.point.scenario for trial in run.trials} and run.trials
    assert [(entry.what, entry.reason) for entry in run.skipped] == [("sim p2v", "not supported: no p2v")]


def test_a_switch_that_is_not_installed_is_left_out_only_if_the_plan_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    vpp = type(get_adapter("vpp"))
    monkeypatch.setattr(vpp, "find", lambda self: NotFound("apt-get install vpp"))
    with pytest.raises(NotInstalledError, match='switch "vpp" is not installed; to install: apt-get install vpp'):
        survey(override(QUICK, switch="sim,vpp")).required()
    optional = dataclasses.replace(override(QUICK, switch="sim,vpp"), missing_switches="skip")
    held = survey(optional).required()
    assert [label.label for label in held.labels] == ["sim"]
    assert [(e.what, e.reason) for e in held.skipped] == [("vpp", "not installed; to install: apt-get install vpp")]


def test_a_chain_whose_program_is_not_installed_is_left_out_only_if_the_plan_allows() -> None:
    chain = "exec:no-such-vnf {eal}"
    plan = override(QUICK, chain=("l3fwd", chain))
    held = survey(dataclasses.replace(plan, missing_hostings="skip"))
    why = "no-such-vnf is not installed; to install: give its path with PLANEBENCH_NO_SUCH_VNF"
    assert {why} == {entry.reason for entry in held.skipped if "no-such-vnf" in entry.what}
    assert [{point.chain for point in it.measured} for it in (held, survey(plan))] == [{"l3fwd"}, {"l3fwd", chain}]
    with pytest.raises(NotInstalledError, match=f"^{why}$"):
        survey(override(QUICK, switch="planed", chain=(chain,))).required()


def test_more_cores_of_a_switch_than_cpus_are_refused_with_those_that_are_valid() -> None:
    for allowed, valid in (((0, 1), "Valid here: 1"), ((0, 1, 5), "Valid here: 1 to 2"), ((7,), "Valid here: 1")):
        facts = dataclasses.replace(host_facts.collect(), cpus_allowed=allowed)
        for cores in (count for count in (2, 3, 4) if count > len(allowed)):
            with pytest.raises(UsageError, match=rf"^--switch-cores: {cores} is not possible: .*{valid}$"):
                survey(override(QUICK, switch="planed", switch_cores=cores), facts=facts)
        survey(override(QUICK, switch="planed", switch_cores=len(allowed)), facts=facts)
        survey(override(QUICK, switch="sim", switch_cores=4), facts=facts)


REAL = override(load_plan("conext19"), switch="planed", scenario="p2p", frame_size="64")


def test_a_run_has_the_time_that_is_stated_where_there_may_be_further_passes() -> None:
    held = survey(REAL)
    limited = held.limited()
    assert limited.plan.time_budget_s == held.at_most_s
    assert (limited.takes_words, limited.limited()) == (held.takes_words, limited)
    fixed = survey(override(REAL, repeat=3))
    assert fixed.limited() is fixed and "at most" not in fixed.takes_words
    own = held.within("10m")
    assert own.limited() is own and own.at_most_s <= 600


def test_loads_that_a_time_budget_leaves_out_are_told() -> None:
    plan = override(load_plan("quick"), switch="sim,sim", scenario="p2p,v2v")
    told = [entry.what for entry in survey(plan).within("75s").skipped]
    assert "latency at 10 %, 90 % of its load" in told
    assert not any("latency" in entry.what for entry in survey(plan).within("10m").skipped)


def test_a_plan_that_is_longer_than_its_time_budget_says_so_and_is_measured() -> None:
    short = survey(REAL).within("10s")
    assert short.required().takes_s > 1
    assert short.takes_words == (
        "about 8 s of measuring: longer than the 1 s that the time budget leaves for it; fewer switches, scenarios or "
        "frame sizes take less"
    )


def test_a_run_is_not_continued_with_another_build_of_a_switch() -> None:
    header = make_header()
    (switch, *others) = header.switches
    old = replace(header, switches=(replace(switch, build=Build({"it": "1", "librte_*": "2"})), *others))
    new = replace(header, switches=(replace(switch, build=Build({"it": "1", "librte_*": "3"})), *others))
    assert list(changes(old, new)) == [f"{switch.label} is another build: librte_*"]
    assert list(changes(old, old)) == list(changes(header, new)) == [], "or a run that did not tell"
    version = replace(new, switches=(replace(switch, version="9"), *others))
    assert [text.partition(" was ")[0] for text in changes(old, version)] == [switch.label]


@pytest.mark.parametrize(("cores", "refused"), [(1, True), (2, False)])
def test_queues_that_a_switch_has_no_core_for_are_refused(cores: int, refused: bool) -> None:
    plan = override(load_plan("quick"), switch="vpp:workers=2", wire="memif", scenario="p2p")
    points = expand(plan)
    adapters = {"vpp": get_adapter("vpp:workers=2")}
    found = refusals(plan, points, adapters, hugepages=False, switch_cores=cores)
    assert found.keys() == (set(points) if refused else set())
    assert all("give --switch-cores 2" in words for words in found.values())
