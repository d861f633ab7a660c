# SPDX-License-Identifier: BSD-3-Clause
"""Where control groups of a VNF are made on machines of all kinds, and what is said where they cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from planebench.host import procfs
from planebench.host.process import Supervisor
from planebench.model.errors import StartError
from planebench.testbed.hosting import inside
from planebench.testbed.hosting.base import HostedRequest
from planebench.testbed.hosting.inside import VnfLimits

V2 = "cgroup2 {root} cgroup2 rw,nosuid,memory_recursiveprot 0 0"
V1 = "\n".join(
    (
        "tmpfs {root} tmpfs rw 0 0",
        "cgroup {root}/memory cgroup rw,relatime,memory 0 0",
        "cgroup {root}/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0",
        "cgroup {root}/pids cgroup rw,relatime,pids 0 0",
        "cgroup {root}/systemd cgroup rw,xattr,name=systemd 0 0",
    )
)


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    with Supervisor(Path("/tmp")) as it:
        yield it


def machine(monkeypatch: pytest.MonkeyPatch, root: Path, mounts: str, groups: str, files: dict[str, str]) -> None:
    """A machine with these hierarchies, these groups of ours, and these files in them."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    texts = {"/proc/self/mounts": mounts.format(root=root), "/proc/self/cgroup": groups}
    monkeypatch.setattr(inside, "read_text", lambda path: texts.get(str(path), procfs.read_text(path)))


def request(workdir: Path) -> HostedRequest:
    return HostedRequest("vnf0", (), {}, None, (), (0,), frozenset({0}), workdir, Path("/planed"))


def test_version_2_makes_it_where_the_controllers_are_passed_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, supervisor: Supervisor
) -> None:
    files = {
        "cgroup.procs": "",
        "cgroup.subtree_control": "cpu memory pids",
        "user.slice/cgroup.procs": "",
        "user.slice/cgroup.subtree_control": "memory pids",
        "user.slice/session/cgroup.procs": "",
        "user.slice/session/cgroup.subtree_control": "",
    }
    machine(monkeypatch, tmp_path, V2, "0::/user.slice/session", files)
    assert inside.parent_group("memory") == inside.parent_group("pids") == tmp_path / "user.slice"
    assert inside.everywhere() == (tmp_path / "user.slice",)
    assert inside.as_parent("x") == "/user.slice/x"
    limited = inside.limit(request(supervisor.workdir("w")), VnfLimits(100, 9), supervisor)
    assert limited.groups == (tmp_path / "user.slice" / f"{supervisor.root.name}-w-vnf0",)
    assert limited.words == "100 MiB of memory by a control group; 9 processes by a control group"
    limited.remove()
    assert not limited.groups[0].exists()


def test_version_1_makes_one_in_each_hierarchy_below_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, supervisor: Supervisor
) -> None:
    folders = ("memory/me", "memory", "cpu,cpuacct", "pids", "systemd/me", "systemd")
    groups = "5:memory:/me\n4:cpu,cpuacct:/\n3:pids:/not/seen/in/this/container\n1:name=systemd:/me"
    machine(monkeypatch, tmp_path, V1, groups, {f"{folder}/cgroup.procs": "" for folder in folders})
    assert inside.parent_group("memory") == tmp_path / "memory/me"
    assert inside.parent_group("pids") == tmp_path / "pids"
    assert inside.everywhere() == tuple(tmp_path / it for it in ("memory/me", "cpu,cpuacct", "pids", "systemd/me"))
    assert inside.as_parent("x") == "x"
    limited = inside.limit(request(supervisor.workdir("w")), VnfLimits(100, 9), supervisor)
    assert [group.parent for group in limited.groups] == [tmp_path / "memory/me", tmp_path / "pids"]
    assert limited.prefix[0] == "/bin/sh" and limited.prefix[-2:] == tuple(map(str, limited.groups))


def test_where_none_can_be_made_a_resource_limit_does_what_it_can_and_the_rest_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, supervisor: Supervisor
) -> None:
    for number, (mounts, groups) in enumerate(((V2, "0::/"), ("tmpfs {root} tmpfs rw 0 0", "0::/"), ("", ""))):
        machine(monkeypatch, tmp_path, mounts, groups, {"cgroup.procs": "", "cgroup.subtree_control": "cpu"})
        limited = inside.limit(request(supervisor.workdir(f"w{number}")), VnfLimits(100, 9), supervisor)
        assert limited.groups == () and limited.prefix == ("prlimit", f"--data={100 << 20}", "--")
        assert "private memory (RLIMIT_DATA" in limited.words and "number of processes not limited" in limited.words
        assert limited.why() == ""


def test_a_group_that_cannot_be_made_after_all_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, supervisor: Supervisor
) -> None:
    machine(monkeypatch, tmp_path, V2, "0::/", {"cgroup.procs": "", "cgroup.subtree_control": "memory pids"})
    (tmp_path / f"{supervisor.root.name}-w-vnf0").write_text("a file")
    with pytest.raises(StartError, match=r"cannot create control group .*: .*exists"):
        inside.limit(request(supervisor.workdir("w")), VnfLimits(100, 9), supervisor)
