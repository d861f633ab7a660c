# SPDX-License-Identifier: BSD-3-Clause
"""Where VNFs run that are no tasks of the tester, what they are started with, and when that makes trials functional."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planebench.measure.hosted import functional_reasons, hosted_requests
from planebench.model.cpus import Cpus
from planebench.model.dimensions import HostingFacts
from planebench.model.reasons import ReasonCode
from planebench.model.scenarios import build
from planebench.model.topology import Topology
from planebench.planed.document import Document
from planebench.testbed.chain import build_chain
from planebench.testbed.placement import place
from planebench.testbed.request import LinkSettings
from planebench.testbed.tester_config import assign_tasks, full_stage, switch_request, vnf_documents

TWO, EIGHT = Cpus((0, 1)), Cpus(tuple(range(8)))
LINKS = LinkSettings(Path("/run/x"), name="pb-abcdefgh-t1-planed", nice=-20)
MIXED = "separate:firewall,l2fwd,container:l3fwd:memory_mb=99"


def mixed() -> Topology:
    return build_chain("loopback", 3, chain=MIXED)


@pytest.mark.parametrize(
    ("cpus", "vnf_cpus", "beside"),
    [
        (TWO, (1, 0, 1), {0: ("the switch", "vnf2"), 2: ("the switch", "vnf0")}),
        (Cpus((0, 1, 2)), (1, 0, 1), {0: ("vnf2",), 2: ("vnf0",)}),
        (Cpus((0, 1, 2, 3)), (1, 0, 2), {0: (), 2: ()}),
        (EIGHT, (2, 4, 3), {0: (), 2: ()}),
        (Cpus((5,)), (5, 5, 5), {0: ("the switch", "the tester", "vnf2"), 2: ("the switch", "the tester", "vnf0")}),
    ],
)
def test_those_come_first_and_tasks_take_turns(
    cpus: Cpus, vnf_cpus: tuple[int, ...], beside: dict[int, tuple[str, ...]]
) -> None:
    placement = place(cpus, 3, hosted=(0, 2))
    assert placement.vnf_cpus == vnf_cpus
    assert {number: placement.cpu_neighbours(number) for number in (0, 2)} == beside
    assert placement.switch_cpu not in placement.polled_by_tester or len(cpus.allowed) == 1


def json_of(document: Document | None) -> Any:
    """Return a document that is there as planed gets it."""
    assert document is not None
    return document.to_json()


def test_the_tester_keeps_what_is_its_own() -> None:
    topology = mixed()
    document = full_stage(topology, assign_tasks(place(TWO, 3, hosted=(0, 2)), topology), LINKS).to_json()
    assert [port["name"] for port in document["ports"]] == ["n0", "v2", "v3", "n1"]
    tasks = ["mon-n0", "mon-n1", "vnf1", "gen-n0", "gen-n1"]
    assert [worker["tasks"] for worker in document["workers"]] == [tasks]
    request = switch_request(topology, place(TWO, 3, hosted=(0, 2)), LINKS)
    assert [port.name for port in request.ports] == ["n0", "v0", "v1", "v2", "v3", "v4", "v5", "n1"]
    assert not request.stations


def test_a_hosted_vnf_has_two_ports_one_worker_and_sleeps_where_it_is_crowded() -> None:
    topology = mixed()
    first, last = (
        it.to_json() for it in vnf_documents(topology, place(TWO, 3, hosted=(0, 2)), LINKS) if it is not None
    )
    assert first is not None and last is not None
    assert (first["name"], last["name"]) == ("pb-abcdefgh-t1-planed-v0", "pb-abcdefgh-t1-planed-v2")
    assert [(port["kind"], port["path"], port["mac"]) for port in last["ports"]] == [
        ("virtio-user", "/run/x/v4/sock", "02:00:00:00:04:05"),
        ("virtio-user", "/run/x/v5/sock", "02:00:00:00:04:06"),
    ]
    assert last["tasks"] == [{"name": "vnf2", "kind": "l3fwd", "ports": ["v4", "v5"]}]
    assert last["workers"] == [{"name": "w-vnf2", "cpu": 1, "tasks": ["vnf2"], "idle": "sleep"}]
    alone = json_of(vnf_documents(topology, place(EIGHT, 3, hosted=(0, 2)), LINKS)[1])
    assert alone is not None and alone["workers"] == [{"name": "w-vnf2", "cpu": 3, "tasks": ["vnf2"]}]
    two = json_of(vnf_documents(topology, place(EIGHT, 3, hosted=(0, 2)), LinkSettings(Path("/run/x"), queues=2))[0])
    assert two is not None and [port["queues"] for port in two["ports"]] == [2, 2]
    assert [(task["name"], task.get("queue")) for task in two["tasks"]] == [("vnf0", None), ("vnf0-q1", 1)]


@pytest.mark.parametrize(("cpus", "said", "sleeps"), [(TWO, "poll", False), (EIGHT, "sleep", True)])
def test_what_it_does_when_idle_may_be_said(cpus: Cpus, said: str, sleeps: bool) -> None:
    topology = build_chain("loopback", 1, chain=f"separate:l2fwd:idle={said}")
    document = json_of(vnf_documents(topology, place(cpus, 1, hosted=(0,)), LINKS)[0])
    assert document is not None
    assert ("idle" in document["workers"][0]) == sleeps


def test_what_a_hosting_is_asked_for(tmp_path: Path) -> None:
    rules = tmp_path / "my.rules"
    rules.write_text("permit ip from any to any\n")
    topology = build_chain("loopback", 2, chain=f"container:firewall:rules={rules}:memory_mb=99,exec:true")
    first, own = hosted_requests(topology, place(TWO, 2, hosted=(0, 1)), LINKS, Path("/bin/planed"))
    assert (first.name, first.values, first.files, first.cpus) == ("vnf0", {"memory_mb": 99}, (rules,), (1,))
    assert (first.shares_cpu, first.control_cpus, first.planed) == (True, {0}, Path("/bin/planed"))
    assert [(port.name, port.socket) for port in first.ports] == [
        ("v0", Path("/run/x/v0/sock")),
        ("v1", Path("/run/x/v1/sock")),
    ]
    assert (own.document, own.values, own.files) == (None, {"command": "true"}, ())
    assert [port.mac for port in own.ports] == ["02:00:00:00:04:03", "02:00:00:00:04:04"]


def test_sharing_and_emulation_make_a_topology_functional() -> None:
    topology, native = mixed(), HostingFacts("vnf0", "separate", "planed")
    emulated = HostingFacts("vnf2", "container", "x", emulated=True)
    assert functional_reasons(topology, place(EIGHT, 3, hosted=(0, 2)), (native,)) == ()
    said = functional_reasons(topology, place(EIGHT, 3, hosted=(0, 2)), (native, emulated))
    assert [reason.text for reason in said] == ["vnf2 is emulated: its instructions run on no CPU of this machine"]
    said += functional_reasons(topology, place(TWO, 3, hosted=(0, 2)), ())
    assert {reason.code for reason in said} == {ReasonCode.EMULATED_OR_SHARED}
    assert [reason.text for reason in said[1:]] == [
        "vnf0 shares CPU 1 with the switch and vnf2",
        "vnf2 shares CPU 1 with the switch and vnf0",
    ]
    assert functional_reasons(build("parallel", 3), place(TWO, 3, hosted=range(3)), ()) == ()


def test_all_trials_of_an_emulated_machine_are_functional() -> None:
    said = functional_reasons(build("p2p"), place(EIGHT, 0), (), "QEMU TCG CPU version 2.5+")
    assert [reason.code for reason in said] == [ReasonCode.EMULATED_OR_SHARED]
    assert functional_reasons(build("p2p"), place(EIGHT, 0), (), "AMD EPYC 9654") == ()


def test_frames_wait_where_a_chain_says_so_hosted_or_not() -> None:
    topology = build_chain("loopback", 2, chain="l2fwd:send_burst=32:drain_us=50,separate:firewall:send_burst=8")
    placement = place(TWO, 2, hosted=(1,))
    tasks = full_stage(topology, assign_tasks(placement, topology), LINKS).to_json()["tasks"]
    (own,) = [task for task in tasks if task["kind"] == "l2fwd"]
    assert (own["send_burst"], own["drain_us"]) == (32, 50)
    (hosted,) = vnf_documents(topology, placement, LINKS)
    assert json_of(hosted)["tasks"][0]["send_burst"] == 8 and "drain_us" not in json_of(hosted)["tasks"][0]


def test_a_plan_says_how_vnfs_collect_frames_whose_text_does_not() -> None:
    usual = {"send_burst": 32, "drain_us": 100}
    named = build_chain("loopback", 2, chain="l2fwd:send_burst=0,firewall", sending=usual)
    assert [dict(vnf.sending) for vnf in named.vnfs] == [{"send_burst": 0}, usual]
    assert [dict(vnf.sending) for vnf in build_chain("loopback", 3, sending=usual).vnfs] == [usual] * 3
    assert [dict(vnf.sending) for vnf in build_chain("loopback", 1).vnfs] == [{}]
    assert build_chain("v2v", sending=usual, echo=True).vnfs[0].sending == usual
