# SPDX-License-Identifier: BSD-3-Clause
"""A tester, hosted VNFs, and a switch between them or none: for tests of hostings, and for bench/hosting.py."""

from __future__ import annotations

import contextlib
import itertools
import mmap
import os
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from planed_rig import CPU, CPUS, MEMORY, OTHER_CPU, PATIENCE_S, Document, Planed, load, stream, task, vhost, virtio
from typed_document import typed

from planebench.host.planed_program import find_planed
from planebench.host.process import Supervisor
from planebench.model.switch import Value
from planebench.switches.adapter import Adapter, RunningSwitch
from planebench.testbed.hosting.base import HostedPort, HostedRequest, Hosting, RunningVnf
from planebench.testbed.request import SwitchPort, SwitchRequest

RING = 256
PEER_MACS = ("02:00:00:00:03:01", "02:00:00:00:03:02")
CALM_PPS = 2000
"""A ring of 256 holds that for an eighth of a second, so that a machine which is busy loses nothing."""
PROBE_S = 0.01
_EPOCHS = itertools.cycle(range(1, 0x10000))


@dataclass(frozen=True, slots=True)
class Way:
    """From a port of the tester to another one."""

    sender: str
    receiver: str
    stream: int


def port_socket(folder: Path, port: str) -> Path:
    """The socket of a port, alone in a folder, which a VNF is shown."""
    (folder / port).mkdir(mode=0o700, exist_ok=True)
    return folder / port / "sock"


def port_sockets(folder: Path, *ports: str) -> tuple[Path, Path]:
    """Those of two ports."""
    first, second = (port_socket(folder, port) for port in ports)
    return first, second


def tester(supervisor: Supervisor, name: str, ports: Sequence[str], folder: Path, cpu: int = CPU) -> Planed:
    """A planed with vhost-user devices in ``folder``, at each a generator (stream: its place) and a monitor."""
    it = Planed(supervisor, name)
    wires = [vhost(port, port_socket(folder, port), RING) for port in ports]
    monitors = [task(f"mon-{port}", "monitor", port) for port in ports]
    generators = [task(f"gen-{port}", "generator", port, stream=number) for number, port in enumerate(ports)]
    it.apply(wires, [*monitors, *generators], cpu=cpu)
    return it


def hosted_request(
    name: str,
    sockets: tuple[Path, Path],
    supervisor: Supervisor,
    values: Mapping[str, Value] | None = None,
    cpu: int = OTHER_CPU,
    shares_cpu: bool = True,
) -> HostedRequest:
    """An l2fwd between two sockets where somebody listens."""
    ports = (f"{name}a", f"{name}b")
    worker: Document = {"name": f"w-{name}", "cpu": cpu, "tasks": [name]}
    document: Document = {
        "version": 1,
        "name": f"{supervisor.root.name}-{name}",
        "memory": MEMORY,
        "ports": [virtio(port, path, RING) for port, path in zip(ports, sockets, strict=True)],
        "tasks": [task(name, "l2fwd", *ports, peer_macs=list(PEER_MACS))],
        "workers": [worker | ({"idle": "sleep"} if shares_cpu else {})],
    }
    planed = find_planed()
    assert planed is not None
    return HostedRequest(
        name=name,
        ports=tuple(
            HostedPort(port, path, f"02:00:00:00:04:{number:02x}")
            for number, (port, path) in enumerate(zip(ports, sockets, strict=True))
        ),
        values=values or {},
        document=typed(document),
        files=(),
        cpus=(cpu,),
        control_cpus=frozenset(CPUS),
        workdir=sockets[0].parents[1],
        planed=planed,
        ring_size=RING,
        shares_cpu=shares_cpu,
    )


def start_vnf(hosting: Hosting, request: HostedRequest, supervisor: Supervisor) -> RunningVnf:
    """Started and told to forward."""
    vnf = hosting.start(request, supervisor)
    vnf.forward()
    return vnf


