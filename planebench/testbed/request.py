# SPDX-License-Identifier: BSD-3-Clause
"""The request to start a switch: its ports, their links and drivers, their connections, its CPUs, their memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from planebench.model.dimensions import ClockChoice, is_tester_port
from planebench.model.scenarios import FRAME_SIZE_MAX_BYTES
from planebench.model.topology import Vnf, topology_port
from planebench.planed.document import Document, Memory

VnfInterface = Literal["vhost-user", "veth", "vf", "netmap"]
"""The interface of VNFs; ``vf`` is a virtual function of the NIC, which is the switch; ``netmap`` a port of VALE."""
LinkSide = Literal["tester", "switch"]
"""One end of a wire."""

STANDARD_SLOT_BYTES, STANDARD_SLOTS_PER_BLOCK = 2048, 8
JUMBO_SLOT_BYTES, JUMBO_SLOTS_PER_BLOCK = 9216, 4
MBUF_HEADROOM_BYTES = 128
"""RTE_PKTMBUF_HEADROOM of DPDK."""
MBUF_OVERHEAD_BYTES = 256
"""struct rte_mbuf (128), object header (64), and its share of the ring that holds the free ones."""
STANDARD_DATA_BYTES = 2176
"""2048 and headroom: a frame of 1518 in one piece."""
JUMBO_DATA_BYTES = 9728 + MBUF_HEADROOM_BYTES
"""A frame of 9000 in one piece; 9728 is what virtio takes at most (VIRTIO_MAX_RX_PKTLEN)."""

CACHED_MBUFS = 2048
"""Mbufs in bursts in flight and in the caches of the workers, beside the rings, with a reserve."""
TESTER_POOLS = 5
"""All ports receive into one pool; each generator sends from its own: two, and two more that were just replaced."""
GENERATOR_MBUFS = 1024
"""Mbufs in a generator's pool beside two rings."""
BUFFER_OVERHEAD_BYTES = 128
"""Of a buffer of planed's virtio driver, beside the room of an mbuf: its header's line, and rounding up."""
EAL_MB = 64
"""DPDK itself: memzones, port tables, rings."""
MIN_MB = 128


@dataclass(frozen=True, slots=True)
class SwitchPort:
    """A port that the switch has to open.

    ``virtio-user``: the switch is the virtio driver and connects to ``path`` (the emulated NIC: the tester listens).
    ``memif``: the switch is the memif client (slave), interface id 0, and connects to the socket ``path``.
    ``vhost-user``: the switch is the device and listens on ``path`` (a VNF's interface, or a vhost wire).
    ``pci``: the NIC with the PCI address ``address``, which no other process may probe.
    ``af_packet``: the kernel interface ``interface``: a veth wire, or a VNF's interface of a switch in the kernel.
    ``af_xdp``: the same by an AF_XDP socket.
    ``vf``: a virtual function of the NIC.
    ``netmap``: the port ``interface`` of a VALE switch, ``SWITCH:PORT``, which is there as soon as it is opened.
    """

    name: str
    kind: Literal["virtio-user", "memif", "vhost-user", "af_packet", "af_xdp", "pci", "vf", "netmap"]
    path: Path = Path()
    interface: str = ""
    address: str = ""
    ring_size: int = 256
    vnf_memory_mb: int | None = None
    """The memory that the hosted VNF behind it was given; None where nobody chose."""

    @property
    def of_vnf(self) -> bool:
        """Return whether it is the vhost-user interface of a VNF; on a vhost wire a wire has one, too."""
        return self.kind == "vhost-user" and topology_port(self.name).side == "vnf"


@dataclass(frozen=True, slots=True)
class Station:
    """A VNF behind one port: frames to its ``mac`` from the first wire are for it.

    ``routes``: number of routes of its synthetic FIB (docs/fib-offload.md), for a switch that forwards in its
    place.
    """

    port: str
    mac: str
    routes: int = 0


