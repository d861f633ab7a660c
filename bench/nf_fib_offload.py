# SPDX-License-Identifier: BSD-3-Clause
"""fib_offload in the micro-benchmark of network functions: one VNF with a thousand routes, and 63 with a million each.

MAC addresses of VNFs take turns, destinations are drawn from the FIB (ic16): 2^19 frames, so that no cache holds the
entries of a large table.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from nf_case import Case
from nf_l3fwd import _frames as udp_frames
from nf_rig import FrameIn

FRAMES = 1 << 19
FIRST = 10 << 24
MACS_BYTES = 12


def cases(folder: Path) -> list[Case]:
    """The cases; no files."""
    return [_case(1, 1000), _case(1, 1_000_000), _case(63, 1_000_000)]


def _mac(vnf: int) -> str:
    return f"02:00:00:00:02:{vnf:02x}"


def _case(vnfs: int, routes: int) -> Case:
    rng = np.random.default_rng(5)
    count = FRAMES if routes * vnfs > FRAMES else 4096
    to = FIRST + rng.integers(0, routes, count, dtype=np.uint64)
    plain = udp_frames(np.full(count, 0xC6120001, dtype=np.uint64), to)
    macs = [bytes.fromhex((_mac(1 + i % vnfs) + "020000000000").replace(":", "")) for i in range(count)]
    frames = [FrameIn(mac + frame.data[MACS_BYTES:]) for mac, frame in zip(macs, plain, strict=True)]
    return Case(f"fib_offload, {vnfs} VNFs of {routes} routes", _task(vnfs, routes), frames)


def _task(vnfs: int, routes: int) -> dict[str, object]:
    synthetic = {"routes": routes, "next_hops": 16, "wire": "p1", "mac": "02:00:00:00:09:01"}
    settings = {
        "wires": ["p0", "p1"],
        "routes4": vnfs * routes,
        "vnfs": [{"vnf": n, "port": f"p{n + 1}", "mac": _mac(n)} for n in range(1, vnfs + 1)],
    }
    calls = [["load_synthetic", {"vnf": n, **synthetic}] for n in range(1, vnfs + 1)]
    return {"kind": "fib_offload", "ports": vnfs + 2, "settings": settings, "calls": calls}
