# SPDX-License-Identifier: BSD-3-Clause
"""Run in the lab: both ends of a cable with the clock of their NICs, probes in both directions.

    stamps.py A B

Prints a line of JSON with what the ports tell, one per direction, and one of how the clock of B runs against that of A.
Only the first direction has latencies, by that relation.
"""

from __future__ import annotations

import dataclasses
import json
import sys

from planed_rig import Planed, ethdev, load, stream, task

from planebench.analysis.histogram import relate_readings
from planebench.host.pci_binding import bound
from planebench.host.process import Supervisor
from planebench.measure.latency import clock_readings, join, read_log
from planebench.planed.client import get_ports, get_statistics

CPU = 3
MEMORY = {"hugepages": True, "size_mb": 256, "mbuf_count": 8191, "mbuf_data_bytes": 2176}
NAMES = {"gen-a", "gen-b", "mon-a", "mon-b"}
ENDS = (("a", "b", 0), ("b", "a", 1))


def main(a: str, b: str) -> None:
    with bound([a, b]), Supervisor() as supervisor:
        ports = [ethdev(name, nic, ring_size=512, clock="hardware") for name, nic in (("a", a), ("b", b))]
        tasks = [task(f"mon-{port}", "monitor", port) for port in "ab"]
        tasks += [task(f"gen-{port}", "generator", port, stream=number) for number, port in enumerate("ab")]
        worker = {"name": "w", "cpu": CPU, "tasks": [it["name"] for it in tasks]}
        parts = {"memory": MEMORY, "ports": ports, "tasks": tasks, "workers": [worker]}
        planed = Planed(supervisor, "lab", {"version": 1, "name": "lab", **parts})
        planed.links_up()
        told = planed.call("ports.get")["ports"]
        print(json.dumps({"clocks": [[port["clock"], port["stamps_ptp_only"]] for port in told]}))
        both = [load(f"gen-{port}", rate_pps=200, probe_rate_pps=50) for port in "ab"]
        before = clock_readings(get_ports(planed.call))
        seen = planed.send(*both, duration_s=4.0, clocks=True)
        stats, after = get_statistics(planed.call), clock_readings(get_ports(planed.call))
        logs = {name: read_log(planed.call, name, NAMES) for name in NAMES}
        relation = relate_readings((before["a"], after["a"]), (before["b"], after["b"]), stats.tsc_hz)
        for sender, receiver, number in ENDS:
            known = [relation] if number == 0 else []
            joined = join(logs[f"gen-{sender}"], logs[f"mon-{receiver}"], stats.tsc_hz, *known)
            came = stream(seen[f"mon-{receiver}"], number)
            line = {
                "sent": seen[f"gen-{sender}"]["tx_packets"],
                "came": came["forwarded_packets"],
                "wrong": sum(int(came[f"{what}_packets"]) for what in ("duplicate", "reordered", "corrupt")),
                "probes": seen[f"gen-{sender}"]["generator"]["probes_sent"],
                "stamped_sent": len(logs[f"gen-{sender}"].port_ns),
                "stamped_received": len(logs[f"mon-{receiver}"].port_ns),
                "by_both": len(joined.clock_ns),
                "clock_ns": sorted(joined.clock_ns)[:5],
                "software_ns": sorted(joined.software_ns)[:5],
                "without": dict(joined.without),
            }
            print(json.dumps(line))
        print(json.dumps({"relation": dataclasses.asdict(relation)}))


main(*sys.argv[1:])
