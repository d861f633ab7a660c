# SPDX-License-Identifier: BSD-3-Clause
"""Real probes through real chains, stamped on their way: every one is joined, and the parts add up to its latency."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import pytest
from builders import make_point

from planebench.analysis.latency import summarise_anatomy
from planebench.host import facts
from planebench.host.planed_program import find_planed
from planebench.host.process import Supervisor, high_priority
from planebench.host.programs import NotFound
from planebench.measure.latency import TOLERANCE
from planebench.measure.live import LiveSettings, LiveTopology
from planebench.measure.trial import TrialRequest, run_trial
from planebench.model.cpus import Cpus
from planebench.model.reasons import HOST
from planebench.model.records import Anatomy, Load, Point, Trial, VerdictKind
from planebench.switches.registry import get_adapter
from planebench.testbed.chain import build_chain
from planebench.testbed.hosting.registry import HOSTINGS
from planebench.testbed.placement import place

pytestmark = [pytest.mark.dataplane, pytest.mark.timeout(120)]

PPS = 20_000.0
PROBES_PPS = 2000
DURATION_S = 0.1
TRIES = 20
CASES = {
    "loopback-1": ("planed", make_point("planed", "loopback", direction="bidirectional")),
    "loopback-3": ("planed", make_point("planed", "loopback", direction="bidirectional", chain_length=3)),
    "v2v": ("planed", make_point("planed", "v2v")),  # echoed, as its latency is measured
    "p2p, four queues": ("planed:workers=4", make_point("planed", "p2p")),
}


@contextmanager
def running(switch: str, point: Point) -> Iterator[LiveTopology]:
    planed, host = find_planed(), facts.collect()
    assert planed is not None
    echo = point.scenario == "v2v"
    topology = build_chain(point.scenario, point.chain_length, chain=point.chain, echo=echo)
    cpus = Cpus(host.cpus_allowed, host.siblings, host.numa_node)
    placement = place(cpus, len(topology.vnfs), hosted=topology.hosted_numbers)
    settings = LiveSettings(planed=planed, ring_size=256, hugepages=False, max_frame_bytes=1518, wire="virtio")
    with high_priority(), Supervisor(Path("/tmp")) as supervisor:
        ways = (point.direction,) if point.side_by_side else ("unidirectional", "bidirectional")
        it = LiveTopology.start("planed", get_adapter(switch), topology, placement, settings, supervisor, ways)
        yield it
        it.stop()


@pytest.fixture(scope="module", params=CASES)
def live(request: pytest.FixtureRequest) -> Iterator[tuple[LiveTopology, Point]]:
    switch, point = CASES[request.param]
    with running(switch, point) as it:
        yield it, point


def measure(live: LiveTopology, point: Point) -> Trial:
    """A trial in which probes came back in every direction; on a busy machine even that may take several."""
    load = Load("20kpps", PPS)
    wanted = TrialRequest(point, "latency", load, DURATION_S, probe_rate_pps=PROBES_PPS, anatomy=True)
    for _ in range(TRIES):
        trial = run_trial(live, wanted, lambda: None)
        if trial.anatomy and all(anatomy.joined for anatomy in trial.anatomy):
            break
    return trial


def test_every_probe_that_came_back_is_joined_and_the_parts_add_up(live: tuple[LiveTopology, Point]) -> None:
    topology, point = live
    trial = measure(topology, point)
    assert trial.latency is not None
    assert [anatomy.name for anatomy in trial.anatomy] == [way.name for way in trial.directions]
    assert sum(anatomy.joined for anatomy in trial.anatomy) == trial.latency.probes_received
    assert sum(sum(a.not_joined.values()) for a in trial.anatomy) == (
        trial.latency.probes_sent - trial.latency.probes_received
    )
    inner = ["echo"] if point.scenario == "v2v" else [f"vnf{k}" for k in range(point.chain_length)]
    for way, anatomy in enumerate(trial.anatomy):
        hops = [f"hop {k}" for k in range(1, len(inner) + 2)]
        names = [part.name for part in anatomy.parts]
        assert names == ["generator", *_woven(hops, inner if way == 0 else inner[::-1]), "monitor"]
        assert anatomy.problem == ""
        assert anatomy.reported_mean_ns is not None
        assert abs(anatomy.sum_ns - anatomy.reported_mean_ns) <= TOLERANCE * anatomy.reported_mean_ns
        assert_bounds(anatomy)
    for summary in summarise_anatomy([trial]):
        shares = [summary.share(kind) for kind in ("switch", "vnf", "tester")]  # type: ignore[arg-type]
        assert sum(shares) == pytest.approx(1.0)
        assert (shares[1] > 0) == bool(inner)


def assert_bounds(anatomy: Anatomy) -> None:
    """Each part has bounds around its mean, and what is surely the hops' may be less than their means."""
    bounds = [(part.low_ns, part.mean_ns, part.high_ns) for part in anatomy.parts]
    assert all(low is not None and high is not None and low <= mean <= high for low, mean, high in bounds), bounds
    for part in anatomy.parts:
        assert part.high_ns == part.mean_ns if part.name.startswith("hop") else part.low_ns == part.mean_ns


