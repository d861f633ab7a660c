# SPDX-License-Identifier: BSD-3-Clause
"""Child processes with a common start, and an end in any case.

A :class:`Supervisor` owns a private directory and every process started through it. Leaving its ``with`` block ends the
processes and removes the directory; if the harness is killed instead, the reaper (:mod:`planebench.host.reaper`) does,
and the kernel kills each child with the thread that made it (PR_SET_PDEATHSIG). Programs must run in the foreground: a
daemon in a session of its own is out of reach.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import IO

from planebench.host import launch, procfs, reaper
from planebench.host.own_user import OwnUser
from planebench.model.cpus import cpu_text
from planebench.model.errors import StartError, UsageError

VARIABLE = "PLANEBENCH_PATIENCE"
"""The factor for deadlines on a slow machine, such as an emulated one: 10 where everything takes ten times as long.

It stretches the deadlines after which an operation counts as failed, and nothing else: no duration of a trial, no
pause. A run that meets its deadlines is the same with it as without.
"""
MOST = 1000.0
ROOT_PREFIX = "pb-"
ROOT_PATH_MAX_BYTES = 60
"""A sockaddr_un holds 107 bytes: the root, the folder of a topology (``/123-switchna``), and 34 for the socket."""
FOLDER_LABEL_MAX_BYTES = 8
EMPTY_ROOT_GRACE_S = 60.0
READY_DEADLINE_S = 20.0
WORDS_MAX = 240
"""Characters of a line of a VNF that are told."""
_PYTHON = (sys.executable, "-I", "-S")


def stretched(deadline_s: float) -> float:
    """Return a deadline in seconds times the factor in $PLANEBENCH_PATIENCE. Raises UsageError for a wrong factor."""
    text = os.environ.get(VARIABLE) or "1"
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not 1 <= factor <= MOST:
        raise UsageError(
            f'{VARIABLE} "{text}" is not a valid timeout factor; give a number from 1 to {MOST:g}, or unset it'
        )
    return deadline_s * factor


class Process:
    """A child with its own process group and log file. Made by :meth:`Supervisor.spawn`, which also owns it."""

    def __init__(self, name: str, popen: subprocess.Popen[bytes], log_path: Path) -> None:
        self.name = name
        self.log_path = log_path
        self.pid = popen.pid
        """The process id, which is also the process group id."""
        self.stdin: IO[bytes] | None = popen.stdin
        """The write end of its standard input if ``pipe_stdin`` was requested."""
        self._popen = popen

    @property
    def returncode(self) -> int | None:
        """Return the exit code, negative for a signal; None while it runs."""
        return self._popen.poll()

    def alive(self) -> bool:
        """Return whether it still runs, or is paused."""
        return self._popen.poll() is None

    def log_tail(self, lines: int = 8) -> str:
        """Return the last lines of its stdout and stderr; empty if none."""
        try:
            with self.log_path.open("rb") as file:
                file.seek(max(0, self.log_path.stat().st_size - 16384))
                text = file.read().decode(errors="replace")
        except OSError:
            return ""
        return "\n".join([line.rstrip() for line in text.splitlines() if line.strip()][-lines:])

    def exit_report(self) -> str:
        """Return one sentence on how it ended, and its last log lines, for error messages."""
        code = self.returncode
        if code is None:
            how = "is still running"
        elif code < 0:
            known = {number.value: number.name for number in signal.Signals}
            how = f"was killed by {known.get(-code, f'signal {-code}')}"
        else:
            how = f"ended with exit code {code}"
        return f"{self.name} (pid {self.pid}) {how}; its last log lines:\n{self.log_tail() or '(none)'}"

    def pause(self) -> None:
        """Stop the process group (SIGSTOP). Harmless if it is gone."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue a paused process group (SIGCONT). Harmless if it is gone."""
        self._signal(signal.SIGCONT)

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait for its end. Return the exit code, or None if it still runs after ``timeout_s`` seconds."""
        try:
            return self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def finish(self, timeout_s: float, failed: str, remedy: str = "") -> None:
        """Wait for its end in order. Raises StartError, which begins with ``failed``, and ends it, if it does not."""
        if self.wait(stretched(timeout_s)) != 0:
            words = f"{failed}: {self.exit_report()}"
            self.terminate()
            raise StartError("\n".join(filter(None, (words, remedy))))

    def ask_to_end(self) -> None:
        """Send SIGCONT if it is paused, close its standard input, send SIGTERM; do not wait.

        SIGCONT comes first: in a stopped process any thread may take the SIGTERM later, and a program whose main thread
        waits in read() then misses it (testpmd did).
        """
        self.resume()
        self._close_stdin()
        self._signal(signal.SIGTERM)

    def _close_stdin(self) -> None:
        if self.stdin is not None:
            with contextlib.suppress(OSError):
                self.stdin.close()

    def terminate(self, timeout_s: float = 5.0) -> None:
        """End it and its group: SIGTERM, after ``timeout_s`` seconds SIGKILL. Works when paused; safe to repeat."""
        timeout_s = stretched(timeout_s)
        if self.returncode is not None:
            self._close_stdin()  # a child of one that is dead may wait for that (switches/vale_guard.py)
            return
        self.ask_to_end()
        if not self._exited_within(timeout_s):
            self._signal(signal.SIGKILL)
            self._exited_within(timeout_s)
        self._signal(signal.SIGKILL)  # helpers it left; the pid is still ours, it has not been waited for
        self.wait(timeout_s)

    def kill(self, timeout_s: float = 5.0) -> None:
        """Send SIGKILL to its group, as in a crash, and wait up to ``timeout_s`` seconds. Harmless if it is gone."""
        self._signal(signal.SIGKILL)
        self.wait(stretched(timeout_s))

    def _exited_within(self, timeout_s: float) -> bool:
        """Wait for the exit without collecting the status, so that the pid stays reserved."""
        try:
            pidfd = os.pidfd_open(self.pid)
        except OSError:
            return True
        try:
            poller = select.poll()
            poller.register(pidfd, select.POLLIN)
            return bool(poller.poll(timeout_s * 1000))
        finally:
            os.close(pidfd)

    def _signal(self, number: signal.Signals) -> None:
        if self._popen.returncode is None:
            with contextlib.suppress(OSError):
                os.killpg(self.pid, number)


class NamespacedProcess(Process):
    """A child that waits for a program in a pid namespace of its own, such as bwrap, and ends it with itself.

    The program inside may have process groups of its own. So all descendants are paused and asked to end; the child
    itself would die of SIGTERM before them. If it is killed, the kernel kills the rest.
    What it prints are a stranger's words: they are cut, and marked as its own, wherever they are told.
    """

    def log_tail(self, lines: int = 8) -> str:
        """Return its last lines, each of :data:`WORDS_MAX` printable characters at most behind ``NAME says:``."""
        told = []
        for line in super().log_tail(lines).splitlines():
            shown = "".join(it if it.isprintable() else " " for it in line[:WORDS_MAX])
            told.append(f"{self.name} says: {shown}{'...' * (len(line) > WORDS_MAX)}")
        return "\n".join(told)

    def _signal(self, number: signal.Signals) -> None:
        below = set() if number == signal.SIGKILL else procfs.descendants(self.pid)
        if number != signal.SIGTERM or not below:
            super()._signal(number)
        for pid in below:
            with contextlib.suppress(OSError):
                os.kill(pid, number)


class Supervisor(contextlib.AbstractContextManager["Supervisor"]):
    """The owner of a private directory (mode 0700) and of every process started through it. A context manager.

    ``root`` is the parent of the private directory ``pb-XXXXXXXX``; by default $XDG_RUNTIME_DIR, else /tmp. Sockets are
    in the directory, so its path must be short. Use from one thread at a time; children do not depend on which.
    """

    def __init__(self, root: Path | None = None) -> None:
        stretched(1.0)  # a factor that is wrong is told before there is anything to end
        self.root = Path(tempfile.mkdtemp(prefix=ROOT_PREFIX, dir=root or default_base()))
        self.processes: list[Process] = []
        """Every process started so far, ended ones too."""
        self._closed = False
        self._folders = 0
        self._memory = threading.local()
        if len(os.fsencode(self.root)) > ROOT_PATH_MAX_BYTES:
            self.root.rmdir()
            raise UsageError(
                f"run directory {self.root} is too long for sockets ({ROOT_PATH_MAX_BYTES} bytes at most); "
                "set XDG_RUNTIME_DIR to a shorter path or unset it"
            )
        owner = f"{os.getpid()} {procfs.start_ticks(os.getpid())} {procfs.boot_id()}\n"
        (self.root / reaper.OWNER_FILE).write_text(owner, encoding="ascii")
        self._reaper = subprocess.Popen(
            [*_PYTHON, reaper.__file__, str(self.root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        # PR_SET_PDEATHSIG fires when the *thread* that made the child ends: one thread, kept to the end, makes all.
        self._spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def workdir(self, name: str) -> Path:
        """Return a private directory for one part (switch, tester); made on first use, removed with the supervisor."""
        path = self.root / name
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path

    def topology_folder(self, label: str) -> Path:
        """Make a new private folder with a unique number and, for people, the beginning of ``label``."""
        self._folders += 1
        start = re.sub(r"[^A-Za-z0-9._-]", "-", label)[:FOLDER_LABEL_MAX_BYTES]
        return self.workdir(f"{self._folders}-{start}")

    def track_path(self, path: Path) -> None:
        """Register an absolute ``path`` (file or tree outside the root) that is removed too, however the run ends."""
        with (self.root / reaper.PATHS_FILE).open("a", encoding="utf-8") as file:
            file.write(f"{path}\n")

    @contextlib.contextmanager
    def memory_on(self, node: int | None) -> Iterator[None]:
        """Take the memory of what this thread starts meanwhile from a NUMA node; None for any."""
        self._memory.node = node
        try:
            yield
        finally:
            self._memory.node = None

    def spawn(
        self,
        name: str,
        argv: Sequence[str],
        *,
        cpus: frozenset[int],
        env: Mapping[str, str] | None = None,
        workdir: Path | None = None,
        pipe_stdin: bool = False,
        netns_pid: int | None = None,
        new_netns: bool = False,
        high_priority: bool = True,
        enclosed: bool = False,
        user: OwnUser | None = None,
    ) -> Process:
        """Start ``argv`` on ``cpus`` with its output in ``<workdir>/<name>.log``. Return at once, before it is ready.

        ``env`` is added to our own environment. ``workdir`` is the current directory of the child, by default
        ``workdir(name)``. ``netns_pid``: run in the network namespace of that process; ``new_netns``: in a new one.
        ``high_priority``: nice -20 if the system allows it. ``enclosed``: a
        :class:`NamespacedProcess`. ``user``: whom it becomes; by default it stays ours. A program that cannot be
        executed becomes a dead process with the reason in its log.
        Raises StartError only if the supervisor is closed.
        """
        if self._closed:
            raise StartError(f"cannot start {name}: the supervisor of {self.root} is closed")
        where = workdir or self.workdir(name)
        netns = str(netns_pid) if netns_pid is not None else "new" if new_netns else "host"
        node = getattr(self._memory, "node", None)
        command = [
            *_PYTHON,
            launch.__file__,
            str(os.getpid()),
            cpu_text(cpus),
            "any" if node is None else str(node),
            "high" if high_priority else "normal",
            netns,
            "same" if user is None else f"{user.uid},{len(user.sources)}",
            *(() if user is None else map(str, user.sources)),
            *argv,
        ]
        kind = NamespacedProcess if enclosed else Process
        process = self._spawner.submit(self._start, name, command, where, env or {}, pipe_stdin, kind).result()
        if high_priority:  # by us: beside pollers it would take seconds to begin in the autogroup of its session
            _set_autogroup(process.pid, launch.HIGH_PRIORITY)
        return process

    def _start(
        self, name: str, command: list[str], where: Path, env: Mapping[str, str], pipe_stdin: bool, kind: type[Process]
    ) -> Process:
        """Fork and register in the spawner thread, so that a Ctrl-C cannot come between the two."""
        # DPDK leaves its run-time directory behind, so it is in our root.
        common = {"RUNTIME_DIRECTORY": str(self.root), "XDG_RUNTIME_DIR": str(self.root), "LC_ALL": "C"}
        with _open_log(where, name) as log:
            popen = subprocess.Popen(
                command,
                stdin=subprocess.PIPE if pipe_stdin else subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=where,
                env={**os.environ, **common, **env},
                start_new_session=True,
                umask=0o077,
            )
            process = kind(name, popen, Path(log.name))
        with (self.root / reaper.PIDS_FILE).open("a", encoding="ascii") as file:
            file.write(f"{popen.pid} {procfs.start_ticks(popen.pid) or 0}\n")
        self.processes.append(process)
        return process

    def close(self) -> None:
        """End every process, remove the directory and everything tracked. Never raises OSError; safe to call twice."""
        if self._closed:
            return
        self._closed = True
        try:
            for process in self.processes:
                if process.alive():
                    process.ask_to_end()
            for process in reversed(self.processes):
                process.terminate()
        finally:
            self._spawner.shutdown(wait=False)
            if self._reaper.stdin is not None:
                self._reaper.stdin.close()
            self._reaper.wait()
            reaper.reap(self.root)  # nothing left to do unless someone killed the reaper


def default_base() -> Path:
    """Return the parent of run directories: $XDG_RUNTIME_DIR if it is usable, else /tmp."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.access(runtime, os.W_OK | os.X_OK):
        return Path(runtime)
    return Path("/tmp")


