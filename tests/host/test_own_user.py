# SPDX-License-Identifier: BSD-3-Clause
"""A user of its own: whose it is, and what it is shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from planebench.host import own_user
from planebench.host.launch import STAGE
from planebench.host.own_user import OwnUser, free_uid
from planebench.host.process import Supervisor

CPUS = frozenset(os.sched_getaffinity(0))


def test_each_has_its_own_and_only_root_gives_them(monkeypatch: pytest.MonkeyPatch) -> None:
    given = [free_uid() for _ in range(100)]
    if os.geteuid() == 0 and given[0] is not None:
        assert len(set(given)) == 100
        monkeypatch.setattr(own_user, "_mapped", lambda: False)
        assert free_uid() is None, "in a user namespace with few users"
        monkeypatch.undo()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert free_uid() is None


@pytest.mark.root
def test_it_sees_what_it_is_shown_and_owns_nothing_else(tmp_path: Path) -> None:
    if (uid := free_uid()) is None:
        pytest.skip("not root, or without the rights of root")
    tmp_path.chmod(0o700)
    for name, mode in (("open", 0o644), ("closed", 0o600)):
        (tmp_path / name).write_text(f"it is {name}\n")
        (tmp_path / name).chmod(mode)
    (tmp_path / "own").mkdir()
    os.chown(tmp_path / "own", uid, uid)
    shown = OwnUser(uid, (tmp_path / "open", tmp_path / "closed", tmp_path / "own", Path("/dev/null")))
    opened, closed, own, null = (f"{STAGE}/{number}" for number in range(4))
    script = (
        f"id -u; cat {opened}; cat {closed}; touch {own}/made; echo > {null}; echo x > /etc/made; "
        "echo to the log >> /dev/stderr"
    )
    with Supervisor(Path("/tmp")) as supervisor:
        process = supervisor.spawn("it", ["sh", "-c", script], cpus=CPUS, user=shown)
        assert process.wait(20) == 0
        said = process.log_tail(20)
    assert said.splitlines()[:2] == ["0", "it is open"] and "it is closed" not in said
    assert said.count("ermission denied") == 2 and said.endswith("to the log"), said
    assert (tmp_path / "own" / "made").stat().st_uid == uid


@pytest.mark.root
def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    if (uid := free_uid()) is None:
        pytest.skip("not root, or without the rights of root")
    with Supervisor(Path("/tmp")) as supervisor:
        process = supervisor.spawn("it", ["true"], cpus=CPUS, user=OwnUser(uid, (tmp_path / "missing",)))
        assert process.wait(20) == 126
        assert "missing" in process.log_tail() and "Traceback" not in process.log_tail()
