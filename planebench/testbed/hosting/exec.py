# SPDX-License-Identifier: BSD-3-Clause
"""``exec``: a VNF is a command of the user, in a container with the programs of this machine or with an image.

exec:"dpdk-l2fwd {eal_main} -- -p 3"

The command is split as a shell does it, but no shell runs it. Names in braces are replaced (:data:`PLACEHOLDERS`). A
program without a path is where PLANEBENCH_NAME says, as a switch is, or on PATH.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from planebench.host.pci import Nic
from planebench.host.process import Supervisor
from planebench.host.programs import Found, NotFound, installation, required, variable_of
from planebench.model.cpus import cpu_text
from planebench.model.dimensions import HostingFacts
from planebench.model.errors import UsageError, unknown
from planebench.model.switch import Option, Value
from planebench.testbed.hosting import base, bubblewrap
from planebench.testbed.hosting.base import HostedRequest
from planebench.testbed.hosting.bubblewrap import Shown
from planebench.testbed.hosting.inside import RunningCommand

MEMORY_MB = 1024
FUNCTIONS = Path(__file__).parent / "functions"
UNPACK = "`podman export $(podman create IMAGE) | tar -x -C FOLDER`"
"""How a container image becomes a directory."""
_PLACEHOLDER = re.compile(r"\{(\w*)\}")

PLACEHOLDERS: Mapping[str, str] = {
    "eal": "EAL options of a DPDK program: ports, memory, one lcore for each CPU and a separate main lcore",
    "eal_main": "the same for a program whose main lcore forwards, e.g. dpdk-l2fwd",
    "port0": "socket of the first port: the VNF is the virtio driver (virtio-user), the switch listens; or PCI address",
    "port1": "socket of the second port",
    "mac0": "MAC address of the first port",
    "mac1": "MAC address of the second port",
    "cpus": "CPUs for polling threads, comma-separated",
    "control_cpus": "CPUs for all other threads, comma-separated",
    "name": "name of the VNF, e.g. vnf0",
    "ring_size": "number of ring entries",
    "queues": "number of queue pairs per port",
    "max_frame_bytes": "maximum frame size in bytes, including FCS",
    "functions": "folder of configurations that come with planebench: ip-pipeline-router.cli, ip-pipeline-firewall.cli",
}
"""The placeholders in braces, and their meanings."""
_PINS_ITSELF = frozenset({"eal", "eal_main", "cpus"})
_NAMES_PORTS = frozenset({"eal", "eal_main", "port0", "port1"})


class ExecHosting:
    """A command of the user, in a container of bubblewrap."""

    name = "exec"
    title = "a command in a container"
    options: tuple[Option, ...] = (
        Option("command", "text", "command in double quotes, with {eal}, {port0}, {port1}, ..."),
        Option("image", "path", "root file system, a directory", "programs and libraries of this machine"),
        Option("paths", "list", "absolute paths of files and folders of this machine that it may see, with +"),
        Option("memory_mb", "whole", "memory limit in MiB; DPDK gets half of it", str(MEMORY_MB), least=16),
    )
    ready_within_s = 60.0

    def find(self) -> Found | NotFound:
        return bubblewrap.find()

    def start(self, request: HostedRequest, supervisor: Supervisor) -> RunningCommand:
        found = required("bubblewrap", bubblewrap.find())
        limit_mb = int(str(request.values.get("memory_mb", MEMORY_MB)))
        command = str(request.values.get("command", ""))
        passed = base.bind_ports(request, for_guest=True)
        argv = words_of(command, request, limit_mb // 2, passed)
        image = request.values.get("image")
        if not image:
            argv[0] = _located(argv[0]) or argv[0]
        root = _root(request.values, request)
        # A command that is told where to poll pins itself.
        pins_itself = not _PINS_ITSELF.isdisjoint(_PLACEHOLDER.findall(command))
        cpus = frozenset({*request.cpus, *(request.control_cpus if pins_itself else ())})
        process = bubblewrap.spawn(
            found.binary,
            request,
            supervisor,
            root if image else (*root, *_own(argv, request)),
            argv,
            cpus=cpus,
            limit_mb=limit_mb,
            devices=base.device_files(passed),
        )
        details = {
            "cpus": cpu_text(request.cpus),
            "command": shlex.join(argv),
            "image": str(image) if image else "programs and libraries of the host, read-only",
            "user": bubblewrap.user_of(request),
            "limits": bubblewrap.LIMIT.format(limit_mb),
        }
        facts = HostingFacts(request.name, "exec", f"{Path(argv[0]).name} in {found.version}", details=details)
        return RunningCommand(request, process, facts, without_ports(command))


def missing_program(values: Mapping[str, Value]) -> str:
    """Return that the program of a command is not installed, with the remedy; empty if it is, or in an image."""
    words = _split(str(values.get("command", "")))
    if not words or "image" in values or _located(words[0]):
        return ""
    return f"{words[0]} {NotFound(f'give its path with {variable_of(words[0])}').words}"


def _located(name: str) -> str | None:
    """Return a program by the path that it has inside. Raises UsageError if the user's path does not have it."""
    if "/" in name:
        return name
    where = installation(name)
    if where.path is None and shutil.which(name, path=bubblewrap.PATH):
        return name
    found = where.program(name)
    return None if found is None else str(found)


