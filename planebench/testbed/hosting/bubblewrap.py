# SPDX-License-Identifier: BSD-3-Clause
"""bubblewrap: a container of namespaces and bind mounts that needs no daemon, no image store and no root.

Read-only root, no network, no capabilities. Inside is what is shown, under its own path, and nothing else: the VNF's
own folder, which is writable, and the folder of each of its ports, as a folder, because a switch that restarts makes a
new socket in it. Where root starts it, the container has a user of its own, to whom nothing else belongs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from planebench.host.launch import STAGE
from planebench.host.own_user import OwnUser
from planebench.host.process import Process, Supervisor
from planebench.host.programs import Found, NotFound, find_program, version_lines
from planebench.testbed.hosting.base import HostedRequest
from planebench.testbed.hosting.inside import BWRAP, folder_of, hand_over_ports, own_folder

REMEDY = "install bubblewrap: `apt-get install bubblewrap` (Debian, Ubuntu) or `dnf install bubblewrap` (Fedora)"
OWN_FOLDERS = frozenset({"dev", "proc", "run", "sys", "tmp"})
"""Folders of the root that every container has for itself."""
SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"),
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives"),
)
"""Programs and libraries of this machine."""
SYS = ("/sys/devices/system/cpu", "/sys/devices/system/node", "/sys/kernel/mm/hugepages")
"""What EAL reads of a machine whose devices it does not use."""
LIMIT = "{} MiB of private memory (RLIMIT_DATA)"
"""The description of a limit in MiB."""
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Shown:
    """A file or folder that is seen from inside as ``name``; ``how`` is bubblewrap's option."""

    source: Path
    name: Path
    how: str = "--ro-bind"


def find() -> Found | NotFound:
    """Look for bubblewrap; its version begins with its name."""
    program = find_program(BWRAP)
    lines = version_lines(program) if program else ()
    return Found(lines[0], program) if program and lines else NotFound(REMEDY)


def entries(root: Path) -> tuple[Shown, ...]:
    """Return what is in a folder that is to be the root: one that is read-only as a whole has no place for mounts."""
    return tuple(
        Shown(entry, Path("/", entry.name)) for entry in sorted(root.iterdir()) if entry.name not in OWN_FOLDERS
    )


def system() -> tuple[Shown, ...]:
    """Return the programs and libraries of this machine, and nothing of its accounts, homes and settings."""
    return tuple(Shown(path, path) for path in map(Path, SYSTEM) if path.exists())


def shown(paths: Iterable[Path]) -> tuple[Shown, ...]:
    """Return files and folders of this machine under their own names, read-only; those in /dev as devices."""
    return tuple(
        Shown(path.resolve(), path, "--dev-bind" if path.is_relative_to("/dev") else "--ro-bind") for path in paths
    )


def around(path: Path, workdir: Path) -> Path:
    """Return the folder of a file or folder, or that alone if others have much beside it, as in a home."""
    folder = path.parent
    home = folder == Path.home() or folder.parent == Path("/home")
    return path if home or len(folder.parts) <= 2 or workdir.is_relative_to(folder) else folder


def spawn(
    bwrap: Path,
    request: HostedRequest,
    supervisor: Supervisor,
    root: Iterable[Shown],
    command: Sequence[str],
    *,
    cpus: frozenset[int],
    limit_mb: int | None = None,
    devices: Sequence[Path] = (),
    as_pid_1: bool = False,
) -> Process:
    """Start a command in a container that sees ``root``, its own folder, its ports, and ``devices`` in /dev.

    ``limit_mb``: the limit of its private memory. ``as_pid_1``: it handles signals as process 1 does; else there is
    one around it that reaps what it leaves.
    """
    hand_over_ports(request)
    own = own_folder(request)
    ports = (port.socket.parent for port in request.ports if not port.address)
    sysfs = ["/sys"] if devices else [it for it in SYS if Path(it).exists()]
    seen = [*root, *shown(map(Path, sysfs)), Shown(own, own, "--bind"), *shown(ports), *shown(devices)]
    user = None if request.uid is None else OwnUser(request.uid, tuple(it.source for it in seen if not _is_link(it)))
    words = [
        *("env", "-i", f"PATH={PATH}", f"HOME={own}", "RUNTIME_DIRECTORY=/run"),  # the last: of DPDK
        *(("prlimit", f"--data={limit_mb << 20}", "--") if limit_mb is not None else ()),
        str(bwrap),
        # A user of its own is in a user namespace already, and who is not root there may not be allowed to make one.
        *(("--unshare-user-try",) if user is None else ()),
        *("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
        *("--die-with-parent", "--cap-drop", "ALL"),
        *("--hostname", request.name),
        *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/run", "--tmpfs", "/tmp"),
        *(() if devices else ("--dir", "/sys/module")),  # EAL takes it that there is one
    ]
    staged = 0
    for it in seen:
        if _is_link(it):
            words += ["--symlink", str(it.source.readlink()), str(it.name)]
            continue
        words += [it.how, str(it.source) if user is None else f"{STAGE}/{staged}", str(it.name)]
        staged += 1
    words += ["--remount-ro", "/", "--chdir", str(own), *(("--as-pid-1",) if as_pid_1 else ()), "--", *command]
    return supervisor.spawn(request.name, words, cpus=cpus, workdir=folder_of(request), enclosed=True, user=user)


def user_of(request: HostedRequest) -> str:
    """Return whose rights a container has, for people."""
    return "the one that runs planebench" if request.uid is None else f"{request.uid}, which owns nothing else"


def _is_link(it: Shown) -> bool:
    """Return whether it is a link of a root, such as /bin to usr/bin."""
    return it.name.parent == Path("/") and it.source.is_symlink()
