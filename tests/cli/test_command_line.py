# SPDX-License-Identifier: BSD-3-Clause
"""What holds for every command: help with examples, JSON alone on its output, quiet, colours, pipes, no traceback."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from builders import EXIT_CODES
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planebench import __version__ as planebench_version
from planebench.cli.app import app
from planebench.cli.options import EVERYDAY
from planebench.measure.doctor import Finding
from planebench.model.errors import CLOSED_PIPE
from planebench.model.header import Run

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from docs_pages import command_tree

TREE = typer.main.get_command(app)
COMMANDS = dict(command_tree(TREE))
COLOUR = re.compile(r"\x1b\[(?:[\d;]*;)?[34]\d")


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_has_help_with_examples(planebench, path: str) -> None:
    done = planebench(*path.split()[1:], "--help")
    assert (done.code, done.err) == (0, "")
    lines = [line for line in COMMANDS[path].epilog.split("\n\n") if line != "Examples:"]
    assert lines and all(path in line for line in lines)
    assert all(line in " ".join(done.out.split()) for line in lines)


def test_no_command_at_all_is_a_question_for_help(planebench) -> None:
    done = planebench()
    assert (done.code, done.err) == (0, "")
    assert all(name in done.out for name, command in TREE.commands.items() if not command.hidden)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["reprot"], ("'reprot'", "Did you mean 'report'", "planebench --help")),
        (["run", "--scenarios", "p2p"], ("--scenarios", "--scenario", "planebench run --help")),
        (["plan"], ("Missing command", "planebench plan --help")),
        (["list"], ("Missing argument", "planebench list --help")),
        (["testbed", "calibrate", "--ring-size", "many"], ("--ring-size", "planebench testbed calibrate --help")),
        (["export", "--json", "--format", "csv"], ("--json and --format csv are mutually exclusive",)),
    ],
)
def test_a_bad_command_line_is_told_in_a_line(planebench, command: list[str], words: tuple[str, ...]) -> None:
    done = planebench(*command)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("planebench: ") and done.err.count("\n") == 1
    assert all(word in done.err for word in words), done.err


def test_there_are_few_commands() -> None:
    assert len(TREE.commands) <= 16
    assert [name for name, command in TREE.commands.items() if command.hidden] == ["machine"]


def test_everyday_options_fit_two_screens_and_all_are_there(planebench, monkeypatch) -> None:
    for path in ("run", "plan show"):
        command = COMMANDS[f"planebench {path}"]
        flags = {it.name: max(it.opts, key=len) for it in command.params if it.param_type_name == "option"}
        with monkeypatch.context() as patched:
            patched.setattr("shutil.get_terminal_size", lambda *_: os.terminal_size((80, 24)))
            done = planebench(*path.split(), "--help")
        assert done.code == 0
        shown = [flag for flag in re.findall(r"^│ (--[a-z0-9-]+)", done.out, re.MULTILINE) if flag != "--help"]
        assert shown == [*(flags[name] for name in EVERYDAY if name in flags), "--help-all"]
        everything = planebench(*path.split(), "--help-all")
        assert (everything.code, everything.err) == (0, "")
        assert sorted(re.findall(r"^│ (--[a-z0-9-]+)", everything.out, re.MULTILINE)) == sorted(
            [*flags.values(), "--help"]
        )


def test_help_of_a_run_on_80_columns() -> None:
    for path in (["run"], ["plan", "show"]):
        command = [sys.executable, "-m", "planebench", *path, "--help"]
        done = subprocess.run(command, env={**os.environ, "COLUMNS": "80"}, capture_output=True, text=True, check=True)
        assert len(done.stdout.splitlines()) <= 60


def test_a_version_needs_no_command() -> None:
    program = (
        "import sys; sys.argv = ['planebench', '--version']\nfrom planebench.cli import main\ntry: main()\nfinally: "
    )
    program += "assert not {'typer', 'rich', 'numpy'} & {*sys.modules}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (f"planebench {planebench_version}\n", "")


def test_charts_and_data_have_formats_and_options_of_their_own(planebench, stored: Run) -> None:
    for words, said in (
        (["--format", "pdf"], '"pdf"'),
        (["--format", "svg", "--table", "trials"], "--table and --format svg are mutually exclusive"),
        (["--only", "chain"], "--only applies only to charts: --format svg"),
        (["--format", "csv", "--width-mm", "84"], "--width-mm applies only to charts"),
    ):
        done = planebench("export", *words)
        assert (done.code, done.out) == (2, "") and said in done.err, words


@pytest.fixture
def without_charts(stored: Run, monkeypatch, tmp_path: Path) -> Run:
    """A stored run, and a page and pictures that take no time: what is in them is tested elsewhere."""
    monkeypatch.chdir(tmp_path)
    page = SimpleNamespace(to_html=lambda derived: b"<!doctype html>")
    monkeypatch.setitem(sys.modules, "planebench.report.html", page)
    pictures = SimpleNamespace(write_figures=lambda run, out, only, width: [out / "p2p.svg"])
    monkeypatch.setitem(sys.modules, "planebench.report.images", pictures)
    return stored


JSON_COMMANDS = {
    "report": ["report"],
    "export": ["export"],
    "figures": ["export", "--out", "DIR", "--format", "svg"],
    "compare": ["compare", "--force"],
    "list": ["list", "runs"],
    "switches": ["list", "switches"],
    "plan-show": ["plan", "show", "quick"],
    "doctor": ["doctor"],
    "switch-show": ["switch", "show", "planed"],
    "run": ["run", "--switch", "sim", "--scenario", "p2p", "--duration", "0.02", "--repeat", "1", "--loads", "none"],
}


OTHER_OUTPUT = {
    "agent": "speaks to another planebench",
    "run-job": "a log",
    "man": "roff",
    "manifest": "YAML",
    "fib": "each of its commands has its own options",
}
"""Last word of the commands that have no --json, and what they print instead."""


def test_every_other_command_has_json() -> None:
    lacking = [path for path, command in COMMANDS.items() if not any("--json" in it.opts for it in command.params)]
    assert [path for path in lacking if path.split()[-1] not in OTHER_OUTPUT] == []


def test_json_is_alone_on_standard_output(planebench, without_charts: Run, own_run_folder: Path) -> None:
    documents = {}
    for name, command in JSON_COMMANDS.items():
        done = planebench(*command, "--json")
        assert done.code in (0, 1), name
        documents[name] = json.loads(done.out)
        assert isinstance(documents[name], dict)
    document, exported = documents["report"], documents["export"]
    assert documents["figures"] == {"figures": ["DIR/p2p.svg"]}
    page = own_run_folder / without_charts.header.run_id / "report.html"
    assert document == {"run": without_charts.header.run_id, "report": str(page), **exported}
    assert page.is_file()


def test_quiet_says_only_what_is_wrong(planebench, without_charts: Run, monkeypatch) -> None:
    for name in ("report", "figures", "compare", "run"):
        done = planebench(*JSON_COMMANDS[name], "--quiet")
        assert (done.code, done.out, done.err) == (0, "", ""), name
    gate = planebench("compare", without_charts.header.run_id, "--fail-below", "1.9", "--quiet")
    assert (gate.code, gate.out) == (1, "")
    assert "fails" in gate.err
    found = (Finding("a", "the core sleeps", "wake it", "problem"), Finding("b", "it rains", "wait"))
    monkeypatch.setattr("planebench.cli.doctor.diagnose", lambda: found)
    done = planebench("doctor", "--quiet")
    assert (done.code, done.out, done.err) == (1, "", "planebench: problem: the core sleeps -> wake it\n")


def on_a_terminal(*arguments: str, **variables: str) -> str:
    """What the command writes where standard output is a terminal."""
    leader, follower = pty.openpty()
    usual = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    command = [sys.executable, "-m", "planebench", *arguments]
    process = subprocess.Popen(
        command, stdin=follower, stdout=follower, stderr=follower, env={**usual, "TERM": "xterm-256color", **variables}
    )
    os.close(follower)
    written = b""
    try:
        while chunk := os.read(leader, 1 << 16):
            written += chunk
    except OSError:  # the end, as Linux tells it
        pass
    os.close(leader)
    assert process.wait() in EXIT_CODES
    return written.decode()


def test_colours() -> None:
    assert COLOUR.search(on_a_terminal("--help"))
    assert not COLOUR.search(on_a_terminal("--help", NO_COLOR="1"))
    assert "\x1b" not in on_a_terminal("--help", TERM="dumb")
    assert not COLOUR.search(on_a_terminal("doctor", NO_COLOR="1"))


@pytest.mark.parametrize("arguments", [["list", "scenarios"], ["list", "traffic", "--json"], ["--help"]])
def test_a_pipe_that_closes_early_ends_it_without_a_word(arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "planebench", *arguments]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (done.returncode, done.stderr) == (CLOSED_PIPE, "")


VALUES = st.one_of(
    st.sampled_from(
        ["", ",", "0", "-1", "nan", "inf", "1e400", "9" * 30, "no/such.yaml", "/", "/dev/null", "..", "p2p"]
    ),
    st.sampled_from(["planed:", "sim:capacity=", "sim:capacity=-1", "sim::", "a=b", "l3fwd:routes=/", "pcap:path=/"]),
    st.text(st.characters(exclude_characters="\x00", exclude_categories=("Cs",)), max_size=8),
)
QUESTIONS = ("plan show", "list", "switch show", "report", "export", "compare", "nosuch")
"""Commands that start nothing, whatever they are given."""


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    path = draw(st.sampled_from(QUESTIONS))
    command = COMMANDS.get(f"planebench {path}")
    options = [o for p in command.params for o in p.opts if o.startswith("--")] if command else ["--runs"]
    line = [*path.split(), *draw(st.lists(VALUES, max_size=2))]
    for option in draw(st.lists(st.sampled_from([*options, "--no-such"]), max_size=2)):
        line += [option, draw(VALUES)]
    return line


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(line=command_lines())
@pytest.mark.usefixtures("without_charts")
def test_bad_values_never_end_in_a_traceback(planebench, line: list[str]) -> None:
    done = planebench(*line)
    assert done.code in (0, 1, 2, 5), line
    assert "Traceback" not in done.err
    if done.code in (2, 5):
        assert done.err.startswith("planebench: ") and done.err.count("\n") == 1, line
        assert done.out == "" or line[0] == "report", line  # its table is there before its page cannot be written
