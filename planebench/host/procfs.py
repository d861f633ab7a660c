# SPDX-License-Identifier: BSD-3-Clause
"""Small readers of /proc and /sys: None instead of an exception where something is absent or unreadable."""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil


def read_text(path: str | Path) -> str | None:
    """Return the stripped text of a /proc or /sys file; None if it is absent or unreadable."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def entries(folder: Path) -> tuple[Path, ...]:
    """Return the entries of a folder by name; none if it is absent or unreadable."""
    try:
        return tuple(sorted(folder.iterdir()))
    except OSError:
        return ()


def link_name(link: Path) -> str | None:
    """Return the last part of what a symbolic link names; None if there is no link."""
    try:
        return link.readlink().name
    except OSError:
        return None


def stat_fields(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat from the third (state) on; None if there is no such process."""
    text = read_text(f"/proc/{pid}/stat")
    return text.rpartition(")")[2].split() if text else None


def start_ticks(pid: int) -> int | None:
    """Return the start of a process in clock ticks since boot: with the pid an identity that survives pid reuse."""
    fields = stat_fields(pid)
    return int(fields[19]) if fields else None


def words(pid: int) -> list[str]:
    """Return the words of a command line; none if the process is gone."""
    return (read_text(f"/proc/{pid}/cmdline") or "").rstrip("\0").split("\0")


def command_line(pid: int) -> str:
    """Return a command line with spaces between the words; empty if the process is gone."""
    return " ".join(words(pid)).strip()


def words_of(process: psutil.Process) -> str:
    """Return command line and environment, each word as the kernel ends it; empty if it is gone or not readable."""
    try:
        return "\0".join((*process.cmdline(), *map("=".join, process.environ().items())))
    except psutil.Error:
        return ""


def processes_with(text: str) -> list[int]:
    """Return the living processes, without this one, that have the text in their environment or command line."""
    return [it.pid for it in psutil.process_iter() if it.pid != os.getpid() and text in words_of(it)]


def is_running(pid: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    fields = stat_fields(pid)
    return fields is not None and fields[0] not in ("Z", "X")


def is_kernel_thread(pid: int) -> bool:
    """Return whether a process is a child of kthreadd, process 2."""
    fields = stat_fields(pid)
    return fields is not None and fields[1] == "2"


def run_ns(tid: int) -> int | None:
    """Return the CPU time of a thread in ns; None if it is gone or the kernel keeps no schedstat."""
    text = read_text(f"/proc/{tid}/schedstat")
    return int(text.split()[0]) if text else None


def cpu_time_s(pid: int) -> float | None:
    """Return the CPU time of a process up to now, its running threads included; None if it is gone."""
    try:
        return time.clock_gettime(~pid << 3 | 2)  # clock_getcpuclockid(3)
    except OSError:
        return None


def boot_id(root: Path = Path("/")) -> str:
    """Return the identity of this boot; start times compare only within one boot."""
    return read_text(root / "proc/sys/kernel/random/boot_id") or "unknown"


def threads(pid: int) -> dict[int, str]:
    """Return the thread names of a process by thread id; empty if it is gone."""
    try:
        tids = [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return {}
    return {tid: read_text(f"/proc/{pid}/task/{tid}/comm") or "" for tid in sorted(tids)}


def descendants(pid: int) -> set[int]:
    """Return all descendants of a process, in whatever group, session or namespace they are."""
    try:
        return {process.pid for process in psutil.Process(pid).children(recursive=True)}
    except psutil.NoSuchProcess:
        return set()


def ids_of_thread(tid: int) -> tuple[int, ...]:
    """Return the ids of a thread in each of its pid namespaces, the innermost last; empty if it is gone."""
    for line in (read_text(f"/proc/{tid}/status") or "").splitlines():
        if line.startswith("NSpid:"):
            return tuple(map(int, line.split()[1:]))
    return ()