@dataclass(frozen=True, slots=True)
class SwitchRequest:
    """The request to start a switch. ``cross_connects`` pairs port names; traffic flows both ways.

    With ``stations`` there are no cross-connects: a frame goes to the station with its destination MAC, and a frame to
    ``monitor_mac`` leaves by the last wire.
    """

    ports: tuple[SwitchPort, ...]
    cross_connects: tuple[tuple[str, str], ...]
    cpu: int
    """The core the switch forwards on; the first of them, if it has several."""
    control_cpus: frozenset[int]
    """CPUs for all threads of the switch that do not forward."""
    workdir: Path
    """Private, short (sockets live here), removed by the harness."""
    hugepages: bool
    max_frame_bytes: int = 1518
    netns_pid: int | None = None
    """Process whose network namespace the switch must live in (kernel interfaces)."""
    queues: int = 1
    """Queue pairs of each port: as many as the switch has workers, or a VNF cores."""
    more_cpus: tuple[int, ...] = ()
    """Further cores to forward on, for a switch that has queues for them."""
    tsc_hz: int | None = None
    """TSC frequency as the tester measured it, for a switch that counts in ns; None where there is no tester yet."""
    stations: tuple[Station, ...] = ()
    monitor_mac: str = ""
    bare: Vnf | None = None
    """The network function that is to run between the two wires, in the place of a switch and its VNFs."""
    macs: tuple[str, ...] = ()
    """The MAC addresses of these VNFs."""

    @property
    def cpus(self) -> tuple[int, ...]:
        """Return all cores that forward."""
        return (self.cpu, *self.more_cpus)

    @property
    def worker_cpus(self) -> tuple[int, ...]:
        """Return the core of each worker: one worker per queue while there are cores, as two would share its time."""
        return self.cpus[: self.queues]


@dataclass(frozen=True, slots=True)
class Ends:
    """The two devices of one wire: names of kernel interfaces, PCI addresses, or a port of an external tester."""

    tester: str
    switch: str

    def of(self, side: LinkSide | None) -> tuple[str, ...]:
        """Return the device of one side; both for None. A port of an external tester is no device."""
        found = (self.tester, self.switch) if side is None else (self.tester if side == "tester" else self.switch,)
        return tuple(device for device in found if not is_tester_port(device))


@dataclass(frozen=True, slots=True)
class LinkSettings:
    """The realization of the ports of one topology; equal for every switch of a comparison.

    ``workdir`` is private to the topology and short: sockets live in it (107 characters at most, with their name).
    ``name`` is the tester's EAL file prefix and must differ between testers that live at the same time.
    ``ends`` has the devices of each port that is no socket.
    """

    workdir: Path
    wire: str = "virtio"
    """``NAME`` or ``NAME:ARGUMENTS``."""
    ring_size: int = 256
    wire_ring_size: int = 0
    """Of the ports of wires; 0: as of all."""
    hugepages: bool = False
    max_frame_bytes: int = 1518
    name: str = "tester"
    nice: int | None = None
    queues: int = 1
    """Queue pairs of every port (``Adapter.queued_wires``)."""
    switch_queues: int = 0
    """Those at the switch's end of every wire, where they may differ (``WireKind.queues_differ``); 0: as many."""
    memif_receive_queue: int = 0
    """The queue on which a tester with a memif wire receives (``Adapter.memif_send_queue``); it sends on queue 0."""
    ends: Mapping[str, Ends] = field(default_factory=dict)
    vnf_interface: VnfInterface = "vhost-user"
    controls: Literal["", "alive", "idle"] = ""
    """The processes of VNFs side by side are control planes: ``alive`` of a switch that forwards in their place,
    ``idle`` beside a process that has the function of all; empty: they forward."""
    clock: ClockChoice = "auto"
    """The clock of the ports of the tester."""
    inside: Document | None = None
    """Ports and tasks of a switch that is part of the tester: an emulated NIC, on the first wire alone."""

    def ring_of(self, port: str) -> int:
        """Return the ring size of a port of the topology."""
        return (self.wire_ring_size if topology_port(port).side == "wire" else 0) or self.ring_size

    @property
    def one_wire(self) -> bool:
        """Return whether frames come back by the first wire, as of a NIC that switches: it does not join its ports."""
        return self.vnf_interface == "vf" or self.inside is not None

    def socket(self, port: str) -> Path:
        """Return the unix socket of a port, the same path on both sides, alone in a folder that a VNF can be shown."""
        return self.workdir / port / "sock"

    def make_folders(self, ports: Iterable[str]) -> None:
        """Make the private folder of the socket of each port."""
        for port in ports:
            self.socket(port).parent.mkdir(mode=0o700, exist_ok=True)


