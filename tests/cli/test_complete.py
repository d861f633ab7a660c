# SPDX-License-Identifier: BSD-3-Clause
"""What a Tab offers, as bash asks for it, and that the names are those of the modules that know them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from builders import make_run, store_run

from planebench.cli import complete
from planebench.cli.inspect import LISTS
from planebench.plans.load import list_suites
from planebench.traffic.registry import list_profiles

PACKAGE = Path(complete.__file__).parent.parent
# Bash itself breaks the line into words, calls the function that --show-completion gave it, and shows the replies.
SCRIPT = """
eval "$COMPLETION"
COMP_WORDS=()
read_words() {
    local text=$1 word=
    while [[ $text ]]; do
        case ${text:0:1} in
            ' ') COMP_WORDS+=("$word"); word= ;;
            : | =) [[ $word ]] && COMP_WORDS+=("$word"); COMP_WORDS+=("${text:0:1}"); word= ;;
            *) word+=${text:0:1} ;;
        esac
        text=${text:1}
    done
    [[ $word || $1 == *' ' ]] && COMP_WORDS+=("$word")
}
read_words "$LINE"
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_planebench_completion planebench
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def completion() -> str:
    command = [sys.executable, "-m", "planebench", "--show-completion"]
    variables = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run([*command, "bash"], env=variables, capture_output=True, text=True, check=True)
    assert "complete -o default -F _planebench_completion planebench" in done.stdout
    return done.stdout


def tab(line: str, script: str, folder: Path) -> list[str]:
    """What bash offers after this line."""
    program = folder / "bin" / "planebench"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nPYTHONPATH={Path.cwd()} exec {sys.executable} -m planebench "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    variables = {**os.environ, "LINE": line, "COMPLETION": script, "PATH": path}
    done = subprocess.run(
        ["bash", "--norc", "-c", SCRIPT], cwd=folder, env=variables, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes(completion: str, tmp_path: Path, own_run_folder: Path) -> None:
    store_run(own_run_folder, make_run())
    (tmp_path / "mine.yaml").touch()
    cases = {
        "planebench com": ["compare"],
        "planebench run --switch=pl": ["planed"],
        "planebench run --switch sim:capacity=10M,pl": ["10M,planed"],
        "planebench run mi": ["mine.yaml"],
        "planebench report 2026": ["20261121-123356-quick"],
    }
    assert {line: tab(line, completion, tmp_path) for line in cases} == cases


PLACES = sorted(
    place
    for file in ("app", "options")
    for place in re.findall(r'(?:one_of|listed)\("([\w.]+:\w+)"\)', (PACKAGE / f"cli/{file}.py").read_text())
)


@pytest.mark.parametrize("place", dict.fromkeys(PLACES))
def test_there_are_names_to_offer(place: str) -> None:
    first = next(iter(complete.names_in(place)))
    assert first in complete.one_of(place)(first[:2])
    assert first in complete.listed(place)(first[:2])


def test_names_of_files_are_those_that_are_valid() -> None:
    assert list(complete._stems("plans/suites")) == list(list_suites())
    assert list(complete._stems("traffic/profiles")) == list(list_profiles())


def test_every_list_is_offered(planebench) -> None:
    help = " ".join(planebench("list", "--help").out.split())
    for what in LISTS:
        assert planebench("list", what).code == 0
        assert what in help
    assert f"Valid: {', '.join(LISTS)}" in planebench("list", "x").err


def test_a_list_goes_on_after_its_comma() -> None:
    names = complete.listed(("p2p", "p2v", "v2v"))
    assert names("") == ["p2p", "p2v", "v2v"]
    assert names("p2p,") == ["p2p,p2v", "p2p,v2v"]
    assert names("p2p,v") == ["p2p,v2v"]
    assert names("x") == []


def test_files_and_folders(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plans").mkdir()
    for name in ("plans/a.yaml", "b.yml", "c.txt", ".hidden.yaml"):
        (tmp_path / name).touch()
    assert complete.plans("p") == ["plans/"]
    assert complete.plans("plans/") == ["plans/a.yaml"]
    assert complete.plans("b") == ["b.yml"]
    assert complete.plans("c.") == []
    assert complete.plans(".h") == [".hidden.yaml"]
    assert complete.plans("no/such/") == []
    assert complete.traffic("imix,b.") == ["imix,b.yml"]
    assert set(list_suites()) <= set(complete.plans(""))


def test_runs_are_offered_newest_first(own_run_folder: Path) -> None:
    assert complete.runs("") == ["latest"]
    store_run(own_run_folder, make_run())
    store_run(own_run_folder, make_run(run_id="20261122-000000-quick", started_at="2026-11-22T00:00:00Z"))
    broken = own_run_folder / "20261120-000000-broken"
    broken.mkdir()
    (broken / "run.json").write_text("{")
    name = make_run().header.name
    assert complete.runs("") == ["latest", name, "20261122-000000-quick", "20261121-123356-quick", broken.name]
    assert complete.runs("20261122") == ["20261122-000000-quick"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_install_completion(shell: str, tmp_path: Path) -> None:
    variables = {**os.environ, "HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "planebench", "--install-completion", shell],
        env=variables,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{shell} completion installed in {tmp_path}" in " ".join(done.stdout.split())
    written = [path for path in tmp_path.rglob("*planebench*") if path.is_file()]
    assert len(written) == 1
    assert f"_PLANEBENCH_COMPLETE=complete_{shell}" in written[0].read_text()


HEAVY = ("numpy", "scipy", "altair", "duckdb", "pandas", "pyarrow", "hdrh", "psutil", "yaml", "jinja2")


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["man"], "run\n--switch", "figures\n--only"])
def test_help_and_completion_import_nothing_heavy(arguments: list[str] | str) -> None:
    """A user waits for these. A command imports what it needs when it runs. A text is what a shell asks for."""
    asked = {"_PLANEBENCH_COMPLETE": "complete_bash", "COMP_WORDS": f"planebench\n{arguments}\n", "COMP_CWORD": "3"}
    variables = {**os.environ, **(asked if isinstance(arguments, str) else {})}
    code = (
        "import sys, atexit; from planebench.cli import main; sys.argv = ['planebench', *sys.argv[1:]];"
        f"atexit.register(lambda: print([n for n in {HEAVY} if n in sys.modules], file=sys.stderr)); main()"
    )
    given = [] if isinstance(arguments, str) else arguments
    done = subprocess.run([sys.executable, "-c", code, *given], env=variables, capture_output=True, text=True)
    assert done.stdout != ""
    assert (done.returncode, done.stderr) == (0, "[]\n")