def wait_ready(
    what: str, probe: Callable[[], bool], processes: Iterable[Process] = (), deadline_s: float = READY_DEADLINE_S
) -> None:
    """Poll ``probe`` until true. Raises StartError, with log lines, after ``deadline_s`` or when a process dies."""
    watched = tuple(processes)
    deadline_s = stretched(deadline_s)
    deadline = time.monotonic() + deadline_s
    pause_s = 0.001
    while not probe():
        for process in watched:
            if not process.alive():
                raise StartError(f"{what} did not start: {process.exit_report()}")
        if time.monotonic() > deadline:
            tails = "\n".join(f"{p.name} (pid {p.pid}), last log lines:\n{p.log_tail()}" for p in watched)
            raise StartError(f"{what} did not start within {deadline_s:g} s\n{tails}".rstrip())
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, 0.02)


def sweep_stale(bases: Iterable[Path] | None = None) -> tuple[Path, ...]:
    """Remove and return what earlier runs of this user left whose harness is dead."""
    removed = []
    for base in {default_base(), Path("/tmp")} if bases is None else set(bases):
        for root in sorted(base.glob(f"{ROOT_PREFIX}*")):
            if _is_stale(root):
                reaper.reap(root)
                removed.append(root)
    return tuple(removed)


def _is_stale(root: Path) -> bool:
    """Return whether the owner of a run directory is dead. A directory without owner file may be new for a minute."""
    try:
        status = root.lstat()
    except OSError:
        return False
    if not root.is_dir() or root.is_symlink() or status.st_uid != os.geteuid():
        return False
    owner = (procfs.read_text(root / reaper.OWNER_FILE) or "").split()
    if len(owner) != 3:
        with contextlib.suppress(OSError):  # its own reaper may remove it
            return not any(root.iterdir()) and time.time() - status.st_mtime > EMPTY_ROOT_GRACE_S
        return False
    pid, start, boot = owner
    return boot != procfs.boot_id() or not pid.isdigit() or str(procfs.start_ticks(int(pid))) != start


