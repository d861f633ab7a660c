# SPDX-License-Identifier: BSD-3-Clause
"""How much memory a planed process needs for its ports."""

from __future__ import annotations

from planebench.planed.document import Memory
from planebench.scenarios.registry import FRAME_SIZE_MAX_BYTES

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


def memory(
    *,
    ports: int,
    ring_size: int,
    max_frame_bytes: int,
    hugepages: bool,
    pools: int = TESTER_POOLS,
    queues: int = 1,
    vnf_bytes: int = 0,
    cached_mbufs: int = CACHED_MBUFS,
) -> Memory:
    """Return the memory of a planed process with ``ports`` ports, rings of ``ring_size`` and frames up to
    ``max_frame_bytes``.

    ``pools``: the receive pool and those of generators; 1 for a process without generators, as a switch. ``queues``:
    queue pairs of each port, with generators and perhaps workers of their own. ``vnf_bytes``: what the network
    functions of one queue need for themselves (planebench.vnfs.memory). ``cached_mbufs``: in flight, beside rings.

    ``mbuf_count`` is that of the pool that all ports receive into. Rule: every ring of every port may be full of its
    buffers (2 x ring_size a port) while a fixed number is in bursts and caches; rounded up to a power of two less
    one, the count that wastes no memory in a DPDK mempool. A pool that ran dry would look like loss in the switch.
    Any port may be planed's own virtio driver, whose rings have buffers of their own.
    """
    wanted = (2 * ring_size * ports + cached_mbufs) * queues
    mbuf_count = (1 << wanted.bit_length()) - 1
    data_bytes = STANDARD_DATA_BYTES if max_frame_bytes <= FRAME_SIZE_MAX_BYTES else JUMBO_DATA_BYTES
    mbufs = mbuf_count + (pools - 1) * queues * (2 * ring_size + GENERATOR_MBUFS)
    buffers = 2 * ring_size * ports * queues
    used_bytes = mbufs * (data_bytes + MBUF_OVERHEAD_BYTES) + buffers * (data_bytes + BUFFER_OVERHEAD_BYTES)
    used_bytes += vnf_bytes * queues
    size_mb = max(MIN_MB, EAL_MB + -(-used_bytes // 2**20))
    return Memory(hugepages, size_mb, mbuf_count, data_bytes)
