# SPDX-License-Identifier: BSD-3-Clause
"""config.apply on a planed that forwards: what is refused changes nothing, what is taken comes into force at once."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from planed_rig import CPUS, MEMORY, Document, Planed, document, ethdev, load, ring, stream, task, until, vhost

from planebench.planed.client import RpcError

pytestmark = pytest.mark.dataplane

INVALID_PARAMS, REFUSED = -32602, -32000
RING = ring("r0")
LOOP = (task("gen", "generator", "r0"), task("mon", "monitor", "r0"))
Change = Callable[[Document], Any]


def with_port(**values: Any) -> Change:
    return lambda d: d["ports"].append(values)


def with_task(**values: Any) -> Change:
    return lambda d: (d["tasks"].append(values), d["workers"][0]["tasks"].append(values["name"]))


REFUSALS: list[tuple[str, Change, int, str]] = [
    (
        "unknown-key",
        lambda d: d.update(port=[]),
        INVALID_PARAMS,
        r'unknown key "port"; valid keys: version name .*ports',
    ),
    ("wrong-type", lambda d: d["ports"][0].update(ring_size="256"), INVALID_PARAMS, r"ports\[0\].ring_size: \"256\""),
    ("out-of-range", lambda d: d["ports"][0].update(ring_size=65536), INVALID_PARAMS, "from 16 to 32768"),
    ("version", lambda d: d.update(version=2), INVALID_PARAMS, "2 is not supported; this planed reads version 1"),
    ("two-receivers", with_task(**task("mon2", "monitor", "r0")), INVALID_PARAMS, "both receive on port r0"),
    ("two-senders", with_task(**task("gen2", "generator", "r0")), INVALID_PARAMS, "both send on port r0"),
    (
        "no-worker",
        lambda d: (d["ports"].append(ethdev("e1", "net_null1")), d["tasks"].append(task("gen2", "generator", "e1"))),
        INVALID_PARAMS,
        "task gen2: 0 workers poll it; name it in exactly one",
    ),
    ("unknown-port", with_task(**task("m", "monitor", "nx")), INVALID_PARAMS, 'there is no port "nx" in ports'),
    (
        "memory-changes",
        lambda d: d.update(memory={**MEMORY, "size_mb": 64}),
        REFUSED,
        "memory cannot change.*restart it",
    ),
    ("name-changes", lambda d: d.update(name="someone-else"), REFUSED, "name and memory cannot change"),
    ("no-such-driver", with_port(**ethdev("e1", "net_nothing0")), REFUSED, "port e1 cannot be opened"),
    ("no-such-file", with_port(**ethdev("e1", "net_pcap7,rx_pcap=/no/such.pcap")), REFUSED, "port e1 cannot be opened"),
    (
        "no-such-peer",
        with_port(name="v0", kind="virtio-user", path="/no/such.sock"),
        REFUSED,
        "port v0 cannot be opened",
    ),
    ("port-changes", lambda d: d["ports"][0].update(device="net_ring9"), REFUSED, "port r0 exists with another kind"),
    ("no-such-cpu", lambda d: d["workers"][0].update(cpu=1023), REFUSED, "worker w0 cannot run on cpu 1023"),
    (
        "late-failure",  # after a port has been opened and a task made
        lambda d: (
            d["ports"].append(ethdev("e1", "net_null1")),
            d["workers"].append({"name": "w9", "cpu": 1023, "tasks": []}),
        ),
        REFUSED,
        "worker w9 cannot run on cpu 1023",
    ),
]


@pytest.fixture
def looping(planed: Planed) -> Planed:
    """Generator and monitor on a port that gives back what it is sent."""
    planed.apply([RING], LOOP)
    return planed


@pytest.mark.parametrize(
    ("change", "code", "words"), [case[1:] for case in REFUSALS], ids=[case[0] for case in REFUSALS]
)
def test_what_is_refused_is_refused_whole(looping: Planed, change: Change, code: int, words: str) -> None:
    before = looping.call("config.get")
    ports = looping.call("ports.get")
    wanted = copy.deepcopy(before)
    change(wanted)
    with pytest.raises(RpcError, match=words) as refusal:
        looping.call("config.apply", wanted)
    assert refusal.value.code == code
    assert looping.call("config.get") == before
    assert looping.call("ports.get") == ports
    tasks = looping.send(load("gen"))
    assert stream(tasks["mon"])["forwarded_packets"] == tasks["gen"]["generator"]["offered_packets"] > 0


def test_what_a_refused_document_opened_is_closed_again(planed: Planed) -> None:
    """Its vhost-user socket was there for a moment; a good document can have the same port afterwards."""
    wire = vhost("n0", planed.workdir / "refused.sock")
    with pytest.raises(RpcError, match="cannot run on cpu 1023"):
        planed.apply([wire], [task("mon", "monitor", "n0")], cpu=1023)
    assert not Path(wire["path"]).exists()
    planed.apply([wire], [task("mon", "monitor", "n0")])
    assert Path(wire["path"]).is_socket()
    planed.apply()
    assert not Path(wire["path"]).exists()


def test_traffic_runs_on_through_a_refusal(looping: Planed) -> None:
    wanted = looping.call("config.get") | {"version": 2}
    looping.start_traffic(load("gen", rate_pps=20_000), duration_s=0.2)
    for _ in range(20):
        with pytest.raises(RpcError):
            looping.call("config.apply", wanted)
    until(lambda: not looping.call("traffic.get")["running"], "the generator ends")
    tasks = looping.settled()
    sent = tasks["gen"]["generator"]
    assert sent["intended_packets"] == 4000
    assert sent["offered_packets"] + sent["unsent_late_packets"] + sent["unsent_ring_full_packets"] == 4000
    assert stream(tasks["mon"])["forwarded_packets"] == sent["offered_packets"] > 0


def test_what_is_not_an_object_is_refused(looping: Planed) -> None:
    with pytest.raises(RpcError, match="expected an object"):
        looping.call("config.apply")


def test_ports_and_tasks_come_and_go(planed: Planed) -> None:
    assert planed.apply([RING], LOOP) == {"added": ["port r0", "task gen", "task mon"], "removed": []}
    null = ethdev("e0", "net_null0,no-rx=1")
    more = (*LOOP, task("gen-e0", "generator", "e0", stream=3))
    assert planed.apply([RING, null], more) == {"added": ["port e0", "task gen-e0"], "removed": []}
    assert [port["name"] for port in planed.call("ports.get")["ports"]] == ["r0", "e0"]
    tasks = planed.send(load("gen"), load("gen-e0"))
    assert stream(tasks["mon"])["forwarded_packets"] == tasks["gen"]["generator"]["offered_packets"] > 0
    assert tasks["gen-e0"]["generator"]["offered_packets"] > 0
    assert planed.apply([null], [more[2]]) == {"added": [], "removed": ["task gen", "task mon", "port r0"]}
    assert planed.apply() == {"added": [], "removed": ["task gen-e0", "port e0"]}
    assert planed.call("ports.get") == {"ports": []}


def test_the_same_document_again_changes_nothing(planed: Planed) -> None:
    planed.apply([RING], LOOP)
    assert planed.apply([RING], LOOP) == {"added": [], "removed": []}
    tasks = planed.send(load("gen"))
    assert stream(tasks["mon"])["forwarded_packets"] == tasks["gen"]["generator"]["offered_packets"] > 0


def test_a_device_that_was_removed_can_be_made_again(planed: Planed) -> None:
    for number in range(5):
        planed.apply([ethdev(f"p{number}", "net_null0")], [task("gen", "generator", f"p{number}")])
        planed.apply()


def test_a_device_is_of_one_port(planed: Planed) -> None:
    """The first port of two with one device must not lose it to the second one, neither for good."""
    with pytest.raises(RpcError):
        planed.apply([ethdev("a", "net_null0"), ethdev("b", "net_null0")], [task("gen", "generator", "a")])
    planed.apply([ethdev("a", "net_null0")], [task("gen", "generator", "a")])
    with pytest.raises(RpcError):
        planed.apply([ethdev("a", "net_null0"), ethdev("b", "net_null0")], [task("gen", "generator", "a")])
    tasks = planed.send(load("gen"))
    assert tasks["gen"]["generator"]["offered_packets"] > 0, "it has its device still"


def test_config_get_gives_the_document_back(planed: Planed) -> None:
    wanted = document(planed.name, [RING], LOOP, nice=0)
    planed.call("config.apply", wanted)
    assert planed.call("config.get") == wanted


def test_a_new_line_rate_is_in_force(planed: Planed) -> None:
    for rate_bps in (67_200_000, 6_720_000):  # 64 B frames at 100 kpps and 10 kpps
        planed.apply([{**RING, "line_rate_bps": rate_bps}], LOOP)
        tasks = planed.send(load("gen", line_share=0.5), duration_s=0.02)
        assert tasks["gen"]["generator"]["intended_packets"] == rate_bps // (84 * 8) // 2 // 50


@pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs")
def test_two_workers(planed: Planed) -> None:
    workers = [
        {"name": f"w{cpu}", "cpu": cpu, "tasks": [name]} for cpu, name in zip(CPUS, ("gen", "mon"), strict=False)
    ]
    planed.apply([RING], LOOP, workers=workers)
    tasks = planed.send(load("gen"))
    assert {tasks["gen"]["worker"], tasks["mon"]["worker"]} == {worker["name"] for worker in workers}
    assert stream(tasks["mon"])["forwarded_packets"] == tasks["gen"]["generator"]["offered_packets"] > 0
