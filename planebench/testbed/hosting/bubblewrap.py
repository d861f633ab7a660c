# SPDX-License-Identifier: BSD-3-Clause
"""bubblewrap: a container of namespaces and bind mounts that needs no daemon, no image store and no root.

Read-only root, no network but the switch's sockets, no capabilities. The folder of the topology is visible under its
own path, read-only. It is bound as a folder, because a switch that restarts makes new sockets. Only the VNF's folder in
it is writable.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from planebench.host.process import Process, Supervisor
from planebench.host.programs import Found, NotFound, find_program, version_lines
from planebench.model.errors import NotInstalledError
from planebench.testbed.hosting.base import HostedRequest
from planebench.testbed.hosting.inside import BWRAP, folder_of

REMEDY = "install bubblewrap: `apt-get install bubblewrap` (Debian, Ubuntu) or `dnf install bubblewrap` (Fedora)"
PLANED = "/planed"
"""The path of the static planed in the container."""
OWN_FOLDERS = frozenset({"dev", "proc", "run", "sys", "tmp"})
"""Folders of the root that every container has for itself."""
LIMIT = "{} MiB of private memory (RLIMIT_DATA)"
"""The description of a limit in MiB."""
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def find() -> Found | NotFound:
    """Look for bubblewrap; its version begins with its name."""
    program = find_program(BWRAP)
    lines = version_lines(program) if program else ()
    return Found(lines[0], program) if program and lines else NotFound(REMEDY)


def require(hosting: str) -> Found:
    """Return bubblewrap for a hosting. Raises NotInstalledError."""
    found = find()
    if isinstance(found, NotFound):
        raise NotInstalledError(f"hosting {hosting} is not available; {found.remedy}")
    return found


def spawn(
    request: HostedRequest, supervisor: Supervisor, limit_mb: int, words: Sequence[str], cpus: frozenset[int]
) -> Process:
    """Start the words of a container and of what runs in it, with a limit of its private memory."""
    limited = ["prlimit", f"--data={limit_mb << 20}", "--", *words]
    return supervisor.spawn(request.name, limited, cpus=cpus, workdir=folder_of(request), enclosed=True)


def planed_container(bwrap: Path, request: HostedRequest, planed: Path, devices: Iterable[Path] = ()) -> list[str]:
    """Return the command line before planed, which is alone in its root and is process 1 that handles signals.

    ``devices``: files in /dev that it has, too.
    """
    return [*_container(bwrap, request, ("--ro-bind", str(planed), PLANED), devices), "--as-pid-1", "--"]


def command_container(bwrap: Path, request: HostedRequest, root: Path, devices: Iterable[Path] = ()) -> list[str]:
    """Return the command line before a command in ``root``, with a process 1 that reaps what the command leaves.

    ``devices``: files in /dev that it has, too.
    """
    binds: list[str] = []  # one for each entry: a root that is read-only as a whole has no place for other mounts
    for entry in sorted(root.iterdir()):
        if entry.name in OWN_FOLDERS:
            continue
        if entry.is_symlink():
            binds += ["--symlink", str(entry.readlink()), f"/{entry.name}"]
        else:
            binds += ["--ro-bind", str(entry), f"/{entry.name}"]
    return [*_container(bwrap, request, binds, devices), "--"]


def _container(bwrap: Path, request: HostedRequest, root: Iterable[str], devices: Iterable[Path]) -> list[str]:
    folder, workdir = str(folder_of(request)), str(request.workdir)
    return [
        str(bwrap),
        "--unshare-all",
        "--die-with-parent",
        *("--cap-drop", "ALL"),
        *("--hostname", request.name),
        "--clearenv",
        *("--setenv", "PATH", PATH),
        *("--setenv", "HOME", folder),
        *("--setenv", "RUNTIME_DIRECTORY", "/run"),  # of DPDK
        *root,
        *("--proc", "/proc"),
        *("--dev", "/dev"),
        *("--ro-bind", "/sys", "/sys"),  # EAL reads the CPUs
        *("--tmpfs", "/run"),
        *("--tmpfs", "/tmp"),
        *("--ro-bind", workdir, workdir),
        *("--bind", folder, folder),
        *(word for file in request.files for word in ("--ro-bind", str(file), str(file))),
        *("--remount-ro", "/"),
        *("--chdir", folder),
        *(word for device in devices for word in ("--dev-bind", str(device), str(device))),
    ]
