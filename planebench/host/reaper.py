# SPDX-License-Identifier: BSD-3-Clause
"""The reaper: outlives the harness by a moment and removes what it left, whatever way it died.

A run directory holds ``owner`` (pid, start time, boot id of the harness), ``pids`` (a line ``PID START_TICKS`` for
every process group started) and ``paths`` (files outside the directory that go with it).
:func:`reap` kills and removes all of it; it is what this program does when its stdin closes, and what ``sweep_stale``
does for earlier runs.

Run by path with ``python -I -S`` and the run directory as only argument; standard library only.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path

OWNER_FILE = "owner"
PIDS_FILE = "pids"
PATHS_FILE = "paths"
KILL_WAIT_S = 5.0


def _read_lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def process_state(pid: int) -> tuple[str, int] | None:
    """Return state letter and start time in ticks of a process; None if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return fields[0], int(fields[19])


def kill_registered(root: Path) -> None:
    """Kill every registered process group and wait, up to 5 s, until none runs."""
    processes = []
    for line in _read_lines(root / PIDS_FILE):
        with contextlib.suppress(ValueError):  # a line that is half written
            pid, start = map(int, line.split())
            processes.append((pid, start))
    for pid, start in processes:
        state = process_state(pid)
        if state is not None and state[1] != start:
            continue  # another process has this pid, which is never given to one as long as it is in use as a group id
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
    deadline = time.monotonic() + KILL_WAIT_S
    for pid, start in processes:
        while (state := process_state(pid)) and state[1] == start and state[0] not in ("Z", "X"):
            if time.monotonic() >= deadline:
                return
            time.sleep(0.005)


def remove_path(path: Path) -> None:
    """Remove a file, link or directory tree; absent is fine."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def reap(root: Path) -> None:
    """Remove a run directory with its processes and outside paths."""
    boot = _read_lines(Path("/proc/sys/kernel/random/boot_id"))
    owner = " ".join(_read_lines(root / OWNER_FILE)).split()
    if not boot or owner[2:] == boot:  # after a reboot the pids are not valid
        kill_registered(root)
    for line in _read_lines(root / PATHS_FILE):
        remove_path(Path(line))
    remove_path(root)


def main(root: Path) -> None:
    """Wait until the harness closes our stdin, on purpose or by dying; then reap."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    while os.read(0, 4096):
        pass
    reap(root)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
