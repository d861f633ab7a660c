# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's af_packet driver on a kernel interface: a ring the kernel takes, and like that of a virtio port."""

from __future__ import annotations

from planebench.scenarios.registry import FRAME_SIZE_MAX_BYTES

STANDARD_SLOT_BYTES = 2048
JUMBO_SLOT_BYTES = 16384
BLOCK_BYTES = 16384


def af_packet_devargs(interface: str, ring_size: int, max_frame_bytes: int) -> str:
    """``iface=...,blocksz=...``: as many frame slots as a virtio ring of ``ring_size`` has descriptors.

    The kernel wants blocks of whole pages, slots that fill a block without a rest, and as many slots as the blocks
    hold (packet_set_ring). A slot also carries the TPACKET2 header, so 2048 bytes hold a frame of 1518, and 9000 needs
    the next power of two that does.
    """
    slot_bytes = STANDARD_SLOT_BYTES if max_frame_bytes <= FRAME_SIZE_MAX_BYTES else JUMBO_SLOT_BYTES
    slots = max(ring_size, BLOCK_BYTES // slot_bytes)
    return f"iface={interface},blocksz={BLOCK_BYTES},framesz={slot_bytes},framecnt={slots}"
