# SPDX-License-Identifier: BSD-3-Clause
"""Figures of a calibration from made-up counters, and one real calibration of which only the counts are judged."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from planed_answers import statistics

from planebench.analysis.capacity import least_ns
from planebench.analysis.histogram import decode, encode
from planebench.cli.calibrate import calibrate as command
from planebench.host.planed_program import REMEDY, find_planed
from planebench.host.process import Supervisor, high_priority
from planebench.measure.calibrate import (
    BACK,
    THERE,
    FlatOut,
    calibrate,
    compose,
    flat_out,
    latency_floor,
    loop_document,
    measure_frame_size,
    median_floor,
)
from planebench.measure.counts import tester_counts
from planebench.measure.live import LiveSettings
from planebench.model.cpus import Cpus
from planebench.model.errors import DiedError, StartError, UsageError
from planebench.model.header import LatencyFloor
from planebench.model.plan import FrameCheck
from planebench.model.records import LatencyRecord
from planebench.model.scenarios import Flow
from planebench.planed.document import Document
from planebench.planed.statistics import Statistics
from planebench.report.setup import calibration_words
from planebench.store.calibration import condition_of, load, save
from planebench.testbed.placement import Placement, place
from planebench.testbed.request import Ends
from planebench.testbed.tester_config import KERNEL_GAP_NS

Stats = dict[str, Any]
HZ = 2_000_000_000
DURATION_NS = 200_000_000


def placed(tester_cpus: tuple[int, ...], **more: Any) -> Placement:
    return Placement(9, tester_cpus, (), frozenset({0}), **more)


ONE = placed((1,))


def histogram(*counts: tuple[int, int]) -> Stats:
    return {"overflow": 0, "counts": [list(pair) for pair in counts]}


def generator(port: str, packets: int, cycles: int, probes: int) -> Stats:
    counts = dict.fromkeys(("unsent_late_packets", "unsent_ring_full_packets", "attempted_packets"), 0)
    counts |= {"refused_packets": 0, "offered_packets": packets, "intended_packets": packets}
    counts |= {"probes_sent": probes, "probes_stamped": probes, "duration_ns": DURATION_NS if packets else 0}
    return {
        "name": f"gen-{port}",
        "kind": "generator",
        "busy_cycles": cycles * packets,
        "tx_packets": packets,
        "rx_packets": 0,
        "drops": {},
        "drops_by_port": {},
        "generator": counts,
    }


def monitor(port: str, stream: int, packets: int, cycles: int, latency: Mapping[int, int]) -> Stats:
    streams = [
        {
            "stream": stream,
            "forwarded_packets": packets,
            "probes_received": sum(latency.values()),
            "latency": histogram(*latency.items()),
            "ipdv": histogram(),
        }
    ]
    zeros = dict.fromkeys(("foreign_packets", "stale_packets", "corrupt_packets", "bursts", "full_bursts"), 0)
    return {
        "name": f"mon-{port}",
        "kind": "monitor",
        "busy_cycles": cycles * packets,
        "tx_packets": 0,
        "rx_packets": packets,
        "drops": {},
        "drops_by_port": {},
        "monitor": {**zeros, "received_packets": packets, "streams": streams if packets else []},
    }


def stats(
    flow: Flow,
    offered: int,
    forwarded: int | None = None,
    *,
    cycles: tuple[int, int] = (100, 60),
    probes: int = 0,
    latency: Mapping[int, int] | None = None,
) -> Statistics:
    """``stats.get`` after ``offered`` packets in 0.2 s of which ``forwarded`` came; ``cycles``: of sender, receiver."""
    came = offered if forwarded is None else forwarded
    tasks = [
        generator(flow.sender_port, offered, cycles[0], probes),
        generator(flow.receiver_port, 0, 0, 0),
        monitor(flow.receiver_port, flow.stream, came, cycles[1], latency or {}),
        monitor(flow.sender_port, 0, 0, 0, {}),
    ]
    idle = dict.fromkeys(("gaps", "gap_sum_ns", "gap_max_ns", "gap_threshold_ns", "busy_cycles"), 0)
    return statistics({"tsc_hz": HZ, "tasks": tasks, "workers": [idle]})


def test_a_flat_out_try_is_a_rate_and_the_cycles_of_two_halves() -> None:
    assert flat_out(THERE, stats(THERE, 2_000_000, 1_000_000, cycles=(90, 30))) == FlatOut(5e6, 90.0, 30.0, HZ)
    assert flat_out(BACK, stats(BACK, 400, cycles=(10, 20))) == FlatOut(2000.0, 10.0, 20.0, HZ)
    assert flat_out(THERE, stats(THERE, 400, 0)) is None
    assert flat_out(THERE, stats(THERE, 0)) is None


def test_ceilings_that_are_not_measured_are_composed_of_cycles() -> None:
    there, back = FlatOut(1.2e7, 100.0, 60.0, HZ), FlatOut(1.3e7, 40.0, 150.0, HZ)
    one = {(it.sender, it.receiver): (it.pps, it.measured) for it in compose(64, there, back, ONE)}
    assert one == {
        ("wire", "vnf"): (1.2e7, True),
        ("vnf", "wire"): (1.3e7, True),
        ("wire", "wire"): (HZ / (100 + 150), False),
        ("vnf", "vnf"): (HZ / (40 + 60), False),
    }
    two = {(it.sender, it.receiver): it.pps for it in compose(64, there, back, placed((1, 2)))}
    assert (two["wire", "wire"], two["vnf", "vnf"]) == (HZ / 150, HZ / 60)


def test_ceilings_of_a_core_for_each_queue_are_no_better_than_what_was_measured_of_them() -> None:
    """Each of four cores does both halves; together they did 0.9 of that in one direction, and 0.8 in the other."""
    four = placed((1, 2, 3, 4), tester_by_queue=True)
    there = FlatOut(0.9 * 4 * HZ / 160, 100.0, 60.0, HZ)
    back = FlatOut(0.8 * 4 * HZ / 190, 40.0, 150.0, HZ)
    found = {(it.sender, it.receiver): it.pps for it in compose(64, there, back, four)}
    assert (found["wire", "vnf"], found["vnf", "wire"]) == (there.pps, back.pps)
    assert found["wire", "wire"] == pytest.approx(0.8 * 4 * HZ / 250)
    assert found["vnf", "vnf"] == pytest.approx(0.8 * 4 * HZ / 100)


def test_a_try_over_several_queues_is_that_of_all_of_them() -> None:
    tasks = [generator("a", 3_000_000, 90, 0), generator("a", 1_000_000, 50, 0)]
    tasks += [monitor("b", 0, 3_000_000, 30, {}), monitor("b", 2, 1_000_000, 70, {})]
    for task, name in zip(tasks, ("gen-a", "gen-a-q1", "mon-b", "mon-b-q1"), strict=True):
        task["name"] = name
    idle = dict.fromkeys(("gaps", "gap_sum_ns", "gap_max_ns", "gap_threshold_ns", "busy_cycles"), 0)
    found = flat_out(THERE, statistics({"tsc_hz": HZ, "tasks": tasks, "workers": [idle]}))
    assert found == FlatOut(2e7, 80.0, 40.0, HZ)


def record(stats: Stats) -> LatencyRecord | None:
    return tester_counts(stats, (THERE,)).latency


def test_a_floor_keeps_the_histogram_whole() -> None:
    floor = latency_floor(64, 1e6, record(stats(THERE, 200_000, probes=400, latency={100: 300, 1000: 90, 50_000: 9})))
    assert floor is not None
    assert (floor.probes_sent, floor.probes_received) == (400, 399)
    assert (floor.p50_ns, floor.p99_ns) == (100.0, pytest.approx(50_000, rel=1e-3))
    assert int(decode(floor.histogram).sum()) == 399


def test_a_try_without_a_probe_back_is_no_floor() -> None:
    assert latency_floor(64, 1e6, record(stats(THERE, 200_000, probes=400))) is None
    assert latency_floor(64, 1e6, record(stats(THERE, 200_000))) is None


def floor(p50_ns: float) -> LatencyFloor:
    return LatencyFloor(64, 1e6, 400, 400, p50_ns, 2 * p50_ns, "")


def test_the_middle_floor_counts() -> None:
    assert median_floor(64, [floor(900), floor(100), floor(120)]).p50_ns == 120
    assert median_floor(64, [floor(900), None, floor(120)]).p50_ns == 120
    assert median_floor(64, [None, floor(900), None]).p50_ns == 900
    with pytest.raises(DiedError, match="no probe of 64 B"):
        median_floor(64, [None, None, None])


class FakeTester:
    """Answers as planed would: flat out 2.0, then 2.4, then 2.2 million packets in 0.2 s; paced what was asked for."""

    def __init__(self) -> None:
        self.sent: list[tuple[Flow, float | None, int]] = []

    def __call__(self, flow: Flow, size: int, pps: float | None, probes: int) -> Stats:
        self.sent.append((flow, pps, probes))
        if pps is None:
            return stats(flow, (2_000_000, 2_400_000, 2_200_000)[len(self.sent) % 3 - 1])
        return stats(flow, round(pps * DURATION_NS / 1e9), probes=probes, latency={100: 1} if probes else None)


def test_a_frame_size_takes_nine_sends() -> None:
    tester = FakeTester()
    ceilings, (found,) = measure_frame_size(64, "virtio", ONE, tester)
    assert [it.pps for it in ceilings if it.measured] == [1.2e7, 1.2e7]
    assert (found.background_pps, found.probes_sent) == (1e6, 2000)
    assert [flow for flow, pps, _ in tester.sent if pps is None] == [THERE] * 3 + [BACK] * 3
    assert len(tester.sent) == 9


def test_a_floor_is_tried_again_until_a_probe_returns() -> None:
    class Slow(FakeTester):
        def __call__(self, flow: Flow, size: int, pps: float | None, probes: int) -> Stats:
            found = super().__call__(flow, size, pps, probes)
            late = probes and len(self.sent) < 6 + 5
            return stats(flow, 1, probes=probes, latency=None) if late else found

    tester = Slow()
    _, (found,) = measure_frame_size(64, "virtio", ONE, tester)
    assert (found.probes_sent, len(tester.sent)) == (2000, 6 + 5)


def test_a_veth_wire_has_one_kind_of_end() -> None:
    tester = FakeTester()
    ceilings, _ = measure_frame_size(64, "veth", ONE, tester)
    assert [(it.sender, it.receiver, it.measured) for it in ceilings] == [("wire", "wire", True)]
    assert len(tester.sent) == 6


def test_of_a_memif_only_the_tester_s_side_is_a_ceiling() -> None:
    tester = FakeTester()
    ceilings, _ = measure_frame_size(64, "memif", ONE, tester)
    assert [(it.sender, it.receiver, it.measured) for it in ceilings] == [("wire", "wire", False)]
    assert len(tester.sent) == 9


def test_of_a_vhost_wire_every_end_is_as_fast_as_the_tester_s() -> None:
    tester = FakeTester()
    ceilings, _ = measure_frame_size(64, "vhost", ONE, tester)
    (pps,) = {it.pps for it in ceilings}
    (memif,), _ = measure_frame_size(64, "memif", ONE, FakeTester())
    assert (pps, len(ceilings), any(it.measured for it in ceilings)) == (memif.pps, 4, False)


def test_a_clock_of_the_ports_has_a_floor_of_its_own() -> None:
    def by_kernel(found: LatencyRecord, _stats: object) -> LatencyRecord:
        return replace(found, clock="kernel", histogram=encode([(40, found.probes_received)]))

    _, floors = measure_frame_size(64, "veth", ONE, FakeTester(), by_kernel)
    assert [(floor.clock, floor.p50_ns, least_ns(floor)) for floor in floors] == [
        ("software", 100.0, 100.0),
        ("kernel", 40.0, 40.0),
    ]


@pytest.mark.parametrize(("stamped_from", "clocks"), [(5, ["software", "hardware"]), (99, ["software"])])
def test_a_clock_that_stamps_no_probe_is_tried_again(stamped_from: int, clocks: list[str]) -> None:
    """Its latency is not that of the software, which stays where it stamped none."""
    tried = itertools.count(1)

    def by_nic(found: LatencyRecord, _stats: object) -> LatencyRecord | None:
        return replace(found, clock="hardware") if next(tried) >= stamped_from else None

    _, floors = measure_frame_size(64, "pci", ONE, FakeTester(), by_nic)
    assert [floor.clock for floor in floors] == clocks


def test_a_slow_tester_has_less_behind_its_probes() -> None:
    _, (found,) = measure_frame_size(64, "veth", ONE, lambda flow, *what: Slow()(flow, *what))
    assert found.background_pps == 0.5 * 4e5


class Slow(FakeTester):
    def __call__(self, flow: Flow, size: int, pps: float | None, probes: int) -> Stats:
        return stats(flow, 80_000) if pps is None else super().__call__(flow, size, pps, probes)


def test_nothing_that_comes_through_is_an_error() -> None:
    with pytest.raises(DiedError, match=r"no frame of 64 B arrived from a->b"):
        measure_frame_size(64, "virtio", ONE, lambda flow, *_: stats(flow, 100, 0))


def test_a_wire_that_the_user_has_not_named_is_refused() -> None:
    settings = LiveSettings(Path("/nowhere"), 256, False, 0, "pci")
    with Supervisor(Path("/tmp")) as supervisor, pytest.raises(UsageError):
        calibrate([64], settings, cpus=Cpus((0, 1)), supervisor=supervisor)


@pytest.mark.parametrize("ring_size", [7, 0, -256, 1 << 20])
def test_the_command_refuses_a_ring_size_that_no_wire_has(ring_size: int) -> None:
    with pytest.raises(UsageError, match=f'ring_size "{ring_size}" is not valid'):
        command("64", "virtio", ring_size, None, json=False, quiet=False)


def loop(
    tester_cpus: tuple[int, ...], workdir: Path, wire: Any = "virtio", *, tester_cores: int = 1, **more: Any
) -> Document:
    settings = LiveSettings(Path("planed"), 256, False, 1518, wire, tester_cores=tester_cores)
    return loop_document(settings, placed(tester_cpus, tester_by_queue=tester_cores > 1), "c", workdir, **more)


def test_one_worker_polls_receivers_before_senders() -> None:
    document = loop((0,), Path("/run/x")).to_json()
    assert document["workers"] == [{"name": "w0", "cpu": 0, "tasks": ["mon-a", "mon-b", "gen-a", "gen-b"]}]
    assert [(it["kind"], it["path"]) for it in document["ports"]] == [
        ("vhost-user", "/run/x/loop/sock"),
        ("virtio-user", "/run/x/loop/sock"),
    ]


def test_system_calls_of_the_tester_are_no_gaps_of_its_polls() -> None:
    links = Ends("pbt0", "pbs0")
    assert [it.gap_threshold_ns for it in loop((0,), Path("/run/x"), "veth", ends=links).workers] == [KERNEL_GAP_NS]


def test_the_end_that_listens_is_opened_first() -> None:
    ports = loop((0,), Path("/run/x"), "vhost").to_json()["ports"]
    assert [(it["name"], it["kind"]) for it in ports] == [("b", "vhost-user"), ("a", "virtio-user")]


def test_with_two_tester_cpus_each_end_has_one() -> None:
    workers = {it["cpu"]: it["tasks"] for it in loop((3, 1), Path("/run/x")).to_json()["workers"]}
    assert workers == {3: ["mon-a", "gen-a"], 1: ["mon-b", "gen-b"]}


def test_with_several_tester_cores_each_has_a_queue_of_both_ends() -> None:
    document = loop((3, 1), Path("/run/x"), tester_cores=2).to_json()
    assert {it["queues"] for it in document["ports"]} == {2}
    workers = {it["cpu"]: it["tasks"] for it in document["workers"]}
    assert workers == {
        3: ["mon-a", "mon-b", "gen-a", "gen-b"],
        1: ["mon-a-q1", "mon-b-q1", "gen-a-q1", "gen-b-q1"],
    }
    streams = {it["name"]: it["stream"] for it in document["tasks"] if it["kind"] == "generator"}
    assert streams == {"gen-a": 0, "gen-b": 1, "gen-a-q1": 2, "gen-b-q1": 3}


def test_a_wire_with_one_queue_pair_is_refused_for_several_cores() -> None:
    wanted = LiveSettings(Path("/nowhere"), 256, False, 0, "veth", tester_cores=2)
    with (
        Supervisor(Path("/tmp")) as supervisor,
        pytest.raises(UsageError, match="needs --wire memif, pci, vhost"),
    ):
        calibrate([64], wanted, cpus=Cpus((0, 1)), supervisor=supervisor)


def test_the_veth_wire_is_two_packet_sockets() -> None:
    ports = loop((0,), Path("/run/x"), "veth", ends=Ends("left", "right")).to_json()["ports"]
    assert [(it["kind"], it["device"].split(",")[:2]) for it in ports] == [
        ("ethdev", ["net_af_packet_a", "iface=left"]),
        ("ethdev", ["net_af_packet_b", "iface=right"]),
    ]


def test_the_memif_wire_is_a_server_and_a_client() -> None:
    ports = loop((0,), Path("/run/x"), "memif").to_json()["ports"]
    assert [(it["name"], it["kind"], it["path"]) for it in ports] == [
        (name, f"memif-{role}", "/run/x/loop/sock") for name, role in (("a", "server"), ("b", "client"))
    ]


@pytest.fixture
def planed() -> Path:
    found = find_planed()
    if found is None:
        pytest.skip(f"planed is not here: {REMEDY}")
    return found


@pytest.mark.dataplane
@pytest.mark.parametrize(("cpus", "cores"), [((0,), 1), ((0, 1), 1), ((0, 1), 2), ((0,), 4)])
def test_planed_takes_the_document(tmp_path: Path, planed: Path, cpus: tuple[int, ...], cores: int) -> None:
    file = tmp_path / "c.json"
    (tmp_path / "loop").mkdir()  # planed asks for it
    loop(cpus, tmp_path, tester_cores=cores).write(file)
    done = subprocess.run([planed, "--check", file], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.dataplane
@pytest.mark.parametrize(
    ("wire", "cores", "check"),
    [
        pytest.param("virtio", 1, "full", marks=pytest.mark.all),
        ("virtio", 1, "sampled"),
        pytest.param("memif", 1, "full", marks=pytest.mark.all),
        pytest.param("veth", 1, "full", marks=pytest.mark.all),
        pytest.param("virtio", 2, "full", marks=pytest.mark.all),
        ("memif", 2, "full"),
    ],
)
def test_a_real_calibration(tmp_path: Path, planed: Path, wire: str, cores: int, check: FrameCheck) -> None:
    cpus = Cpus(tuple(sorted(os.sched_getaffinity(0))), tester_cores=cores)
    told = list[float]()
    with high_priority(), Supervisor(Path("/tmp")) as supervisor:
        try:
            found = calibrate(
                [64, 64],
                LiveSettings(planed, 256, False, 0, wire, tester_cores=cores, check=check),
                cpus=cpus,
                supervisor=supervisor,
                duration_s=0.05,
                listener=lambda _, share: told.append(share),
            )
        except StartError as error:
            if wire == "veth" and os.geteuid() != 0:
                pytest.skip(f"no veth pairs here: {error}")
            raise
        assert not any(process.alive() for process in supervisor.processes)
    pairs = {("wire", "wire")} if wire != "virtio" else {(a, b) for a in ("wire", "vnf") for b in ("wire", "vnf")}
    assert {(it.sender, it.receiver) for it in found.ceilings} == pairs
    assert all(it.pps > 0 for it in found.ceilings)
    (only,) = found.floors
    assert 0 < only.probes_received <= only.probes_sent
    assert 0 < only.p50_ns <= only.p99_ns
    assert (found.tester_cpus, found.tester_cores, found.check) == (len(place(cpus).tester_cpus), cores, check)
    assert (f"for {cores} queue pairs" in calibration_words(found)) == (cores > 1)
    assert told == sorted(told)
    assert all(distance > 0 for distance in found.distances_ns)
    assert bool(found.distances_ns) == (len(cpus.allowed) > 1)
    save(found, tmp_path)
    assert load(condition_of(found), [64], folder=tmp_path) == found


@pytest.mark.dataplane
def test_a_planed_that_does_not_start_is_told(tmp_path: Path) -> None:
    program = tmp_path / "planed"
    program.write_text("#!/bin/sh\necho no memory today; exit 3\n")
    program.chmod(0o755)
    with Supervisor(Path("/tmp")) as supervisor, pytest.raises(StartError, match="no memory today"):
        calibrate(
            [64],
            LiveSettings(program, 256, False, 0, "virtio"),
            cpus=Cpus(tuple(sorted(os.sched_getaffinity(0)))),
            supervisor=supervisor,
            duration_s=0.05,
        )