def _open_log(where: Path, name: str) -> IO[bytes]:
    """Open a new log file: ``name.log``, ``name.2.log``, ..."""
    for number in range(1, 10000):
        path = where / (f"{name}.log" if number == 1 else f"{name}.{number}.log")
        with contextlib.suppress(FileExistsError):
            return path.open("xb")
    raise StartError(f"{where} already has 10000 log files named {name}; remove them")


@contextlib.contextmanager
def on_failure(undo: Callable[[], object]) -> Iterator[None]:
    """Undo what was begun if the block raises, also by Ctrl-C."""
    try:
        yield
    except BaseException:
        undo()
        raise


def _set_autogroup(pid: int | str, nice: int) -> None:
    """Set the nice value of the session of a process, where the kernel has such and permits it."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(str(nice))


@contextlib.contextmanager
def high_priority() -> Iterator[bool]:
    """Run a block of the harness at nice -20, and restore its nice value and autogroup. Yields whether it was allowed.

    Pollers at nice -20 leave a program at nice 0 about one percent of the core: on two cores, reading a counter would
    take half a second instead of some milliseconds. The harness works between trials and waits during them. The
    autogroup is that of the login session, so it must be restored.
    """
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    autogroup = procfs.read_text(Path("/proc/self/autogroup"))  # "/autogroup-12 nice 0"
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, launch.HIGH_PRIORITY)
    _set_autogroup("self", launch.HIGH_PRIORITY)
    try:
        yield os.getpriority(os.PRIO_PROCESS, 0) == launch.HIGH_PRIORITY
    finally:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, nice)
        _set_autogroup("self", int((autogroup or "0").split()[-1]))
