# SPDX-License-Identifier: BSD-3-Clause
"""Hosted VNFs together: all up before one polls, none left where one fails, counted, restarted, ended."""

from __future__ import annotations

import math
import os
import threading
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from builders import make_header, make_latency_trial, make_point, make_trial, table_text, verdict_of

from planebench.analysis.compare import Derived
from planebench.analysis.results import derive_results
from planebench.host.evidence import ThreadRef
from planebench.measure import hosted as module
from planebench.measure.hosted import HostedVnfs
from planebench.model.cpus import Cpus
from planebench.model.dimensions import HostingFacts
from planebench.model.errors import DiedError, StartError
from planebench.model.header import Run
from planebench.model.records import DirectionCounts, Evidence, SwitchCycles, Trial, VerdictKind
from planebench.report.setup import FUNCTIONAL, functional_sentences
from planebench.testbed.chain import build_chain
from planebench.testbed.placement import place
from planebench.testbed.request import LinkSettings


@dataclass
class Fake:
    """A hosting, and what became of what it hosts."""

    fails: str = ""
    up: threading.Barrier = field(default_factory=lambda: threading.Barrier(3))
    """All three start at the same time, or nobody comes through."""
    log: list[str] = field(default_factory=list)
    ready_within_s: float = 44.0

    def start(self, request: Any, supervisor: Any) -> Any:
        if self.fails != "forward" and len(self.log) < 3:
            self.up.wait(20)
        if request.name == self.fails:
            raise StartError(f"{request.name} did not start: no kernel")
        self.log.append(f"start {request.name}")
        return Running(request.name, self)


class Running:
    planed: Any = None
    processes = ()

    def __init__(self, name: str, hosting: Fake) -> None:
        self.name, self._hosting = name, hosting
        self.facts = HostingFacts(name, "separate", "fake")

    def forward(self) -> None:
        self._hosting.log.append(f"forward {self.name}")
        if self._hosting.fails == "forward":
            raise StartError("planed refused config.apply: memory")

    def threads(self) -> tuple[ThreadRef, ...]:
        return (ThreadRef(1, len(self._hosting.log), self.name, "vnf"),)

    def check(self) -> None:
        raise DiedError(f"{self.name} died")

    def ask_to_end(self) -> None:
        self._hosting.log.append(f"ask {self.name}")

    def kill(self) -> None:
        self._hosting.log.append(f"kill {self.name}")

    def stop(self) -> None:
        self._hosting.log.append(f"stop {self.name}")


def begin(monkeypatch: pytest.MonkeyPatch, hosting: Fake) -> HostedVnfs:
    monkeypatch.setattr(module, "hosting_of", lambda _: hosting)
    topology = build_chain("loopback", 3, hosting="separate")
    placement: Any = place(Cpus((0, 1)), 3, hosted=range(3))
    nobody: Any = SimpleNamespace(memory_on=nullcontext)
    return HostedVnfs.start(topology, placement, LinkSettings(Path("/run/x")), Path("planed"), nobody)


def test_all_come_up_at_the_same_time_and_before_one_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    hosting = Fake()
    vnfs = begin(monkeypatch, hosting)
    assert {text.split()[0] for text in hosting.log[:3]} == {"start"}
    assert sorted(hosting.log[3:]) == ["forward vnf0", "forward vnf1", "forward vnf2"]
    assert [vnf.name for vnf in vnfs.vnfs] == [vnf.facts.vnf for vnf in vnfs.vnfs] == ["vnf0", "vnf1", "vnf2"]
    assert (vnfs.drops(), vnfs.policy_drops()) == ({}, {})
    with pytest.raises(DiedError, match="vnf0 died"):
        vnfs.check()
    vnfs.stop()
    assert hosting.log[6:] == [f"{what} vnf{n}" for what in ("ask", "stop") for n in range(3)]
    vnfs.stop()
    assert len(hosting.log) == 12


@pytest.mark.parametrize(("fails", "started"), [("vnf1", ["vnf0", "vnf2"]), ("forward", ["vnf0", "vnf1", "vnf2"])])
def test_where_one_fails_all_end(monkeypatch: pytest.MonkeyPatch, fails: str, started: list[str]) -> None:
    hosting = Fake(fails)
    with pytest.raises(StartError, match=r"VNFs of loopback-3: (vnf1 did not start: no kernel|planed refused)"):
        begin(monkeypatch, hosting)
    assert sorted(text for text in hosting.log if text.startswith("stop")) == [f"stop {name}" for name in started]


def test_one_is_started_again_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    hosting = Fake()
    vnfs = begin(monkeypatch, hosting)
    before = vnfs.threads()
    assert vnfs.threads() == before
    assert vnfs.restart("vnf1", kill=True).name == "vnf1"
    assert hosting.log[6:] == ["kill vnf1", "start vnf1", "forward vnf1"]
    after = vnfs.threads()
    assert [old == new for old, new in zip(before, after, strict=True)] == [True, False, True]
    vnfs.stop()


