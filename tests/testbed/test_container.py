# SPDX-License-Identifier: BSD-3-Clause
"""VNFs in processes of their own and in containers: every frame crosses, and nothing is left of them."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hosting_rig import Way, exact, hosted_request, port_sockets, start_vnf, tester, until_crossing
from planed_rig import OTHER_CPU, Planed, load, until

from planebench.host import procfs, reaper
from planebench.host.pci import Nic
from planebench.host.planed_program import REMEDY, find_planed
from planebench.host.process import Supervisor, high_priority, sweep_stale
from planebench.host.procfs import command_line
from planebench.host.programs import NotFound
from planebench.model.errors import DiedError, NotInstalledError, StartError
from planebench.planed.document import Task
from planebench.testbed.hosting import base
from planebench.testbed.hosting.base import HostedRequest, Hosting, RunningVnf
from planebench.testbed.hosting.inside import attach, own_folder
from planebench.testbed.hosting.registry import HOSTINGS

pytestmark = [pytest.mark.dataplane, pytest.mark.timeout(120)]

WAYS = (Way("a", "b", 0), Way("b", "a", 1))
KINDS = ("separate", "container")


@pytest.fixture(scope="module")
def supervisor() -> Iterator[Supervisor]:
    if find_planed() is None:
        pytest.skip(f"planed is not here: {REMEDY}")
    with high_priority(), Supervisor(Path("/tmp")) as it:
        yield it


def hosting_of(kind: str) -> Hosting:
    """The hosting of a test, if it can be had here."""
    hosting = HOSTINGS[kind]
    missing = hosting.find()
    if isinstance(missing, NotFound):
        pytest.skip(f"no {kind}: {missing.remedy}")
    return hosting


def bed(supervisor: Supervisor, kind: str) -> tuple[Planed, HostedRequest]:
    """A tester with two ports, and what a VNF between them is started with."""
    folder = supervisor.workdir(kind)
    it = tester(supervisor, f"tester-{kind}", ["a", "b"], folder)
    return it, hosted_request("vnf0", port_sockets(folder, "a", "b"), supervisor, shares_cpu=False)


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path | None]:
    """A character device that stands for the vfio group of a virtual function, which VNFs are given; None where we may
    not make one."""
    group = Path(f"/dev/planebench-test-{os.getpid()}")
    try:
        os.mknod(group, stat.S_IFCHR | 0o600, os.makedev(1, 3))
    except OSError:
        yield None
        return
    monkeypatch.setattr(base, "bind_ports", lambda request, **_: (Nic("0000:3b:02.0", "vfio-pci", 0, "61"),))
    monkeypatch.setattr(base, "device_files", lambda passed: (group,))
    try:
        yield group
    finally:
        group.unlink()


@pytest.mark.parametrize("kind", KINDS)
def test_every_frame_crosses_and_its_life_is_ours(supervisor: Supervisor, kind: str, group: Path | None) -> None:
    hosting = hosting_of(kind)
    mounts = mounts_here()
    it, request = bed(supervisor, kind)
    vnf = start_vnf(hosting, request, supervisor)
    until_crossing(it, WAYS[0], [vnf])
    until(lambda: exact(it, WAYS), "every frame crosses")
    assert vnf.facts.vnf == "vnf0" and vnf.facts.hosting == hosting.name and not vnf.facts.emulated
    assert vnf.same_clock and vnf.planed is not None and vnf.planed.call("stats.get")["tasks"]
    assert_pinned(vnf)
    if kind != "separate":
        assert_contained(vnf)
        assert_inside(group, vnf)
    _paused_it_forwards_nothing(it, vnf)
    _killed_it_is_gone(it, vnf)
    again = start_vnf(hosting, request, supervisor)
    until_crossing(it, WAYS[1], [again])
    assert again.threads() != vnf.threads()
    process = again.process
    again.process.pause()
    again.ask_to_end()
    until(lambda: not process.alive(), "it ends")
    assert process.returncode == 0, process.exit_report()
    again.stop()
    again.stop()
    assert mounts_here() == mounts


def assert_inside(group: Path | None, vnf: RunningVnf) -> None:
    """The device is there under its name, it is the device of the host, and it can be used."""
    if group is None:
        return
    inside = Path(f"/proc/{vnf.threads()[0].pid}/root{group}")
    assert stat.S_ISCHR(inside.stat().st_mode) and inside.stat().st_rdev == group.stat().st_rdev
    inside.write_bytes(b"x")
    assert vnf.facts.details["devices"] == "0000:3b:02.0"


def assert_pinned(vnf: RunningVnf) -> None:
    """The worker, and nothing else of planed, is on the VNF's CPU alone."""
    (worker,) = vnf.threads()
    assert (worker.owner, worker.name) == ("vnf", "w-vnf0")
    alone = [tid for tid in procfs.threads(worker.pid) if os.sched_getaffinity(tid) == {OTHER_CPU}]
    assert alone == [worker.tid]
    assert procfs.ids_of_thread(worker.tid)[0] == worker.tid


def assert_contained(vnf: RunningVnf) -> None:
    """No capabilities, no network, nothing to write to but its own folder, and a limit of its memory."""
    pid = vnf.threads()[0].pid
    status = procfs.read_text(f"/proc/{pid}/status") or ""
    for line in ("CapEff:\t0000000000000000", "NoNewPrivs:\t1"):
        assert line in status
    for space in ("net", "pid", "mnt", "ipc", "uts"):
        assert Path(f"/proc/{pid}/ns/{space}").readlink() != Path(f"/proc/self/ns/{space}").readlink()
    assert [line.split(":")[0].strip() for line in Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]] == ["lo"]
    inside, folder = Path(f"/proc/{pid}/root"), Path(vnf.process.log_path).parent / "own"
    for path in ("/new", "/planed", "/sys/new", folder.parents[1] / "a" / "new"):
        with pytest.raises(OSError, match=r"Read-only file system|Permission denied|Text file busy"):
            (inside / str(path).lstrip("/")).write_text("")
    (inside / str(folder).lstrip("/") / "new").write_text("")
    assert vnf.facts.details["limits"] == "1152 MiB of private memory (RLIMIT_DATA)"
    assert str(1152 << 20) in next(
        line for line in Path(f"/proc/{pid}/limits").read_text().splitlines() if line.startswith("Max data size")
    )


