# SPDX-License-Identifier: BSD-3-Clause
"""The man page: every command and option, made when the package is built, without a complaint of man."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
import typer

from planebench.cli.app import app
from planebench.cli.man import commands, example_lines, roff
from planebench.cli.variables import VARIABLES
from planebench.model.errors import EXIT_CODES

needs_man = pytest.mark.skipif(shutil.which("man") is None, reason="man is not here (apt install man-db)")


def plain(page: str) -> str:
    return page.replace("\\-", "-").replace("\\(ti", "~").replace("\\&", "")


def test_everything_is_in_it(planebench) -> None:
    page = plain(planebench("man").out)
    assert page == plain(roff(app))
    for path, command in commands(typer.main.get_command(app)):
        assert f"\n.SS {path}" in page
        for option in (o for p in command.params for o in (*p.opts, *p.secondary_opts) if o.startswith("--")):
            assert option in page, (path, option)
        assert all(f"\n{line}\n" in page for line in example_lines(command))
    for term, words in ({str(code): words for code, words in EXIT_CODES.items()} | VARIABLES).items():
        assert f"\n.TP\n\\fB{term}\\fR\n{words}\n" in page


@needs_man
def test_man_shows_it_without_a_warning(tmp_path: Path) -> None:
    page = tmp_path / "planebench.1"
    page.write_text(roff(app))
    done = subprocess.run(
        ["man", "--warnings", "--local-file", page],
        env={**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "planebench switch check" in done.stdout
    assert "\n.TP" not in done.stdout and "\\f" not in done.stdout


def test_the_build_makes_the_same(tmp_path: Path, planebench) -> None:
    page = tmp_path / "planebench.1"
    subprocess.run([sys.executable, "-m", "planebench.cli.man", page], check=True)
    assert page.read_text() == planebench("man").out


def test_it_is_installed_and_not_stale() -> None:
    """Of an installed package, as in CI; from a source tree there is nothing to look at."""
    try:
        files = distribution("planebench").files or []
    except PackageNotFoundError:
        pytest.skip("planebench is not installed")
    import planebench

    installed = {Path(str(file.locate())).resolve() for file in files}
    if Path(planebench.__file__).resolve() not in installed:
        pytest.skip("these tests run against a source tree")
    (page,) = (path for path in installed if path.name == "planebench.1")
    assert page.parts[-4:] == ("share", "man", "man1", "planebench.1")
    assert page.read_text() == roff(app)
