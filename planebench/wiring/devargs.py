# SPDX-License-Identifier: BSD-3-Clause
"""Arguments of DPDK's drivers for the wires: one set for both sides."""

from __future__ import annotations

from pathlib import Path

from planebench.scenarios.registry import FRAME_SIZE_MAX_BYTES

STANDARD_SLOT_BYTES, STANDARD_SLOTS_PER_BLOCK = 2048, 8
JUMBO_SLOT_BYTES, JUMBO_SLOTS_PER_BLOCK = 9216, 4


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


def af_xdp_devargs(device: str, interface: str) -> str:
    """Return the AF_XDP ``device`` of the first queue of a kernel interface."""
    return f"{device},iface={interface}"


def memif_client_devargs(socket: Path, ring_size: int) -> str:
    """Return ``role=client,socket=...`` for a memif with interface id 0; ``ring_size`` is a power of two."""
    return f"role=client,id=0,socket={socket},socket-abstract=no,rsize={ring_size.bit_length() - 1}"