def mounts_here() -> set[str]:
    return {line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()}


def _paused_it_forwards_nothing(it: Planed, vnf: RunningVnf) -> None:
    vnf.process.pause()
    until(lambda: procfs.stat_fields(vnf.threads()[0].pid)[0] == "T", "it is stopped")
    tasks = it.send(load("gen-a", rate_pps=1000), epoch=60000)
    assert not tasks["mon-b"]["monitor"]["received_packets"]
    vnf.process.resume()
    until(lambda: it.tasks()["mon-b"]["monitor"]["received_packets"], "it forwards what waited")


def _killed_it_is_gone(it: Planed, vnf: RunningVnf) -> None:
    vnf.check()
    (worker,) = vnf.threads()
    vnf.kill()
    until(lambda: not procfs.is_running(worker.pid), "planed is gone")
    with pytest.raises(DiedError, match=rf"vnf0 \({vnf.facts.hosting}\) died: .* was killed by SIGKILL"):
        vnf.check()
    until(lambda: not any(port["link_up"] for port in it.call("ports.get")["ports"]), "the tester sees it go")
    vnf.stop()


def test_what_cannot_start_says_why_and_leaves_nothing(supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch) -> None:
    hosting = hosting_of("container")
    _, request = bed(supervisor, "container")
    assert request.document is not None
    small = replace(request.document.memory, size_mb=1)
    known = len(supervisor.processes)
    words = r'(?s)vnf0 \(container\): planed refused config.apply: .*unknown kind "nonsense".*\nvnf0 says: planed: '
    with pytest.raises(StartError, match=words):
        start_vnf(
            hosting,
            replace(request, document=replace(request.document, tasks=(Task("vnf0", "nonsense", ("vnf0a",)),))),
            supervisor,
        )
    supervisor.processes[known].terminate()
    with pytest.raises(StartError, match=r"(?s)vnf0 \(container\) did not start: .*size_mb"):
        start_vnf(hosting, replace(request, document=replace(request.document, memory=small)), supervisor)
    with pytest.raises(StartError, match=r"(?s)did not start: .*/no/file"):
        start_vnf(hosting, replace(request, files=(Path("/no/file"),)), supervisor)
    assert not any(process.alive() for process in supervisor.processes[known:])
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("planebench.host.programs._SYSTEM_FOLDERS", "/nowhere")
    with pytest.raises(NotInstalledError, match="bubblewrap is not installed; to install: install bubblewrap"):
        hosting.start(request, supervisor)
    assert isinstance(hosting.find(), NotFound)


def test_who_answers_in_its_place_is_found_out(supervisor: Supervisor) -> None:
    """What is in its own folder may be a link to the control socket of another."""
    hosting_of("container")
    it, request = bed(supervisor, "container")
    if request.uid is None:
        pytest.skip("it has no user of its own: not root")
    (own_folder(request) / "rpc").symlink_to(it.rpc)
    process = supervisor.spawn("vnf0", ["sleep", "60"], cpus=frozenset({OTHER_CPU}))
    with pytest.raises(StartError, match="another process answers at its control socket"):
        attach(request, process, "vnf0")
    assert not process.alive() and it.call("version")


HOLDER = """
import time
from pathlib import Path
from hosting_rig import hosted_request, port_sockets, start_vnf, tester
from planebench.host.process import Supervisor
from planebench.testbed.hosting.registry import HOSTINGS
with Supervisor(Path("/tmp")) as supervisor:
    folder = supervisor.workdir("held")
    tester(supervisor, "tester-held", ["a", "b"], folder)
    request = hosted_request("vnf0", port_sockets(folder, "a", "b"), supervisor)
    vnf = start_vnf(HOSTINGS["container"], request, supervisor)
    (worker,) = vnf.threads()
    vnf.process.pause()
    print(vnf.process.pid, worker.pid, supervisor.root, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize(
    "reaper_lives", [True, pytest.param(False, marks=pytest.mark.all)], ids=["reaper", "next-start"]
)
def test_nothing_is_left_when_the_harness_is_killed(reaper_lives: bool) -> None:
    hosting_of("container")
    mounts = mounts_here()
    path = os.pathsep.join(map(str, (Path(reaper.__file__).parents[2], Path(__file__).parents[1])))
    with subprocess.Popen(
        [sys.executable, "-P", "-c", HOLDER],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,
    ) as holder:
        try:
            assert holder.stdout is not None
            *words, root = holder.stdout.readline().split()
            pids = [int(word) for word in words]
            assert len(pids) == 2 and all(map(procfs.is_running, pids))
            if not reaper_lives:
                (found,) = [pid for pid in procfs.descendants(holder.pid) if reaper.__file__ in command_line(pid)]
                os.kill(found, signal.SIGKILL)
        finally:
            holder.kill()
    until(lambda: not any(map(procfs.is_running, pids)), "they are dead")
    if not reaper_lives:
        assert Path(root) in sweep_stale([Path("/tmp")])
    until(lambda: not Path(root).exists(), "the folder is gone")
    assert mounts_here() == mounts