@pytest.mark.all
def test_at_full_load_and_side_by_side_there_are_bounds_too() -> None:
    """More is offered than the switch forwards: hardly a poll is empty."""
    chain = make_point("planed", "loopback", direction="unidirectional")
    beside = make_point("planed", "parallel", direction="unidirectional", chain_length=3)
    for point, pps, names in ((chain, 2e7, "vnf0"), (beside, PPS, "VNFs")):
        with running("planed", point) as live:
            wanted = TrialRequest(point, "latency", Load("x", pps), DURATION_S, probe_rate_pps=PROBES_PPS, anatomy=True)
            trial = next(
                trial
                for trial in (run_trial(live, wanted, lambda: None) for _ in range(TRIES))
                if all(anatomy.joined for anatomy in trial.anatomy)
            )
        (anatomy,) = trial.anatomy
        assert [part.name for part in anatomy.parts] == ["generator", "hop 1", names, "hop 2", "monitor"]
        assert trial.latency is not None and anatomy.joined == trial.latency.probes_received
        assert anatomy.problem == ""
        assert_bounds(anatomy)


GAP_US, BURST, DRAIN_US = 50.0, 4, 330


def test_the_wait_for_a_batch_is_the_vnfs_part_and_has_its_closed_form() -> None:
    """At a constant rate: whole batches wait for their last frame, what is left of a drain time for its end."""
    frames = DRAIN_US / GAP_US
    in_batches = frames // BURST * BURST
    expected_us = GAP_US / 2 * (in_batches * (BURST - 1) + (frames - in_batches) ** 2) / frames
    chain = f"l2fwd:send_burst={BURST}:drain_us={DRAIN_US}"
    point = make_point("planed", "loopback", direction="unidirectional", chain=chain)
    pps = 1e6 / GAP_US
    wanted = TrialRequest(point, "latency", Load("x", pps), 0.3, probe_rate_pps=int(pps), anatomy=True)
    with running("planed", point) as live:
        trials = [run_trial(live, wanted, lambda: None) for _ in range(TRIES // 2)]
    calm = [trial for trial in trials if not HOST & {reason.code for reason in trial.verdict.reasons}]
    valid = [trial for trial in calm if trial.verdict.kind is VerdictKind.VALID]
    if len(valid) < 3:
        pytest.skip("the machine stops tester and VNF for longer than a batch takes")
    waits = [part.mean_ns / 1e3 for trial in valid for part in trial.anatomy[0].parts if part.kind == "vnf"]
    assert median(waits) == pytest.approx(expected_us, rel=0.05)


def test_a_trial_that_did_not_ask_has_no_anatomy(live: tuple[LiveTopology, Point]) -> None:
    """And stamps of the trial before are not taken for its own."""
    topology, point = live
    measure(topology, point)
    plain = TrialRequest(point, "latency", Load("20kpps", PPS), DURATION_S, probe_rate_pps=PROBES_PPS)
    assert run_trial(topology, plain, lambda: None).anatomy == ()


MIXED = ("container:l2fwd", "vm:l2fwd:accel=tcg")
MIXED_PARTS = (
    ["generator", "hop 1", "vnf0", "hops 2 to 3", "vnf1", "monitor"],
    ["generator", "hops 1 to 2", "vnf1", "vnf0", "hop 3", "monitor"],
)


@pytest.mark.all
def test_hosted_vnfs_stamp_too_and_one_in_a_vm_by_its_own_clock() -> None:
    for name in ("container", "vm"):
        if isinstance(missing := HOSTINGS[name].find(), NotFound):
            pytest.skip(f"{name} is not here: {missing.remedy}")
    point = make_point("planed", "loopback", direction="bidirectional", chain_length=len(MIXED), chain=",".join(MIXED))
    with running("planed", point) as live:
        trial = measure(live, point)
    assert trial.latency is not None
    assert sum(anatomy.joined for anatomy in trial.anatomy) == trial.latency.probes_received
    for anatomy, names in zip(trial.anatomy, MIXED_PARTS, strict=True):
        assert [part.name for part in anatomy.parts] == names
        assert anatomy.problem == ""
        assert all(part.kind == "hosting" for part in anatomy.parts if part.name.startswith("hop"))


def _woven(hops: list[str], inner: list[str]) -> list[str]:
    """hop 1, vnf0, hop 2, ..., the last hop."""
    pairs = [name for pair in zip(hops, inner, strict=False) for name in pair]
    return [*pairs, hops[-1]]
