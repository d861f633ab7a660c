# SPDX-License-Identifier: BSD-3-Clause
"""Children come up as asked and never outlive the harness, whatever ends it."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from planebench.host import launch, procfs, reaper
from planebench.host.process import (
    ROOT_PATH_MAX_BYTES,
    WORDS_MAX,
    Process,
    Supervisor,
    stretched,
    sweep_stale,
    wait_ready,
)
from planebench.model.errors import StartError, UsageError

CPU0 = frozenset({min(os.sched_getaffinity(0))})
HOLDER = """
import signal, sys, time
from pathlib import Path
from planebench.host.process import Supervisor
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs have it ignored
with Supervisor(Path(sys.argv[1])) as supervisor:
    cpus = frozenset({min(__import__("os").sched_getaffinity(0))})
    a = supervisor.spawn("a", ["sleep", "600"], cpus=cpus)
    b = supervisor.spawn("b", ["sh", "-c", "trap '' TERM INT; sleep 600 & while :; do sleep 600; done"], cpus=cpus)
    while not Path(f"/proc/{b.pid}/comm").read_text().startswith("sh"):
        time.sleep(0.01)
    b.pause()
    print(a.pid, b.pid, supervisor.root, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def supervisor(tmp_path: Path):
    with Supervisor(short(tmp_path)) as it:
        yield it


def short(tmp_path: Path) -> Path:
    """pytest's paths are too long for sockets: a short link to it."""
    link = Path(f"/tmp/t{os.getpid()}-{abs(hash(tmp_path)) % 100000}")
    link.unlink(missing_ok=True)
    link.symlink_to(tmp_path)
    return link


@pytest.fixture(autouse=True)
def no_links_left():
    yield
    for link in Path("/tmp").glob(f"t{os.getpid()}-*"):
        link.unlink()


def eventually(condition: Callable[[], bool], deadline_s: float = 8.0) -> bool:
    end = time.monotonic() + stretched(deadline_s)
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def became(process: Process, name: str) -> Process:
    wait_ready(name, lambda: procfs.read_text(f"/proc/{process.pid}/comm") == name, [process])
    return process


def group_members(pgid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        fields = procfs.stat_fields(int(entry.name)) if entry.name.isdigit() else None
        if fields and int(fields[2]) == pgid and fields[0] not in "ZX":
            found.append(int(entry.name))
    return found


def test_child_runs_on_its_cpus_in_its_own_session_with_a_log(supervisor: Supervisor) -> None:
    process = supervisor.spawn("talk", ["sh", "-c", "echo out; echo err >&2; exec sleep 600"], cpus=CPU0)
    became(process, "sleep")
    assert os.sched_getaffinity(process.pid) == CPU0
    assert os.getsid(process.pid) == process.pid == os.getpgid(process.pid)
    assert process.log_tail().splitlines() == ["out", "err"]
    assert process.log_path.parent == supervisor.root / "talk"
    assert process.alive() and process.returncode is None


def test_priority_is_raised_where_permitted_and_can_be_queried(supervisor: Supervisor) -> None:
    high = supervisor.spawn("high", ["sleep", "600"], cpus=CPU0)
    at_once = procfs.read_text(Path(f"/proc/{high.pid}/autogroup"))
    assert not at_once or os.geteuid() or at_once.split()[-1] == "-20", "beside pollers it would hardly begin"
    became(high, "sleep")
    normal = became(supervisor.spawn("normal", ["sleep", "600"], cpus=CPU0, high_priority=False), "sleep")
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, normal.pid) == own
    assert os.getpriority(os.PRIO_PROCESS, high.pid) == (-20 if os.geteuid() == 0 else own)
    groups = [Path(f"/proc/{process.pid}/autogroup") for process in (high, normal)]
    if groups[0].exists() and os.geteuid() == 0:
        assert [group.read_text().split()[-1] for group in groups] == ["-20", "0"]  # "/autogroup-12 nice -20"


def test_root_is_private_short_and_removed(tmp_path: Path) -> None:
    with Supervisor(short(tmp_path)) as supervisor:
        root = supervisor.root
        assert stat.S_IMODE(root.stat().st_mode) == 0o700
        outside = tmp_path / "outside"
        outside.mkdir()
        supervisor.track_path(outside)
        (supervisor.workdir("switch") / "a.sock").touch()
    assert not root.exists() and not outside.exists()
    supervisor.close()  # twice is fine


def test_a_root_too_long_for_sockets_is_refused(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 60)
    deep.mkdir()
    with pytest.raises(UsageError, match=r"too long for sockets.*XDG_RUNTIME_DIR"):
        Supervisor(deep)
    assert not list(deep.iterdir())


def test_topologies_with_like_labels_have_folders_of_their_own(supervisor: Supervisor) -> None:
    """``planed#2`` and a switch called ``planed-2`` shared one, and each other's sockets."""
    folders = [supervisor.topology_folder(label) for label in ("planed#2", "planed-2", "planed-2")]
    assert len(set(folders)) == 3 and all(folder.is_dir() for folder in folders)


def test_a_socket_fits_in_whatever_the_switch_is_called(supervisor: Supervisor) -> None:
    """A root that is accepted leaves room for the socket of a switch with the longest label."""
    for _ in range(120):
        folder = supervisor.topology_folder("x" * 32)
    beyond_root = len(os.fsencode(folder / "planed-switch.rpc")) - len(os.fsencode(supervisor.root))
    assert ROOT_PATH_MAX_BYTES + beyond_root <= 107


def test_a_program_that_is_not_there_says_so_in_its_exit_report(supervisor: Supervisor) -> None:
    process = supervisor.spawn("ghost", ["/no/such/program"], cpus=CPU0)
    assert process.wait(60) == 127
    assert "exit code 127" in process.exit_report()
    assert "cannot execute /no/such/program: No such file" in process.exit_report()


def test_signals_without_a_name_have_their_number(supervisor: Supervisor) -> None:
    process = supervisor.spawn("realtime", ["sh", "-c", "kill -40 $$"], cpus=CPU0)
    assert process.wait(60) == -40
    assert "was killed by signal 40" in process.exit_report()


def test_wait_ready_reports_a_death_with_the_log(supervisor: Supervisor) -> None:
    process = supervisor.spawn("dying", ["sh", "-c", "echo cannot open port; exit 3"], cpus=CPU0)
    with pytest.raises(StartError, match=r"(?s)the thing did not start.*exit code 3.*cannot open port"):
        wait_ready("the thing", lambda: False, [process])


def test_wait_ready_times_out_with_the_log(supervisor: Supervisor) -> None:
    process = supervisor.spawn("slow", ["sh", "-c", "echo still waiting; exec sleep 600"], cpus=CPU0)
    assert eventually(lambda: "still waiting" in process.log_tail())
    with pytest.raises(StartError, match=r"(?s)within 0.5 s.*still waiting"):
        wait_ready("the thing", lambda: False, [process], deadline_s=0.5)


def test_pause_and_resume(supervisor: Supervisor) -> None:
    process = became(supervisor.spawn("p", ["sleep", "600"], cpus=CPU0), "sleep")
    process.pause()
    assert eventually(lambda: (procfs.stat_fields(process.pid) or "?")[0] == "T")
    process.resume()
    assert eventually(lambda: (procfs.stat_fields(process.pid) or "?")[0] == "S")


@pytest.mark.parametrize("paused", [False, True])
def test_terminate_ends_the_whole_group_even_when_it_resists(supervisor: Supervisor, paused: bool) -> None:
    process = supervisor.spawn("deaf", ["sh", "-c", "trap '' TERM; sleep 600 & echo up; wait; sleep 600"], cpus=CPU0)
    wait_ready("the helper", lambda: "up" in process.log_tail() and len(group_members(process.pid)) == 2, [process])
    if paused:
        process.pause()
    process.terminate(timeout_s=0.3)
    assert process.returncode == -signal.SIGKILL
    assert eventually(lambda: not group_members(process.pid))
    process.terminate()  # twice is fine


def test_a_child_survives_the_thread_that_asked_for_it(supervisor: Supervisor) -> None:
    made: list[Process] = []
    thread = threading.Thread(target=lambda: made.append(supervisor.spawn("t", ["sleep", "600"], cpus=CPU0)))
    thread.start()
    thread.join()
    became(made[0], "sleep")
    assert not eventually(lambda: not made[0].alive(), 0.3)


def test_stdin_pipe(supervisor: Supervisor) -> None:
    process = supervisor.spawn("cat", ["cat"], cpus=CPU0, pipe_stdin=True)
    assert process.stdin is not None
    process.stdin.write(b"hello\n")
    process.stdin.flush()
    wait_ready("the echo", lambda: process.log_tail() == "hello", [process])


def start_holder(tmp_path: Path, source: str = HOLDER) -> tuple[subprocess.Popen[str], list[int], Path]:
    holder = subprocess.Popen(
        [sys.executable, "-c", source, str(short(tmp_path))],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        start_new_session=True,
    )
    assert holder.stdout is not None
    *pids, root = holder.stdout.readline().split()
    assert Path(root).is_dir()
    return holder, [int(pid) for pid in pids], Path(root)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_when_the_harness_is_ended(tmp_path: Path, how: signal.Signals) -> None:
    holder, pids, root = start_holder(tmp_path)
    os.killpg(holder.pid, how)  # the whole foreground group, as Ctrl-C does
    holder.wait(20)
    assert holder.stdout is not None
    holder.stdout.close()
    assert eventually(lambda: not root.exists()), list(root.rglob("*"))
    assert eventually(lambda: not any(group_members(pid) for pid in pids))


def test_children_die_even_if_the_reaper_is_killed_first_and_the_next_run_sweeps(tmp_path: Path) -> None:
    holder, pids, root = start_holder(tmp_path)
    found: list[psutil.Process] = []
    name = Path(reaper.__file__).name  # its path differs where the tests import the installed package

    def is_up() -> bool:  # a child is not what it will be before it has executed its program
        children = psutil.Process(holder.pid).children(recursive=True)
        found[:] = (child for child in children if any(Path(word).name == name for word in child.cmdline()))
        return len(found) == 1

    assert eventually(is_up)
    (its_reaper,) = found
    its_reaper.kill()
    holder.kill()
    holder.wait(20)
    assert holder.stdout is not None
    holder.stdout.close()
    assert eventually(lambda: not any(procfs.is_running(pid) for pid in pids))
    assert sweep_stale([root.parent]) == (root,)
    assert not root.exists()
    assert eventually(lambda: not any(group_members(pid) for pid in pids)), "the helper of a child, by its group"


def test_sweep_spares_the_living_and_the_strange(tmp_path: Path, supervisor: Supervisor) -> None:
    (tmp_path / "pb-strange").mkdir()
    (tmp_path / "pb-strange" / "data").touch()
    (tmp_path / "other").mkdir()
    assert sweep_stale([tmp_path]) == ()
    assert supervisor.root.is_dir() and (tmp_path / "pb-strange" / "data").exists()


def test_reaper_never_kills_a_process_that_got_the_pid_later(tmp_path: Path) -> None:
    bystander = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        (tmp_path / reaper.OWNER_FILE).write_text(f"1 1 {procfs.boot_id()}\n")
        (tmp_path / reaper.PIDS_FILE).write_text(f"{bystander.pid} 12345\nhalf a li")
        reaper.reap(tmp_path)
        assert not tmp_path.exists()
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_pids_of_another_boot_mean_nothing(tmp_path: Path) -> None:
    bystander = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        (tmp_path / reaper.OWNER_FILE).write_text("1 1 another-boot\n")
        (tmp_path / reaper.PIDS_FILE).write_text(f"{bystander.pid} {procfs.start_ticks(bystander.pid)}\n")
        reaper.reap(tmp_path)
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_what_a_vnf_prints_is_cut_and_marked() -> None:
    words = ["printf", "\\033[31mred\\n" + "x" * 5000 + "\\n"]
    with Supervisor() as supervisor:
        process = supervisor.spawn("vnf0", words, cpus=CPU0, enclosed=True)
        assert process.wait(20) == 0
        assert process.log_tail().splitlines() == ["vnf0 says:  [31mred", "vnf0 says: " + "x" * WORDS_MAX + "..."]


def test_a_refused_network_namespace_ends_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refused() -> None:
        raise PermissionError(1, "unshare(user and network namespace): Operation not permitted")

    monkeypatch.setattr(launch, "_die_with", lambda parent: None)
    monkeypatch.setattr(launch, "_new_network_namespace", refused)
    same = ",".join(map(str, os.sched_getaffinity(0)))  # it is this process that is set up
    assert launch.main(["1", same, "any", "normal", "new", "same", "/bin/true"]) == 126
    assert capfd.readouterr().err.endswith(f"Operation not permitted\n{launch.NAMESPACE_REMEDY}\n")
