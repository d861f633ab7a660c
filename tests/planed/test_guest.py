# SPDX-License-Identifier: BSD-3-Clause
"""planed in a QEMU guest: its NICs by PCI address, several queues, both layouts of rings; RPC through a virtio port."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from guest_rig import boot, card, said, until_said
from planed_rig import CPU, PATIENCE_S, TRIES, Document, Planed, document, load, stream, task, until
from vring_rig import device

from planebench.host.process import Process, Supervisor
from planebench.planed.client import PlanedClient
from planebench.testbed.hosting.qemu import pci_address

pytestmark = [pytest.mark.dataplane, pytest.mark.slow, pytest.mark.all]

QUEUES = 2
HUGEPAGES = 40
MEMORY = {"size_mb": 64, "mbuf_count": 4095, "mbuf_data_bytes": 9344}
"""For a frame of 9018 in one piece, of a size that nobody has tuned to what drivers like."""
PROBES: Document = {"rate_pps": 2000, "probe_rate_pps": 200}


def inside() -> Document:
    """What runs in the guest."""
    nics = [{"name": f"e{n}", "kind": "ethdev", "device": pci_address(n), "queues": QUEUES} for n in (0, 1)]
    vnfs = [task(f"vnf{queue}", "l2fwd", "e0", "e1", queue=queue) for queue in range(QUEUES)]
    worker = {"name": "w0", "cpu": 0, "tasks": [vnf["name"] for vnf in vnfs], "idle": "sleep"}
    return document("guest", nics, vnfs, workers=[worker], memory={**MEMORY, "hugepages": True})


def outside(supervisor: Supervisor) -> Planed:
    """A port for each of the guest's NICs; each queue has a generator and a monitor."""
    planed = Planed(supervisor, "outside", document("outside", memory=MEMORY))
    planed.wires = tuple(device(name, planed.workdir / f"guest-{name}.sock") | {"queues": QUEUES} for name in "ab")
    ends = [
        task(f"{kind[:3]}{port}{queue}", kind, port, queue=queue, **(numbered if kind == "generator" else {}))
        for port in "ab"
        for queue in range(QUEUES)
        for numbered in [{"stream": stream_of(port, queue)}]
        for kind in ("monitor", "generator")
    ]
    planed.apply(planed.wires, ends, cpu=CPU, memory=MEMORY)
    return planed


def stream_of(port: str, queue: int) -> int:
    return 2 * queue + "ab".index(port)


def start(planed: Planed, supervisor: Supervisor, rpc: Path) -> Process:
    cards = card(planed.wires[0], 0, "packed=off") + card(planed.wires[1], 1, "packed=on")
    files = {"document.json": json.dumps(inside()).encode()}
    return boot(supervisor, "inside", files, cards, words=[f"hugepages={HUGEPAGES}"], rpc=rpc)


def vnfs(client: PlanedClient) -> Document:
    return {it["name"]: it for it in client.call("stats.get")["tasks"]}


def test_planed_forwards_in_a_guest(supervisor: Supervisor) -> None:
    planed = outside(supervisor)
    rpc = supervisor.workdir("inside") / "rpc"
    guest = start(planed, supervisor, rpc)
    until_said(guest, "GUEST-UP")
    client = PlanedClient(rpc, timeout_s=PATIENCE_S)
    assert client.call("version")["protocol"] == 1, "asked before it was there to answer"
    until(lambda: all(port["link_up"] for port in planed.call("ports.get")["ports"]), "the switch sees both NICs")
    for number, port in enumerate(client.call("ports.get")["ports"]):
        facts = (port["link_up"], port["driver"], port["queues"], port["mac"])
        assert facts == (True, "net_virtio", QUEUES, f"52:54:00:00:00:0{number}")
    layouts = {port["name"]: "packed" in port["virtio"]["features"] for port in planed.call("ports.get")["ports"]}
    assert layouts == {"a": False, "b": True}
    for epoch, frame_bytes in enumerate((64, 9018)):
        assert_forwards(planed, client, epoch, frame_bytes)
    assert client.call("stats.get")["workers"][0]["sleeps"] > 0

    client.close()
    with PlanedClient(rpc, timeout_s=PATIENCE_S) as another:
        assert another.call("shutdown") == {}
    assert guest.wait(PATIENCE_S) == 0
    assert "planed has ended: 0" in said(guest)


def assert_forwards(planed: Planed, client: PlanedClient, epoch: int, frame_bytes: int) -> None:
    """Exact counts on each queue; and a stamp of each probe, though no generator is in the guest."""
    generators = [f"gen{port}{queue}" for port in "ab" for queue in range(QUEUES)]
    for _ in range(TRIES):
        client.call("traffic.start", {"epoch": epoch, "duration_ns": 10**9, "stamps": True, "generators": []})
        planed.start_traffic(*(load(name, frame_bytes, **PROBES) for name in generators), epoch=epoch, duration_s=0.3)
        until(lambda: not planed.call("traffic.get")["running"], "the generators end")
        if all(planed.settled()[name]["generator"]["probes_sent"] for name in generators):
            break  # else a worker had no CPU in all that time
    until(lambda: sum(it["tx_packets"] for it in vnfs(client).values()) == arrived(planed), "all that left has come")
    seen, forwarded = planed.tasks(), vnfs(client)
    for queue in range(QUEUES):
        assert_exact(seen, forwarded[f"vnf{queue}"], queue)
        stamps = client.call("stamps.get", {"task": f"vnf{queue}", "limit": 65536})["stamps"]
        probes = [(stream_of(port, queue), seen[f"gen{port}{queue}"]["generator"]["probes_sent"]) for port in "ab"]
        assert [(number, sum(it[0] == number for it in stamps)) for number, _ in probes] == probes
        assert all(into < out for _, _, into, out, *_ in stamps)


def arrived(planed: Planed) -> int:
    return sum(it["rx_packets"] for name, it in planed.tasks().items() if name.startswith("mon"))


def assert_exact(seen: Document, vnf: Document, queue: int) -> None:
    """What was sent on a queue is what the VNF got there, and what it sent on is what came: once, whole, in order."""
    assert vnf["rx_packets"] == sum(seen[f"gen{port}{queue}"]["tx_packets"] for port in "ab") > 0
    assert vnf["rx_packets"] == vnf["tx_packets"] + sum(vnf["drops"].values())
    for sender, receiver in ("ab", "ba"):
        came = stream(seen[f"mon{receiver}{queue}"], stream_of(sender, queue))
        lost = vnf["drops_by_port"][f"e{'ab'.index(receiver)}"]["tx_full"]
        assert came["forwarded_packets"] == seen[f"gen{sender}{queue}"]["tx_packets"] - lost
        assert (came["duplicate_packets"], came["reordered_packets"], came["corrupt_packets"]) == (0, 0, 0)
