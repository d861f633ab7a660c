# SPDX-License-Identifier: BSD-3-Clause
"""podman with runc: the container engine of distributions, as root.

It runs in its own pid and mount namespace: the kernel ends all of it with its first process, whatever groups and
sessions conmon, runc and the container have made, and no mount outlives it. Its storage is in the supervisor's folder,
and its control groups are removed with the supervisor.
"""

from __future__ import annotations

import json
import os
import resource
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from planebench.host.process import Supervisor
from planebench.host.programs import Found, NotFound, find_program, version_lines
from planebench.model.cpus import cpu_text
from planebench.model.dimensions import HostingFacts
from planebench.testbed.hosting import inside
from planebench.testbed.hosting.base import HostedRequest
from planebench.testbed.hosting.bubblewrap import PATH, PLANED
from planebench.testbed.hosting.inside import HostedPlaned, Limited, VnfLimits, folder_of, planed_arguments

PROGRAM = "podman"
REMEDY = "install podman: `apt-get install podman runc` (Debian, Ubuntu) or `dnf install podman runc` (Fedora)"
ROOT_REMEDY = "run as root for podman, or use runtime=bwrap, which does not need root"
_UNSHARE = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--")
_FIRST = ("/bin/sh", "-c", '"$@"; exit $?', "sh")
"""Process 1 of the namespace: it collects what conmon leaves, which podman does not."""


def find() -> Found | NotFound:
    """Look for podman and runc, which need root."""
    podman, runc = find_program(PROGRAM), find_program("runc")
    if podman is None or runc is None:
        return NotFound(REMEDY)
    if os.geteuid() != 0:
        return NotFound(ROOT_REMEDY)
    first = [version_lines(it) for it in (podman, runc)]
    words = [lines[0].replace("version ", "") if lines else "of no version" for lines in first]
    return Found(" with ".join(words), podman)


def start(
    request: HostedRequest,
    supervisor: Supervisor,
    planed: Path,
    chosen: VnfLimits,
    facts: HostingFacts,
    devices: Sequence[Path] = (),
) -> HostedPlaned:
    """Start a container with planed in it, connected to the switch. Raises StartError.

    ``devices``: files in /dev that it has, too.
    """
    podman, runc = find_program(PROGRAM), find_program("runc")
    assert podman is not None and runc is not None
    store = Path(tempfile.mkdtemp(prefix="p", dir=supervisor.root))  # short: podman refuses longer ones
    limited = _limited(request, chosen, supervisor)
    process = supervisor.spawn(
        request.name,
        [
            *_UNSHARE,
            *_FIRST,
            str(podman),
            *run_words(request, planed, chosen, inside.group_name(request, supervisor), store, devices),
            *planed_arguments(request),
        ],
        cpus=frozenset({*request.cpus, *request.control_cpus}),
        env=_settings(store, runc),
        workdir=folder_of(request),
        enclosed=True,
    )
    return HostedPlaned(request, process, limited.told(facts), limited)


def _limited(request: HostedRequest, chosen: VnfLimits, supervisor: Supervisor) -> Limited:
    """Return the limits. podman's runtime makes the groups; they are tracked here, to be removed in any case."""
    name = inside.group_name(request, supervisor)
    groups = tuple(parent / name for parent in inside.everywhere())
    for group in groups:
        supervisor.track_path(group)
    return Limited(chosen, groups, f"{chosen.memory_mb} MiB of memory and {chosen.pids} processes by podman")


def _settings(store: Path, runc: Path) -> Mapping[str, str]:
    """Return the environment that has podman read our settings only, all of which are in ``store``."""
    files = {name: str(store / name) for name in ("CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF")}
    engine = {
        "cgroup_manager": "cgroupfs",
        "conmon_env_vars": [f"PATH={PATH}", *(f"{name}={path}" for name, path in files.items())],  # it ends by podman
        "events_logger": "none",
        "lock_type": "file",  # the other type leaves a file in /dev/shm
        "runtime": str(_with_root(runc, store)),
        "static_dir": str(store / "lib" / "libpod"),  # of its --root, too
        "tmp_dir": str(store / "tmp"),
        "volume_path": str(store / "vol"),
    }
    network = {"network_config_dir": str(store / "net")}
    storage = {"driver": "vfs", "graphroot": str(store / "lib"), "runroot": str(store / "run")}
    _write_toml(store / "CONTAINERS_CONF", engine=engine, network=network)
    _write_toml(store / "CONTAINERS_STORAGE_CONF", storage=storage)
    return files


def _with_root(runc: Path, store: Path) -> Path:
    """Return a runc with its state in ``store``: podman does not pass its --runtime-flag to the runc that cleans up."""
    script = store / runc.name
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(str(runc))} --root {store}/state "$@"\n', encoding="utf-8")
    script.chmod(0o700)
    return script


def _write_toml(path: Path, **sections: Mapping[str, Any]) -> None:
    lines = [
        line
        for name, values in sections.items()
        for line in (f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items()))
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def run_words(
    request: HostedRequest, planed: Path, chosen: VnfLimits, group: str, store: Path, devices: Sequence[Path] = ()
) -> list[str]:
    """Return the words after ``podman``, to run planed in a new root in ``store``."""
    folder, workdir = folder_of(request), request.workdir
    root = store / "root"
    root.mkdir()
    files, processes, locked = (
        resource.getrlimit(kind)[1] for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_MEMLOCK)
    )
    return [
        "run",
        "--rm",
        "--name=vnf",
        "--log-driver=none",
        "--network=none",
        "--no-hosts",
        "--ipc=none",
        "--cap-drop=all",
        "--security-opt=no-new-privileges",
        "--read-only",
        # podman's defaults are more than a process without CAP_SYS_RESOURCE may have.
        f"--ulimit=nofile={files}:{files}",
        f"--ulimit=nproc={processes}:{processes}",
        "--cgroups=no-conmon",
        f"--cgroup-parent={inside.as_parent(group)}",
        f"--memory={chosen.memory_mb}m",
        f"--pids-limit={chosen.pids}",
        f"--cpuset-cpus={cpu_text({*request.cpus, *request.control_cpus})}",
        "--env=RUNTIME_DIRECTORY=/run",
        f"--hostname={request.name}",
        f"--volume={planed}:{PLANED}:ro",
        f"--volume={workdir}:{workdir}:ro",
        f"--volume={folder}:{folder}",
        *(f"--mount=type=bind,src={file},dst={file},ro=true" for file in request.files),
        *(f"--device={device}" for device in devices),
        *((f"--ulimit=memlock={locked}:{locked}",) if devices else ()),  # vfio locks what devices may write to
        f"--workdir={folder}",
        "--rootfs",
        str(root),
        PLANED,
    ]