@pytest.mark.parametrize("answer", [{}, {"tasks": 5}, {"tasks": [{"kind": "l2fwd"}]}, {"tasks": [], "ports": [{}]}])
def test_a_guest_that_answers_as_no_planed_does_is_named(monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    hosting = Fake()
    vnfs = begin(monkeypatch, hosting)
    client = SimpleNamespace(call=lambda *_, **__: answer)
    monkeypatch.setattr(vnfs.vnfs[2], "planed", client, raising=False)
    with pytest.raises(DiedError, match=r"vnf2: planed does not answer stats\.get as it should: \w+.*: "):
        vnfs.drops()
    vnfs.stop()


# --- What it makes of a trial ----------------------------------------------------------------------------------------

GOOD = DirectionCounts("n0->n1", 1000, 1000, 900, attempted_packets=1100, refused_packets=100, monitor_bursts=50)
WHY = ("vnf0 is emulated: its instructions run on no CPU of this machine",)


def verdict(*counts: DirectionCounts, **more: Any) -> tuple[VerdictKind, tuple[str, ...]]:
    found = verdict_of("r_plus", True, 10**9, counts, Evidence(steal_ns=10**8), SwitchCycles(), **more)
    return found.kind, found.texts


def test_a_functional_trial_is_no_other_but_an_invalid_one_is() -> None:
    assert verdict(GOOD)[0] is VerdictKind.VALID
    assert verdict(GOOD, functional=WHY) == (VerdictKind.FUNCTIONAL, WHY)
    nothing = DirectionCounts("n0->n1", 1000, 1000, 0)
    assert verdict(nothing, functional=WHY)[0] is VerdictKind.INVALID


def test_it_is_never_a_figure() -> None:
    point = make_point("planed", "loopback", chain_length=2, hosting="vm")
    trials: tuple[Trial, ...] = (
        make_trial(0, point, 10.0, "functional", WHY),
        make_latency_trial(1, point, pps=5e6, verdict="functional", reasons=WHY),
    )
    run = Run(make_header(("planed",)), trials)
    (result,) = derive_results(run)
    assert (result.throughput_pps, result.verdict.kind, result.trials) == (None, VerdictKind.FUNCTIONAL, ())
    assert math.isnan(result.latency[0].mean) and math.isnan(result.latency[0].p99)
    assert [sentence.replace("\u202f", "") for sentence in functional_sentences(run)] == [
        f"planed loopback-2 in VMs, saturating, 1 trial: 12000000 frames sent, 10000000 came ({WHY[0]})",
        f"planed loopback-2 in VMs, 50 % of R+, 1 trial: 5000000 frames sent, 5000000 came ({WHY[0]})",
    ]
    drained = [make_trial(i, point, 10.0, "functional", (*WHY, f"{i} % of the frames were late")) for i in range(20)]
    (sentence,) = functional_sentences(Run(make_header(("planed",)), tuple(drained)))
    assert sentence.endswith(f"({WHY[0]} (+ 20 more))"), "a line of its own for each trial hid the counts"
    text = table_text(Derived(run), 120)
    text = " ".join(text.split())
    assert "loopback-2 in VMs" in text and FUNCTIONAL in text
    assert "10.00" not in text and "do not count" not in text


def test_vnfs_at_random_may_run_on_all_of_their_cpus_again_after_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads are this one, so its affinity is set and put back."""
    here = os.sched_getaffinity(0)
    cpu = max(here)
    me = (ThreadRef(os.getpid(), threading.get_native_id(), "worker", "vnf"),)
    monkeypatch.setattr(Running, "threads", lambda self: me)
    monkeypatch.setattr(module, "hosting_of", lambda _: hosting)
    hosting, nobody = Fake(), SimpleNamespace(memory_on=nullcontext)
    topology = build_chain("loopback", 3, hosting="separate")
    placement = replace(place(Cpus((0, 1)), 3, hosted=range(3)), roaming=frozenset({cpu}))
    try:
        vnfs = HostedVnfs.start(topology, placement, LinkSettings(Path("/run/x")), Path("planed"), nobody)  # type: ignore[arg-type]
        assert os.sched_getaffinity(0) == {cpu}
        assert [(it.node, it.cpus, it.roams) for it in vnfs.placed()] == [(None, frozenset({cpu}), True)] * 3
        os.sched_setaffinity(0, here)
        vnfs.restart("vnf1")
        assert os.sched_getaffinity(0) == {cpu}
        vnfs.stop()
    finally:
        os.sched_setaffinity(0, here)
