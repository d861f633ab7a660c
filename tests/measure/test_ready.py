# SPDX-License-Identifier: BSD-3-Clause
"""When a topology is ready: frames cross; and what is said where a network function does not let them."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from planed_answers import statistics

from planebench.measure import live as live_module
from planebench.measure import live as ready_module
from planebench.measure.counts import Sending
from planebench.measure.live import LiveTopology
from planebench.model.chain_name import quote
from planebench.model.cpus import Cpus
from planebench.model.errors import StartError
from planebench.model.traffic import PLAIN, Destinations, TrafficProfile
from planebench.planed.statistics import Statistics
from planebench.testbed.chain import build_chain
from planebench.testbed.placement import place
from planebench.testbed.request import LinkSettings
from planebench.testbed.traffic import parse_traffic


class Ready(LiveTopology):
    """A topology without processes: ``arrive`` says at which ports frames come out, ``drops`` what vnf0 dropped."""

    def __init__(self, arrive: dict[str, int], drops: dict[str, int], *modes: set[str]) -> None:
        topology = build_chain("loopback", 2, chain="firewall,l3fwd")
        placement: Any = place(Cpus((0, 1)), 2)
        process = SimpleNamespace(name="tester", log_tail=lambda: "a log line")
        nothing: Any = SimpleNamespace(process=process, call=None)
        super().__init__(topology, placement, LinkSettings(Path("/run")), nothing)
        self.arrive, self.drops, self.sent = arrive, drops, 0
        self.silent: set[str] = set()
        """Ports at which the tester does not come to send."""
        self._modes = tuple(map(frozenset, modes or ({"n0->n1", "n1->n0"},)))

    def check(self) -> None:
        pass

    def send(self, *args: Any, **more: Any) -> Statistics:
        self.sent += 1
        seen = [
            {
                "name": f"mon-{port}",
                "kind": "monitor",
                "drops": {},
                "monitor": {"received_packets": count, "streams": []},
            }
            for port, count in self.arrive.items()
        ]
        vnf = {"name": "vnf0", "kind": "firewall", "drops": {"tx_full": 9, **self.drops}}
        sending = (_generator(port, port not in self.silent) for port in self.arrive)
        return statistics({"tasks": [*seen, *sending, vnf]})

    def wait(self) -> None:
        self.wait_until_forwarding()


def _generator(port: str, sends: bool) -> dict[str, Any]:
    tried = {"intended_packets": 200, "offered_packets": 200 * sends, "attempted_packets": 200 * sends}
    return {"name": f"gen-{port}", "kind": "generator", "drops": {}, "generator": tried}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "CONNECT_DEADLINE_S", 0.02)
    monkeypatch.setattr(live_module, "ready_within_s", lambda topology: 0.0)
    monkeypatch.setattr(ready_module, "DROPPING_S", 0.0)


def test_ready_when_frames_cross_both_ways() -> None:
    live = Ready({"n0": 3, "n1": 1}, {"rule": 5})
    live.wait()
    assert live.sent == 1


def test_without_drops_the_switch_is_what_is_waited_for() -> None:
    with pytest.raises(StartError, match=r"no frame came through n0->n1 within 0.02 s\ntester: a log line"):
        Ready({"n0": 3, "n1": 0}, {"rule": 0}).wait()


def test_a_tester_that_sends_nothing_is_what_is_named() -> None:
    live = Ready({"n0": 0, "n1": 0}, {})
    live.silent = {"n1"}
    with pytest.raises(StartError) as caught:
        live.wait()
    assert str(caught.value) == "the tester sent no frame in n1->n0 within 0.02 s: its workers had no CPU time"


def test_a_function_that_drops_the_frames_is_named_with_its_reasons() -> None:
    with pytest.raises(StartError) as caught:
        Ready({"n0": 3, "n1": 0}, {"rule": 150, "default": 50}).wait()
    assert str(caught.value) == (
        "no frame came through n0->n1: vnf0 (firewall) dropped 200 frames: rule, default; "
        "change its settings, or the traffic"
    )


def test_one_direction_is_enough_if_it_is_measured() -> None:
    one_way = {"n0": 0, "n1": 5}
    Ready(one_way, {"rule": 5}, {"n0->n1"}).wait()
    Ready(one_way, {"rule": 5}, {"n0->n1", "n1->n0"}, {"n0->n1"}).wait()
    with pytest.raises(StartError, match="n1->n0: vnf0"):
        Ready(one_way, {"rule": 5}, {"n0->n1", "n1->n0"}).wait()
    with pytest.raises(StartError, match="within"):
        Ready(one_way, {}, {"n0->n1"}).wait()


class Stopped(Ready):
    """The harness is stopped (Ctrl-Z) in its first try, for longer than the deadline; then all is there."""

    def send(self, *args: Any, **more: Any) -> Statistics:
        if not self.sent:
            time.sleep(0.05)
        self.arrive = {"n0": 2 * self.sent, "n1": 2 * self.sent}
        return super().send(*args, **more)


def test_after_a_stop_a_last_try_is_made() -> None:
    live = Stopped({}, {})
    live.wait()
    assert live.sent == 2


@pytest.mark.parametrize(
    ("command", "told"), [("my-vnf --fast", False), ("my-vnf {eal}", True), ("my-vnf {port0} {port1}", True)]
)
def test_a_command_that_is_not_told_its_ports_is_named(command: str, told: bool) -> None:
    live = Ready({"n0": 0, "n1": 0}, {})
    live.topology = build_chain("loopback", 2, chain=f"l2fwd,exec:{quote(command)}")
    with pytest.raises(StartError) as caught:
        live.wait()
    assert ("; vnf1: its command has no {eal}, which becomes the DPDK arguments" in str(caught.value)) == (not told)


class Routed(Ready):
    """Nothing comes of plain frames, which have no route; those of a profile pass."""

    def send(self, sending: Sending, *args: Any, **more: Any) -> Statistics:
        plain = sending.profile is None
        self.arrive = {"n0": 0 if plain else 2, "n1": 0 if plain else 2}
        self.drops = {"no_route": 4} if plain else {}
        return super().send(sending, *args, **more)


def test_frames_of_a_profile_are_enough_where_plain_ones_have_no_route() -> None:
    live = Routed({}, {})
    with pytest.raises(StartError, match=r"no_route; change its settings, or the traffic \(--traffic fib sends"):
        live.wait()
    live.sent = 0
    live._profiles = (PLAIN, parse_traffic("flows-1k"), parse_traffic("tcp"))
    live.wait()
    assert live.sent == 2


def test_a_profile_that_cannot_be_made_is_left_to_its_trials() -> None:
    live = Routed({}, {})
    gone = TrafficProfile("gone", "", dst_ips=Destinations("/gone/table.txt", 5))
    live._profiles = (PLAIN, gone, parse_traffic("tcp"))
    live.wait()
    assert live.sent == 2
