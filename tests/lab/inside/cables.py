# SPDX-License-Identifier: BSD-3-Clause
"""Run in the lab: one planed with all NICs bound, a generator and a monitor at each end of each cable.

    cables.py A=B A=B ...

Ends are PCI addresses, or interfaces of the kernel, which are driven by netmap.
Prints a line of JSON per direction: sent and counted frames, and what was wrong with them.
"""

from __future__ import annotations

import itertools
import json
import sys

from planed_rig import Planed, ethdev, load, stream, task

from planebench.host.pci_binding import bound
from planebench.host.process import Supervisor

FRAMES = 500
CPU = 3
MEMORY = {"hugepages": True, "size_mb": 256, "mbuf_count": 8191, "mbuf_data_bytes": 2176}


def main(cables: list[tuple[str, str]]) -> None:
    nics = list(itertools.chain(*cables))
    addresses = [nic for nic in nics if ":" in nic]
    with bound(addresses), Supervisor() as supervisor:
        made = {"ring_size": 512} if addresses else {"kind": "netmap", "ring_size": 256}
        ports = [{**ethdev(f"n{number}", nic), **made} for number, nic in enumerate(nics)]
        tasks = [task(f"mon{number}", "monitor", f"n{number}") for number in range(len(nics))]
        tasks += [task(f"gen{number}", "generator", f"n{number}", stream=number) for number in range(len(nics))]
        worker = {"name": "w", "cpu": CPU, "tasks": [it["name"] for it in tasks]}
        parts = {"memory": MEMORY, "ports": ports, "tasks": tasks, "workers": [worker]}
        planed = Planed(supervisor, "lab", {"version": 1, "name": "lab", **parts})
        planed.links_up()
        loads = [load(f"gen{number}", rate_pps=FRAMES) for number in range(len(nics))]
        seen = planed.send(*loads, duration_s=1.0)
        for number, nic in enumerate(nics):
            came = stream(seen[f"mon{number ^ 1}"], number)
            wrong = sum(int(came[f"{what}_packets"]) for what in ("duplicate", "reordered", "corrupt"))
            counts = {"sent": seen[f"gen{number}"]["tx_packets"], "came": came["forwarded_packets"], "wrong": wrong}
            print(json.dumps({"nic": nic, **counts}))


main([(a, b) for a, b in (cable.split("=") for cable in sys.argv[1:])])
