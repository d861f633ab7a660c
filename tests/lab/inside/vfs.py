# SPDX-License-Identifier: BSD-3-Clause
"""Run in the lab: virtual functions of a NIC. One is a port of planed, and so is the NIC at the other end of the cable.

    vfs.py use TESTER PHYSICAL   make two, send in both directions between TESTER and the first, remove them
    vfs.py kill PHYSICAL         end by kill -9 with two made, and restore what that left

Prints a line of JSON per step.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

from planed_rig import Planed, ethdev, load, stream, task

from planebench.host import pci
from planebench.host.device_settings import device_journal, device_path, read_up
from planebench.host.pci_binding import bound, make_vfs, virtual_functions
from planebench.host.process import Supervisor

FRAMES = 500
CPU = 3
MEMORY = {"hugepages": True, "size_mb": 256, "mbuf_count": 8191, "mbuf_data_bytes": 2176}
MAC = "02:00:00:00:77:01"


def state(physical: str) -> dict[str, object]:
    """Return what a run changes of a NIC, as the kernel tells it."""
    found = pci.nic(physical)
    up = read_up(pci.ROOT, device_path(physical, "up"))
    return {"driver": found.driver, "vfs": found.vfs, "functions": virtual_functions(physical), "up": up}


def attributes(physical: str, number: int) -> list[str | None]:
    """Return address, trust and spoof check of a VF as ``ip`` tells them."""
    interface = next((pci.ROOT / "sys/bus/pci/devices" / physical / "net").iterdir()).name
    (shown,) = json.loads(subprocess.check_output(["ip", "-j", "-d", "link", "show", "dev", interface]))
    found = shown["vfinfo_list"][number]
    trust, check = ({True: "on", False: "off"}.get(found.get(name)) for name in ("trust", "spoofchk"))
    return [found["address"], trust, check]


def use(tester: str, physical: str) -> None:
    journal = device_journal()
    before = state(physical)
    made = make_vfs(physical, 2, journal, macs=(MAC,))
    told = [attributes(physical, number) for number in range(2)]
    groups = [function.iommu_group for function in made]
    print(json.dumps({"made": [function.address for function in made], "told": told, "groups": groups}), flush=True)
    with bound([tester, made[0].address], journal), Supervisor() as supervisor:
        for line in exchanged(supervisor, tester, made[0].address):
            print(json.dumps(line), flush=True)
    journal.undo_own()
    print(json.dumps({"restored": state(physical) == before and not journal.state.exists(), "before": before}))


def exchanged(supervisor: Supervisor, tester: str, function: str) -> list[dict[str, object]]:
    """Return what came of frames in both directions. A VF receives what is sent to its own address."""
    ports = [ethdev("n0", tester, ring_size=512), ethdev("n1", function, ring_size=512)]
    tasks = [task("mon0", "monitor", "n0"), task("mon1", "monitor", "n1")]
    tasks += [task("gen0", "generator", "n0", stream=0, dst_mac=MAC), task("gen1", "generator", "n1", stream=1)]
    worker = {"name": "w", "cpu": CPU, "tasks": [it["name"] for it in tasks]}
    parts = {"memory": MEMORY, "ports": ports, "tasks": tasks, "workers": [worker]}
    planed = Planed(supervisor, "lab", {"version": 1, "name": "lab", **parts})
    planed.links_up()
    drivers = [port["driver"] for port in planed.call("ports.get")["ports"]]
    seen = planed.send(load("gen0", rate_pps=FRAMES), load("gen1", rate_pps=FRAMES), duration_s=1.0)
    lines = []
    for number in range(2):
        came = stream(seen[f"mon{number ^ 1}"], number)
        wrong = sum(int(came[f"{what}_packets"]) for what in ("duplicate", "reordered", "corrupt"))
        counts = {"sent": seen[f"gen{number}"]["tx_packets"], "came": came["forwarded_packets"], "wrong": wrong}
        lines.append({"driver": drivers[number], **counts})
    return lines


def kill(physical: str) -> None:
    before = state(physical)
    pid = os.fork()
    if pid == 0:
        make_vfs(physical, 2)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    left = state(physical)
    journal = device_journal()
    journal.undo_abandoned()
    print(json.dumps({"left": left, "restored": state(physical) == before and not journal.state.exists()}))


{"use": use, "kill": kill}[sys.argv[1]](*sys.argv[2:])