def _root(values: Mapping[str, Value], request: HostedRequest) -> tuple[Shown, ...]:
    """Return the root of the container. Raises UsageError for an image or paths that cannot be shown."""
    given = values.get("paths")
    named = [Path(path) for path in given] if isinstance(given, list) else []
    image = Path(str(values["image"])) if "image" in values else None
    if image is not None and not image.is_dir():
        raise UsageError(f"exec: image {image} is not a directory; unpack it: {UNPACK}")
    for path in [*named, *([image] if image else [])]:
        if not (path.is_absolute() and path.exists()):
            raise UsageError(f'exec: path "{path}" is not there; give absolute paths, with + between them')
        if request.workdir.resolve().is_relative_to(path.resolve()):
            raise UsageError(f"exec: {path} contains {request.workdir}, where other VNFs are; give other paths")
    return (*(bubblewrap.entries(image) if image else bubblewrap.system()), *bubblewrap.shown(named))


def _own(argv: Sequence[str], request: HostedRequest) -> tuple[Shown, ...]:
    """Return the folder of the program, and the files that its command names."""
    paths = []
    if program := shutil.which(argv[0], path=bubblewrap.PATH):
        paths = [bubblewrap.around(path, request.workdir) for path in (Path(program), Path(program).resolve())]
    named = (Path(word.rpartition("=")[2]) for word in argv[1:])
    paths += [path for path in named if path.is_absolute() and os.access(path, os.R_OK) and path.is_file()]
    more = [path for path in dict.fromkeys(paths) if not any(map(path.is_relative_to, bubblewrap.SYSTEM))]
    return bubblewrap.shown(path for path in more if path.is_absolute())


def without_ports(command: str) -> str:
    """Return the remark that a command has no placeholder for its ports, with the remedy; empty if it has one."""
    if not _NAMES_PORTS.isdisjoint(_PLACEHOLDER.findall(command)):
        return ""
    return (
        "its command has no {eal}, which becomes the DPDK arguments with its two ports (of a program without DPDK: "
        '{port0} and {port1}, their sockets); put it behind the program: exec:"my-vnf {eal}"'
    )


def words_of(command: str, request: HostedRequest, memory_mb: int, passed: Sequence[Nic] = ()) -> list[str]:
    """Return the words of a command with its placeholders replaced.

    Raises UsageError without a command, for an open quote, or for an unknown placeholder.
    """
    texts = _split(command)
    if not texts:
        raise UsageError('exec needs a command: exec:"dpdk-l2fwd {eal_main} -- -p 3"')
    ports = dict(enumerate(request.ports))
    known = {
        **{f"port{number}": port.address or str(port.socket) for number, port in ports.items()},
        **{f"mac{number}": port.mac for number, port in ports.items()},
        "cpus": cpu_text(request.cpus),
        "control_cpus": cpu_text(request.control_cpus),
        "name": request.name,
        "ring_size": str(request.ring_size),
        "queues": str(request.queues),
        "max_frame_bytes": str(request.max_frame_bytes),
        "functions": str(FUNCTIONS),
    }
    words: list[str] = []
    for text in texts:
        if text in ("{eal}", "{eal_main}"):
            words += _eal(request, memory_mb, passed, main=text == "{eal_main}")
            continue
        for name in _PLACEHOLDER.findall(text):
            if name in ("eal", "eal_main"):
                raise UsageError(f'exec: {{{name}}} expands to several words; put spaces around it instead of "{text}"')
            if name not in known:
                raise unknown("placeholder of exec", f"{{{name}}}", tuple(f"{{{valid}}}" for valid in PLACEHOLDERS))
        words.append(_PLACEHOLDER.sub(lambda match: known[match[1]], text))
    return words


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise UsageError(f'exec: cannot parse command line "{command}": {error}') from error


def _eal(request: HostedRequest, memory_mb: int, passed: Sequence[Nic], *, main: bool) -> list[str]:
    """Return EAL's options. A vhost back end accepts memory as one segment only."""
    workers = [f"{lcore}@{cpu}" for lcore, cpu in enumerate(request.cpus, start=0 if main else 1)]
    beside = [] if main else [f"0@({cpu_text(request.control_cpus)})"]
    return [
        f"--lcores={','.join([*beside, *workers])}",
        "--main-lcore=0",
        *(word for nic in passed for word in ("-a", nic.address)),
        *(() if passed else ("--no-pci",)),
        "--no-telemetry",
        f"--file-prefix={request.name}",
        *("-m", str(memory_mb), "--single-file-segments"),
        *(("--in-memory",) if request.hugepages else ("--no-huge", "--no-shconf")),
        *(
            f"--vdev=net_virtio_user{number},path={port.socket},mac={port.mac},queue_size={request.ring_size}"
            f",queues={request.queues}"
            for number, port in enumerate(request.ports)
            if not port.address
        ),
    ]
