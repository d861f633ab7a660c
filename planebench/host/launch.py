# SPDX-License-Identifier: BSD-3-Clause
# ruff: noqa: PTH102, PTH116, PTH123 - importing pathlib would take longer than everything else here
"""Exec wrapper of every child: affinity, priority, namespaces, death signal, then exec. Same pid before and after.

Run by path with ``python -I -S`` by :class:`planebench.host.process.Supervisor`; standard library only, about 12 ms.
A wrapper instead of a ``preexec_fn``: code between fork and exec may deadlock when the harness has threads.

    launch.py PARENT_PID CPUS MEMORY PRIORITY NETNS USER [SOURCE...] PROGRAM [ARGUMENT...]

CPUS: ``0,1``. MEMORY: ``any``, or the NUMA node of all memory. PRIORITY: ``high`` or ``normal``. NETNS: ``host``,
``new``, or the pid of the process to join. USER: ``same``, or ``UID,N`` for a user of its own (:func:`_become`), to
whom N files and folders are shown.
Exit codes: 126 the set-up failed, 127 the program could not be executed; stderr says why.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import stat
import sys

PR_SET_PDEATHSIG = 1
CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
HIGH_PRIORITY = -20
MPOL_BIND = 2
SET_MEMPOLICY = {"x86_64": 238, "aarch64": 237}
"""The number of set_mempolicy(2), for which libc has no function."""
STAGE = "/tmp"
"""Where a program with a user of its own finds what it is shown, by number, in its own mount namespace."""
NAMESPACE_REMEDY = (
    "run as root, or allow user namespaces: `sysctl kernel.unprivileged_userns_clone=1` (Debian), "
    "`sysctl kernel.apparmor_restrict_unprivileged_userns=0` (Ubuntu)"
)

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    """Raise OSError with the errno of a libc call that returned -1."""
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def _die_with(parent_pid: int) -> None:
    """Ask for SIGKILL on the parent's death; exit at once if it died before we asked."""
    _checked(_libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent_pid:
        os._exit(126)


def bind_memory(node: int) -> None:
    """Have this process, and all that it starts, take memory from a NUMA node only. Raises OSError."""
    number = SET_MEMPOLICY.get(os.uname().machine)
    if number is None:
        raise OSError(38, "the number of set_mempolicy is not known on this machine")
    mask = (ctypes.c_ulong * (node // 64 + 1))()
    mask[node // 64] = 1 << node % 64
    _checked(_libc.syscall(number, MPOL_BIND, mask, ctypes.c_ulong(64 * len(mask) + 1)), "set_mempolicy")


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _new_network_namespace() -> None:
    """Enter a new network namespace; without root inside a user namespace in which we are root."""
    uid, gid = os.getuid(), os.getgid()
    if os.geteuid() == 0 and _libc.unshare(CLONE_NEWNET) == 0:
        return
    _checked(_libc.unshare(CLONE_NEWUSER | CLONE_NEWNET), "unshare(user and network namespace)")
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"0 {uid} 1")
    _write("/proc/self/gid_map", f"0 {gid} 1")


def _mount(source: str, target: str, flags: int, kind: str = "", data: str = "") -> None:
    words = (word.encode() for word in (source, target, kind))
    _checked(_libc.mount(*words, ctypes.c_ulong(flags), data.encode()), f"mount({target})")


def _become(uid: int, sources: list[str]) -> None:
    """Become a user that owns nothing here but its log: root of a user namespace of its own, who finds ``sources`` in
    STAGE. The folders that lead to them may be closed to it. Needs root."""
    os.fchown(1, uid, uid)
    no_limit = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    with contextlib.suppress(OSError, ValueError):  # a device that it is given pins all memory
        resource.setrlimit(resource.RLIMIT_MEMLOCK, no_limit)
    _checked(_libc.unshare(CLONE_NEWNS), "unshare(mount namespace)")
    _mount("none", "/", MS_REC | MS_PRIVATE)
    files = [os.open(source, os.O_PATH) for source in sources]
    _mount("tmpfs", STAGE, 0, "tmpfs", "mode=755")
    for number, file in enumerate(files):
        target, status = f"{STAGE}/{number}", os.fstat(file)
        if stat.S_ISCHR(status.st_mode):
            os.mknod(target, stat.S_IFCHR | 0o600, status.st_rdev)
            os.chown(target, uid, uid)
            continue
        if stat.S_ISDIR(status.st_mode):
            os.mkdir(target)
        else:
            os.mknod(target)
        _mount(f"/proc/self/fd/{file}", target, MS_BIND | MS_REC)
    os.setgroups([])
    pid, (ready, begin) = os.getpid(), os.pipe()
    mapper = os.fork()  # who leaves a user namespace cannot map users of it
    if mapper == 0:
        os.close(begin)
        os.read(ready, 1)
        _write(f"/proc/{pid}/uid_map", f"0 {uid} 1")
        _write(f"/proc/{pid}/gid_map", f"0 {uid} 1")
        os._exit(0)
    _checked(_libc.unshare(CLONE_NEWUSER), "unshare(user namespace)")
    os.close(begin)
    if os.waitpid(mapper, 0)[1]:
        raise OSError(1, f"cannot map user {uid}")
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)


def main(argv: list[str]) -> int:
    """Set this process up and execute the program. Returns only on failure."""
    parent_pid, (cpus, memory, priority, netns, owner), program = int(argv[0]), argv[1:6], argv[6:]
    uid, _, shown = owner.partition(",")
    sources, program = program[: int(shown or 0)], program[int(shown or 0) :]
    try:
        _die_with(parent_pid)
        os.sched_setaffinity(0, {int(cpu) for cpu in cpus.split(",")})
        if memory != "any":
            bind_memory(int(memory))
        if priority == "high":
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, 0, HIGH_PRIORITY)
        if netns == "new":
            _new_network_namespace()
        elif netns != "host":
            # Through its user namespace, if that is not ours.
            with open(f"/proc/{netns}/ns/net") as net, open(f"/proc/{netns}/ns/user") as user:
                if os.fstat(user.fileno()).st_ino != os.stat("/proc/self/ns/user").st_ino:
                    _checked(_libc.setns(user.fileno(), CLONE_NEWUSER), f"setns(user namespace of {netns})")
                _checked(_libc.setns(net.fileno(), CLONE_NEWNET), f"setns(network namespace of {netns})")
        if uid != "same":
            _become(int(uid), sources)
        _die_with(parent_pid)  # again: a change of user or user namespace clears the death signal
    except OSError as error:
        print(
            f"launch: cannot set up {program[0]} on CPUs {cpus}, memory {memory}, network namespace {netns}: {error}",
            file=sys.stderr,
        )
        if netns == "new" or uid != "same":
            print(NAMESPACE_REMEDY, file=sys.stderr)
        return 126
    for ignored_by_python in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored_by_python, signal.SIG_DFL)
    try:
        os.execvp(program[0], program)
    except OSError as error:
        print(f"launch: cannot execute {program[0]}: {error.strerror}", file=sys.stderr)
        return 127


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