def af_packet_devargs(interface: str, ring_size: int, max_frame_bytes: int) -> str:
    """Return ``iface=...,blocksz=...`` with as many frame slots as a virtio ring of ``ring_size`` has descriptors.

    A slot holds the frame and a TPACKET2 header of up to 80 bytes, and must not be larger than an mbuf (the driver's
    rule): 2048 for frames of 1518, 9216 for 9018. A block is whole pages (the kernel's rule) that slots fill without a
    rest (the driver's rule: it takes the slots to be contiguous).
    """
    jumbo = max_frame_bytes > FRAME_SIZE_MAX_BYTES
    slot_bytes = JUMBO_SLOT_BYTES if jumbo else STANDARD_SLOT_BYTES
    per_block = JUMBO_SLOTS_PER_BLOCK if jumbo else STANDARD_SLOTS_PER_BLOCK
    slots = -(-ring_size // per_block) * per_block
    return f"iface={interface},blocksz={slot_bytes * per_block},framesz={slot_bytes},framecnt={slots}"


def memory(
    *,
    rings: Sequence[int],
    max_frame_bytes: int,
    hugepages: bool,
    pools: int = TESTER_POOLS,
    queues: int = 1,
    vnf_bytes: int = 0,
    cached_mbufs: int = CACHED_MBUFS,
) -> Memory:
    """Return the memory of a planed process with ports whose rings have these sizes and frames up to
    ``max_frame_bytes``.

    ``pools``: the receive pool and those of generators; 1 for a process without generators, as a switch. ``queues``:
    queue pairs of each port, with generators and perhaps workers of their own. ``vnf_bytes``: what the network
    functions of one queue need for themselves (planebench.testbed.vnfs). ``cached_mbufs``: in flight, beside rings.

    ``mbuf_count`` is that of the pool that all ports receive into. Rule: every ring of every port may be full of its
    buffers (two rings a port) while a fixed number is in bursts and caches; rounded up to a power of two less
    one, the count that wastes no memory in a DPDK mempool. A pool that ran dry would look like loss in the switch.
    Any port may be planed's own virtio driver, whose rings have buffers of their own.
    """
    wanted = (2 * sum(rings) + cached_mbufs) * queues
    mbuf_count = (1 << wanted.bit_length()) - 1
    data_bytes = STANDARD_DATA_BYTES if max_frame_bytes <= FRAME_SIZE_MAX_BYTES else JUMBO_DATA_BYTES
    mbufs = mbuf_count + (pools - 1) * queues * (2 * max(rings, default=0) + GENERATOR_MBUFS)
    buffers = 2 * sum(rings) * queues
    used_bytes = mbufs * (data_bytes + MBUF_OVERHEAD_BYTES) + buffers * (data_bytes + BUFFER_OVERHEAD_BYTES)
    used_bytes += vnf_bytes * queues
    size_mb = max(MIN_MB, EAL_MB + -(-used_bytes // 2**20))
    return Memory(hugepages, size_mb, mbuf_count, data_bytes)
