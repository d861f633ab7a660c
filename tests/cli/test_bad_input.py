# SPDX-License-Identifier: BSD-3-Clause
"""What bad input gets: exit code 2 and one sentence with the valid values, before anything is started or stored."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import EXIT_CODES

from planebench.host.planed_program import PLANED_ENV
from planebench.model.errors import (
    CLOSED_PIPE,
    FAULT,
    INCONCLUSIVE,
    INTERRUPTED,
    NotInstalledError,
    PlanebenchError,
    UsageError,
)

PLAN = """
version: 1
name: mine
switches: [planed]
scenarios: [p2p]
frame_sizes_bytes: [64]
throughput: {duration_s: 0.1, repetitions: 1}
latency: {loads: [], duration_s: 0.1}
"""


def assert_one_sentence(err: str, *words: str) -> None:
    assert err.startswith("planebench: ")
    assert err.count("\n") == 1 and err.endswith("\n")
    assert "Traceback" not in err
    for word in words:
        assert word in err


BAD_OPTIONS = {
    "switch": (["--switch", "plane"], ('"plane"', "did you mean planed?", "planed, ovs-dpdk, testpmd")),
    "one-bad-switch-of-two": (["--switch", "planed,hub"], ('"hub"', "planed, ovs-dpdk, testpmd")),
    "empty-switch": (["--switch", "planed,"], ("empty entry",)),
    "scenario": (["--scenario", "p2q"], ('"p2q"', "p2p, p2v, v2v, loopback")),
    "scenario-with-length": (["--scenario", "loopback-6"], ("chain length", "1..5")),
    "two-lengths": (["--scenario", "pvp", "--chain-length", "2"], ("leave out --chain-length",)),
    "switch-in-capitals": (["--switch", "PLANE"], ("did you mean planed?",)),
    "size-too-small": (["--frame-size", "63"], ('"63"', "64..1518 and 9000")),
    "size-too-large": (["--frame-size", "64,1519"], ('"1519"', "64..1518 and 9000")),
    "size-not-a-number": (["--frame-size", "big"], ('"big"', "64..1518 and 9000")),
    "direction": (["--direction", "up"], ('"up"', "unidirectional, bidirectional, reversed")),
    "direction-of-no-scenario": (
        ["--scenario", "p2p", "--direction", "reversed"],
        ("nothing to measure", "unidirectional, bidirectional"),
    ),
    "chain-length": (["--scenario", "loopback", "--chain-length", "6"], ('"6"', "1..5")),
    "chain-length-of-p2p": (["--scenario", "p2p", "--chain-length", "2"], ("applies only to loopback",)),
    "chain": (
        ["--chain", "l2fw"],
        ('unknown network function "l2fw", did you mean l2fwd? Valid: l2fwd, l3fwd, firewall',),
    ),
    "loads": (["--loads", "1.5"], ('"1.5"', "at most 1")),
    "duration": (["--duration", "0"], ('"0.0"', "greater than 0")),
    "duration-nan": (["--duration", "nan"], ('"nan"', "is not valid: input should be")),
    "repeat": (["--repeat", "0"], ('"0"', "greater than or equal to 1")),
}
RUN_ONLY = {
    "wire": (["--wire", "rope"], ('"rope"', "virtio, memif, vhost, veth")),
    "ring-size": (["--ring-size", "100"], ('"100"', "64, 128, 256")),
    "seed": (["--seed", "-1"], ('"-1"', "greater than or equal to 0")),
    "name": (["--name", "../x"], ('"../x"', "letters, digits")),
    "suite": (["quik"], ('"quik"', "did you mean quick?")),
    "plan-file": (["no/such.yaml"], ("no/such.yaml cannot be read: No such file",)),
}


@pytest.mark.parametrize(("options", "words"), (BAD_OPTIONS | RUN_ONLY).values(), ids=BAD_OPTIONS | RUN_ONLY)
def test_a_bad_option_of_run(planebench, own_run_folder: Path, options: list[str], words: tuple[str, ...]) -> None:
    done = planebench("run", *options)
    assert (done.code, done.out) == (2, "")
    assert_one_sentence(done.err, *words)
    assert list(own_run_folder.iterdir()) == []


def test_a_bad_rule_of_a_chain(planebench, own_run_folder: Path, tmp_path: Path) -> None:
    rules = tmp_path / "my.rules"
    rules.write_text("# fine\npermit udp frm any to any\n")
    done = planebench("run", "quick", f"--chain=firewall:rules={rules}")
    assert (done.code, done.out) == (2, "")
    assert_one_sentence(done.err, "my.rules:2")
    assert list(own_run_folder.iterdir()) == []


@pytest.mark.parametrize(("options", "words"), BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_the_same_option_of_plan_show(planebench, options: list[str], words: tuple[str, ...]) -> None:
    done = planebench("plan", "show", *options)
    assert (done.code, done.out) == (2, "")
    assert_one_sentence(done.err, *words)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("name: mine", "name: mine\nwires: veth", ('unknown key "wires"', "did you mean wire?")),
        ("version: 1", "version: 2", ("version",)),
        ("frame_sizes_bytes: [64]", "frame_sizes_bytes: [50]", ('"50"', "64..1518 and 9000")),
        ("repetitions: 1", "repetition: 1", ("throughput.repetition", "throughput.repetitions")),
        ("scenarios: [p2p]", "scenarios: [p2q]", ('"p2q"', "p2p, p2v, v2v, loopback")),
        ("switches: [planed]", "switches: [nosuch]", ('"nosuch"', "planed, ovs-dpdk, testpmd")),
        ("switches: [planed]", "switches: [planed", ("is not YAML",)),
        ("switches: [planed]", "wire: rope\nswitches: [planed]", ("wire", "rope")),
        ("name: mine", "", ("key name is missing",)),
        ("loads: []", "loads: [[0.1, 0.5]]", ("latency.loads.0",)),
        ("switches: [planed]", "switches: [planed]\nleft_out: &a [*a]", ("the plan is not valid: Circular reference",)),
    ],
)
def test_a_bad_plan_file(planebench, tmp_path: Path, old: str, new: str, words: tuple[str, ...]) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN.replace(old, new))
    for command in (["run", path], ["plan", "show", path]):
        done = planebench(*command)
        assert (done.code, done.out) == (2, "")
        assert_one_sentence(done.err, *words)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["list", "switchs"], ('"switchs"', "did you mean switches?", "vnfs, hostings, scenarios, suites, runs")),
        (["export", "latest", "--format", "xml"], ('"xml"', "csv, json")),
        (["export", "nosuch"], ("'nosuch'", "Give one of: latest, 20261121-123356-quick")),
        (["report", "nosuch"], ("'nosuch'", "latest")),
        (["report", "--html", "/no/such/folder/x.html"], ("/no/such/folder/x.html", "No such file")),
        (["export", "--out", "/no/such/folder/x.json"], ("/no/such/folder/x.json", "No such file")),
    ],
)
@pytest.mark.usefixtures("stored")
def test_a_bad_argument_of_the_other_commands(planebench, command: list[str], words: tuple[str, ...]) -> None:
    done = planebench(*command)
    assert done.code == 2
    assert_one_sentence(done.err, *words)


@pytest.mark.parametrize("command", ["report", "export"])
def test_no_run_at_all(planebench, command: str) -> None:
    done = planebench(command)
    assert (done.code, done.out) == (2, "")
    assert_one_sentence(done.err, "holds no runs", "planebench run quick")


@pytest.mark.parametrize(
    ("command", "word"),
    [
        (["run", "--no-such-option"], "--no-such-option"),
        (["nosuch"], "nosuch"),
        (["run", "--duration", "long"], "--duration"),
        (["run", "--loads"], "--loads"),
        (["list"], "what"),
    ],
)
def test_what_the_command_line_does_not_know(planebench, command: list[str], word: str) -> None:
    done = planebench(*command)
    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err
    assert word in done.err.lower()


def test_a_switch_asked_for_by_name_must_be_there(planebench, own_run_folder: Path, monkeypatch) -> None:
    monkeypatch.setattr("planebench.host.programs.find_program", lambda _: None)
    done = planebench("run", "--switch", "planed,testpmd", "--scenario", "p2p")
    assert (done.code, done.out) == (NotInstalledError.exit_code, "") == (3, "")
    assert_one_sentence(done.err, '"testpmd"', "not installed", "apt")
    assert list(own_run_folder.iterdir()) == []


def test_without_planed_nothing_can_be_measured(planebench, own_run_folder: Path, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv(PLANED_ENV, str(tmp_path / "nothing"))
    for options in (["--switch", "planed"], ["--switch", "testpmd", "--scenario", "p2p"], []):
        done = planebench("run", *options)
        assert (done.code, done.out) == (3, "")
        assert_one_sentence(done.err, "planed", PLANED_ENV)
    assert list(own_run_folder.iterdir()) == []


def test_a_run_folder_that_cannot_be_made(planebench, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = planebench("run", "--switch", "planed", "--scenario", "p2p", "--runs", tmp_path / "file")
    assert (done.code, done.out) == (5, "")
    assert_one_sentence(done.err, "cannot make a run folder", "PLANEBENCH_RUNS")


def test_every_error_has_its_exit_code() -> None:
    kinds = {kind.__name__: kind.exit_code for kind in (PlanebenchError, *PlanebenchError.__subclasses__())}
    assert kinds["UsageError"] == UsageError.exit_code == 2
    answers = {0, 1, INCONCLUSIVE}
    assert set(kinds.values()) == set(EXIT_CODES) - answers - {FAULT, INTERRUPTED, CLOSED_PIPE}
