# SPDX-License-Identifier: BSD-3-Clause
"""Where planebench is started without streams, memory or descriptors, or with a library that does not draw: what was
measured is stored, the exit code is that of the answer, and a line says what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from builders import make_run, store_run

from planebench.model.errors import FAULT, INCONCLUSIVE, INTERRUPTED
from planebench.store import list_runs

RUN = ("run", "quick", "--switch=sim", "--scenario=p2p", "--frame-size=64", "--direction=unidirectional",
       "--duration=0.02", "--repeat=1", "--loads=none")  # fmt: skip
GATE = ("compare", "old", "new", "--fail-below", "0.5")


def limited(limit: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """What the command does after this line of a shell."""
    command = ["sh", "-c", f'{limit}; exec "$@"', "sh", sys.executable, "-m", "planebench", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **variables})


@pytest.mark.parametrize("closed", [(1,), (2,), (0, 1), (0, 1, 2)], ids=str)
def test_closed_streams_change_no_exit_code(own_run_folder: Path, closed: tuple[int, ...]) -> None:
    for name in ("old", "new"):
        store_run(own_run_folder, make_run(("planed",), sizes=(64,), name=name, run_id=name))
    done = limited("exec " + " ".join(f"{fd}>&-" for fd in closed), *GATE)
    assert done.returncode == INCONCLUSIVE
    assert "Traceback" not in done.stderr
    assert bool(done.stdout) == (1 not in closed) and bool(done.stderr) == (2 not in closed)


def test_a_run_without_streams_is_stored(own_run_folder: Path) -> None:
    assert limited("exec <&- >&- 2>&-", *RUN).returncode == 0
    (run,) = list_runs(own_run_folder)
    assert run.finished is not None and run.finished.status == "complete"
    assert (run.path / "report.html").is_file()


def test_full_streams_leave_the_exit_code() -> None:
    assert limited("exec >/dev/full", "list", "scenarios").returncode == 5
    assert limited("exec 2>/dev/full", "list", "nosuch").returncode == 2


@pytest.mark.usefixtures("stored")
def test_what_an_encoding_lacks_is_a_question_mark() -> None:
    done = limited(":", "report", "--all", "--quiet", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    done = limited(":", "papers", "latest", PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and "?" in done.stdout


@pytest.mark.usefixtures("stored")
def test_too_little_memory_is_a_sentence(own_run_folder: Path) -> None:
    done = limited("ulimit -v 200000", "list", "scenarios")
    assert done.returncode == FAULT
    assert done.stderr.startswith("planebench: MemoryError: cannot get 320 MiB; there is too little memory (see ulimit")
    assert done.stderr.count("\n") == 1
    done = limited("ulimit -v 400000", "report", "--quiet")
    assert (done.returncode, done.stderr) == (0, ""), "a page needs no library that takes hundreds of MB"


def test_a_run_with_few_descriptors_is_stored(own_run_folder: Path) -> None:
    done = limited("ulimit -n 12", *RUN)
    assert done.returncode == 0, done.stderr
    (run,) = list_runs(own_run_folder)
    assert run.finished is not None and run.finished.status == "complete"


def test_a_run_stands_without_its_page(planebench, own_run_folder: Path, monkeypatch) -> None:
    def fails(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("planebench.cli.run.write_report", fails)
    done = planebench(*RUN, "--quiet")
    assert done.code == 0
    assert "planebench: the report is left out: MemoryError; there is too little memory" in done.err
    assert list_runs(own_run_folder)[0].finished is not None


CTRL_C_IN_A_DESTRUCTOR = """
import signal, time
from planebench import cli

class Dies:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

def report():
    Dies()
    time.sleep(60)

cli._run = report
cli.main()
"""


def test_ctrl_c_in_a_destructor_still_ends_the_command() -> None:
    """As in the callbacks of pydantic's core, Python cannot raise it there: it printed a traceback and went on."""
    command = [sys.executable, "-c", CTRL_C_IN_A_DESTRUCTOR]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (INTERRUPTED, "")