def until_crossing(it: Planed, way: Way, vnfs: Sequence[RunningVnf] = ()) -> None:
    """Until a frame has crossed."""
    end = time.monotonic() + PATIENCE_S
    while not crossed(it, way):
        for vnf in vnfs:
            vnf.check()
        assert time.monotonic() < end, f"no frame from {way.sender} to {way.receiver} in {PATIENCE_S:g} s"


def crossed(it: Planed, way: Way) -> bool:
    """Whether a frame of a handful comes within some ms."""
    it.start_traffic(load(f"gen-{way.sender}", rate_pps=20_000), epoch=next(_EPOCHS), duration_s=PROBE_S)
    time.sleep(2 * PROBE_S)
    return bool(arrived(it.tasks(), way))


def arrived(tasks: Document, way: Way) -> int:
    """Frames of a way that came intact, once each."""
    return int(stream(tasks[f"mon-{way.receiver}"], way.stream)["forwarded_packets"])


def exact(it: Planed, ways: Sequence[Way], duration_s: float = 0.05, pps: float = CALM_PPS) -> bool:
    """Whether all frames of a slow sending come; what comes must be intact, and once."""
    loads = [load(f"gen-{way.sender}", rate_pps=pps) for way in ways]
    tasks = it.send(*loads, epoch=next(_EPOCHS), duration_s=duration_s)
    return all(is_exact(tasks, way) for way in ways)


def is_exact(tasks: Document, way: Way) -> bool:
    """Whether all that was sent has come, intact and once."""
    sent, came = tasks[f"gen-{way.sender}"]["generator"], stream(tasks[f"mon-{way.receiver}"], way.stream)
    assert (came["duplicate_packets"], came["corrupt_packets"]) == (0, 0)
    return bool(sent["offered_packets"]) and came["forwarded_packets"] == sent["offered_packets"]


@contextmanager
def flowing(it: Planed, ways: Sequence[Way], pps: float = CALM_PPS) -> Iterator[None]:
    """Slow traffic all the while."""
    loads = [load(f"gen-{way.sender}", rate_pps=pps) for way in ways]
    it.start_traffic(*loads, epoch=next(_EPOCHS), duration_s=600.0)
    try:
        yield
    finally:
        it.call("traffic.stop")


def start_switch(
    adapter: Adapter, folder: Path, wires: Sequence[str], pairs: Sequence[tuple[str, str]], supervisor: Supervisor
) -> RunningSwitch:
    """A switch whose wires are the tester's and whose other ports are devices for VNFs; cross-connected by pairs."""
    names = [port for pair in pairs for port in pair]
    ports = tuple(
        SwitchPort(
            name,
            "virtio-user" if name in wires else "vhost-user",
            path=port_socket(folder, name),
            ring_size=RING,
        )
        for name in names
    )
    request = SwitchRequest(
        ports=ports,
        cross_connects=tuple(pairs),
        cpu=OTHER_CPU,
        control_cpus=frozenset(CPUS),
        workdir=folder,
        hugepages=False,
        max_frame_bytes=1518,
    )
    return adapter.start(request, supervisor)


def guest_memories(vnf: RunningVnf) -> list[Path]:
    """The shared memories (memfd) that the processes of a VNF have open: rings and buffers are in there."""
    found: dict[int, Path] = {}
    for process in family(vnf):
        for link in _open_files(process.pid):
            if _target(link).startswith("/memfd:"):
                found.setdefault(link.stat().st_ino, link)
    return list(found.values())


def scribble(memory: Path, seed: int, rounds: int = 3) -> int:
    """Random bytes all over a shared memory, a page at a time, again and again. Returns how many bytes it has."""
    draw = random.Random(seed)
    with memory.open("r+b") as file:
        size = os.fstat(file.fileno()).st_size
        with mmap.mmap(file.fileno(), size) as view:
            for _ in range(rounds):
                for offset in range(0, size, 4096):
                    view[offset : offset + 4096] = draw.randbytes(4096)
    return size


def family(vnf: RunningVnf) -> list[psutil.Process]:
    """The process of a VNF, and all that come from it."""
    with contextlib.suppress(psutil.Error):
        top = psutil.Process(vnf.process.pid)
        return [top, *top.children(recursive=True)]
    return []


def _open_files(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return []


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""
