# SPDX-License-Identifier: BSD-3-Clause
"""The files of a gate for CI systems are read by their parsers; the templates fit their schemas."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from planebench.analysis.gate import GateResult
from planebench.report.ci import state_of, to_junit, to_markdown

junitparser = pytest.importorskip("junitparser")  # from the extra dev

ROOT = Path(__file__).parents[2]
NASTY = 'vpp|<b>"&\x00]]>'
PASSES = GateResult("passes", "throughput", "a@old", "a@new", "p2p/64", 0.97, 1.01)
FAILS = GateResult("fails", "capacity", NASTY, NASTY, "p2p/64", 0.97, 0.8, "estimated for b")
OPEN = GateResult("inconclusive", "throughput", "a@old", "", "p2p/64", 0.97, why="the other run does not have it")


def test_junit_has_a_case_for_each_rate(tmp_path: Path) -> None:
    file = tmp_path / "junit.xml"
    file.write_bytes(to_junit([PASSES, FAILS, OPEN]))
    (suite,) = junitparser.JUnitXml.fromfile(str(file))
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (3, 1, 1, 0)
    passed, failed, unknown = suite
    assert passed.is_passed and "1.010" in passed.system_out
    assert failed.result[0].message.endswith("(limit 0.97): estimated for b")
    assert unknown.result[0].type == "inconclusive"


def test_a_gate_that_compared_nothing_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "junit.xml"
    file.write_bytes(to_junit([]))
    (suite,) = junitparser.JUnitXml.fromfile(str(file))
    assert (suite.tests, suite.errors) == (1, 1)
    assert "no rate was compared" in next(iter(suite)).result[0].message
    assert "**The gate is inconclusive.**\n\nno rate was compared" in to_markdown("a", [], [], []).decode()
    assert "gate" not in to_markdown("a", [], None, []).decode()


@pytest.mark.parametrize(
    ("judgements", "state"),
    [([PASSES], "passes"), ([PASSES, OPEN], "inconclusive"), ([PASSES, OPEN, FAILS], "fails"), ([], "inconclusive")],
)
def test_the_state_is_that_of_the_exit_code(judgements: list[GateResult], state: str) -> None:
    assert state_of(judgements) == state


def test_the_summary_shows_names_as_they_are() -> None:
    text = to_markdown(NASTY, [], [FAILS], ["one\nnote"]).decode()
    assert text.startswith("## vpp\\|&lt;b>")
    assert "**The gate fails.**" in text and "> one note" in text
    assert "\x00" not in text


@pytest.mark.parametrize(
    ("schema", "file"),
    [
        ("vendor.github-actions", "action.yml"),
        ("vendor.github-workflows", "docs/examples/ci/github-workflow.yml"),
        ("vendor.gitlab-ci", "docs/examples/ci/gitlab-ci.yml"),
    ],
)
def test_the_templates_fit_their_schemas(schema: str, file: str) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(ROOT / file)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
