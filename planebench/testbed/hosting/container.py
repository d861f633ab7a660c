# SPDX-License-Identifier: BSD-3-Clause
"""``container``: a VNF is the static planed in a container, by bubblewrap or by podman with runc.

podman, the container engine of distributions, needs root. It runs in its own pid and mount namespace: the kernel ends
all of it with its first process, whatever groups and sessions conmon, runc and the container have made, and no mount
outlives it. Its storage is in the supervisor's folder, and its control groups are removed with the supervisor.
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

from planebench.host.planed_program import STATIC_REMEDY, find_static_planed
from planebench.host.process import Supervisor
from planebench.host.programs import Found, NotFound, find_program, version_lines
from planebench.model.cpus import cpu_text
from planebench.model.dimensions import HostingFacts
from planebench.model.errors import NotInstalledError
from planebench.model.switch import Option
from planebench.testbed.hosting import base, bubblewrap, inside
from planebench.testbed.hosting.base import IDLE, HostedRequest
from planebench.testbed.hosting.bubblewrap import PATH, PLANED
from planebench.testbed.hosting.inside import HostedPlaned, Limited, VnfLimits, document_of, folder_of, planed_arguments

MORE_MB = 1024
"""Memory beside that of the document, for tables of network functions."""
ISOLATION = "container with a read-only root, no network and no capabilities"

PODMAN = "podman"
REMEDY = "install podman: `apt-get install podman runc` (Debian, Ubuntu) or `dnf install podman runc` (Fedora)"
ROOT_REMEDY = "run as root for podman, or use runtime=bwrap, which does not need root"
_UNSHARE = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--")
_FIRST = ("/bin/sh", "-c", '"$@"; exit $?', "sh")
"""Process 1 of the namespace: it collects what conmon leaves, which podman does not."""


class ContainerHosting:
    """The static planed in a container for each VNF."""

    name = "container"
    title = "a container"
    remedy = bubblewrap.REMEDY
    options: tuple[Option, ...] = (
        Option(
            "runtime", "text", "container runtime", "auto: bwrap if installed, else podman", ("auto", "bwrap", "podman")
        ),
        Option("memory_mb", "whole", "memory limit in MiB", "computed from its tables, plus 1024", least=16),
        inside.PIDS_OPTION,
        base.DEVICES,
        IDLE,
    )
    ready_within_s = 20.0

    def find(self) -> Found | NotFound:
        if find_static_planed() is None:
            return NotFound(STATIC_REMEDY)
        return find_runtime("auto")

    def start(self, request: HostedRequest, supervisor: Supervisor) -> HostedPlaned:
        runtime = find_runtime(str(request.values.get("runtime", "auto")))
        if isinstance(runtime, NotFound):
            raise NotInstalledError(f"hosting container is not available; {runtime.remedy}")
        planed = find_static_planed(request.planed)
        if planed is None:
            raise NotInstalledError(f"planed-static not found next to {request.planed}; {STATIC_REMEDY}")
        chosen = inside.chosen(request.values, document_of(request).memory.size_mb + MORE_MB)
        details = {"cpus": cpu_text(request.cpus), "isolation": ISOLATION}
        passed = base.passed_devices(request)
        if passed:
            details["devices"] = ", ".join(nic.address for nic in passed)
        files = base.device_files(passed)
        facts = HostingFacts(request.name, "container", runtime.version, details=details)
        if runtime.binary.name == PODMAN:
            return _start_podman(request, supervisor, planed, chosen, facts, files)
        words = [*bubblewrap.planed_container(runtime.binary, request, planed, files), PLANED]
        arguments = planed_arguments(request)
        limited = inside.limit(request, chosen, supervisor)
        process = supervisor.spawn(
            request.name,
            [*limited.prefix, *words, *arguments],
            cpus=frozenset({*request.cpus, *request.control_cpus}),
            workdir=folder_of(request),
            enclosed=True,
        )
        return HostedPlaned(request, process, limited.told(facts), limited)


def find_runtime(wanted: str) -> Found | NotFound:
    """Return ``bwrap`` or ``podman``; for ``auto`` the first that is installed."""
    runtimes = {bubblewrap.PROGRAM: bubblewrap.find, PODMAN: find_podman}  # the preferred one first
    found = [find() for name, find in runtimes.items() if wanted in ("auto", name)]
    return next((runtime for runtime in found if isinstance(runtime, Found)), found[0])


def find_podman() -> Found | NotFound:
    """Look for podman and runc, which need root."""
    podman, runc = find_program(PODMAN), find_program("runc")
    if podman is None or runc is None:
        return NotFound(REMEDY)
    if os.geteuid() != 0:
        return NotFound(ROOT_REMEDY)
    first = [version_lines(it) for it in (podman, runc)]
    words = [lines[0].replace("version ", "") if lines else "of no version" for lines in first]
    return Found(" with ".join(words), podman)


def _start_podman(
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
    podman, runc = find_program(PODMAN), find_program("runc")
    assert podman is not None and runc is not None
    store = Path(tempfile.mkdtemp(prefix="p", dir=supervisor.root))  # short: podman refuses longer ones
    # podman reads our settings only, all of which are in the store. So is the state of runc, by a script: podman does
    # not pass its --runtime-flag to the runc that cleans up.
    script = store / runc.name
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(str(runc))} --root {store}/state "$@"\n', encoding="utf-8")
    script.chmod(0o700)
    settings = {name: str(store / name) for name in ("CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF")}
    own = [f"PATH={PATH}", *(f"{name}={path}" for name, path in settings.items())]
    engine = {
        "cgroup_manager": "cgroupfs",
        "conmon_env_vars": own,  # it ends by podman
        "events_logger": "none",
        "lock_type": "file",  # the other type leaves a file in /dev/shm
        "runtime": str(script),
        "static_dir": str(store / "lib" / "libpod"),  # of its --root, too
        "tmp_dir": str(store / "tmp"),
        "volume_path": str(store / "vol"),
    }
    network = {"network_config_dir": str(store / "net")}
    storage = {"driver": "vfs", "graphroot": str(store / "lib"), "runroot": str(store / "run")}
    _write_toml(store / "CONTAINERS_CONF", engine=engine, network=network)
    _write_toml(store / "CONTAINERS_STORAGE_CONF", storage=storage)
    # podman's runtime makes the groups; they are tracked here, to be removed in any case.
    name = inside.group_name(request, supervisor)
    groups = tuple(parent / name for parent in inside.everywhere())
    for group in groups:
        supervisor.track_path(group)
    words = f"{chosen.memory_mb} MiB of memory and {chosen.pids} processes by podman"
    limited = Limited(chosen, groups, words)
    process = supervisor.spawn(
        request.name,
        [
            *_UNSHARE,
            *_FIRST,
            str(podman),
            *run_words(request, planed, chosen, name, store, devices),
            *planed_arguments(request),
        ],
        cpus=frozenset({*request.cpus, *request.control_cpus}),
        env=settings,
        workdir=folder_of(request),
        enclosed=True,
    )
    return HostedPlaned(request, process, limited.told(facts), limited)


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


HOSTING = ContainerHosting()
