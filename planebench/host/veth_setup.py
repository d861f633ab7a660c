# SPDX-License-Identifier: BSD-3-Clause
"""Make veth pairs in the network namespace this program is started in. Used by :mod:`planebench.host.netns`.

veth_setup.py MTU TESTER_IF:SWITCH_IF...
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from pyroute2 import IPRoute

TESTER_INDEX = 0x1000
"""Interface index of the first tester interface. DPDK's af_packet driver numbers its fanout group
(pid XOR index) & 0xffff; with the indexes the kernel gives, 2 to 5, two processes started in a row may get the same
number, and the second is refused."""


def make_pairs(mtu_bytes: int, pairs: list[tuple[str, str]]) -> None:
    """Create each pair, set its MTU, bring it up. Raises NetlinkError or OSError."""
    for scope in ("all", "default"):  # the monitor would count frames of neighbour discovery as foreign packets
        with contextlib.suppress(OSError):  # a kernel without IPv6
            Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6").write_text("1")
    with IPRoute() as route:
        for number, (tester, switch) in enumerate(pairs):
            route.link("add", ifname=tester, index=TESTER_INDEX + number, kind="veth", peer=switch)
            for name in (tester, switch):
                index = route.link_lookup(ifname=name)[0]
                route.link("set", index=index, mtu=mtu_bytes, state="up")


if __name__ == "__main__":
    make_pairs(int(sys.argv[1]), [(pair.split(":")[0], pair.split(":")[1]) for pair in sys.argv[2:]])
