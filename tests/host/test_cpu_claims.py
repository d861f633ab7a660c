# SPDX-License-Identifier: BSD-3-Clause
"""Two processes that would measure on the same CPUs: the second one is refused, with the first one's name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from planebench.host.cpu_claims import SHARE, claimed
from planebench.model.errors import BusyError

CPUS = (40961, 40962, 40963)
"""No machine has these, so that no planebench claims them."""
HOLD = """
import sys
from planebench.host.cpu_claims import claimed
with claimed(map(int, sys.argv[1:])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def claims(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SHARE)


@contextmanager
def another(*cpus: int) -> Iterator[subprocess.Popen[str]]:
    """Another process that has claimed CPUs."""
    command = [sys.executable, "-c", HOLD, *map(str, cpus)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_the_second_on_a_cpu_is_refused_until_the_first_is_gone() -> None:
    with another(*CPUS[:2]) as first:
        with (
            pytest.raises(BusyError, match=rf"on CPU 40962 \(process {first.pid}, .*python.*taskset"),
            claimed(CPUS[1:]),
        ):
            pass
        with claimed(CPUS[2:]):
            pass
        first.kill()  # kill -9: the kernel gives its claims back
        first.wait()
        with claimed(CPUS):
            pass


def test_however_often_it_is_asked_it_answers_at_once() -> None:
    """Nobody accepts those who ask; a queue that is full would hold the next one."""
    with another(*CPUS[:1]) as first:
        for _ in range(20):
            with pytest.raises(BusyError, match=f"process {first.pid}"), claimed(CPUS[:1]):
                pass


def test_a_process_may_claim_its_own_cpus_twice() -> None:
    with claimed(CPUS), claimed(CPUS), another(CPUS[0] + 100):
        pass


def test_whoever_says_so_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    with another(*CPUS):
        monkeypatch.setenv(SHARE, "1")
        with claimed(CPUS):
            pass
