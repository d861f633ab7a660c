# SPDX-License-Identifier: BSD-3-Clause
"""Bisections of real repositories with simulated figures, few seeds: bench/trends.py has the bar."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import trends

from planebench.model.errors import UsageError
from planebench.running.bisection import Bisection


def checked_out(folder: Path) -> int:
    return int((folder / "number").read_text())


@pytest.mark.parametrize("seed", range(3))
def test_a_regression_among_64_commits_is_found_in_8_builds(tmp_path: Path, seed: int) -> None:
    found, guilty = trends.bisected(seed, tmp_path)
    assert found.first_bad == guilty
    assert found.builds <= trends.BUILDS_MAX and found.sure
    assert found.series == "vpp p2p"


def test_the_working_tree_is_what_it_was(tmp_path: Path) -> None:
    commits = trends.make_repository(tmp_path, 9)
    Bisection(tmp_path, lambda: True, lambda: {"a": 10.0 - checked_out(tmp_path) // 5}).find(commits[0], commits[-1])
    assert checked_out(tmp_path) == 8
    branch = subprocess.run(["git", "-C", str(tmp_path), "branch", "--show-current"], capture_output=True, text=True)
    assert branch.stdout == "main\n"
    assert not (tmp_path / ".git" / "BISECT_START").exists()


def test_a_commit_that_does_not_build_is_skipped(tmp_path: Path) -> None:
    commits = trends.make_repository(tmp_path, 17)
    broken = Bisection(tmp_path, lambda: checked_out(tmp_path) != 8, lambda: {"a": 10.0 - checked_out(tmp_path) // 12})
    found = broken.find(commits[0], commits[-1])
    assert found.first_bad == commits[12]
    assert found.judged[0].side is None


def test_a_spent_budget_says_what_is_left(tmp_path: Path) -> None:
    commits = trends.make_repository(tmp_path, 33)
    short = Bisection(tmp_path, lambda: True, lambda: {"a": 10.0 - checked_out(tmp_path) // 20}, builds_max=4)
    found = short.find(commits[0], commits[-1])
    assert (found.first_bad, found.builds) == ("", 4)
    assert 0 < found.left < 32


def test_ends_that_do_not_differ_end_it(tmp_path: Path) -> None:
    commits = trends.make_repository(tmp_path, 5)
    with pytest.raises(UsageError, match="do not differ in 3 and 8 runs"):
        Bisection(tmp_path, lambda: True, lambda: {"a": 10.0}).find(commits[0], commits[-1])


def test_changed_files_and_wrong_ends_are_refused(tmp_path: Path) -> None:
    commits = trends.make_repository(tmp_path, 5)
    bisection = Bisection(tmp_path, lambda: True, lambda: {"a": 10.0})
    with pytest.raises(UsageError, match="there is no commit from"):
        bisection.find(commits[-1], commits[0])
    with pytest.raises(UsageError, match="git rev-parse"):
        bisection.find("nowhere", commits[-1])
    (tmp_path / "number").write_text("changed")
    with pytest.raises(UsageError, match="commit or stash"):
        bisection.find(commits[0], commits[-1])
