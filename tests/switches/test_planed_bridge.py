# SPDX-License-Identifier: BSD-3-Clause
"""planed as learning switches in every scenario: all frames arrive, whatever addresses VNFs write, and no station seems
to move from one side of a bridge to the other."""

from __future__ import annotations

from typing import Any

import pytest
from planed_rig import CPU, OTHER_CPU, Planed, load, stream, task, until, vhost, virtio

from planebench.host.process import Supervisor
from planebench.model.scenario import ScenarioName
from planebench.model.scenarios import build
from planebench.switches.planed import RunningPlaned
from planebench.switches.registry import get_adapter
from planebench.testbed.request import SwitchPort, SwitchRequest
from planebench.testbed.tester_config import tester_tasks

pytestmark = [pytest.mark.dataplane, pytest.mark.usefixtures("needs_tester")]


def at_rest(switch: RunningPlaned, tester: Planed) -> bool:
    """Return whether the switch received nothing while its tasks, and then the tester's, polled twice."""

    def polls() -> list[int]:
        tasks: Any = switch._planed.call("stats.get")["tasks"]
        return [task["polls"] for task in tasks]

    before, first = switch.counters().packets, polls()

    def polled() -> bool:
        return all(now >= then + 2 for now, then in zip(polls(), first, strict=True))

    until(polled, "every task of the switch polls")
    tester.until_polled()
    return switch.counters().packets == before


@pytest.mark.parametrize(
    ("scenario", "length", "echo"),
    [
        ("p2p", 0, False),
        ("p2v", 0, False),
        ("v2v", 0, False),
        ("v2v", 0, True),
        ("loopback", 1, False),
        ("loopback", 2, False),
    ],
)
def test_every_frame_arrives(supervisor: Supervisor, scenario: ScenarioName, length: int, echo: bool) -> None:
    topology = build(scenario, length, echo=echo)
    tester = Planed(supervisor, "tester")
    path = {port.name: tester.workdir / f"{port.name}.sock" for port in topology.ports}
    wires = [vhost(name, path[name]) for name in topology.wire_ports]
    tester.apply(wires)
    ports = tuple(
        SwitchPort(port.name, "virtio-user" if port.side == "wire" else "vhost-user", path=path[port.name])
        for port in topology.ports
    )
    workdir = supervisor.workdir("s")
    request = SwitchRequest(ports, topology.cross_connects, CPU, frozenset({OTHER_CPU}), workdir, hugepages=False)
    switch = get_adapter("planed:function=bridge").start(request, supervisor)
    assert isinstance(switch, RunningPlaned)
    kinds = [
        task(it.name, it.kind, *it.ports, **({} if it.stream is None else {"stream": it.stream}))
        for it in tester_tasks(topology)
    ]
    tester.apply(wires + [virtio(name, path[name]) for name in topology.vnf_ports], kinds, cpu=OTHER_CPU)
    tester.links_up()
    ends = topology.ends
    tester.send(*(load(f"gen-{end}", rate_pps=5_000) for end in ends))
    until(lambda: at_rest(switch, tester), "the switch is at rest")
    counted = tester.settled()
    for number, end in enumerate(ends):
        came = stream(counted[f"mon-{ends[1 - number]}"], number)
        sent = counted[f"gen-{end}"]["generator"]["offered_packets"]
        assert (came["forwarded_packets"], came["reordered_packets"], came["corrupt_packets"]) == (sent, 0, 0)
        assert counted[f"mon-{end}"]["monitor"]["foreign_packets"] == 0
    counters = switch.counters()
    assert not any(counters.drops.values())
    assert counters.counters["rx_bursts"] == counters.bursts
    assert 0 <= counters.counters["rx_full_bursts"] < counters.counters["rx_bursts"]  # at 5 kpps nothing waits
    bridges: Any = switch._planed.call("stats.get")["tasks"]
    for bridge in bridges:
        assert bridge["kind"] == "bridge"
        assert (bridge["bridge"]["entries"], bridge["bridge"]["moved"]) == (2, 0)
