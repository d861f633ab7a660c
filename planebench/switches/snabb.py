# SPDX-License-Identifier: BSD-3-Clause
"""Snabb: an app for each port and a link each way (conext19), by ``snabb snsh`` and a script of ours.

Snabb is a vhost-user device and has raw sockets: its wires are vhost and veth. It has no driver for an emulated NIC.
A process forwards on one core, and has the whole of a vhost-user connection, so that a port has one queue pair. With
several cores each has a process with its share of the hops of a chain.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from pathlib import Path

from planebench.host.evidence import ThreadRef
from planebench.host.process import Process, Supervisor, wait_ready
from planebench.host.programs import Found, NotFound
from planebench.model.conditions import everywhere
from planebench.model.cpus import cpu_text
from planebench.model.records import SwitchCycles
from planebench.switches import common
from planebench.switches.adapter import STANDARD_FRAME_BYTES, Adapter, Situation, Traits
from planebench.switches.common import manifest
from planebench.testbed.request import SwitchRequest

SCRIPT = Path(__file__).with_name("snabb_patch.lua")
LINK_FRAMES = 1023
READY = b"forwarding, pid "
PULL_FRAMES = 148
"""Frames that an app processes at once: engine.pull_npackets (core/app.lua)."""
PLACES = ("/usr/local/bin/snabb", "/opt/snabb*/snabb", "/opt/snabb*/src/snabb", "~/snabb/src/snabb")
_VERSION = re.compile(r"^snabb(?:\S*) (\d\S*(?: \(\S+\))?)$", re.MULTILINE)


class SnabbAdapter(Adapter):
    name = "snabb"
    title = "Snabb"
    remedy = "build it: https://github.com/snabbco/snabb (`make`), then PLANEBENCH_SNABB=/path/to/snabb"
    wires = frozenset({"vhost", "veth"})
    # apps.intel_mp has 2048, of which it takes 148 frames at once. The vhost app, which stands in for it, takes all of
    # them, and a link of 1024 refuses half.
    nic_ring_size = 256
    max_frame_bytes = STANDARD_FRAME_BYTES
    one_queue_because = "a process has a whole vhost-user connection, and --switch-cores gives hops cores in turn"
    traits = Traits("modular", "structured", ("pipeline",), "vhost-user", "high", ("Lua", "C"), "VM-to-VM", "conext19")

    def find(self) -> Found | NotFound:
        return self.found_by_version("snabb", PLACES, _VERSION)

    def refusal(self, situation: Situation) -> str:
        if situation.layout.wired and situation.wire == "pci":
            return "snabb drives NICs by drivers of its own, without vfio and IOMMU: not set up; use --wire vhost"
        return super().refusal(situation)

    def settings(self, request: SwitchRequest) -> dict[str, str]:
        drivers = {"af_packet": "raw sockets", "vhost-user": "Snabb's vhost-user"}
        return manifest(
            request,
            function="patch: two apps and a link each way",
            cores=cpu_text(cores_of(request)),
            nic_driver=common.nic_driver(request, drivers),
            vnf_interface="vhost-user (Snabb's)",
            burst=str(PULL_FRAMES),
            checksum_offload=everywhere("off", "offered to VNFs, not used by planed's"),
            segmentation_offload=everywhere("off"),
            mergeable_buffers=everywhere("offered"),
            indirect_descriptors="off",
            buffers=f"unlimited; a link holds {LINK_FRAMES} frames",
        )

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningSnabb:
        found, ports = common.prepared(self, request)
        state = request.workdir / "snabb"
        env = {
            "SNABB_SHM_ROOT": str(state),
            "TMPDIR": str(request.workdir),
            "PB_MEMORY": "huge" if request.hugepages else "small",
        }
        processes = [
            self.spawn(
                [str(found.binary), "snsh", str(SCRIPT), *words], request, supervisor, cpus=frozenset({cpu}), env=env
            )
            for cpu, words in zip(cores_of(request), script_arguments(request), strict=True)
        ]
        switch = RunningSnabb(processes, state, request.cross_connects)
        with switch.stopped_on_failure():
            wait_ready(
                "Snabb",
                lambda: all(READY in it.log_path.read_bytes() for it in processes) and common.sockets_exist(ports),
                processes,
            )
        return switch


def cores_of(request: SwitchRequest) -> tuple[int, ...]:
    """Return the core of each process: there are no more than hops."""
    return request.cpus[: len(request.cross_connects)]


def script_arguments(request: SwitchRequest) -> list[list[str]]:
    """Return the ports and pairs of each process, which have the hops in turn."""
    count = len(cores_of(request))
    apps = {it.name: f"vhost:{it.path}" if it.kind == "vhost-user" else f"raw:{it.interface}" for it in request.ports}
    return [
        [f"{name}={apps[name]}" for pair in pairs for name in pair] + [f"{a}-{b}" for a, b in pairs]
        for pairs in (request.cross_connects[number::count] for number in range(count))
    ]


class RunningSnabb(common.ProcessGroup):
    def __init__(self, processes: Sequence[Process], state: Path, pairs: tuple[tuple[str, str], ...]) -> None:
        super().__init__("Snabb", processes)
        self._state = state
        self._links = {
            b: (processes[hop % len(processes)].pid, f"{a}.tx -> {b}.rx")
            for hop, pair in enumerate(pairs)
            for a, b in (pair, pair[::-1])
        }

    def polling_threads(self) -> tuple[ThreadRef, ...]:
        return tuple(ThreadRef(pid, pid, "snabb") for pid in self.pids())

    def counters(self) -> SwitchCycles:
        """Return the frames that entered and left the links, and those that a full link refused.

        A full port leaves its frames in the link, so frames that left a link were sent. There are no cycle counters.
        """
        self.check()
        counts = {port: read_link(self._state, pid, link) for port, (pid, link) in self._links.items()}
        if any(count is None for count in counts.values()):
            raise self.died(f"Snabb has no counters in {self._state}")
        known = {port: count for port, count in counts.items() if count is not None}
        return SwitchCycles(
            packets=sum(link["txpackets"] + link["txdrop"] for link in known.values()),
            forwarded_packets=sum(link["rxpackets"] for link in known.values()),
            drops={f"{port}:tx_full": link["txdrop"] for port, link in known.items()},
        )


def read_link(state: Path, pid: int, link: str) -> dict[str, int] | None:
    """Return ``txpackets``, ``rxpackets`` and ``txdrop`` of a link; None if one of them is missing or too short."""
    folder = state / str(pid) / "links" / link
    try:
        return {
            name: struct.unpack("<Q", (folder / f"{name}.counter").read_bytes()[:8])[0]
            for name in ("txpackets", "rxpackets", "txdrop")
        }
    except (OSError, struct.error):
        return None


ADAPTER = SnabbAdapter()
